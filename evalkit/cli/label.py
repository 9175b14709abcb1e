"""`evalkit label`: a page on this machine on which a person labels requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["label"]


def label(
    target: Annotated[
        str, typer.Argument(metavar="STUDY|LABELS", help="A routing study (YAML), or a file of items.")
    ],
    annotator: Annotated[str | None, typer.Option("--annotator", help="Who labels. Needed for the page.")] = None,
    replies: Annotated[
        Path | None, typer.Option("--replies", help="Outcomes with the candidates' replies, to be judged blind.")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    lang: Annotated[str, typer.Option("--lang", help="Language of the page: en or ko.")] = "en",
    adjudicate: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--adjudicate", metavar="FILE FILE", help="Settle the conflicts of two annotators."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File of decisions (default: <study>.<annotator>.decisions.jsonl)."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the order of replies.")] = None,
    tiers: Annotated[
        str | None, typer.Option("--tiers", help="Without a study: tiers, least capable first: cheap,mid.")
    ] = None,
    risk_classes: Annotated[
        str | None, typer.Option("--risk-classes", help="Without a study: risk classes: low,high.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="FIELD=COLUMN", help="The column of the items that holds a field."),
    ] = None,
    reply_column: Annotated[
        list[str] | None,
        typer.Option("--reply-column", metavar="FIELD=COLUMN", help="The column of --replies that holds a field."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of items that are not UTF-8.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Open no page; write labels from --decisions here.")
    ] = None,
    decisions: Annotated[
        list[Path] | None, typer.Option("--decisions", help="A file of decisions for --export. May be repeated.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave items that nobody decided out of --export.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the address and notices only.")] = False,
) -> None:
    """Label requests on a page of this machine: who wrote which reply is not shown, every decision is kept.

    Open the address that is printed. Each annotator has a file of their own and goes on where it ends. Exit codes:
    0 stopped or exported, 2 usage or input error.
    """
    from evalkit.workflows.label_page import LabelOptions
    from evalkit.workflows.label_page import label as run

    run(
        LabelOptions(
            target=target, annotator=annotator, replies=replies, port=port, lang=lang, adjudicate=adjudicate,
            out=out, seed=seed, tiers=tiers, risk_classes=risk_classes, columns=column or [],
            reply_columns=reply_column or [], encoding=encoding, export=export, decisions=decisions or [],
            partial=partial, quiet=quiet,
        )
    )  # fmt: skip
