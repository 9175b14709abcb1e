"""`evalkit reasoning-budget`: how much thinking is worth paying for, on recorded outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["reasoning_budget"]


def reasoning_budget(
    study: Annotated[
        Path | None,
        typer.Argument(help="A reasoning-budget study (YAML). Without one the bundled study is run."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the report (default: reports/<study>).")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write result.json here too.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write the gates as JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write a Markdown summary.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed instead of the study's.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict only.")] = False,
) -> None:
    """Judge a ladder of arms: the least costly that meets every limit, and where more thinking stops to pay.

    Exit codes: 0 approved, 1 rejected, 2 usage or input error, 3 insufficient evidence.
    """
    from evalkit.workflows.reasoning_budget_command import LadderOptions, run_ladder

    options = LadderOptions(
        study=study,
        out=out,
        json_file=json_file,
        junit=junit,
        markdown=markdown,
        seed=seed,
        quiet=quiet,
    )
    raise typer.Exit(run_ladder(options))
