"""The judged ladder: what is certified, which arm is selected, when it is rejected, and what is only advice."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.gates import Decision, Status
from evalkit.reasoning.analysis import LadderResult, analyse
from evalkit.reasoning.data import ClassLimit, LadderData, Limits, Settings
from evalkit.reasoning.stop_rules import risk_failures_fall
from tests.reasoning.ladders import ladder_of, random_ladder


def judge(
    data: LadderData, limit: float | None = None, *, delta: float | None = 0.05, **limits: Any
) -> LadderResult:
    classes = tuple(ClassLimit(limit) for _ in data.risk_classes)
    return analyse(data, Settings(classes=classes, limits=Limits(**limits), delta=delta, bootstrap_replicates=100))


def nested(tasks: int, *passing: int) -> Any:
    """Arms that pass the first so many tasks."""
    return np.stack([np.arange(tasks) < q for q in passing], axis=1)


def statuses(result: LadderResult) -> list[list[str]]:
    return [[g.status.value for g in gates] for gates in result.gates]


class TestSelection:
    def test_the_least_costly_arm_that_meets_every_limit(self) -> None:
        result = judge(ladder_of(nested(300, 240, 291, 297), cost=[0.01, 0.02, 0.03]), min_pass_rate=0.93)
        assert statuses(result) == [["violated"], ["certified"], ["certified"]]
        assert (result.selected, result.candidate, result.certified) == (1, 1, (1, 2))
        assert result.verdict.decision is Decision.APPROVE

    def test_least_cost_decides_not_the_order(self) -> None:
        result = judge(ladder_of(nested(300, 240, 297, 297), cost=[0.01, 0.03, 0.02]), min_pass_rate=0.93)
        assert result.selected == 2
        tie = judge(ladder_of(nested(300, 240, 297, 297), cost=[0.01, 0.03, 0.03]), min_pass_rate=0.93)
        assert tie.selected == 1

    def test_every_arm_is_tested_at_its_share_of_the_error(self) -> None:
        # 59 tasks without failure certify 5 % at delta .05, 90 at .05 / 5
        assert judge(ladder_of(np.ones((59, 1))), 0.05).verdict.decision is Decision.APPROVE
        many = judge(ladder_of(np.ones((59, 5))), 0.05)
        assert many.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert many.gates[0][0].missing_n == 90 - 59
        assert judge(ladder_of(np.ones((89, 5))), 0.05).selected is None
        assert judge(ladder_of(np.ones((90, 5))), 0.05).selected == 0

    def test_an_arm_of_unknown_cost_is_never_selected(self) -> None:
        data = ladder_of(np.ones((100, 1)))
        data.cost_usd[7] = np.nan
        result = judge(data, 0.05)
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert [g.name for g in result.gates[0]] == ["risk_failure:high", "cost_known"]
        assert "1 of 100 runs" in result.verdict.reasons[0]

    def test_unanswered_counts_as_failed(self) -> None:
        answered = np.ones((100, 1, 1), dtype=bool)
        answered[:20] = False
        result = judge(ladder_of(answered[:, :, 0], answered=answered), min_pass_rate=0.9)
        assert result.arms[0].pass_rate == 1.0
        assert statuses(result) == [["insufficient"]]

    def test_a_candidate_is_no_recommendation(self) -> None:
        result = judge(ladder_of(nested(40, 30, 39)), min_pass_rate=0.95)
        assert (result.candidate, result.selected, result.shown) == (1, None, 1)
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE

    def test_a_second_look_certifies_nothing(self) -> None:
        result = judge(ladder_of(np.ones((300, 2))), 0.05, delta=None)
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert statuses(result) == [["insufficient"], ["insufficient"]]
        assert result.certified == ()


class TestRejection:
    def test_only_where_every_arm_breaks_a_limit(self) -> None:
        result = judge(ladder_of(nested(300, 150, 160)), min_pass_rate=0.9)
        assert result.verdict.decision is Decision.REJECT
        assert "Every arm breaks a limit" in result.verdict.reasons[0]
        mixed = judge(ladder_of(nested(300, 150, 272)), min_pass_rate=0.9)  # 90.7 %: open
        assert mixed.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert mixed.shown == 1

    def test_arms_that_break_different_limits(self) -> None:
        seconds = np.ones((300, 2, 1))
        seconds[:, 1] = 100
        data = ladder_of(nested(300, 150, 300), task_s=seconds)
        result = judge(data, min_pass_rate=0.9, p95_task_s=10)
        assert statuses(result) == [["violated", "certified"], ["certified", "violated"]]
        assert result.verdict.decision is Decision.REJECT

    def test_a_mean_cost_above_its_limit(self) -> None:
        result = judge(ladder_of(np.ones((300, 1)), cost=[0.02]), 0.05, max_cost_per_request_usd=0.01)
        assert statuses(result) == [["certified", "violated"]]
        assert result.verdict.decision is Decision.REJECT

    def test_a_mean_cost_inside_is_an_estimate_beside_a_certificate(self) -> None:
        result = judge(ladder_of(np.ones((300, 1)), cost=[0.01]), 0.05, max_cost_per_request_usd=0.01)
        assert statuses(result) == [["certified", "estimate"]]
        assert result.verdict.decision is Decision.APPROVE

    def test_a_mean_cost_alone_approves_nothing(self) -> None:
        result = judge(ladder_of(np.ones((300, 2))), max_cost_per_request_usd=1.0)
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert "certified" in result.verdict.reasons[0]

    def test_no_limit_at_all_approves_nothing(self) -> None:
        result = judge(ladder_of(np.ones((300, 2))))
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert result.verdict.reasons[0].startswith("No limit is set")


class TestSilence:
    """What was not answered withholds a certificate, but it breaks no limit and rejects nothing."""

    def silent(self, share: float) -> LadderData:
        answered = np.ones((200, 1, 1), dtype=bool)
        answered[: int(200 * share)] = False
        return ladder_of(answered[:, :, 0], answered=answered)

    def test_it_leaves_gates_open(self) -> None:
        result = judge(self.silent(0.5), 0.1, min_pass_rate=0.9, p95_task_s=10)
        assert statuses(result) == [["insufficient"] * 3]
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
        assert result.candidate is None

    def test_answered_failures_among_silence_break_a_limit(self) -> None:
        data = self.silent(0.2)
        data.passed[60:160] = False
        assert statuses(judge(data, 0.1, min_pass_rate=0.9)) == [["violated", "violated"]]

    @pytest.mark.parametrize(("silent", "then"), [(True, "insufficient_evidence"), (False, "reject")])
    def test_a_stop_rule_does_not_reject_on_it(self, silent: bool, then: str) -> None:
        passed = nested(200, 180, 190)
        passed[150:190, 1] = False  # the dearer arm fails 50 tasks, 40 of them by not answering, or by its answer
        answered = np.ones((200, 2, 1), dtype=bool)
        answered[150:190, 1] = not silent
        data = ladder_of(passed, answered=answered)
        settings = Settings((ClassLimit(0.4),))
        rule = risk_failures_fall(data, settings, judge(data, 0.4).arms, 1)
        assert (rule.triggered, rule.on_trigger) == (True, then)

    def test_an_arm_that_never_answers_breaks_nothing(self) -> None:
        assert statuses(judge(self.silent(1.0), min_pass_rate=0.9)) == [["insufficient"]]


class TestTime:
    def test_few_tasks_cannot_bound_a_95th_percentile(self) -> None:
        result = judge(ladder_of(np.ones((58, 1))), 0.5, p95_task_s=10)
        gate = result.gates[0][1]
        assert (gate.status, gate.missing_n, gate.observed) == (Status.NOT_STATABLE, 1, 1.0)
        assert judge(ladder_of(np.ones((59, 1))), 0.5, p95_task_s=10).verdict.decision is Decision.APPROVE

    def test_an_unanswered_run_is_slow(self) -> None:
        answered = np.ones((100, 1, 1), dtype=bool)
        answered[:8] = False
        result = judge(ladder_of(answered[:, :, 0], answered=answered), 0.5, p95_task_s=10)
        assert result.arms[0].p95.value == 1.0
        assert result.gates[0][1].status is Status.INSUFFICIENT  # 8 of 100 slow against 5 %
        assert result.candidate is None

    def test_a_broken_time_limit_needs_no_59_tasks(self) -> None:
        data = ladder_of(np.ones((20, 1)), task_s=np.full((20, 1, 1), 99.0))
        assert judge(data, 0.5, p95_task_s=10).gates[0][1].status is Status.VIOLATED

    def test_times_that_nobody_measured(self) -> None:
        data = ladder_of(np.ones((100, 1)), task_s=np.full((100, 1, 1), np.nan))
        assert judge(data, 0.5, p95_task_s=10).gates[0][1].status is Status.NOT_STATABLE


class TestStopRule:
    def rule(self, data: LadderData, limit: float = 0.3, **limits: Any) -> Any:
        result = judge(data, limit, **limits)
        return result.stop_rules[0], result

    def test_failures_that_do_not_fall_while_cost_rises(self) -> None:
        # the first arm is out by its time alone; the second costs more and fails as often
        seconds = np.ones((200, 2, 1))
        seconds[:, 0] = 100
        data = ladder_of(nested(200, 180, 180), task_s=seconds)
        rule, result = self.rule(data, p95_task_s=10)
        assert (rule.triggered, rule.on_trigger) == (True, "reject")
        assert "180" not in rule.detail
        assert "20 of 200 tasks fail at arm-0, 20 at arm-1, whose cost is higher" in rule.detail
        assert result.verdict.decision is Decision.REJECT
        assert result.selected is None

    def test_a_fall_that_is_not_shown_asks_for_more(self) -> None:
        seconds = np.ones((200, 2, 1))
        seconds[:, 0] = 100
        rule, result = self.rule(ladder_of(nested(200, 180, 181), task_s=seconds), p95_task_s=10)
        assert (rule.triggered, rule.on_trigger) == (True, "insufficient_evidence")
        assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE

    def test_a_fall_that_is_shown(self) -> None:
        rule, result = self.rule(ladder_of(nested(200, 100, 190)), 0.15)
        assert rule.triggered is False
        assert result.selected == 1

    def test_the_first_arm_spends_nothing_more(self) -> None:
        rule, result = self.rule(ladder_of(nested(200, 195, 200)))
        assert (rule.applies, result.selected) == (False, 0)

    def test_an_arm_that_is_cheaper_and_faster_needs_no_fall(self) -> None:
        seconds = np.ones((200, 2, 1))
        seconds[:, 0] = 100
        rule, result = self.rule(
            ladder_of(nested(200, 190, 190), cost=[0.02, 0.01], task_s=seconds), p95_task_s=10
        )
        assert rule.applies is False
        assert result.selected == 1

    def test_more_runs_of_one_arm_are_no_more_failures(self) -> None:
        rng = np.random.default_rng(0)
        passed = rng.random((300, 2, 6)) < np.array([0.5, 0.9])[None, :, None]
        sampled = np.ones((300, 2, 6), dtype=bool)
        sampled[:, 0, 1:] = False  # one run of the first arm, six of the second: "any fails" would be unfair
        result = judge(ladder_of(passed, sampled=sampled), 0.6)
        assert result.stop_rules[0].triggered is False


class TestAdvice:
    def test_it_never_changes_the_selection(self) -> None:
        data = ladder_of(nested(400, 300, 396, 400), cost=[0.001, 0.01, 10.0])
        for value in (None, 1e-6, 1e6):
            settings = Settings((ClassLimit(0.05),), value_usd=value, smallest_gain=0.5, bootstrap_replicates=100)
            assert analyse(data, settings).selected == 1

    def test_plateau_and_detectable_gain(self) -> None:
        result = analyse(
            ladder_of(nested(1000, 500, 990, 990)),
            Settings((ClassLimit(0.05),), smallest_gain=0.02, bootstrap_replicates=100),
        )
        assert result.plateau_at == 1
        assert result.minimum_detectable_gain == max(s.detectable for s in result.steps if s.detectable)


EDGES = {
    "one arm": ladder_of(np.ones((80, 1))),
    "one task": ladder_of(np.ones((1, 3))),
    "one task, one arm": ladder_of(np.zeros((1, 1))),
    "all arms equal": ladder_of(np.ones((80, 4)), cost=[0.01] * 4),
    "nothing answered by one arm": ladder_of(
        nested(80, 80, 0), answered=np.stack([np.ones((80, 1)), np.zeros((80, 1))], axis=1).astype(bool)
    ),
    "no run of one arm": ladder_of(
        nested(80, 80, 0), sampled=np.stack([np.ones((80, 1)), np.zeros((80, 1))], axis=1).astype(bool)
    ),
    "no usage": ladder_of(
        np.ones((80, 2)), billed_output_tokens=np.full((80, 2, 1), np.nan), cost=np.full((80, 2), np.nan)
    ),
    "free": ladder_of(np.ones((80, 2)), cost=[0.0, 0.0]),
    "one group": ladder_of(np.ones((80, 2)), group=np.zeros(80, dtype=np.int64)),
    "no risk classes": ladder_of(np.ones((80, 2)), risk_classes=(), risk=np.full(80, -1, dtype=np.int16)),
    "a class without tasks": ladder_of(np.ones((80, 2)), risk_classes=("high", "empty")),
    "times unknown": ladder_of(np.ones((80, 2)), task_s=np.full((80, 2, 1), np.nan)),
}


def _numbers(value: Any) -> list[float]:
    if isinstance(value, LadderData | Settings) or type(value).__name__ == "TaskFigures":
        return []
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [n for f in dataclasses.fields(value) for n in _numbers(getattr(value, f.name))]
    if isinstance(value, tuple | list):
        return [n for v in value for n in _numbers(v)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", EDGES)
def test_edges_give_a_verdict_and_no_strange_number(name: str) -> None:
    settings = Settings(
        classes=tuple(ClassLimit(0.1) for _ in EDGES[name].risk_classes),
        limits=Limits(0.8, 1.0, 5.0),
        value_usd=0.2,
        smallest_gain=0.01,
        bootstrap_replicates=100,
    )
    result = analyse(EDGES[name], settings)
    assert all(math.isfinite(n) for n in _numbers(result))
    words = " ".join([*result.verdict.reasons, result.verdict.next_step, *(g.message for g in result.gates[0])])
    assert not {"nan", "inf", "None"} & set(words.replace(",", " ").split())
    assert result.verdict.next_step


@given(st.integers(0, 200))
def test_an_approval_stands_on_certificates_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = random_ladder(seed, tasks=int(rng.integers(1, 120)), arms=int(rng.integers(1, 5)))
    settings = Settings(
        (ClassLimit(float(rng.choice([0.2, 0.9]))), ClassLimit(None)),
        Limits(min_pass_rate=float(rng.choice([0.3, 0.7])), p95_task_s=float(rng.choice([5.0, 100.0]))),
        bootstrap_replicates=100,
    )
    result = analyse(data, settings)
    level = 0.05 / data.a
    if result.verdict.decision is Decision.APPROVE:
        gates = result.gates[result.selected]  # type: ignore[index]
        assert all(g.status in {Status.CERTIFIED, Status.ESTIMATE} for g in gates)
        assert all(g.confidence == pytest.approx(1 - level) for g in gates if g.status is Status.CERTIFIED)
        cheaper = [
            a
            for a in result.certified
            if result.arms[a].cost_usd < result.arms[result.selected].cost_usd  # type: ignore[operator,index]
        ]
        assert cheaper == []
    else:
        assert result.selected is None


def test_the_order_of_tasks_changes_nothing() -> None:
    data = random_ladder(8, tasks=90, sampled=np.ones((90, 3, 3), dtype=bool))
    order = np.random.default_rng(0).permutation(90)
    arrays = {
        f.name: getattr(data, f.name)[order]
        for f in dataclasses.fields(data)
        if isinstance(getattr(data, f.name), np.ndarray)
    }
    one, two = judge(data, 0.5, min_pass_rate=0.5), judge(data.with_arrays(**arrays), 0.5, min_pass_rate=0.5)
    assert one.gates == two.gates
    assert one.verdict == two.verdict
    assert [a.pass_rate_lower for a in one.arms] == pytest.approx([a.pass_rate_lower for a in two.arms])
