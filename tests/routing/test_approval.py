"""A whole analysis: what is approved, what one thing wrong is enough to stop it, and what each gate says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from routing_cases import helpful

from evalkit.gates import Decision, Gate, Status
from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.data import ClassLimit, Limits


def gate(result: RoutingResult, name: str) -> Gate:
    return next(g for g in result.gates if g.name == name)


def approves(result: RoutingResult) -> bool:
    return result.verdict.decision is Decision.APPROVE


class TestApproval:
    @pytest.mark.parametrize("tiers", [2, 3])
    def test_a_good_router_is_approved(self, tiers: int) -> None:
        data, chosen = helpful(4000, tiers=tiers)
        result = analyse(data, chosen)
        assert approves(result), result.verdict
        assert {g.status for g in result.gates if g.name != "cost_per_request"} == {Status.CERTIFIED}
        assert gate(result, "cost_per_request").status is Status.ESTIMATE
        assert result.selected is not None
        assert result.verdict.uncertified == ()
        assert result.highest is not None
        assert result.lowest is not None
        inside = [
            p.expected_total_usd or math.inf
            for p in result.points
            if result.lowest[0] <= p.thresholds[0] <= result.highest[0]
        ]
        if tiers == 2:  # with more, the points hold the items that found the direction, too
            assert result.selected.expected_total_usd == min(inside)
        fixed = analyse(data, chosen, thresholds=result.selected.thresholds)
        assert fixed.tier.tolist() == result.tier.tolist()
        assert approves(fixed)

    def test_the_direct_and_the_cascade_policy_are_both_judged(self) -> None:
        data, chosen = helpful()
        direct, cascade = (analyse(data, replace(chosen, policy=p)) for p in ("direct", "cascade"))
        assert "cascade" in direct.baselines
        assert "direct" in cascade.baselines
        assert cascade.shown.cost_usd_total is not None
        assert analyse(data, chosen, thresholds=direct.shown.thresholds).baselines[
            "cascade"
        ].point.cost_usd_total == (
            analyse(
                data, replace(chosen, policy="cascade"), thresholds=direct.shown.thresholds
            ).shown.cost_usd_total
        )

    @pytest.mark.parametrize("certifiable", [True, False])
    def test_cross_fitted_scores_certify_nothing(self, certifiable: bool) -> None:
        data, chosen = helpful(4000)
        result = analyse(data, replace(chosen, certifiable=certifiable))
        classes = [gate(result, "under_route:low"), gate(result, "under_route:critical")]
        # The costliest class may not rest on an approximate bound.
        expected = [Status.CERTIFIED] * 2 if certifiable else [Status.ESTIMATE, Status.INSUFFICIENT]
        assert [g.status for g in classes] == expected
        assert result.verdict.uncertified == (() if certifiable else ("low", "critical"))
        if not certifiable:
            assert all("NOT CERTIFIED (approximate: cross-fitted)" in g.message for g in classes)
            assert result.verdict.decision is Decision.INSUFFICIENT_EVIDENCE
            assert "trained on other items" in classes[1].message


class TestNeverApproved:
    """One thing wrong with a study that is approved without it."""

    def test_a_spent_look(self) -> None:
        data, chosen = helpful()
        for given_points in (None, (0.3,)):
            result = analyse(data, replace(chosen, delta=None), thresholds=given_points)
            assert not approves(result)
            assert not [g for g in result.gates if g.status is Status.CERTIFIED]
            assert "not declared in advance" in gate(result, "under_route:critical").message

    @pytest.mark.parametrize("tier", [0, 1])
    def test_one_unknown_cost(self, tier: int) -> None:
        data, chosen = helpful()
        assert data.tier_cost_usd is not None
        cost = data.tier_cost_usd.copy()
        cost[17, tier] = math.nan
        for limits in (chosen.limits, replace(chosen.limits, max_cost_per_request_usd=None)):
            for given_points in (None, (0.3,)):
                unknown = replace(data, tier_cost_usd=cost)
                result = analyse(unknown, replace(chosen, limits=limits), thresholds=given_points)
                assert not approves(result)
                assert gate(result, "cost_known").status is Status.NOT_STATABLE
                assert "1 of 4,000 outcomes" in gate(result, "cost_known").message

    def test_no_costs_at_all(self) -> None:
        data, chosen = helpful(tier_cost_usd=None)
        for given_points in (None, (0.3,)):
            assert not approves(analyse(data, chosen, thresholds=given_points))

    def test_an_unknown_verifier_cost(self) -> None:
        data, chosen = helpful()
        verifier = np.full((data.n, 1), 1e-4)
        verifier[3] = math.nan
        chosen = replace(chosen, policy="cascade")
        for given_points in (None, (0.3,)):
            assert not approves(analyse(replace(data, verifier_usd=verifier), chosen, thresholds=given_points))

    def test_no_outcomes(self) -> None:
        nothing = dict.fromkeys(("passed", "answered", "contract_failed", "task_s", "replied"))
        data, chosen = helpful(**nothing)
        result = analyse(data, chosen)
        assert not approves(result)
        assert gate(result, "pass_rate").status is Status.NOT_STATABLE
        assert gate(result, "p95_task").status is Status.NOT_STATABLE

    def test_a_class_without_needs(self) -> None:
        data, chosen = helpful()
        required = np.where(data.risk == 1, 0, data.required).astype(np.int8)
        result = analyse(replace(data, required=required), chosen)
        assert not approves(result)
        assert gate(result, "under_route:critical").status is Status.NOT_STATABLE
        assert gate(result, "under_route:critical").n is None

    def test_a_class_with_too_few_needs_sends_everything_up(self) -> None:
        data, chosen = helpful()
        few = np.flatnonzero((data.risk == 1) & data.needs)[20:]
        required = data.required.copy()
        required[few] = 0
        result = analyse(replace(data, required=required), chosen)
        assert not approves(result)
        stuck = gate(result, "under_route:critical")
        assert stuck.status is Status.INSUFFICIENT
        assert stuck.missing_n == 36 - 20  # .92 ** 36 is the first power at or below .05
        assert result.selected is None
        assert result.without[0][0] == "critical"
        assert result.without[0][1] is not None

    def test_constant_scores(self) -> None:
        data, chosen = helpful(demand=np.full(2000, 0.5))
        result = analyse(data, chosen)
        assert not approves(result)
        assert result.separation is not None
        assert result.separation.auc == 0.5
        assert result.thresholds_evaluated == 2
        assert {p.escalation_rate for p in result.points} == {0.0, 1.0}

    def test_reversed_scores(self) -> None:
        data, chosen = helpful()
        assert data.demand is not None
        result = analyse(replace(data, demand=-data.demand), chosen)
        assert not approves(result)
        rule = next(r for r in result.stop_rules if r.name == "router_not_shown_to_separate")
        assert rule.triggered
        assert "reversed" in rule.detail

    def test_all_unsolvable(self) -> None:
        data, chosen = helpful()
        result = analyse(replace(data, required=np.full(2000, 2, dtype=np.int8)), chosen)
        assert not approves(result)
        assert result.shown.under_route_rate is None
        assert result.shown.accuracy is None

    def test_nothing_answered(self) -> None:
        nobody = np.zeros((2000, 2))
        data, chosen = helpful(passed=nobody, answered=nobody, replied=np.zeros((2000, 2, 1), dtype=bool))
        result = analyse(data, chosen)
        assert not approves(result)
        assert result.shown.pass_rate is None
        assert result.shown.pass_rate_lower == 0.0
        assert result.shown.pass_rate_upper == 1.0
        assert gate(result, "pass_rate").status is Status.INSUFFICIENT  # silence is no wrong answer
        assert result.shown.p95_task is not None
        assert result.shown.p95_task.value is None
        assert result.shown.p95_task.unanswered == 2000

    @pytest.mark.parametrize("n", [1, 2, 9])
    @pytest.mark.parametrize("tiers", [2, 3])
    def test_a_handful_of_items(self, n: int, tiers: int) -> None:
        for seed in range(10):
            data, chosen = helpful(n, seed=seed, tiers=tiers)
            loose = replace(chosen, classes=tuple(replace(c, limit=0.9) for c in chosen.classes), limits=Limits())
            for settings_now in (chosen, loose):
                assert not approves(analyse(data, settings_now))

    def test_strongest_is_no_better_than_cheapest(self) -> None:
        data, chosen = helpful()
        assert data.passed is not None
        same_quality = np.repeat(data.passed[:, 1:], 2, axis=1)
        result = analyse(replace(data, passed=same_quality), chosen)
        assert result.verdict.decision is Decision.REJECT
        assert next(r for r in result.stop_rules if r.name == "quality_overlaps").triggered

    def test_an_arm_that_is_as_good(self) -> None:
        data, chosen = helpful()
        costly = replace(
            chosen, router_cost_usd=0.03, limits=replace(chosen.limits, max_cost_per_request_usd=None)
        )
        result = analyse(data, costly)
        assert result.verdict.decision is Decision.REJECT
        assert next(r for r in result.stop_rules if r.name == "no_gain_over_best_fixed_arm").triggered

    def test_limits_that_exclude_each_other(self) -> None:
        data, chosen = helpful(4000)
        tight = replace(chosen, limits=Limits(max_escalation=0.2))
        result = analyse(data, tight)
        assert result.verdict.decision is Decision.REJECT
        assert gate(result, "escalation").status is Status.INFEASIBLE

    def test_no_limits(self) -> None:
        data, chosen = helpful()
        free = replace(chosen, classes=tuple(replace(c, limit=None) for c in chosen.classes), limits=Limits())
        assert not approves(analyse(data, free))

    def test_needs_that_stand_for_no_traffic(self) -> None:
        data, chosen = helpful()
        weight = np.where(data.needs & (data.risk == 1), 0.0, 1.0)
        result = analyse(replace(data, weight=weight * len(weight) / weight.sum()), chosen)
        assert not approves(result)
        assert "stands for traffic" in gate(result, "under_route:critical").message


class TestFixedThresholds:
    """150 needs of one class, k below the threshold; limit 5 %: up to 2 certify, from 13 on it is broken."""

    def status(self, k: int, **other: object) -> Gate:
        data, chosen = helpful(600)
        demand = np.full(600, 0.9)
        demand[300:] = 0.1
        demand[:k] = 0.1
        required = np.zeros(600, dtype=np.int8)
        required[:150] = 1
        data = replace(data, demand=demand, required=required, risk=np.zeros(600, dtype=np.int16))
        chosen = replace(chosen, classes=(ClassLimit(0.05, 0.05), ClassLimit(0.5, None)), **other)  # type: ignore[arg-type]
        return gate(analyse(data, chosen, thresholds=[0.5]), "under_route:low")

    def test_both_sides(self) -> None:
        # CP bounds of k of 150 at 95 %: upper(2) = .0414, upper(3) = .0508; lower(12) = .0466, lower(13) = .0516.
        seen = {k: self.status(k).status for k in (0, 2, 3, 12, 13, 150)}
        assert seen == {
            0: Status.CERTIFIED,
            2: Status.CERTIFIED,
            3: Status.INSUFFICIENT,
            12: Status.INSUFFICIENT,
            13: Status.VIOLATED,
            150: Status.VIOLATED,
        }

    def test_figures(self) -> None:
        judged_gate = self.status(2)
        assert (judged_gate.k, judged_gate.n, judged_gate.observed) == (2, 150, pytest.approx(2 / 150))
        assert judged_gate.bound == pytest.approx(0.041374970, abs=5e-10)
        assert self.status(3).missing_n == 153 - 150
        assert self.status(12).missing_n is None  # 8 % seen, the limit is 5 %: more labels will not help
        assert "will not help" in self.status(12).message

    def test_a_spent_look_and_cross_fitted_scores(self) -> None:
        assert self.status(0, delta=None).status is Status.INSUFFICIENT
        assert self.status(0, certifiable=False).status is Status.ESTIMATE  # not the costliest class


class TestGateOnEstimate:
    def result(self, below: int, *, fixed: bool, limit: float = 0.10) -> tuple[RoutingResult, Gate]:
        """50 needs of the class low, `below` of them under the only threshold of use."""
        data, chosen = helpful(4000)
        assert data.demand is not None
        low = np.flatnonzero(data.needs & (data.risk == 0))
        required, demand = data.required.copy(), data.demand.copy()
        required[low[50:]] = 0
        demand[low[:50]] = 5.0
        demand[low[:below]] = -9.0
        data = replace(data, required=required, demand=demand)
        classes = (ClassLimit(0.0001, limit, on_estimate=True), chosen.classes[1])
        result = analyse(data, replace(chosen, classes=classes), thresholds=[0.3] if fixed else None)
        return result, gate(result, "under_route:low")

    def test_the_row(self) -> None:
        result, row = self.result(2, fixed=False)
        assert row.status is Status.ESTIMATE
        assert row.basis == "estimate"
        assert row.message == (
            "NOT CERTIFIED (policy). low: 2 of 50 under-routed, 4.0 %; could be 12.1 %. Limit 10.0 %. A threshold "
            "set on the estimate breaks the limit in more than half of studies"
        )
        assert approves(result)
        assert result.verdict.headline == "Approved with 1 uncertified class (low)"
        assert result.verdict.uncertified == ("low",)

    def test_a_search_keeps_the_observed_rate(self) -> None:
        # 8 of 50 at the very bottom: the search must not go above them, although their loss is next to nothing.
        result, row = self.result(8, fixed=False)
        assert row.k is not None
        assert row.status is not Status.CERTIFIED
        assert not approves(result) or row.k <= 5

    def test_fixed(self) -> None:
        for below, status in ((5, Status.ESTIMATE), (6, Status.INSUFFICIENT), (20, Status.VIOLATED)):
            result, row = self.result(below, fixed=True)
            assert (row.status, row.k, row.n) == (status, below, 50)
            assert not (below > 5 and approves(result))
