"""`evalkit route-sweep`: judge a router on recorded outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.run_options import Json, Junit, Markdown, MaxSpend, Models, NoEvidence, Out, Quiet, Seed

__all__ = ["route_sweep"]


def route_sweep(
    study: Annotated[
        Path | None, typer.Argument(help="A routing study (YAML). Without one the bundled study is run.")
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold", help="Judge this threshold, fixed in advance; once for each tier but the top."
        ),
    ] = None,
    router: Annotated[
        str | None,
        typer.Option(
            "--router", metavar="NAME", help="Judge this one of several routers, at its part of the error rate."
        ),
    ] = None,
    target_escalation: Annotated[
        str | None,
        typer.Option(
            "--target-escalation", help="Print the threshold for this escalation rate (0 to 1), and stop."
        ),
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
    """Judge a router: which requests may stay cheap, at which threshold.

    A study without outcomes calls its models first, as evalkit replay does. Exit codes: 0 approved, 1 rejected,
    2 usage or input error, 3 insufficient evidence, 4 the models could not all be called.
    """
    from evalkit.workflows.replay_options import usd
    from evalkit.workflows.route_sweep_command import Options, run

    options = Options(
        study=study,
        thresholds=tuple(threshold or ()),
        router=router,
        target_escalation=target_escalation,
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
    raise typer.Exit(run(options))
