"""Tasks and outcomes, as read, into the ladder that is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.grading.final_answer import final_text
from evalkit.grading.same_answer import answer_key
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.owed import absent_note, owed_runs
from evalkit.outcomes.status import Status
from evalkit.outcomes.table import Outcomes
from evalkit.reasoning.data import ClassLimit, Floats, LadderData, Limits, Settings
from evalkit.reasoning.runs import ArmRuns, ladder, loop_runs, pooled, vote_runs, with_fallback
from evalkit.routing.data import rescaled
from evalkit.study.reasoning_models import Arm, ReasoningStudy
from evalkit.study.wire import Same, same_requests
from evalkit.workflows.reasoning_runs import recorded_runs, time_notes
from evalkit.workflows.samples import refuse_unmet_samples

__all__ = ["AssembledLadder", "assemble_ladder", "ladder_settings"]


@dataclass(frozen=True)
class AssembledLadder:
    """The ladder, its arms in declared order (those that are one on the wire once), and what was done on the way.

    merged: for an arm, the others that sent the same requests. at: for an arm with outcomes of its own, its
    position in them. notes: what had to be assumed or left out.
    """

    data: LadderData
    arms: tuple[Arm, ...]
    merged: Mapping[str, tuple[str, ...]]
    at: Mapping[str, int]
    assumed_costs: int
    notes: tuple[str, ...]


def assemble_ladder(
    study: ReasoningStudy, labels: LabelSet, reported: Outcomes, settled: Outcomes, cost_usd: Floats
) -> AssembledLadder:
    """The ladder of the study. `reported` has token counts as recorded, `settled` in the normal form; `cost_usd`
    (N, K, S), NaN unknown. Raises InputError where a majority is asked for and no reply is recorded."""
    merged, notes = same_requests(study.arms, study.client)
    absorbed = {name: same.kept for same in merged for name in same.others}
    notes += [_merge_note(same) for same in merged]
    own: dict[str, ArmRuns] = {}
    at = {arm.name: j for j, arm in enumerate(study.tiers)}
    assumed = 0
    refuse_unmet_samples(study, reported)
    for arm in study.tiers:
        sampled, absent = owed_runs(reported.present[:, at[arm.name]], study.samples)
        runs, filled = recorded_runs(arm, at[arm.name], sampled, reported, settled, cost_usd)
        assumed += filled
        own[arm.name] = runs
        if absent:
            notes.append(absent_note(arm.name, absent, study.samples, noun="arm", items="tasks"))
    for same in merged:
        own[same.kept] = pooled([own[name] for name in (same.kept, *same.others)])
    arms = [arm for arm in study.arms if arm.name not in absorbed]
    members = {same.kept: (same.kept, *same.others) for same in merged}
    rows: list[tuple[str, ArmRuns]] = []
    for arm in arms:
        runs = own[arm.name] if arm.recorded else _made(study, arm, own, members, at, absorbed, reported, notes)
        if arm.fallback is not None:
            runs = _fallen_back(arm, runs, own, absorbed, reported, members, at)
        rows.append((arm.name, runs))
    data = ladder(
        rows,
        risk_classes=study.risk_classes,
        risk=labels.risk,
        weight=rescaled(labels.weight),
        group=_groups(labels.group),
    )
    notes += time_notes(study, reported, at)
    notes += _observed_notes(study, reported, at)
    return AssembledLadder(
        data, tuple(arms), {same.kept: same.others for same in merged}, at, assumed, tuple(notes)
    )


def ladder_settings(study: ReasoningStudy, delta: float | None) -> Settings:
    """How to judge under the study, with what this look may spend."""
    value, gain = study.value_per_point_usd, study.smallest_worthwhile_gain
    return Settings(
        classes=tuple(ClassLimit(r.max_failure, r.gate_on == "estimate") for r in study.risk.values()),
        limits=Limits(
            study.limits.min_pass_rate, study.limits.max_cost_per_request, study.limits.p95_task_seconds
        ),
        value_usd=None if value is None else 100.0 * value,
        smallest_gain=None if gain is None else gain / 100.0,
        delta=delta,
        confidence=study.confidence,
        seed=study.seed,
        bootstrap_replicates=study.bootstrap_replicates,
    )


def _made(
    study: ReasoningStudy,
    arm: Arm,
    own: Mapping[str, ArmRuns],
    members: Mapping[str, tuple[str, ...]],
    at: Mapping[str, int],
    absorbed: Mapping[str, str],
    reported: Outcomes,
    notes: list[str],
) -> ArmRuns:
    """An arm that is made of another arm's runs."""
    base = absorbed.get(arm.of or "", arm.of or "")
    runs, positions = own[base], [at[name] for name in members.get(base, (base,))]
    if arm.vote is not None:
        if reported.reply is None:
            raise InputError(
                Fault(
                    f"arm {arm.name} takes a majority of replies, and the outcomes have no column reply",
                    "record the replies, or leave the arm out",
                    file=str(study.path),
                    field="arms",
                )
            )
        answers = _answers(reported, positions)
        out, left = vote_runs(runs, answers, arm.vote, at_once=arm.at_once)
        size = arm.vote
        notes += _no_majority_note(arm, answers)
    else:
        size = arm.loop or 2
        kept = runs.answered & ~runs.contract_failed
        out, left = loop_runs(runs, kept, size, check_usd=float(arm.check_usd), check_s=arm.check_seconds)
    short = int((~out.sampled.any(axis=1)).sum())
    if short:
        notes.append(
            f"arm {arm.name}: {short:,} tasks have fewer than {size} runs of {base}, so it has no run of them: "
            "they count as unanswered"
        )
    elif left:
        notes.append(f"arm {arm.name}: {left:,} runs of {base} are left over and not used")
    return out


