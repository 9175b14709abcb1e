"""From a ledger to outcomes: every cell of a plan graded and counted once. Calls no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalkit.costs import Usage, normal_usage
from evalkit.costs.run_costs import CallCost, RunCosts, run_costs
from evalkit.errors import visible
from evalkit.grading.cell import Graded, grade_cell
from evalkit.grading.items import Item
from evalkit.grading.quality import JudgeErrors, JudgeQuality, judge_errors, judge_quality
from evalkit.providers.call import Failure, Reply
from evalkit.replay.cells import CellRecord, cells_of
from evalkit.replay.ledger import Ledger
from evalkit.replay.pricing import output_cap
from evalkit.replay.repeats import repeat_notices
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.workflows.candidates import Candidate
from evalkit.workflows.replay_costs import attempt_cost, cell_usage
from evalkit.workflows.replay_judge import as_requested, by_judge, decided, draws_of, judgements, records
from evalkit.workflows.replay_setup import ReplayInputs

__all__ = ["GradedRun", "grade_run"]

_COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


@dataclass
class GradedRun:
    """Graded cells, and what to say of them.

    `columns` is the outcome table. `statuses` counts rows by candidate and status. `unreached` cells have neither
    a reply nor a failure yet. `sent` is the body that went out for each candidate, where it was the same for all.
    `stripped` and `other_model` count replies by candidate: reasoning was taken off, another model served.
    """

    columns: dict[str, list[Any]]
    statuses: dict[str, Counter[str]]
    unreached: int
    costs: RunCosts
    judged: JudgeErrors | None
    quality: JudgeQuality | None
    sent: dict[str, Mapping[str, Any] | None]
    stripped: Counter[str]
    other_model: Counter[tuple[str, str]]
    measured: Counter[str]
    replayed: Counter[str]
    notices: tuple[str, ...] = field(default_factory=tuple)


def grade_run(inputs: ReplayInputs, ledger: Ledger, runs: Collection[str]) -> GradedRun:
    """Grade every cell that has a reply or a failure; what `runs` paid and measured is new, the rest was recorded.

    Rows are in the order of the labels, candidates and samples, so that the order of the calls does not matter.
    """
    found = _Collected(inputs)
    for record, item, candidate in records(inputs, ledger):
        found.add(ledger, record, item, candidate, runs)
    place = {name: at for at, name in enumerate(inputs.labels.ids)}
    ranks = {one.name: at for at, one in enumerate(inputs.candidates)}
    found.rows.sort(key=lambda row: (place[row["id"]], ranks[row[found.column]], row["sample"]))
    names = list(found.rows[0]) if found.rows else ["id", found.column]
    if all(row["mean_logprob"] is None for row in found.rows):  # nobody asked for them
        names = [name for name in names if name != "mean_logprob"]
    costs = run_costs(found.calls.values())
    judge = None if inputs.judge is None else inputs.rubric.judge
    judged = None if judge is None else judge_errors(found.verdicts.values(), judge.max_error_share)
    quality = None
    if inputs.human is not None and found.verdicts:
        risks = {item.id: item.risk for item in inputs.items if item.risk is not None}
        quality = judge_quality(found.verdicts, inputs.human, risks=risks, pass_at=inputs.rubric.pass_at)
    repeats = repeat_notices(cells_of(ledger, inputs.plan)) if inputs.samples > 1 else ()
    return GradedRun(
        columns={name: [row[name] for row in found.rows] for name in names},
        statuses=found.statuses,
        unreached=found.unreached,
        costs=costs,
        judged=judged,
        quality=quality,
        sent={name: body if name not in found.mixed else None for name, body in found.sent.items()},
        stripped=found.stripped,
        other_model=found.other_model,
        measured=found.measured,
        replayed=found.replayed,
        notices=(*found.said(), *repeats),
    )


class _Collected:
    """Rows and counts, cell by cell."""

    def __init__(self, inputs: ReplayInputs) -> None:
        self.inputs = inputs
        self.column = "arm" if isinstance(inputs.study, ReasoningStudy) else "tier"
        self.rows: list[dict[str, Any]] = []
        self.statuses: dict[str, Counter[str]] = {one.name: Counter() for one in inputs.candidates}
        self.unreached = 0
        self.calls: dict[tuple[str, int], CallCost] = {}
        self.verdicts: dict[tuple[str, str, int], bool | None] = {}
        self.sent: dict[str, Mapping[str, Any] | None] = {}
        self.mixed: set[str] = set()
        self.stripped: Counter[str] = Counter()
        self.other_model: Counter[tuple[str, str]] = Counter()
        self.first_other: dict[tuple[str, str], str] = {}
        self.measured: Counter[str] = Counter()
        self.replayed: Counter[str] = Counter()

    def add(
        self, ledger: Ledger, record: CellRecord, item: Item, candidate: Candidate, runs: Collection[str]
    ) -> None:
        self._cost(record, runs)
        result = record.result
        if result is None:
            self.unreached += 1
            return
        judged = judgements(self.inputs, record, item, candidate)
        answers = []
        for question in judged:
            draws = draws_of(ledger, question)
            for draw in draws:
                self._cost(draw, runs)
            answers.append(decided(self.inputs, draws) or draws[-1])
        asked_one = not isinstance(result, Reply) or as_requested(self.inputs, candidate, result)
        usage = cell_usage(record)
        last = normal_usage(result.usage) if isinstance(result, Reply) else Usage()
        graded = grade_cell(
            self.inputs.rubric,
            item,
            candidate.name,
            result,
            [answer.result for answer in answers],
            served_as_requested=asked_one,
            judge_served_as_requested=all(by_judge(self.inputs, answer) for answer in answers),
            human=self.inputs.human,
            sample=record.cell.sample,
            max_tokens=output_cap(record.cell.first),
            output_tokens=last.output_tokens,
            reasoning_tokens=last.reasoning_tokens,
        )
        self._count(record, candidate, result, graded, asked_one, runs, bool(judged))
        self.rows.append(self._row(record, candidate, result, graded, usage, asked_one))

    def _count(
        self,
        record: CellRecord,
        candidate: Candidate,
        result: Reply | Failure,
        graded: Graded,
        asked_one: bool,
        runs: Collection[str],
        asked: bool,
    ) -> None:
        name = candidate.name
        self.statuses[name][graded.status] += 1
        self.stripped[name] += graded.stripped
        if not isinstance(result, Reply):
            return
        if record.request_s is not None:  # what came through a batch has no times
            fresh = any(record.fresh(run) for run in runs)
            (self.measured if fresh else self.replayed)[name] += 1
        if not asked_one:
            pair = (name, str(result.served_model))
            self.other_model[pair] += 1
            self.first_other.setdefault(pair, record.cell.item)
        if asked:
            key = (record.cell.item, name, record.cell.sample)
            self.verdicts[key] = None if graded.status == "judge_error" else graded.passed
        if result.sent is not None and not record.cell.follow_ups:
            body = {key: value for key, value in result.sent.items() if key not in {"messages", "stream_options"}}
            if name in self.sent and self.sent[name] != body:
                self.mixed.add(name)
            self.sent.setdefault(name, body)

    def _cost(self, record: CellRecord, runs: Collection[str]) -> None:
        for step in record.steps:
            for attempt in step.attempts:
                self.calls.setdefault((attempt.key, attempt.number), attempt_cost(attempt, runs))

    def _row(
        self,
        record: CellRecord,
        candidate: Candidate,
        result: Reply | Failure,
        graded: Graded,
        usage: Usage,
        asked_one: bool,
    ) -> dict[str, Any]:
        cost = record.cost.usd
        served = result.served_model if isinstance(result, Reply) and not asked_one else None
        return {
            "id": record.cell.item,
            self.column: candidate.name,
            "model": served or candidate.model,
            "sample": record.cell.sample,
            "status": graded.status,
            "score": graded.score,
            "passed": graded.passed,
            # The shortest text of the float is the decimal, as long as that has at most 15 digits.
            "cost_usd": None if cost is None else float(cost),
            **{name: getattr(usage, name) for name in _COUNTS},
            "ttft_s": _rounded(record.ttft_s),
            "request_s": _rounded(record.request_s),
            "task_s": _rounded(record.task_s),
            "attempts": record.attempts,
            "error": graded.error,
            "reply": graded.answer if graded.answer is not None else _text(result),
            "mean_logprob": _rounded(result.mean_logprob) if isinstance(result, Reply) else None,
        }

    def said(self) -> Iterator[str]:
        """Sentences for a person: what another model served, and what reasoning was taken off."""
        for (name, served), count in sorted(self.other_model.items()):
            asked = next(one.model for one in self.inputs.candidates if one.name == name)
            first = self.first_other[name, served]
            yield (
                f"{visible(name, 60)}: {count:,} of its replies came from {visible(served, 100)} and not from "
                f"{visible(asked, 100)} (first: id {visible(first, 60)}): priced as served, and not counted as "
                f"answers of {visible(name, 60)}. If it is the same model, write it under aliases"
            )
        for one in self.inputs.candidates:
            if one.params.get("fallbacks"):
                who = visible(one.name, 60)
                yield f"{who}: fallbacks are on: what another model answers is no answer of {who}"
        for name, count in sorted(self.stripped.items()):
            if count:
                yield f"{visible(name, 60)}: reasoning was taken off {count:,} of its replies before grading"


def _text(result: Reply | Failure) -> str | None:
    return result.text


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
