"""Every figure of an operating point against one worked out by hand, and the golden figures of the design."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import routing_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_cases import arrays, settings_of, studies
from routing_oracle import Study

from evalkit.routing.baselines import point_of_tiers
from evalkit.routing.data import ClassLimit, RoutingData, Settings, rescaled
from evalkit.routing.path import fixed_path, path_through, score_path
from evalkit.routing.points import ItemMeasures, OperatingPoint, buckets_of, clean, evaluate, item_measures
from evalkit.routing.policies import path_costs, routed_tier
from evalkit.routing.sweep import sweep_of


def same(got: object, expected: object, where: str) -> None:
    """Equal, numbers to 1e-9; None only equals None."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(got[key] if isinstance(got, dict) else getattr(got, key), value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(got, list | tuple), where
        assert len(got) == len(expected), where
        for i, (g, e) in enumerate(zip(got, expected, strict=True)):
            same(g, e, f"{where}[{i}]")
    elif expected is None or got is None:
        assert got is None, f"{where}: {got!r}, by hand {expected!r}"
        assert expected is None, f"{where}: {got!r}, by hand {float(expected)}"  # type: ignore[arg-type]
    else:
        assert float(got) == pytest.approx(float(expected), rel=1e-9, abs=1e-9), where  # type: ignore[arg-type]


def measured(study: Study) -> ItemMeasures:
    data, chosen = arrays(study), settings_of(study)
    return item_measures(data, chosen, path_costs(data, chosen, chosen.policy))


def check(point: OperatingPoint, study: Study, tiers: list[int]) -> None:
    expected = oracle.operating_point(study, tiers)
    assert set(expected) == {f.name for f in fields(OperatingPoint)} - {"name", "thresholds"}
    same(asdict(point), expected, f"tiers {tiers}")


class TestAgainstTheOracle:
    @given(studies(), st.data())
    @settings(max_examples=200, deadline=None)
    def test_any_tiers(self, study: Study, data: st.DataObject) -> None:
        tiers = [data.draw(st.integers(0, study.tiers - 1)) for _ in study.items]
        measures = measured(study)
        router = point_of_tiers(measures, np.array(tiers, dtype=np.int8), "router")
        check(router.point, study, tiers)
        w = oracle.weights(study)
        for values, field in (
            (router.cost_usd, "cost_usd_total"),
            (router.expected_total_usd, "expected_total_usd"),
        ):
            total = getattr(router.point, field)
            if total is not None:
                assert values is not None
                assert float(values @ np.array([float(x) for x in w])) == pytest.approx(total, abs=1e-9)

    @given(studies(tiers=(2,)))
    @settings(max_examples=150, deadline=None)
    def test_every_threshold_of_two_tiers_at_once(self, study: Study) -> None:
        data, measures = arrays(study), measured(study)
        assert data.demand is not None
        path = score_path(data.demand)
        along(study, measures, path.levels, path.thresholds_at)

    @given(studies(tiers=(3, 4)), st.data())
    @settings(max_examples=150, deadline=None)
    def test_every_level_of_a_path_over_several_thresholds(self, study: Study, data: st.DataObject) -> None:
        demand, measures = arrays(study).demand, measured(study)
        assert demand is not None
        target = data.draw(
            st.tuples(*[st.sampled_from((-math.inf, -2.5, 0.0, 0.1, 0.3, 2.0))] * (study.tiers - 1))
        )
        finders = data.draw(st.integers(0, len(demand)))
        target = tuple(sorted(target)) if demand.ndim == 1 else target
        path = path_through(demand, demand[:finders], target, steps=data.draw(st.sampled_from((2, 6, 20))))
        along(study, measures, path.levels, path.thresholds_at)

    @given(studies(), st.data())
    @settings(max_examples=150, deadline=None)
    def test_fixed_thresholds(self, study: Study, data: st.DataObject) -> None:
        demand, measures = arrays(study).demand, measured(study)
        assert demand is not None
        limits = data.draw(st.tuples(*[st.sampled_from((-3.0, 0.0, 0.1, 0.3, 1.0, 9.0))] * (study.tiers - 1)))
        path = fixed_path(demand, limits)
        point = evaluate(measures, buckets_of(path.levels, [1.0]), ["fixed"], [limits])[0]
        check(point, study, [oracle.ends_at(item, limits, study.tiers) for item in study.items])

    @given(studies(unknown=False, infinite=False), st.randoms(use_true_random=False))
    @settings(max_examples=50, deadline=None)
    def test_the_order_of_the_items_does_not_matter(self, study: Study, random: object) -> None:
        order = list(range(len(study.items)))
        random.shuffle(order)  # type: ignore[attr-defined]
        shuffled = Study(**{**vars(study), "items": tuple(study.items[i] for i in order)})
        for tier in range(study.tiers):
            one, other = (
                asdict(point_of_tiers(measured(s), np.full(len(s.items), tier, dtype=np.int8), "x").point)
                for s in (study, shuffled)
            )
            one["p95_task"], other["p95_task"] = dict(one["p95_task"]), dict(other["p95_task"])
            for key, value in one.items():
                if isinstance(value, float):
                    assert other[key] == pytest.approx(value, rel=1e-11, abs=1e-12), key
                elif key.startswith("confusion_"):
                    assert np.allclose(np.array(value, float), np.array(other[key], float), rtol=1e-11, atol=1e-12)
                else:
                    assert other[key] == value, key


