"""`evalkit compare`: two runs on the same items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["compare"]


def compare(
    base: Annotated[Path, typer.Argument(help="The folder of the run to compare with.", metavar="BASE")],
    candidate: Annotated[Path, typer.Argument(help="The folder of the new run.", metavar="CANDIDATE")],
    base_arm: Annotated[
        str | None,
        typer.Option("--base-arm", help="The arm of a ladder to look at (default: the selected or shown one)."),
    ] = None,
    candidate_arm: Annotated[
        str | None, typer.Option("--candidate-arm", help="The same of the new run; BASE may be the same folder.")
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="CONDITION",
            help="Exit with 1 where it is met, with 3 where it cannot be told. May be repeated: newly-failing, "
            "newly-under-routed (each also for one risk class, newly-failing:critical), lower-pass-rate, "
            "higher-cost, higher-under-route-loss, gate-lost, worse-verdict, items-differ, inputs-differ (or one "
            "input, inputs-differ:labels).",
        ),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the comparison as JSON.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write it as Markdown.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code says it.")] = False,
) -> None:
    """Compare two runs of one kind: paired differences with intervals, what newly fails and works, which inputs
    differ.

    Costs that were priced with two cards are not compared. Exit codes: 0 done and no condition met, 1 a condition
    is met, 2 usage or input error, 3 a condition cannot be told.
    """
    from evalkit.workflows.compare_command import CompareOptions, run

    raise typer.Exit(
        run(
            CompareOptions(
                base, candidate, base_arm, candidate_arm, tuple(fail_on or ()), json_file, markdown, quiet
            )
        )
    )
