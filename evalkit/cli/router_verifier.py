"""`evalkit router score-replies`: a verifier's score of each tier's reply, for a cascade."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register", "score_replies"]


class _By(StrEnum):
    """The verifiers."""

    SELF_CONSISTENCY = "self_consistency"
    LOG_PROBABILITY = "log_probability"
    RUBRIC = "rubric"
    JUDGE = "judge"


def register(app: typer.Typer) -> None:
    """Add the command to `evalkit router`."""
    app.command("score-replies")(score_replies)


def score_replies(
    study: Annotated[Path, typer.Argument(help="A routing study (YAML).")],
    verifier: Annotated[_By, typer.Option("--verifier", help="What looks at the replies.")],
    out: Annotated[
        Path, typer.Option("--out", help="Write id, score_<tier>, verifier_usd_<tier> here (CSV, JSONL, Parquet).")
    ],
    replies: Annotated[
        Path | None, typer.Option("--replies", help="Outcomes with replies instead of the study's.")
    ] = None,
    rubric: Annotated[
        Path | None, typer.Option("--rubric", help="A rubric that needs no reference: for rubric and judge.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Folder of the judge's ledger (reports/<study>/verifier).")
    ] = None,
    max_spend: Annotated[
        str | None, typer.Option("--max-spend", help="USD that the judge may be paid in all, never passed.")
    ] = None,
    recorded: Annotated[
        list[Path] | None, typer.Option("--recorded", help="Answer from these recordings of the judge first.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Call nobody: what is not recorded fails.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but notices.")] = False,
) -> None:
    """Score the replies of every tier but the top without knowing what is right, for policy: cascade.

    self_consistency: how many samples agree. log_probability: how sure the model was of its tokens. rubric: one
    that needs no reference. judge: a model, asked through a ledger that resumes. Exit codes: 0 written, 2 usage or
    input error, 4 not complete yet (nothing is lost).
    """
    from evalkit.workflows.replay import RunOptions
    from evalkit.workflows.replay_options import usd
    from evalkit.workflows.verifier_scores import VerifierOptions
    from evalkit.workflows.verifier_scores import score_replies as write

    run = RunOptions(
        folder=folder,
        max_spend_usd=usd("--max-spend", max_spend),
        recorded=tuple(recorded or ()),
        live=not offline,
    )
    options = VerifierOptions(study, verifier.value, out, replies, rubric, run, quiet)
    raise typer.Exit(write(options))
