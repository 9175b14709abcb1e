"""Certificates against a naive walk that tests every threshold anew, and the guarantees that must never bend."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import routing_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_cases import arrays, settings_of, studies
from routing_oracle import Study
from scipy import stats

from evalkit.routing.certify import (
    Certificate,
    Shares,
    certify,
    class_units,
    request_n,
    shares_along,
    slow_share,
    within,
)
from evalkit.routing.data import ClassLimit, Limits, RoutingData, Settings
from evalkit.routing.path import Path as ThresholdPath
from evalkit.routing.path import path_through, score_path
from evalkit.routing.points import ItemMeasures, item_measures
from evalkit.routing.policies import path_costs
from evalkit.routing.select import objective, observed, select
from evalkit.routing.sweep import Sweep, sweep_of

LIMITS = st.sampled_from([0.1, 0.25, 0.5, 0.8])
DELTAS = st.sampled_from([0.05, 0.2, 0.4])


def measured(data: RoutingData, chosen: Settings) -> ItemMeasures:
    return item_measures(data, chosen, path_costs(data, chosen, chosen.policy))


def path_of(data: RoutingData) -> ThresholdPath:
    assert data.demand is not None
    if data.k == 2:
        return score_path(data.demand)
    # Any path will do, as long as the items did not choose it.
    target = (0.1,) * (data.k - 1)
    grid = np.array([-2.5, 0.0, 0.1, 0.3, 1.0])
    direction = grid if data.demand.ndim == 1 else np.repeat(grid[:, None], data.k - 1, axis=1)
    return path_through(data.demand, direction, target, steps=10)


class Walked:
    """One study along its path, as the code sees it."""

    def __init__(self, data: RoutingData, chosen: Settings) -> None:
        self.path = path_of(data)
        self.measures = measured(data, chosen)
        self.sweep: Sweep = sweep_of(self.path.levels)
        self.shares: Shares = shares_along(self.measures, self.path.levels, self.sweep)
        self.certificate: Certificate = certify(self.measures, self.path.levels, self.sweep, self.shares)
        self.allowed = within(self.sweep, self.certificate)

    def by_hand(self, study: Study) -> list[list[int]]:
        """The tiers of all items at every candidate, by its printed thresholds."""
        return [
            [oracle.ends_at(item, self.path.thresholds_at(float(level)), study.tiers) for item in study.items]
            for level in self.sweep.levels
        ]


def clopper_pearson(k: float, n: float, delta: float) -> float:
    """Upper bound; scipy's beta quantile, not the project's."""
    if n == 0:
        return 1.0
    return 1.0 if k >= n else float(stats.beta.ppf(1 - delta, k + 1, n - k))


def reached(failing: Sequence[tuple[float, float]], limit: float, delta: float) -> int:
    """How many candidates of a walk pass before the first that does not."""
    for place, (k, n) in enumerate(failing):
        if n == 0 or (limit < 1 and clopper_pearson(k, n, delta) > limit):
            return place
    return len(failing)


def requests(study: Study) -> Fraction:
    """sum(w) / max(w), over the longest conversation."""
    w = oracle.weights(study)
    groups = [item.group for item in study.items]
    longest = 1 if groups[0] is None else max(groups.count(g) for g in groups)
    return sum(w) / max(w) / longest


def naive(study: Study, walked: Walked, chosen: Settings) -> list[bool]:
    """Which candidates all walks reach, every one tested anew."""
    assert chosen.delta is not None
    tiers = walked.by_hand(study)
    upwards = list(range(len(tiers)))[::-1]  # from everything at the strongest tier
    allowed = set(upwards)
    for r, rule in enumerate(chosen.classes):
        if rule.limit is None or rule.on_estimate:
            continue
        failing = []
        for p in upwards:
            rate, weights = oracle.under_share(study, tiers[p], r)
            weights = [w for w in weights if w > 0]
            n = sum(weights) / max(weights) if weights else 0
            failing.append((float((rate or 0) * n), float(n)))
        allowed &= set(upwards[: reached(failing, rule.limit, chosen.delta)])
    n = float(requests(study))
    if chosen.limits.min_pass_rate is not None:
        failing = [(float(oracle.failing_share(study, tiers[p])) * n, n) for p in upwards]
        allowed &= set(upwards[: reached(failing, 1 - chosen.limits.min_pass_rate, chosen.delta)])
    downwards = upwards[::-1]
    if chosen.limits.max_escalation is not None:
        points = [oracle.operating_point(study, tiers[p]) for p in downwards]
        failing = [(float(point["escalation_rate"]) * n, n) for point in points]  # type: ignore[arg-type]
        allowed &= set(downwards[: reached(failing, chosen.limits.max_escalation, chosen.delta)])
    if chosen.limits.p95_task_s is not None:
        failing = [(float(oracle.slow_share(study, tiers[p])) * n, n) for p in downwards]
        allowed &= set(downwards[: reached(failing, 0.05, chosen.delta)])
    return [p in allowed for p in range(len(tiers))]


def limited(study: Study, data: st.DataObject, limits: Limits, delta: float | None = None) -> Settings:
    chosen = settings_of(study)
    classes = tuple(
        replace(c, limit=data.draw(st.one_of(st.none(), LIMITS)), on_estimate=data.draw(st.booleans()))
        for c in chosen.classes
    )
    return replace(chosen, classes=classes, limits=limits, delta=data.draw(DELTAS) if delta is None else delta)


class TestAgainstANaiveWalk:
    @given(studies(most=40, unknown=False, equal_weights=True), st.data())
    @settings(max_examples=100, deadline=None)
    def test_classes(self, study: Study, data: st.DataObject) -> None:
        self.check(study, limited(study, data, Limits()))

    @given(studies(most=40, unknown=False, groups=True), st.data())
    @settings(max_examples=100, deadline=None)
    def test_classes_with_conversations_and_weights(self, study: Study, data: st.DataObject) -> None:
        self.check(study, limited(study, data, Limits()))

    @given(studies(most=40, unknown=False), st.data())
    @settings(max_examples=100, deadline=None)
    def test_limits_of_the_whole_study(self, study: Study, data: st.DataObject) -> None:
        limits = Limits(
            min_pass_rate=data.draw(st.sampled_from([None, 0.1, 0.3, 0.5])),
            max_escalation=data.draw(st.sampled_from([None, 0.5, 0.8, 0.9, 1.0])),
        )
        self.check(study, limited(study, data, limits))

    @given(studies(tiers=(2,), most=60, unknown=False), st.data())
    @settings(max_examples=50, deadline=None)
    def test_slow_answers(self, study: Study, data: st.DataObject) -> None:
        quick = tuple(
            replace(i, rows=tuple(tuple(replace(r, status="ok", task_s=0.1) for r in rows) for rows in i.rows))
            for i in study.items
        )
        few = data.draw(st.integers(0, 2))
        study = replace(study, items=(*study.items[:few], *quick[few:]))
        self.check(study, limited(study, data, Limits(p95_task_s=8.0), delta=0.4))

    def check(self, study: Study, chosen: Settings) -> None:
        walked = Walked(arrays(study), chosen)
        assert walked.allowed.tolist() == naive(study, walked, chosen)
        # A threshold lies at a candidate, so never inside a block of equal scores.
        ends = {walked.certificate.highest, walked.certificate.lowest}
        assert ends <= {*walked.sweep.levels.tolist(), math.inf, -math.inf}


class TestShares:
    @given(st.one_of(studies(most=12, unknown=False, groups=g) for g in (True, False)))
    @settings(max_examples=100, deadline=None)
    def test_at_every_candidate(self, study: Study) -> None:
        walked = Walked(arrays(study), settings_of(study))
        shares, goal = walked.shares, objective(walked.measures, walked.sweep)
        assert shares.failing is not None
        assert shares.slow is not None
        assert goal is not None
        for p, tiers in enumerate(walked.by_hand(study)):
            point = oracle.operating_point(study, tiers)
            assert shares.failing[p] == pytest.approx(float(oracle.failing_share(study, tiers)), abs=1e-12)
            assert shares.escalated[p] == pytest.approx(float(point["escalation_rate"]), abs=1e-12)  # type: ignore[arg-type]
            assert shares.slow[p] == pytest.approx(float(oracle.slow_share(study, tiers)), abs=1e-12)
            assert goal.cost_usd[p] == pytest.approx(float(point["cost_usd_total"]), abs=1e-9)  # type: ignore[arg-type]
            assert goal.expected_total_usd[p] == pytest.approx(float(point["expected_total_usd"]), abs=1e-9)  # type: ignore[arg-type]
            for r in range(len(study.loss_usd)):
                rate, _ = oracle.under_share(study, tiers, r)
                if rate is None:
                    assert math.isnan(shares.under[r][p])
                else:
                    assert shares.under[r][p] == pytest.approx(float(rate), abs=1e-12)

    @given(studies(most=12), st.data())
    @settings(max_examples=100, deadline=None)
    def test_the_selection_is_the_least_expected_total(self, study: Study, data: st.DataObject) -> None:
        limits = Limits(
            min_pass_rate=data.draw(st.sampled_from([None, 0.2, 0.5])),
            max_escalation=data.draw(st.sampled_from([None, 0.6, 1.0])),
            max_cost_per_request_usd=data.draw(st.sampled_from([None, 0.0051, 0.02])),
        )
        chosen = limited(study, data, limits)
        walked = Walked(arrays(study), chosen)
        goal = objective(walked.measures, walked.sweep)
        tiers = walked.by_hand(study)
        points = [oracle.operating_point(study, t) for t in tiers]
        known = study.costs_known and not any(
            r.cost_usd is None for item in study.items for rows in item.rows for r in rows
        )
        assert (goal is not None) == known
        chosen_places = select(walked.measures, walked.sweep, walked.shares, walked.certificate, goal)
        if goal is None:
            assert chosen_places.selected is None
            assert chosen_places.candidate is None
            return
        under = [[oracle.under_share(study, t, r)[0] for r in range(len(study.loss_usd))] for t in tiers]

        def holds(p: int, estimated_only: bool) -> bool:
            usd = points[p]["cost_usd_per_request"]
            cap = limits.max_cost_per_request_usd
            fine = cap is None or usd <= Fraction(cap) * (1 + Fraction(1, 10**12))  # type: ignore[operator]
            for r, rule in enumerate(chosen.classes):
                if rule.limit is not None and (rule.on_estimate or not estimated_only):
                    fine &= under[p][r] is None or under[p][r] <= Fraction(rule.limit) + Fraction(1, 10**12)
            if not estimated_only and limits.min_pass_rate is not None:
                fine &= float(oracle.failing_share(study, tiers[p])) <= 1 - limits.min_pass_rate + 1e-12
            if not estimated_only and limits.max_escalation is not None:
                fine &= float(points[p]["escalation_rate"]) <= limits.max_escalation + 1e-12  # type: ignore[arg-type]
            return bool(fine)

        certified = [p for p in range(len(tiers)) if walked.allowed[p] and holds(p, True)]
        seen = [p for p in range(len(tiers)) if holds(p, False)]
        assert chosen_places.selected == best(points, certified)
        assert chosen_places.candidate == best(points, seen)
        assert np.array_equal(
            np.flatnonzero(observed(walked.measures, walked.shares, goal)), np.array(seen, dtype=np.int64)
        )


def best(points: Sequence[dict[str, object]], places: list[int]) -> int | None:
    """Least expected total, then least cost, then most escalation; sums that only rounding parts are equal."""
    if not places:
        return None
    for field in ("expected_total_usd", "cost_usd_total"):
        values = [float(points[p][field]) for p in places]  # type: ignore[arg-type]
        least = min(values)
        places = [p for p, v in zip(places, values, strict=True) if v <= least + 1e-10]
    return places[-1]


def two_tiers(demands: Sequence[float], limit: float, **other: object) -> tuple[RoutingData, Settings]:
    """Needs of one class at these demands, nothing else; outcomes that all pass."""
    n = len(demands)
    ones = np.ones((n, 2))
    data = RoutingData(
        tiers=("cheap", "strong"),
        risk_classes=("critical",),
        required=np.ones(n, dtype=np.int8),
        risk=np.zeros(n, dtype=np.int16),
        weight=np.ones(n),
        demand=np.array(demands, dtype=np.float64),
        tier_cost_usd=ones * np.array([0.001, 0.02]),
        passed=ones,
        answered=ones,
        contract_failed=0.0 * ones,
        task_s=ones[:, :, None],
        replied=ones[:, :, None] > 0,
    )
    return data, Settings(classes=(ClassLimit(0.0, limit),), **other)  # type: ignore[arg-type]


def highest(data: RoutingData, chosen: Settings) -> float:
    return Walked(data, chosen).certificate.highest


class TestWorkedExample:
    """critical: 160 needs at 2 %; low: 60 needs at 10 %; both certified at t = .07."""

    critical = (0.07, 0.21, 0.33, *np.linspace(0.36, 0.99, 157))
    low = (0.05, 0.12, 0.17, 0.30, *np.linspace(0.40, 0.97, 56))

    def certificate(self) -> Certificate:
        data, chosen = two_tiers([*self.critical, *self.low], 0.02)
        data = replace(
            data,
            risk_classes=("critical", "low"),
            risk=np.array([0] * len(self.critical) + [1] * len(self.low), dtype=np.int16),
        )
        return Walked(data, replace(chosen, classes=(ClassLimit(40.0, 0.02), ClassLimit(0.05, 0.10)))).certificate

    def test_printed(self) -> None:
        certificate = self.certificate()
        critical, low = certificate.classes
        assert (critical.units, critical.tolerance.failures_allowed, critical.tolerance.threshold) == (
            160,
            0,
            0.07,
        )
        assert (low.units, low.tolerance.failures_allowed, low.tolerance.threshold) == (60, 1, 0.12)
        assert certificate.highest == 0.07
        assert certificate.lowest == -math.inf

    def test_golden(self, shared: Path) -> None:
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))["2_worked"]
        certificate = self.certificate()
        critical, low = certificate.classes
        assert [critical.units, critical.tolerance.failures_allowed, critical.tolerance.threshold] == [
            golden[f"crit_{name}"] for name in ("n", "kmax", "t")
        ]
        assert [low.units, low.tolerance.failures_allowed, low.tolerance.threshold] == [
            golden[f"low_{name}"] for name in ("n", "kmax", "t")
        ]
        assert certificate.highest == golden["t_hat"]


DEMANDS = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0, math.inf]), min_size=1, max_size=60)


class TestNeverBends:
    @given(DEMANDS, LIMITS, LIMITS, DELTAS, DELTAS)
    @settings(deadline=None)
    def test_a_tighter_limit_or_a_smaller_delta_never_allows_more(
        self, demands: list[float], a: float, b: float, d: float, e: float
    ) -> None:
        data, chosen = two_tiers(demands, max(a, b), delta=max(d, e))
        tighter = replace(chosen, classes=(ClassLimit(0.0, min(a, b)),), delta=min(d, e))
        assert highest(data, tighter) <= highest(data, chosen)

    @given(DEMANDS, LIMITS, DELTAS, st.integers(1, 30))
    @settings(deadline=None)
    def test_more_items_below_every_threshold_never_allow_more(
        self, demands: list[float], limit: float, delta: float, more: int
    ) -> None:
        below = [-5.0] * more
        one, other = (two_tiers(d, limit, delta=delta) for d in (demands, demands + below))
        if highest(*one) > -math.inf:
            assert highest(*other) <= highest(*one)
        else:  # a class too small to certify anything may grow into one that can, at the new items at the most
            assert highest(*other) <= min(demands)

    @given(DEMANDS, LIMITS, DELTAS, st.integers(1, 30))
    @settings(deadline=None)
    def test_items_that_always_go_up_never_allow_less(
        self, demands: list[float], limit: float, delta: float, more: int
    ) -> None:
        one, other = (two_tiers(d, limit, delta=delta) for d in (demands, demands + [math.inf] * more))
        assert highest(*other) >= highest(*one)

    @given(studies(most=30, unknown=False, groups=True), st.data())
    @settings(max_examples=50, deadline=None)
    def test_the_order_of_the_items_does_not_matter(self, study: Study, data: st.DataObject) -> None:
        chosen = limited(study, data, Limits(min_pass_rate=0.3, max_escalation=0.9, p95_task_s=8.0))
        one = arrays(study)
        order = np.array(data.draw(st.permutations(range(one.n))))
        other = arrays(replace(study, items=tuple(study.items[i] for i in order)))
        a, b = Walked(one, chosen).certificate, Walked(other, chosen).certificate
        assert (a.highest, a.lowest) == (b.highest, b.lowest)
        assert a.n_requests == pytest.approx(b.n_requests, rel=1e-14)

    def test_a_spent_look_certifies_nothing(self) -> None:
        data, chosen = two_tiers([0.5] * 1000, 0.5, delta=None, limits=Limits(0.1, None, 100.0, 1.0))
        walked = Walked(data, chosen)
        assert walked.certificate.classes == ()
        assert not walked.allowed.any() or walked.certificate.lowest == math.inf
        goal = objective(walked.measures, walked.sweep)
        assert select(walked.measures, walked.sweep, walked.shares, walked.certificate, goal).selected is None

    def test_what_is_not_known_is_not_certified(self) -> None:
        data, chosen = two_tiers([0.5] * 1000, 0.5, limits=Limits(min_pass_rate=0.1))
        assert Walked(replace(data, passed=None), chosen).certificate.pass_level == -math.inf
        late = replace(chosen, limits=Limits(p95_task_s=100.0))
        assert Walked(data, late).certificate.slow_level == -math.inf
        assert Walked(replace(data, task_s=None), late).certificate.slow_level == math.inf
        nowhere = np.full((1000, 2, 1), np.nan)
        assert Walked(replace(data, task_s=nowhere), late).certificate.slow_level == math.inf
        assert data.task_s is not None
        gaps = data.task_s.copy()
        gaps[:100] = np.nan
        assert Walked(replace(data, task_s=gaps), late).certificate.slow_level == math.inf

    def test_an_item_without_a_sample_is_slow(self) -> None:
        data, chosen = two_tiers([0.5] * 10, 0.5, limits=Limits(p95_task_s=100.0))
        sampled = np.ones((10, 2, 1), dtype=bool)
        sampled[3] = False
        late = slow_share(measured(replace(data, sampled=sampled), chosen), 100.0)
        assert late is not None
        assert late[:, 0].tolist() == [0.0] * 3 + [1.0] + [0.0] * 6

    def test_no_needs_certify_nothing(self) -> None:
        data, chosen = two_tiers([0.5] * 1000, 0.5)
        for required in (0, 2):  # cheap is enough for all; nobody solves any
            none = replace(data, required=np.full(1000, required, dtype=np.int8))
            assert highest(none, chosen) == -math.inf

    def test_needs_without_weight_certify_nothing(self) -> None:
        data, chosen = two_tiers([0.5] * 1000, 0.5)
        weight = np.repeat([0.0, 2.0], 500)
        required = np.repeat([1, 0], 500).astype(np.int8)
        assert highest(replace(data, weight=weight, required=required), chosen) == -math.inf


class TestUnits:
    def test_a_conversation_counts_once_by_its_worst_turn(self) -> None:
        data, _ = two_tiers([0.3, 0.1, 0.8, 0.9, 0.2], 0.5)
        data = replace(
            data,
            group=np.array([7, 7, 7, 2, 5]),
            weight=np.array([1.0, 3.0, 9.0, 2.0, 4.0]),
            required=np.array([1, 1, 0, 1, 1], dtype=np.int8),  # the third turn needs nothing
        )
        assert data.demand is not None
        level, weight = class_units(data, data.demand[:, None], 0)
        assert sorted(zip(level.tolist(), weight.tolist(), strict=True)) == [(0.1, 2.0), (0.2, 4.0), (0.9, 2.0)]

    def test_the_level_is_that_of_the_boundary_below_the_required_tier(self) -> None:
        data, _ = two_tiers([0.0, 0.0, 0.0], 0.5)
        data = replace(data, tiers=("a", "b", "c"), required=np.array([1, 2, 3], dtype=np.int8))
        level, _ = class_units(data, np.array([[5.0, 4.0], [3.0, 2.0], [9.0, 9.0]]), 0)
        assert level.tolist() == [5.0, 2.0]  # the third item is unsolvable

    def test_requests(self) -> None:
        data, _ = two_tiers([0.0] * 6, 0.5)
        assert request_n(data) == 6
        assert request_n(replace(data, group=np.array([0, 0, 0, 1, 1, 2]))) == 2  # 6 turns, longest 3
        assert request_n(replace(data, weight=np.array([3.0, 1, 1, 1, 0, 0]))) == pytest.approx(2, rel=1e-14)
        assert request_n(replace(data, required=np.empty(0, dtype=np.int8))) == 0


def test_samples_round_up_and_never_count_as_items() -> None:
    # 100 items x 3 samples; one sample in three fails on 7 items: 2.33 failures of 100, taken as 3.
    data, chosen = two_tiers([0.5] * 100, 0.5, limits=Limits(min_pass_rate=0.9))
    passed = np.ones((100, 2))
    passed[:7] = 2 / 3
    walked = Walked(replace(data, passed=passed), chosen)
    assert walked.shares.failing is not None
    assert walked.shares.failing.tolist() == [0.03, 0.03]
    assert walked.certificate.n_requests == 100
    assert clopper_pearson(3, 100, 0.05) < 0.1 < clopper_pearson(5, 100, 0.05)
    assert walked.certificate.pass_level == math.inf
    passed[:13] = 2 / 3  # 4.33, taken as 5
    assert Walked(replace(data, passed=passed), chosen).certificate.pass_level == -math.inf