def along(study: Study, measures: ItemMeasures, levels: np.ndarray, thresholds_at: object) -> None:
    """All candidates of the path in one call, each held against its own printed thresholds."""
    sweep = sweep_of(levels)
    chosen = [float(x) for x in sweep.levels]
    thresholds = [thresholds_at(x) for x in chosen]  # type: ignore[operator]
    points = evaluate(measures, buckets_of(levels, chosen), ["p"] * len(chosen), thresholds)
    for level, limits, point in zip(chosen, thresholds, points, strict=True):
        by_hand = [oracle.ends_at(item, limits, study.tiers) for item in study.items]
        assert routed_tier(levels, level).tolist() == by_hand, (level, limits)
        check(point, study, by_hand)


def plain(
    required: list[int],
    *,
    cost: tuple[float, ...],
    tiers: tuple[str, ...] = ("cheap", "strong"),
    risk: list[int] | None = None,
    classes: tuple[ClassLimit, ...] = (ClassLimit(0.0, None),),
    **settings: object,
) -> tuple[RoutingData, Settings]:
    n = len(required)
    ones = np.ones((n, len(tiers)))
    data = RoutingData(
        tiers=tiers,
        risk_classes=tuple(f"risk{r}" for r in range(len(classes))),
        required=np.array(required, dtype=np.int8),
        risk=np.array(risk or [0] * n, dtype=np.int16),
        weight=np.ones(n),
        tier_cost_usd=ones * np.array(cost),
        passed=ones,
        answered=ones,
        contract_failed=ones * 0.0,
    )
    return data, Settings(classes=classes, **settings)  # type: ignore[arg-type]


def sent(data: RoutingData, settings: Settings, tier: list[int], policy: str | None = None) -> OperatingPoint:
    measures = item_measures(data, settings, path_costs(data, settings, policy or settings.policy))
    return point_of_tiers(measures, np.array(tier, dtype=np.int8), "x").point


class TestGolden:
    """N = 100, cheap .002, strong .020, overhead .001, 30 % to the strong tier."""

    required = [1] * 30 + [0] * 70

    def test_direct(self) -> None:
        data, chosen = plain(self.required, cost=(0.002, 0.020), router_cost_usd=0.001)
        point = sent(data, chosen, self.required)
        assert point.cost_usd_total == 0.84
        assert point.saving_usd_vs_strongest == 1.16
        assert point.escalation_rate == 0.30
        assert point.routing_loss_usd == 0.0

    def test_cascade(self) -> None:
        data, chosen = plain(self.required, cost=(0.002, 0.020), router_cost_usd=0.001, policy="cascade")
        point = sent(data, chosen, self.required)
        assert point.cost_usd_total == 0.90
        assert point.saving_usd_vs_strongest == 1.10
        cheap_only = sent(data, Settings(classes=chosen.classes), [0] * 100)
        assert clean((point.cost_usd_total or 0) - (cheap_only.cost_usd_total or 0)) == 0.70

    def test_accuracy_hides_under_routing(self) -> None:
        data, chosen = plain([1] * 20 + [0] * 980, cost=(0.002, 0.020))
        point = sent(data, chosen, [0] * 1000)
        assert point.accuracy == 0.98
        assert point.under_route_rate == 1.0
        assert point.under_route_count == 20

    def test_perfect_routing_that_costs_more_than_it_saves(self) -> None:
        # Overhead .02: every item is verified (2.00) on top of 100 x .002 + 30 x .020 = .80.
        data, chosen = plain(self.required, cost=(0.002, 0.020), router_cost_usd=0.020, policy="cascade")
        point = sent(data, chosen, self.required)
        strong_only = sent(data, Settings(classes=chosen.classes), [1] * 100)
        assert point.routing_loss_usd == 0.0
        assert (point.cost_usd_total, strong_only.cost_usd_total) == (2.80, 2.00)
        assert (point.expected_total_usd, strong_only.expected_total_usd) == (2.80, 2.00)


