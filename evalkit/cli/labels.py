"""`evalkit labels`: draw them from a log, plan, check, derive, compare and audit them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.lazy import WholeGroup

__all__ = ["app"]

app = typer.Typer(
    help="Draw, plan, check, derive, compare and audit labels.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=WholeGroup,
)

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


@app.command()
def sample(
    log: Annotated[Path, typer.Argument(help="Requests: CSV, JSONL or Parquet with prompt or messages.")],
    out: Annotated[Path, typer.Option("--out", help="Sample to write: .jsonl, .csv or .parquet.")],
    count: Annotated[int, typer.Option("--count", help="Items to draw.")] = 300,
    by: Annotated[
        str | None, typer.Option("--by", help="Strata: risk, category or none (default: what the log has).")
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", metavar="NAME=NUMBER", help="Part of a stratum, others have 1. May be repeated."),
    ] = None,
    proportional: Annotated[
        bool, typer.Option("--proportional", help="Draw by traffic, instead of the same from each stratum.")
    ] = False,
    similarity: Annotated[
        float, typer.Option("--similarity", help="Texts at least so similar are drawn as one (0.5 to 1).")
    ] = 0.85,
    regions: Annotated[
        str, typer.Option("--regions", help="Countries whose telephone numbers need no country code.")
    ] = "KR,US,GB",
    presidio: Annotated[
        list[str] | None,
        typer.Option(
            "--presidio", metavar="LANG=MODEL", help="Find names too, with Presidio and an installed spaCy model."
        ),
    ] = None,
    column: _Columns = None,
    encoding: _Encoding = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw.")] = 0,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Draw a weighted sample of a log, without personal data and near duplicates.

    Emails, telephones, cards, national ids, accounts, street addresses and keys are replaced by their kind; what
    they were is told nowhere. Names are not found: look before you share the file. Rare strata are oversampled;
    weight says how many requests an item stands for.
    """
    from evalkit.workflows.label_sample import sample_log

    sample_log(
        log,
        out=out,
        count=count,
        by=by,
        parts=part or [],
        proportional=proportional,
        similarity=similarity,
        regions=regions,
        columns=column or [],
        encoding=encoding,
        seed=seed,
        json_file=json_file,
        quiet=quiet,
        presidio=presidio or [],
    )


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(help="A routing study (YAML).")],
    labels: Annotated[Path | None, typer.Option("--labels", help="Labels at hand instead of the study's.")] = None,
    needs_share: Annotated[
        list[str] | None,
        typer.Option("--needs-share", metavar="CLASS=SHARE", help="Share of a class that needs more than cheap."),
    ] = None,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Say how many labels each risk class needs until its limit can be certified, and how many items to draw."""
    from evalkit.workflows.label_plan import plan_labels

    plan_labels(study, labels=labels, needs_share=needs_share or [], json_file=json_file, quiet=quiet)


@app.command()
def agree(
    file: Annotated[str, typer.Argument(help="Labels with a column labels, or the labels of one annotator.")],
    other: Annotated[str | None, typer.Argument(help="The labels of another annotator.")] = None,
    study: Annotated[Path | None, typer.Option("--study", help="Tiers, risk classes and columns of it.")] = None,
    tiers: Annotated[str | None, typer.Option("--tiers", help="Tiers, least capable first: cheap,mid.")] = None,
    risk_classes: Annotated[str | None, typer.Option("--risk-classes", help="Risk classes: low,high.")] = None,
    column: _Columns = None,
    encoding: _Encoding = None,
    confidence: Annotated[float, typer.Option("--confidence", help="Of the intervals.")] = 0.95,
    replicates: Annotated[int, typer.Option("--replicates", help="Bootstrap replicates.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the bootstrap.")] = 0,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Say how far annotators agree, on which items they do not, and who labels lower than the others."""
    from evalkit.workflows.label_agree import agree_labels

    agree_labels(
        file,
        other,
        study=study,
        tiers=tiers,
        risk_classes=risk_classes,
        columns=column or [],
        encoding=encoding,
        confidence=confidence,
        replicates=replicates,
        seed=seed,
        json_file=json_file,
        quiet=quiet,
    )


@app.command()
def audit(
    study: Annotated[Path, typer.Argument(help="A routing study (YAML).")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Draw items into this file, to be judged again.")
    ] = None,
    judged: Annotated[Path | None, typer.Option("--judged", help="Read that file back, judged.")] = None,
    per_class: Annotated[int, typer.Option("--per-class", help="Cheap labels to draw a risk class.")] = 100,
    needs_per_class: Annotated[
        int, typer.Option("--needs-per-class", help="Labelled needs to draw too, to see how many are wrong.")
    ] = 0,
    threshold: Annotated[
        list[str] | None,
        typer.Option("--threshold", help="Audit this threshold instead of the one that route-sweep shows."),
    ] = None,
    everywhere: Annotated[
        bool,
        typer.Option("--all", help="Audit all cheap labels, for every threshold of every router."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, help="Seed of the draw; route-sweep takes audits with the study's own only."
        ),
    ] = None,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Draw a random sample of items that would go cheap for a second look, and bound the needs that labels miss.

    What --json writes can be named in the study (audit: audit.json), so that its limits hold for the true rate.
    Finding the threshold is a look at the labels, the same one as that of route-sweep.
    """
    from evalkit.workflows.label_audit import audit_labels

    audit_labels(
        study,
        threshold=threshold or [],
        everywhere=everywhere,
        out=out,
        judged=judged,
        per_class=per_class,
        needs_per_class=needs_per_class,
        seed=seed,
        json_file=json_file,
        quiet=quiet,
    )


@app.command("next")
def next_(
    study: Annotated[Path, typer.Argument(help="A routing study (YAML).")],
    unlabelled: Annotated[
        Path, typer.Option("--unlabelled", help="Items with id, risk and, if there are, score.")
    ],
    count: Annotated[int, typer.Option("--count", help="Items to label.")] = 100,
    out: Annotated[Path | None, typer.Option("--out", help="Write the items here.")] = None,
    threshold: Annotated[
        list[str] | None, typer.Option("--threshold", help="Look at the bounds at this threshold.")
    ] = None,
    column: _Columns = None,
    encoding: _Encoding = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the draw instead of the study's.")
    ] = None,
    json_file: _Json = None,
    quiet: _Quiet = False,
) -> None:
    """Say how many items of each risk class to label next: the class whose bound decides first; and draw them."""
    from evalkit.workflows.label_next import next_labels

    next_labels(
        study,
        unlabelled=unlabelled,
        count=count,
        threshold=threshold or [],
        out=out,
        columns=column or [],
        encoding=encoding,
        seed=seed,
        json_file=json_file,
        quiet=quiet,
    )
