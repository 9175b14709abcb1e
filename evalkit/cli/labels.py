"""`evalkit labels`: check labels, and derive them from outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

app = typer.Typer(help="Check and derive labels.", no_args_is_help=True, rich_markup_mode=None)

_Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="FIELD=COLUMN", help="The column that holds a field. May be repeated."),
]
_Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of a file that is not UTF-8.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but notices.")]
_Json = Annotated[Path | None, typer.Option("--json", help="Write the summary here as JSON.")]


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="Labels: CSV, JSONL, Parquet, or hf://org/name@revision/split.")],
    study: Annotated[Path | None, typer.Option("--study", help="Tiers, risk classes and columns of it.")] = None,
    tiers: Annotated[str | None, typer.Option("--tiers", help="Tiers, least capable first: cheap,mid.")] = None,
    risk_classes: Annotated[str | None, typer.Option("--risk-classes", help="Risk classes: low,high.")] = None,
    column: _Columns = None,
    encoding: _Encoding = None,
    drop_identical: Annotated[
        bool, typer.Option("--drop-identical", help="Keep one of rows that are equal in every field.")
    ] = False,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Read labels as a study would, and print what they hold.

    Exit codes: 0 the labels are sound, 2 they are not, with every fault.
    """
    from evalkit.workflows.labels import check_labels

    check_labels(
        file,
        study=study,
        tiers=tiers,
        risk_classes=risk_classes,
        columns=column or [],
        encoding=encoding,
        drop_identical=drop_identical,
        json_file=json_file,
        quiet=quiet,
    )


@app.command()
def derive(
    outcomes: Annotated[Path, typer.Argument(help="Outcomes: CSV, JSONL or Parquet.")],
    tiers: Annotated[str, typer.Option("--tiers", help="Tiers to choose from, least capable first.")],
    out: Annotated[Path, typer.Option("--out", help="Labels to write: .jsonl, .csv or .parquet.")],
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Items with prompt, risk, category, ... by id.")
    ] = None,
    risk: Annotated[str | None, typer.Option("--risk", help="One risk class for all items.")] = None,
    column: _Columns = None,
    encoding: _Encoding = None,
    pass_at: Annotated[float, typer.Option("--pass-at", help="A score of at least this passes.")] = 1.0,
    missing: Annotated[
        str, typer.Option("--missing", help="A missing row is an error, or counts as unanswered.")
    ] = "error",
    quiet: _Quiet = False,
) -> None:
    """Write labels whose required tier is the least tier that passed; nobody passed: unsolvable.

    An unanswered request is no pass; with several samples all must pass. The labels are marked as derived: say
    labels_kind: derived in the study.
    """
    from evalkit.workflows.labels import derive_labels

    derive_labels(
        outcomes,
        tiers=tiers,
        out=out,
        labels=labels,
        risk=risk,
        columns=column or [],
        encoding=encoding,
        pass_at=pass_at,
        missing=missing,
        quiet=quiet,
    )
