"""A whole analysis: no crash, no wrong approval, and printed thresholds that do what is printed beside them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import routing_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_cases import arrays, settings_of, studies
from routing_oracle import Study
from test_points import same

from evalkit.gates import Decision, Gate, Status
from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.data import ClassLimit, Floats, Limits, RoutingData, Settings
from evalkit.routing.path import direction_mask
from evalkit.routing.search import certified_selection
from evalkit.statistics.bounds import upper_bound


def finite(value: object, where: str = "result") -> None:
    """No NaN and no infinity anywhere in what a report prints."""
    if isinstance(value, dict):
        for key, part in value.items():
            finite(part, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            finite(part, f"{where}[{i}]")
    elif isinstance(value, float):
        assert math.isfinite(value), where


def printed(result: RoutingResult) -> None:
    for point in (result.shown, result.selected, result.candidate, result.judged, *result.points):
        if point is not None:
            finite(asdict(point), point.name)
    for gate in result.gates:
        finite(asdict(gate), gate.name)
    for base in result.baselines.values():
        finite(asdict(base.point), base.name)
    finite(result.highest)
    finite(result.lowest)


def rising(result: RoutingResult, study: Study) -> None:
    """Each point's own thresholds, in the user's units, send the items where its figures say."""
    for point in (*result.points, result.shown):
        tiers = [oracle.ends_at(item, point.thresholds, study.tiers) for item in study.items]
        same(asdict(point), oracle.operating_point(study, tiers), point.name)
    assert result.tier.tolist() == [
        oracle.ends_at(item, result.shown.thresholds, study.tiers) for item in study.items
    ]


@st.composite
def judged(draw: st.DrawFn, study: Study) -> Settings:
    limit = st.sampled_from([None, 0.0, 0.3, 0.6, 0.9])
    classes = tuple(
        replace(c, limit=draw(limit), on_estimate=draw(st.booleans())) for c in settings_of(study).classes
    )
    return settings_of(
        study,
        classes=classes,
        limits=Limits(
            min_pass_rate=draw(st.sampled_from([None, 0.1, 0.5])),
            max_cost_per_request_usd=draw(st.sampled_from([None, 0.001, 0.02])),
            p95_task_s=draw(st.sampled_from([None, 8.0])),
            max_escalation=draw(st.sampled_from([None, 0.7, 1.0])),
        ),
        delta=draw(st.sampled_from([None, 0.05, 0.4])),
        max_points=draw(st.sampled_from([3, 6, 512])),
    )


class TestNeverCrashes:
    @given(studies(most=25, groups=True), st.data())
    @settings(max_examples=150, deadline=None)
    def test_a_search(self, study: Study, data: st.DataObject) -> None:
        self.search(study, data)

    @given(studies(most=25), st.data())
    @settings(max_examples=150, deadline=None)
    def test_a_search_without_groups(self, study: Study, data: st.DataObject) -> None:
        self.search(study, data)

    def search(self, study: Study, data: st.DataObject) -> None:
        chosen = data.draw(judged(study))
        given_data = arrays(study)
        if study.tiers > 2:
            keys = [str(i if item.group is None else item.group) for i, item in enumerate(study.items)]
            given_data = replace(given_data, direction=direction_mask(keys, data.draw(st.integers(0, 5))))
        result = analyse(given_data, chosen)
        printed(result)
        rising(result, study)
        sensible(result, given_data, chosen)
        alone = certified_selection(given_data, chosen)
        if alone.selected is not None:
            assert alone.selected == result.shown.thresholds
        else:
            assert result.selected is None
        assert (alone.candidate is None) == (result.candidate is None)
        if result.candidate is not None:
            assert alone.candidate == result.candidate.thresholds
        assert alone.certifying == result.certifying

    @given(studies(most=25), st.data())
    @settings(max_examples=100, deadline=None)
    def test_fixed_thresholds(self, study: Study, data: st.DataObject) -> None:
        chosen = data.draw(judged(study))
        thresholds = data.draw(st.tuples(*[st.sampled_from((-3.0, 0.0, 0.1, 1.0, 9.0))] * (study.tiers - 1)))
        result = analyse(arrays(study), chosen, thresholds=thresholds)
        printed(result)
        assert result.judged is not None
        assert result.judged.thresholds == thresholds
        rising(result, study)
        sensible(result, arrays(study), chosen)

    @given(studies(most=25, groups=True), st.data())
    @settings(max_examples=100, deadline=None)
    def test_decisions(self, study: Study, data: st.DataObject) -> None:
        chosen = data.draw(judged(study))
        tiers = [data.draw(st.integers(0, study.tiers - 1)) for _ in study.items]
        given_data = replace(arrays(study), demand=None)
        result = analyse(given_data, chosen, decisions=np.array(tiers, dtype=np.int8))
        printed(result)
        assert result.judged is not None
        assert result.tier.tolist() == tiers
        assert result.policy == "decisions"
        same(asdict(result.judged), oracle.operating_point(study, tiers), "judged")
        sensible(result, given_data, chosen)


def sensible(result: RoutingResult, data: RoutingData, chosen: Settings) -> None:
    """What must hold of every result, whatever the data."""
    statuses = {g.status for g in result.gates}
    if result.verdict.decision is Decision.APPROVE:
        assert statuses <= {Status.CERTIFIED, Status.ESTIMATE}
        assert statuses
        assert data.tier_cost_usd is not None
        assert not np.isnan(data.tier_cost_usd).any()
        assert chosen.delta is not None
        assert all(r.triggered is False or not r.applies for r in result.stop_rules)
    assert (result.selected is not None) == (result.verdict.decision is Decision.APPROVE)
    if chosen.delta is None:
        assert Status.CERTIFIED not in statuses
    for gate in result.gates:
        if gate.status is Status.CERTIFIED and gate.name.startswith("under_route") and gate.n:
            assert gate.k is not None
            assert gate.limit is not None
            bound = upper_bound(min(gate.k, gate.n), gate.n, 1 - (chosen.delta or 0.05))
            assert bound is not None
            assert bound <= gate.limit + 1e-12, gate.message
        if gate.basis == "estimate":
            assert gate.status is not Status.CERTIFIED
    assert result.verdict.reasons


def helpful(n: int = 2000, seed: int = 1, tiers: int = 2, **other: object) -> tuple[RoutingData, Settings]:
    """A router that is worth its money: demands of needs lie high, cheap passes what is not a need, and every
    limit has room. Two classes; approved as it stands."""
    rng = np.random.default_rng(seed)
    need = np.where(rng.random(n) < 0.4, rng.integers(1, tiers, n) if tiers > 2 else 1, 0)
    demand = rng.normal(1.3 * need, 0.5)
    tier = np.arange(tiers)
    passed = np.where(tier[None, :] >= need[:, None], rng.random((n, tiers)) < 0.97, rng.random((n, tiers)) < 0.2)
    names = ("cheap", "strong") if tiers == 2 else ("cheap", "mid", "strong")
    data = RoutingData(
        tiers=names,
        risk_classes=("low", "critical"),
        required=need.astype(np.int8),
        risk=(rng.random(n) < 0.5).astype(np.int16),
        weight=np.ones(n),
        demand=demand,
        tier_cost_usd=np.array([0.001, 0.006, 0.02][:: 2 if tiers == 2 else 1])
        * rng.uniform(0.5, 1.5, (n, tiers)),
        passed=passed.astype(np.float64),
        answered=np.ones((n, tiers)),
        contract_failed=np.zeros((n, tiers)),
        task_s=rng.uniform(0.5, 2.0, (n, tiers, 1)),
        replied=np.ones((n, tiers, 1), dtype=bool),
        category=rng.integers(0, 4, n).astype(np.int32),
        direction=rng.random(n) < 0.4 if tiers > 2 else None,
    )
    classes = (ClassLimit(0.05, 0.15, weight=0.05), ClassLimit(0.5, 0.08, weight=0.5))
    limits = Limits(min_pass_rate=0.8, max_cost_per_request_usd=0.018, p95_task_s=8.0, max_escalation=0.9)
    chosen = Settings(classes=classes, limits=limits, router_cost_usd=1e-4, router_s=0.02)
    return replace(data, **other), chosen  # type: ignore[arg-type]


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
        assert {g.status for g in classes} == {Status.CERTIFIED if certifiable else Status.ESTIMATE}
        assert result.verdict.uncertified == (() if certifiable else ("low", "critical"))
        if not certifiable:
            assert all("NOT CERTIFIED (approximate: cross-fitted)" in g.message for g in classes)
            assert "2 uncertified classes (low, critical)" in result.verdict.headline


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
        assert gate(result, "pass_rate").status is Status.VIOLATED  # whatever the threshold
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
        assert self.status(0, certifiable=False).status is Status.ESTIMATE


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


class TestMirror:
    @pytest.mark.parametrize("tiers", [2, 3])
    @pytest.mark.parametrize("seed", range(3))
    def test_scores_and_their_negatives(self, tiers: int, seed: int) -> None:
        """Scores s that mean "needs stronger" and scores -s that mean "cheap is enough" are the same study."""
        data, chosen = helpful(1500, seed=seed, tiers=tiers)
        assert data.demand is not None
        score = np.round(data.demand, 1 if seed == 1 else 17)  # with ties, too
        data = replace(data, demand=score)
        up, down = (analyse(data, replace(chosen, direction_is_up=d)) for d in (True, False))
        assert up.tier.tolist() == down.tier.tolist()
        assert up.verdict == down.verdict
        assert up.gates == down.gates
        for one, other in zip(up.points, down.points, strict=True):
            assert replace(one, thresholds=()) == replace(other, thresholds=())
            for a, b in zip(one.thresholds, other.thresholds, strict=True):
                assert ((score >= a) == (-score < b)).all()
                assert math.isfinite(b)
        again = analyse(data, replace(chosen, direction_is_up=False), thresholds=down.shown.thresholds)
        assert again.tier.tolist() == down.tier.tolist()


class TestTiedScores:
    """Two scores of .1, six of .5, two of .9."""

    score = (0.1, 0.1, *[0.5] * 6, 0.9, 0.9)

    def result(self, score: Floats, thresholds: tuple[float, ...] | None = None) -> RoutingResult:
        data, chosen = helpful(10)
        required = np.array([0] * 5 + [1] * 5, dtype=np.int8)
        return analyse(replace(data, demand=score, required=required), chosen, thresholds=thresholds)

    def test_at_the_threshold_an_item_goes_up(self) -> None:
        assert self.result(np.array(self.score), (0.5,)).shown.escalation_rate == 0.8
        assert self.result(np.array(self.score), (math.nextafter(0.5, 1),)).shown.escalation_rate == 0.2

    def test_reachable_rates(self) -> None:
        rates = sorted(p.escalation_rate for p in self.result(np.array(self.score)).points)
        assert rates == [0.0, 0.2, 0.8, 1.0]

    def test_constant(self) -> None:
        result = self.result(np.full(10, 0.5))
        assert result.separation is not None
        assert result.separation.auc == 0.5
        assert sorted(p.escalation_rate for p in result.points) == [0.0, 1.0]

    def test_as_in_the_case(self, shared: Path) -> None:
        folder = shared / "cases" / "M04-ties-at-threshold"
        values = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["values"]
        scores = {
            name: np.array([float(row.split(",")[1]) for row in (folder / f"scores_{name}.csv").read_text(
                encoding="utf-8").split()[1:]])
            for name in ("tied", "constant")
        }  # fmt: skip
        assert scores["tied"].tolist() == list(self.score)
        assert self.result(scores["tied"], (0.5,)).tier.sum() == values["escalated_ge"]
        assert (scores["tied"] > 0.5).sum() == values["escalated_gt"]
        assert sorted(p.escalation_rate for p in self.result(scores["tied"]).points) == values["reachable"]
        constant = self.result(scores["constant"])
        assert constant.separation is not None
        assert constant.separation.auc == values["auc_constant"]
