"""`evalkit doctor`: is everything there that a run needs?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["doctor"]


def doctor(
    study: Annotated[
        Path | None, typer.Argument(help="A study (YAML), to check keys, endpoints and prices of its models.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the run (default: reports/<study>).")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Ask each address that the study names for its list of models.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the checks here as JSON.")] = None,
) -> None:
    """Check Python, packages, keys, endpoints, prices and disk before a run. No key is ever shown.

    Nothing is sent without --live, and no model is called. Exit codes: 0 no problem, 2 at least one, with its fix.
    """
    from evalkit.workflows.doctor import doctor as run_it

    raise typer.Exit(run_it(study, out=out, live=live, json_file=json_file))
