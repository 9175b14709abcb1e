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
    max_spend: Annotated[
        str | None,
        typer.Option("--max-spend", metavar="USD", help="Where models are called: USD that is never passed."),
    ] = None,
    models: Annotated[
        Path | None, typer.Option("--models", help="Where models are called: folder of local models' files.")
    ] = None,
    no_evidence: Annotated[
        bool, typer.Option("--no-evidence", help="Keep no evidence.zip; a sign-off then stays open.")
    ] = False,
) -> None:
    """Judge a ladder of arms: the least costly that meets every limit, and where more thinking stops to pay.

    A study without outcomes calls its models first, as evalkit replay does. Exit codes: 0 approved, 1 rejected,
    2 usage or input error, 3 insufficient evidence, 4 the models could not all be called.
    """
    from evalkit.workflows.reasoning_budget_command import LadderOptions, run_ladder
    from evalkit.workflows.replay_options import usd

    options = LadderOptions(
        study=study,
        out=out,
        json_file=json_file,
        junit=junit,
        markdown=markdown,
        seed=seed,
        quiet=quiet,
        max_spend_usd=usd("--max-spend", max_spend),
        models=models,
        evidence=not no_evidence,
    )
    raise typer.Exit(run_ladder(options))
