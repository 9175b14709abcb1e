"""A judge as verifier: asked about replies through a ledger of its own, so that no question is paid for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalkit.errors import Incomplete, InputError
from evalkit.grading.cell import requests_to_judge
from evalkit.grading.items import Item
from evalkit.grading.rubric import Rubric
from evalkit.labels.labelset import LabelSet
from evalkit.providers.call import Failure, Reply
from evalkit.replay import CardPricing, Ledger, Progress, RunSummary, run
from evalkit.replay.cells import CellRecord, cells_of
from evalkit.replay.plan import Cell, Plan, plan_of
from evalkit.replay.pricing import Unpriced
from evalkit.routers.verifiers.replies import TierReplies
from evalkit.routers.verifiers.scores import TierScores, answered, by_judge
from evalkit.study.models import RoutingStudy
from evalkit.study.prices import read_price_card
from evalkit.workflows.replay import LEDGER, RunOptions, settings_of
from evalkit.workflows.replay_items import read_prompts
from evalkit.workflows.replay_judge import by_judge as answered_by_judge
from evalkit.workflows.replay_providers import Providers
from evalkit.workflows.replay_setup import ReplayInputs, judge_candidate
from evalkit.workflows.run_files import report_folder

__all__ = ["judged_scores", "verifier_folder"]


def verifier_folder(study: RoutingStudy, folder: Path | None = None) -> Path:
    """Where the verifier's ledger is: `folder`, or reports/<study>/verifier."""
    return folder if folder is not None else report_folder(study.name) / "verifier"


def judged_scores(
    study: RoutingStudy,
    rubric: Rubric,
    labels: LabelSet,
    items: Sequence[Item],
    replies: Sequence[TierReplies],
    options: RunOptions,
    progress: Callable[[], Progress],
) -> tuple[list[TierScores], list[str]]:
    """Ask the judge of `rubric` about the first reply of each item and tier, as far as the ledger lacks an answer.

    Returns the scores by tier, and notices. The same call resumes. Raises `InputError`, and `Incomplete` where
    questions are left that a later run has to ask.
    """
    inputs = _inputs(study, rubric, labels, items)
    folder = verifier_folder(study, options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells = {one.tier: _questions(inputs, rubric, items, one) for one in replies}
    plan = plan_of(cell for tier in cells.values() for asked in tier.values() for cell in asked)
    providers = Providers(inputs, options.recorded, options.live, options.models)
    with Ledger.open(folder / LEDGER) as ledger:
        if plan.count:
            summary = asyncio.run(_ask(inputs, options, plan, providers, ledger, progress))
            if summary.exit_code:
                what = f"the judge was not asked about every reply ({summary.ended})"
                raise Incomplete(f"{what}. Nothing that was received is lost. Fix: run the same command again.")
        scores = [
            by_judge(
                rubric, items, one, {name: _said(inputs, ledger, asked) for name, asked in cells[one.tier].items()}
            )
            for one in replies
        ]
    return scores, [*inputs.notices, *providers.notices]


def _inputs(study: RoutingStudy, rubric: Rubric, labels: LabelSet, items: Sequence[Item]) -> ReplayInputs:
    """What the machinery of a replay wants to know, with the judge alone to ask."""
    faults: list[Any] = []
    judge = card = prompts = None
    try:
        judge = judge_candidate(rubric)
    except InputError as error:
        faults += error.faults
    try:
        card = None if study.prices is None else read_price_card(study.prices)
        prompts = read_prompts(study.calls)
    except InputError as error:
        faults += error.faults
    if faults or prompts is None:
        raise InputError(faults)
    return ReplayInputs(
        study,
        labels,
        tuple(items),
        plan_of(()),
        (),
        judge,
        rubric,
        None,
        Unpriced() if card is None else CardPricing(card, study.calls.aliases),
        None,
        prompts,
        1,
        () if card is None else tuple(card.notices),
    )


def _questions(
    inputs: ReplayInputs, rubric: Rubric, items: Sequence[Item], replies: TierReplies
) -> dict[str, list[Cell]]:
    """By id what the judge is asked about its reply by one tier; ids that need no question are left out."""
    assert inputs.judge is not None
    found: dict[str, list[Cell]] = {}
    for i, item in enumerate(items):
        reply = answered(replies.first(i))
        if reply is None:
            continue
        requests = requests_to_judge(rubric, item, reply, endpoint=inputs.judge.endpoint)
        name = f"verifier:{replies.tier}"
        if requests:
            found[item.id] = [Cell(item.id, name, n, one, purpose="judge") for n, one in enumerate(requests)]
    return found


async def _ask(
    inputs: ReplayInputs,
    options: RunOptions,
    plan: Plan,
    providers: Providers,
    ledger: Ledger,
    progress: Callable[[], Progress],
) -> RunSummary:
    try:
        about = {"purpose": "verifier", "study": inputs.study.name}
        settings = settings_of(inputs.study, options)
        return await run(plan, providers.judge, ledger, settings, progress(), pricing=inputs.pricing, about=about)
    finally:
        await providers.aclose()


def _said(
    inputs: ReplayInputs, ledger: Ledger, asked: Sequence[Cell]
) -> tuple[list[Reply | Failure | None], Decimal | None]:
    """What the judge answered, another model's answers left out, and what all of it cost; None where unknown."""
    records: list[CellRecord] = list(cells_of(ledger, asked))
    said = [record.result if answered_by_judge(inputs, record) else None for record in records]
    costs = [record.cost.usd for record in records]
    known = [cost for cost in costs if cost is not None]
    return said, sum(known, Decimal(0)) if len(known) == len(costs) else None