class TestMatrixOrientation:
    """Rows are required tiers in declared order, columns routed ones."""

    tiers = ("cheap", "mid", "frontier", "reasoning")
    required = ("cheap",) * 5 + ("frontier",) * 3 + ("mid",)
    routed = ("cheap",) * 4 + ("frontier", "frontier", "cheap", "mid", "reasoning")
    risk = ("low",) * 5 + ("high",) * 3 + ("medium",)
    classes = (("low", 1.0), ("medium", 3.0), ("high", 10.0), ("critical", 25.0))

    def point(self, tiers: tuple[str, ...]) -> OperatingPoint:
        names = [name for name, _ in self.classes]
        data, chosen = plain(
            [tiers.index(t) for t in self.required],
            cost=(1.0, 2.0, 3.0, 4.0),
            tiers=tiers,
            risk=[names.index(r) for r in self.risk],
            classes=tuple(ClassLimit(w, None, weight=w) for _, w in self.classes),
        )
        return sent(data, chosen, [tiers.index(t) for t in self.routed])

    def test_figures(self) -> None:
        point = self.point(self.tiers)
        assert [list(row) for row in point.confusion] == [
            [4, 0, 1, 0],
            [0, 0, 0, 1],
            [1, 1, 1, 0],
            [0, 0, 0, 0],
            [0, 0, 0, 0],  # unsolvable
        ]
        assert point.under_route_count == 2
        assert point.unnecessary_escalation_count == 2
        assert point.risk_weighted_under_route == pytest.approx(20 / 38)
        high = point.by_risk[2]
        assert (high.needs, high.under_route_count) == (3, 2)
        assert high.confusion[2] == (1, 1, 1, 0)

    def test_a_wrong_order_changes_the_figures(self) -> None:
        assert self.point(("cheap", "frontier", "mid", "reasoning")).under_route_count == 1

    def test_as_in_the_case(self, shared: Path) -> None:
        folder = shared / "cases" / "M02-matrix-orientation"
        values = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["values"]
        point = self.point(self.tiers)
        assert [list(row) for row in point.confusion[:4]] == values["matrix"]
        assert point.under_route_count == len(values["under"])
        assert point.unnecessary_escalation_count == len(values["over"])
        assert point.risk_weighted_under_route == pytest.approx(float(Fraction(values["weighted_under"])))
        assert self.point(("cheap", "frontier", "mid", "reasoning")).under_route_count == len(
            values["wrong_alphabetical_under"]
        )


class TestAccuracyHidesUnderRouting:
    """18 easy items and 2 critical ones: A sends all to the cheap tier, B six easy ones too many upwards."""

    def points(self) -> dict[str, OperatingPoint]:
        data, chosen = plain(
            [0] * 18 + [2, 2],
            cost=(0.001, 0.002, 0.003, 0.004),
            tiers=("cheap", "mid", "frontier", "reasoning"),
            risk=[0] * 18 + [1, 1],
            classes=(ClassLimit(1.0, None, weight=1.0), ClassLimit(25.0, 0.0, weight=25.0)),
        )
        return {
            "A": sent(data, chosen, [0] * 20),
            "B": sent(data, chosen, [2] * 6 + [0] * 12 + [2, 2]),
        }

    def test_figures(self) -> None:
        a, b = self.points().values()
        assert (a.accuracy, a.escalation_rate) == (0.9, 0.0)
        assert a.risk_weighted_under_route == pytest.approx(50 / 68)
        assert (a.by_risk[1].needs, a.by_risk[1].under_route_count) == (2, 2)
        assert (b.accuracy, b.escalation_rate, b.unnecessary_escalation_count) == (0.7, 0.4, 6)
        assert b.risk_weighted_under_route == 0.0
        assert a.routing_loss_usd is not None
        assert b.routing_loss_usd is not None
        assert b.routing_loss_usd < a.routing_loss_usd
        assert b.expected_total_usd < a.expected_total_usd  # type: ignore[operator]

    def test_as_in_the_case(self, shared: Path) -> None:
        folder = shared / "cases" / "M03-accuracy-hides-under-routing"
        values = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["values"]
        for name, point in self.points().items():
            expected = values[name]
            assert point.accuracy == pytest.approx(float(Fraction(expected["accuracy"])))
            assert point.risk_weighted_under_route == pytest.approx(float(Fraction(expected["weighted_under"])))
            assert point.escalation_rate == pytest.approx(float(Fraction(expected["escalation"])))
            if "over" in expected:
                assert point.unnecessary_escalation_count == expected["over"]


class TestParts:
    def test_weights_mean_one(self) -> None:
        assert rescaled(np.array([3.0, 1.0, 0.0])).tolist() == [2.25, 0.75, 0.0]
        assert rescaled(np.array([0.1, 0.1, 0.1])).tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(ValueError, match="The `weight` parameter of `rescaled` must have a positive sum"):
            rescaled(np.zeros(3))

    def test_twelve_digits(self) -> None:
        assert clean(0.1 + 0.2) == 0.3
        assert clean(None) is None

    def test_a_policy_nobody_knows(self) -> None:
        data, chosen = plain([0], cost=(1.0, 2.0))
        with pytest.raises(ValueError, match="The `policy` parameter of `path_costs`"):
            path_costs(data, chosen, "both")

    def test_an_unknown_cost_touches_only_the_points_that_need_it(self) -> None:
        # Item 0's mid reply has no cost; a direct router that sends it past the mid tier does not need it.
        data, chosen = plain([0, 0], cost=(1.0, 2.0, 3.0), tiers=("a", "b", "c"))
        assert data.tier_cost_usd is not None
        data.tier_cost_usd[0, 1] = math.nan
        totals = [sent(data, chosen, [tier, 2]).cost_usd_total for tier in range(3)]
        assert totals == [4.0, None, 6.0]
