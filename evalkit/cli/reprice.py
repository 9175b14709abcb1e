"""`evalkit reprice`: the costs of a finished run at the prices of another card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reprice"]


def reprice(
    run: Annotated[Path, typer.Argument(help="The folder of a replay, or a file of outcomes.")],
    prices: Annotated[Path, typer.Option("--prices", help="The price card, or genai-prices.")],
    was: Annotated[
        Path | None, typer.Option("--was", help="The card that the run used, to price what has no cost yet.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Outcomes to write (default: beside the old ones, .repriced).")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="TIER=MODEL", help="The model of a tier. May be repeated."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="FIELD=COLUMN", help="The column that holds a field. May be repeated."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of a file that is not UTF-8.")
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="The calls went through a batch API.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the totals here as JSON.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print which card was used, and nothing else.")] = False,
) -> None:
    """Price a finished run with another card, into a new file. No model is called.

    Exit codes: 0 written, 2 usage or input error, 3 not one row could be priced.
    """
    from evalkit.workflows.reprice import Options
    from evalkit.workflows.reprice import reprice as run_it

    options = Options(
        run=run,
        prices=prices,
        was=was,
        out=out,
        models=tuple(model or ()),
        columns=tuple(column or ()),
        encoding=encoding,
        batch=batch,
        json_file=json_file,
        quiet=quiet,
    )
    raise typer.Exit(run_it(options))
