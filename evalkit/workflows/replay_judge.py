"""What a judge is asked about the replies of a run, and which of its answers counts. Calls nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evalkit.grading.cell import requests_to_judge
from evalkit.grading.items import Item
from evalkit.grading.judge import has_verdict
from evalkit.grading.rubric import Decider
from evalkit.providers.call import Reply
from evalkit.providers.served import same_model
from evalkit.replay.cells import CellRecord, cells_of
from evalkit.replay.ledger import Ledger
from evalkit.replay.plan import Cell, Plan, plan_of
from evalkit.workflows.candidates import Candidate
from evalkit.workflows.replay_setup import JUDGE, ReplayInputs

__all__ = ["as_requested", "by_judge", "decided", "draws_of", "judge_calls", "judge_plan", "judgements", "records"]

_DRAWS = 1_000_000
"""Sample numbers of a question's second draw begin here."""


def records(inputs: ReplayInputs, ledger: Ledger) -> Iterator[tuple[CellRecord, Item, Candidate]]:
    """Every cell of the plan as the ledger has it, with its item and candidate."""
    items = {item.id: item for item in inputs.items}
    candidates = {one.name: one for one in inputs.candidates}
    for record in cells_of(ledger, inputs.plan):
        yield record, items[record.cell.item], candidates[record.cell.candidate]


def as_requested(inputs: ReplayInputs, candidate: Candidate, reply: Reply) -> bool:
    """The model that the study names answered, under that name or one of its aliases."""
    return same_model(candidate.model, reply.served_model, inputs.study.calls.aliases)


def judge_plan(inputs: ReplayInputs, ledger: Ledger, *, again: bool = False) -> Plan:
    """What the judge has to be asked about the replies that the ledger holds.

    `again`: where it was asked and gave no verdict, ask once more, as a draw of its own.
    """
    return plan_of(_judge_cells(inputs, ledger, again))


def _judge_cells(inputs: ReplayInputs, ledger: Ledger, again: bool) -> Iterator[Cell]:
    for record, item, candidate in records(inputs, ledger):
        for cell in judgements(inputs, record, item, candidate):
            draws = draws_of(ledger, cell)
            yield from (draw.cell for draw in draws)
            last = draws[-1].result
            if again and isinstance(last, Reply) and not decided(inputs, draws):
                yield _draw(cell, len(draws))


def judge_calls(inputs: ReplayInputs) -> int:
    """The most questions to the judge that the plan can lead to, each asked once."""
    judge = inputs.rubric.judge
    if inputs.judge is None or judge is None:
        return 0
    graded = sum(inputs.rubric.grader_for(item) is Decider.JUDGE for item in inputs.items)
    return graded * len(inputs.candidates) * inputs.samples * (1 + judge.pairwise)


def judgements(inputs: ReplayInputs, record: CellRecord, item: Item, candidate: Candidate) -> list[Cell]:
    """The questions to the judge about one cell; each order of a pairwise judge is one."""
    if inputs.judge is None or not isinstance(record.result, Reply):
        return []
    requests = requests_to_judge(
        inputs.rubric,
        item,
        record.result,
        served_as_requested=as_requested(inputs, candidate, record.result),
        endpoint=inputs.judge.endpoint,
    )
    name = f"{JUDGE}:{candidate.name}"
    at = record.cell.sample * len(requests)
    return [Cell(item.id, name, at + order, request, purpose="judge") for order, request in enumerate(requests)]


def _draw(cell: Cell, number: int) -> Cell:
    """A question asked once more: a request of its own. Draws of other questions have other keys."""
    return replace(cell, first=replace(cell.first, sample=number), sample=cell.sample + _DRAWS * number)


def draws_of(ledger: Ledger, cell: Cell) -> list[CellRecord]:
    """Every time that a question was asked, the first one in any case."""
    found = list(cells_of(ledger, [cell]))
    while found[-1].steps:
        (record,) = cells_of(ledger, [_draw(cell, len(found))])
        if not record.steps:
            break
        found.append(record)
    return found


def decided(inputs: ReplayInputs, draws: list[CellRecord]) -> CellRecord | None:
    """The first draw with a verdict."""
    judge = inputs.rubric.judge
    assert judge is not None
    return next((draw for draw in draws if by_judge(inputs, draw) and has_verdict(judge, draw.result)), None)


def by_judge(inputs: ReplayInputs, answer: CellRecord) -> bool:
    """The model that was asked to judge answered."""
    reply, judge = answer.result, inputs.judge
    if not isinstance(reply, Reply) or judge is None:
        return True
    return same_model(judge.model, reply.served_model, inputs.study.calls.aliases)
