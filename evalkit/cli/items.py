"""`evalkit items`: every item of a run, as pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["items"]


def items(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.", metavar="RUN")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the pages (default: RUN/items).")] = None,
    page_size: Annotated[int, typer.Option("--page-size", help="Most items of a page.")] = 500,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="FLAG[,FLAG]", help="Only items with one of these flags, such as under_routed."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Lay out every item of a run as pages, the worst first, with links for each risk class and flag.

    Open index.html in a browser: nothing is loaded and no server is needed. Exit codes: 0 done, 2 usage or input
    error.
    """
    from evalkit.workflows.items_pages import ItemsOptions, write_items

    raise typer.Exit(write_items(ItemsOptions(run, out, page_size, tuple(only or ()), quiet)))
