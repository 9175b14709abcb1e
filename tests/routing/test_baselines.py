"""What a router is compared with, each worked out by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import routing_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_cases import arrays, helpful, settings_of, studies
from routing_oracle import Study
from test_points import same

from evalkit.routing.baselines import baselines_of, category_tiers, oracle_tiers, point_of_tiers
from evalkit.routing.folds import group_folds
from evalkit.routing.points import item_measures
from evalkit.routing.policies import path_costs


def alone(study: Study) -> Study:
    """A fixed arm has neither router nor verifier."""
    items = tuple(replace(i, verifier_usd=None) for i in study.items)
    return replace(study, items=items, policy="direct", router_usd=0.0, router_s=0.0)


def cheapest_that_passes(study: Study) -> list[int]:
    tiers = []
    for item in study.items:
        passing = [j for j in range(study.tiers) if oracle.share(item, j, {"ok"}) >= Fraction(1, 2)]
        # Costs as the code has them, in binary floating point: equal means equal there.
        cost = {j: float(np.mean([row.cost_usd for row in item.rows[j]])) for j in passing}  # type: ignore[arg-type]
        tiers.append(min(passing, key=lambda j: (cost[j], j)) if passing else 0)
    return tiers


def looked_up(study: Study, fold: list[int]) -> list[list[int]]:
    """Per item the tiers that are as good as the best of its category on the other folds; all within rounding."""
    w, fixed = oracle.weights(study), alone(study)
    out = []
    for item, mine in zip(study.items, fold, strict=True):
        others = [
            place
            for place, other in enumerate(study.items)
            if fold[place] != mine and other.category == item.category
        ]
        if not others:
            out.append([study.tiers - 1])
            continue
        totals = []
        for tier in range(study.tiers):
            total = Fraction()
            for place in others:
                one = oracle.operating_point(
                    replace(fixed, items=(replace(study.items[place], weight=1),)), [tier]
                )
                assert isinstance(one["expected_total_usd"], Fraction)
                total += w[place] * one["expected_total_usd"]
            totals.append(float(total))
        best = min(totals)
        out.append([j for j, total in enumerate(totals) if total <= best + 1e-9])
    return out


class TestAgainstTheOracle:
    @given(studies(unknown=False, groups=True))
    @settings(max_examples=80, deadline=None)
    def test_arms_and_oracle(self, study: Study) -> None:
        found = baselines_of(arrays(study), settings_of(study), None)
        fixed = alone(study)
        for j in range(study.tiers):
            same(
                asdict(found[f"always:tier{j}"].point),
                oracle.operating_point(fixed, [j] * len(study.items)),
                f"always:{j}",
            )
        same(asdict(found["oracle"].point), oracle.operating_point(fixed, cheapest_that_passes(study)), "oracle")
        assert "random_mix" not in found  # there is no router whose cost it could match

    @given(studies(unknown=False, most=14))
    @settings(max_examples=60, deadline=None)
    def test_category_look_up(self, study: Study) -> None:
        data, chosen = arrays(study), settings_of(study)
        fixed = item_measures(data, chosen, path_costs(data, chosen, "direct", overhead=False))
        tiers = category_tiers(fixed, chosen)
        assert tiers is not None
        for tier, allowed in zip(tiers, looked_up(study, group_folds(data, chosen.seed).tolist()), strict=True):
            assert tier in allowed
        found = baselines_of(data, chosen, None)["category_lookup"]
        same(asdict(found.point), oracle.operating_point(alone(study), tiers.tolist()), "category_lookup")

    @given(studies(unknown=False), st.data())
    @settings(max_examples=80, deadline=None)
    def test_random_mix(self, study: Study, data: st.DataObject) -> None:
        given_data, chosen = arrays(study), settings_of(study)
        tiers = np.array([data.draw(st.integers(0, study.tiers - 1)) for _ in study.items], dtype=np.int8)
        measures = item_measures(given_data, chosen, path_costs(given_data, chosen, chosen.policy))
        router = point_of_tiers(measures, tiers, "router")
        mix = baselines_of(given_data, chosen, router)["random_mix"]
        arms = [oracle.operating_point(alone(study), [j] * len(study.items)) for j in range(study.tiers)]
        cost = [float(a["cost_usd_per_request"]) for a in arms]  # type: ignore[arg-type]
        total = [float(a["expected_total_usd"]) for a in arms]  # type: ignore[arg-type]
        assert router.point.cost_usd_per_request is not None
        target = min(max(router.point.cost_usd_per_request, min(cost)), max(cost))
        assert mix.point.cost_usd_per_request == pytest.approx(target, abs=1e-12)
        best = math.inf
        for a in range(study.tiers):
            for b in range(study.tiers):
                if cost[a] <= target <= cost[b]:
                    p = 0.0 if cost[a] == cost[b] else (target - cost[a]) / (cost[b] - cost[a])
                    best = min(best, (1 - p) * total[a] + p * total[b])
        assert mix.point.expected_total_usd == pytest.approx(best, rel=1e-9, abs=1e-9)
        # A mix is linear: every rate of requests lies where its cost says.
        w = np.array([float(x) for x in oracle.weights(study)])
        assert mix.expected_total_usd is not None
        assert float(mix.expected_total_usd @ w) == pytest.approx(best, rel=1e-9, abs=1e-9)


class TestOracle:
    def test_by_hand(self) -> None:
        data, _ = helpful(5)
        data = replace(
            data,
            passed=np.array([[1, 1], [0, 1], [0, 0], [0.5, 1], [0.4, 0.5]], dtype=np.float64),
            tier_cost_usd=np.array([[1, 2], [1, 2], [1, 2], [3, 2], [1, 2]], dtype=np.float64),
        )
        tiers = oracle_tiers(data)
        assert tiers is not None
        # passes cheaply; only the strong one passes; nobody does; half passes, but the strong one costs less.
        assert tiers.tolist() == [0, 1, 0, 1, 1]

    def test_equal_and_unknown_costs_go_by_tier(self) -> None:
        data, _ = helpful(3)
        everyone = np.ones((3, 2))
        equal = oracle_tiers(replace(data, passed=everyone, tier_cost_usd=everyone))
        assert equal is not None
        assert equal.tolist() == [0, 0, 0]
        cost = np.array([[9.0, 1.0], [9.0, math.nan], [9.0, 1.0]])
        unknown = oracle_tiers(replace(data, passed=everyone, tier_cost_usd=cost))
        assert unknown is not None
        assert unknown.tolist() == [0, 0, 0]
        assert oracle_tiers(replace(data, passed=None)) is None


class TestCategoryLookUp:
    def test_an_unseen_category_goes_to_the_strongest(self) -> None:
        data, chosen = helpful(200)
        data = replace(data, category=np.array([5] + [1] * 199, dtype=np.int32))
        fixed = item_measures(data, chosen, path_costs(data, chosen, "direct", overhead=False))
        tiers = category_tiers(fixed, chosen)
        assert tiers is not None
        assert tiers[0] == 1

    def test_its_own_group_does_not_choose_for_it(self) -> None:
        # One conversation holds the whole category: to the other folds the category is unseen.
        data, chosen = helpful(100)
        category = np.array([1] * 30 + [2] * 70, dtype=np.int32)
        group = np.array([0] * 30 + list(range(1, 71)), dtype=np.int64)
        data = replace(data, category=category, group=group, required=np.zeros(100, dtype=np.int8))
        fixed = item_measures(data, chosen, path_costs(data, chosen, "direct", overhead=False))
        tiers = category_tiers(fixed, chosen)
        assert tiers is not None
        assert tiers[:30].tolist() == [1] * 30
        assert tiers[30:].tolist() == [0] * 70

    def test_none_without_categories_or_costs(self) -> None:
        data, chosen = helpful(50)
        assert "category_lookup" not in baselines_of(replace(data, category=None), chosen, None)
        assert data.tier_cost_usd is not None
        data.tier_cost_usd[3, 0] = math.nan
        found = baselines_of(data, chosen, None)
        assert "category_lookup" not in found
        assert found["always:strong"].point.cost_usd_total is not None
        assert found["always:cheap"].point.cost_usd_total is None


class TestFolds:
    @pytest.mark.parametrize("grouped", [False, True])
    def test_whole_groups_evenly_and_by_stratum(self, grouped: bool) -> None:
        data, _ = helpful(1000)
        if grouped:
            data = replace(data, group=np.random.default_rng(3).integers(0, 300, 1000))
        fold = group_folds(data, 7)
        assert set(fold.tolist()) == set(range(10))
        groups = np.arange(1000) if data.group is None else data.group
        pairs = {(int(g), int(f)) for g, f in zip(groups, fold, strict=True)}
        assert len(pairs) == len(set(groups.tolist()))  # no group in two folds
        sizes = Counter(f for _, f in pairs)
        assert max(sizes.values()) - min(sizes.values()) <= 1
        if not grouped:
            for r in range(2):
                for need in (False, True):
                    held = Counter(fold[(data.risk == r) & (data.needs == need)].tolist())
                    assert max(held.values()) - min(held.get(f, 0) for f in range(10)) <= 1

    def test_the_seed_decides(self) -> None:
        data, _ = helpful(200)
        assert group_folds(data, 1).tolist() == group_folds(data, 1).tolist()
        assert group_folds(data, 1).tolist() != group_folds(data, 2).tolist()


class TestRandomMix:
    """All cheap loses 4.0, all strong .6: any mix loses what lies between, and matches the cost."""

    def mix(self, share: float) -> tuple[float, float]:
        data, chosen = helpful(10)
        required = np.array([1] * 2 + [0] * 8, dtype=np.int8)
        cost = np.tile([0.0, 0.06], (10, 1))
        data = replace(data, required=required, risk=np.zeros(10, dtype=np.int16), tier_cost_usd=cost)
        chosen = replace(
            chosen,
            classes=(replace(chosen.classes[0], under_route_loss_usd=2.0), chosen.classes[1]),
            router_cost_usd=0.06 * share,
        )
        measures = item_measures(data, chosen, path_costs(data, chosen, "direct"))
        router = point_of_tiers(measures, np.zeros(10, dtype=np.int8), "router")  # costs as much as the mix may
        point = baselines_of(data, chosen, router)["random_mix"].point
        assert point.expected_total_usd is not None
        return point.escalation_rate, point.expected_total_usd

    @pytest.mark.parametrize("share", [0.0, 0.25, 0.7, 1.0])
    def test_linear(self, share: float) -> None:
        escalated, total = self.mix(share)
        assert escalated == pytest.approx(share)
        assert total == pytest.approx(4.0 + share * (0.6 - 4.0))

    def test_golden(self, shared: Path) -> None:
        golden = json.loads((shared / "golden" / "statistics.json").read_text(encoding="utf-8"))
        expected = golden["10_stop_drift"]["random_mix"]
        assert (expected["L_all_cheap"], expected["L_all_strong"]) == (4.0, 0.6)
        assert self.mix(0.7)[1] == pytest.approx(expected["at e=.7"])

    def test_cost_outside_the_arms_is_the_nearest_arm(self) -> None:
        data, chosen = helpful(100)
        dear = replace(chosen, router_cost_usd=5.0)
        measures = item_measures(data, dear, path_costs(data, dear, "direct"))
        router = point_of_tiers(measures, np.ones(100, dtype=np.int8), "router")
        found = baselines_of(data, dear, router)
        assert found["random_mix"].point == replace(
            found["always:strong"].point, name="random_mix", p95_task=found["random_mix"].point.p95_task
        )