def _answers(outcomes: Outcomes, positions: Sequence[int]) -> NDArray[np.int64]:
    """(N, S) codes of the final answers, equal where the texts are equal without reasoning, case and blanks; -1
    where there is none."""
    codes: dict[str, int] = {}
    blocks = []
    for j in positions:
        out = np.full(outcomes.present[:, j].shape, -1, dtype=np.int64)
        for i, s in zip(*np.nonzero(outcomes.present[:, j]), strict=True):
            reply = None if outcomes.reply is None else outcomes.reply.get(int(i), j, int(s))
            answer = None if reply is None else final_text(reply)
            if answer is not None:
                text = answer_key(answer)
                out[i, s] = codes.setdefault(text, len(codes))
        blocks.append(out)
    return np.concatenate(blocks, axis=1)


def _no_majority_note(arm: Arm, answers: NDArray[np.int64]) -> list[str]:
    """Replies that hold more than the answer are never equal, and then nothing is decided by a majority."""
    given = [row[row >= 0] for row in answers]
    several = [codes for codes in given if len(codes) > 1]
    alone = sum(len(np.unique(codes)) == len(codes) for codes in several)
    if not alone or 2 * alone < len(several):
        return []
    return [
        f"arm {arm.name}: in {alone:,} of {len(several):,} tasks no two replies of {arm.of} are equal, so that "
        "the first stands: a majority needs replies that hold the final answer alone"
    ]


def _fallen_back(
    arm: Arm,
    runs: ArmRuns,
    own: Mapping[str, ArmRuns],
    absorbed: Mapping[str, str],
    reported: Outcomes,
    members: Mapping[str, tuple[str, ...]],
    at: Mapping[str, int],
) -> ArmRuns:
    """The arm with what it declined sent on to its fallback."""
    assert arm.fallback is not None
    if arm.recorded:
        statuses = [Status(name) for name in arm.declines_as]
        blocks = [
            np.any([reported.having(status)[:, at[name]] for status in statuses], axis=0)
            for name in members.get(arm.name, (arm.name,))
        ]
        declined = np.concatenate(blocks, axis=1)
    else:  # of a majority or a loop only what became of the whole is known
        declined = runs.sampled & (~runs.answered | (runs.contract_failed & ("contract_fail" in arm.declines_as)))
    other = arm.fallback.arm
    target = None if other is None else own[absorbed.get(other, other)]
    return with_fallback(runs, declined, target, usd=float(arm.fallback.cost_usd), seconds=arm.fallback.seconds)


def _groups(group: Sequence[str | None] | None) -> NDArray[np.int64] | None:
    """Codes 0..G-1; a task without a group is its own. None where no two tasks share a group."""
    if group is None:
        return None
    place: dict[object, int] = {}
    codes = [place.setdefault(i if g is None else ("g", g), len(place)) for i, g in enumerate(group)]
    return None if len(place) == len(codes) else np.array(codes, dtype=np.int64)


def _merge_note(same: Same) -> str:
    names = ", ".join([same.kept, *same.others])
    return f"arms {names} are one arm, shown as {same.kept} with the runs of all: {same.how}"


def _observed_notes(study: ReasoningStudy, reported: Outcomes, at: Mapping[str, int]) -> list[str]:
    """What replies show about budgets: thinking that nobody asked for, budgets used up, caps that did not hold."""
    out = []
    for arm in study.tiers:
        j = at[arm.name]
        present = reported.present[:, j]
        thought = reported.reasoning_tokens[:, j][present]
        thought = thought[~np.isnan(thought)]
        asked_none = arm.effort == "none" or arm.budget_tokens == 0
        if asked_none and len(thought) and float(thought.max()) > 0:
            how = "reasoning_effort none" if arm.effort == "none" else "budget_tokens 0"
            out.append(
                f"arm {arm.name} asked for no thinking ({how}), and its replies have reasoning_tokens "
                f"({float(thought.mean()):,.0f} on average): the setting did not reach the model"
            )
        used = reported.output_tokens[:, j][present]
        over = 0 if arm.max_tokens is None or arm.steps else int((used > arm.max_tokens).sum())
        if over:
            out.append(
                f"arm {arm.name}: {over:,} runs have more output tokens than max_tokens {arm.max_tokens} (at most "
                f"{float(np.nanmax(used)):,.0f}): the cap did not hold"
            )
        spent = int(reported.having(Status.BUDGET_EXHAUSTED)[:, j].sum())
        if spent:
            out.append(
                f"arm {arm.name}: {spent:,} of {int(present.sum()):,} runs used up their budget without an "
                "answer; they count as unanswered and are billed; raise max_tokens to give room for an answer"
            )
    return out
