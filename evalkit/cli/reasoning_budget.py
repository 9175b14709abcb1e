"""`evalkit reasoning-budget`: how much thinking is worth paying for, on recorded outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.run_options import Json, Junit, Markdown, MaxSpend, Models, NoEvidence, Out, Quiet, Seed

__all__ = ["reasoning_budget"]


def reasoning_budget(
    study: Annotated[
        Path | None,
        typer.Argument(help="A reasoning-budget study (YAML). Without one the bundled study is run."),
    ] = None,
    out: Out = None,
    json_file: Json = None,
    junit: Junit = None,
    markdown: Markdown = None,
    seed: Seed = None,
    quiet: Quiet = False,
    max_spend: MaxSpend = None,
    models: Models = None,
    no_evidence: NoEvidence = False,
) -> None:
    """Judge a ladder of arms: the least costly that meets every limit, and where more thinking stops to pay.

    A study without outcomes calls its models first, as evalkit replay does. Exit codes: 0 approved, 1 rejected,
    2 usage or input error, 3 insufficient evidence, 4 the models could not all be called.
    """
    from evalkit.workflows.judge_command import JudgeOptions
    from evalkit.workflows.reasoning_budget_command import run_ladder
    from evalkit.workflows.replay_options import usd

    options = JudgeOptions(
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
