"""The loss at a searched threshold, measured on items that did not choose it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from routing_cases import helpful
from scipy import stats

from evalkit.routing.analysis import analyse
from evalkit.routing.crossfit import cross_fitted_tiers, matched_threshold, routing_loss_upper_usd
from evalkit.routing.data import ClassLimit, Limits, RoutingData, Settings
from evalkit.routing.folds import group_folds
from evalkit.routing.points import ItemMeasures, item_measures
from evalkit.routing.policies import path_costs
from evalkit.routing.search import Search, path_of, search_along
from evalkit.statistics.bounds import max_failures


def measured(data: RoutingData, chosen: Settings) -> ItemMeasures:
    return item_measures(data, chosen, path_costs(data, chosen, chosen.policy))


def searched(data: RoutingData, chosen: Settings) -> Search:
    measures = measured(data, chosen)
    path, certifying = path_of(measures)
    return search_along(measures, path, certifying)


def fitted(search: Search) -> np.ndarray | None:
    return cross_fitted_tiers(search.measures, search.levels, search.certificate, None, None, None)


class TestMatchedRank:
    levels = np.arange(1.0, 55.0)  # 54 of 60, their ranks as values

    def ranks(self, k: float, n: int, draws: int = 4000) -> Counter[float]:
        chance = np.random.default_rng(5)
        return Counter(matched_threshold(self.levels, 0.5, k, n, chance) for _ in range(draws))

    def test_between_ranks(self) -> None:
        # k = 1 of n = 60: rank (1 + 1) (54 + 1) / (60 + 1) = 1.8033: the first with .1967, the second with .8033.
        seen = self.ranks(1, 60)
        assert set(seen) == {1.0, 2.0}
        assert seen[2.0] / 4000 == pytest.approx(110 / 61 - 1, abs=0.03)

    def test_a_whole_rank_is_itself(self) -> None:
        assert set(self.ranks(9, 109)) == {5.0}  # 10 x 55 / 110

    def test_below_the_first_rank_everything_goes_up(self) -> None:
        # k = 0 of n = 60: rank .9016, so with .0984 none of the fold's items may be below the threshold.
        seen = self.ranks(0, 60)
        assert set(seen) == {-math.inf, 1.0}
        assert seen[1.0] / 4000 == pytest.approx(55 / 61, abs=0.03)

    def test_what_is_not_certified_stays_so(self) -> None:
        chance = np.random.default_rng(5)
        for end in (math.inf, -math.inf):
            assert matched_threshold(self.levels, end, 1, 60, chance) == end
        assert matched_threshold(np.empty(0), 0.5, 1, 60, chance) == -math.inf

    def test_ties_and_order(self) -> None:
        chance = np.random.default_rng(5)
        levels = np.array([0.3, 0.1, 0.3, 0.2, 0.3])
        assert {matched_threshold(levels, 0.5, 3, 7, chance) for _ in range(20)} == {0.3}  # rank 4 x 6 / 8 = 3


class TestCrossFittedTiers:
    def test_each_fold_is_judged_at_the_threshold_of_the_others(self) -> None:
        data, chosen = helpful(400)
        chosen = replace(chosen, limits=Limits())
        search = searched(data, chosen)
        tiers = fitted(search)
        assert tiers is not None
        assert data.demand is not None
        fold = group_folds(data, chosen.seed)
        thresholds = set()
        for f in range(10):
            held = data.demand[fold == f]
            up = tiers[fold == f] == 1
            # One threshold a fold, and it is among the demands of the other folds.
            lowest_up, highest_down = held[up].min(initial=math.inf), held[~up].max(initial=-math.inf)
            assert highest_down < lowest_up
            others = np.sort(data.demand[fold != f])
            between = others[(others > highest_down) & (others <= lowest_up)]
            assert len(between) or lowest_up == math.inf
            thresholds.add((highest_down, lowest_up))
        assert len(thresholds) > 1

    def test_a_fold_never_sees_its_own_items(self) -> None:
        # Turning the needs of one fold upside down changes that fold's loss, and no other fold's losses of its own
        # threshold would change that fold's threshold.
        data, chosen = helpful(400)
        chosen = replace(chosen, classes=tuple(replace(c, limit=None) for c in chosen.classes), limits=Limits())
        fold = group_folds(data, chosen.seed)
        one = fitted(searched(data, chosen))
        assert data.tier_cost_usd is not None
        cost = data.tier_cost_usd.copy()
        cost[fold == 3] *= 50  # costs decide no fold, so the folds stay as they are
        other = fitted(searched(replace(data, tier_cost_usd=cost), chosen))
        assert one is not None
        assert other is not None
        assert one[fold == 3].tolist() == other[fold == 3].tolist()
        assert one.tolist() != other.tolist()

    def test_none_where_it_cannot_be_done(self) -> None:
        data, chosen = helpful(9)
        assert fitted(searched(data, chosen)) is None
        data, chosen = helpful(400)
        few = replace(data, group=np.arange(400) % 9)
        assert fitted(searched(few, chosen)) is None
        assert data.tier_cost_usd is not None
        data.tier_cost_usd[0, 0] = math.nan
        assert fitted(searched(data, chosen)) is None

    def test_without_ten_conversations_no_gain_is_claimed(self) -> None:
        data, chosen = helpful(400)
        loose = replace(chosen, classes=tuple(replace(c, limit=0.9) for c in chosen.classes), limits=Limits())
        few = replace(data, group=np.arange(400) % 9)
        result = analyse(few, loose)
        assert result.cross_fitted is None
        rule = next(r for r in result.stop_rules if r.name == "no_gain_over_best_fixed_arm")
        assert rule.triggered is None
        assert result.verdict.decision == "insufficient_evidence"


def population(n: int, rng: np.random.Generator) -> tuple[RoutingData, Settings]:
    """Rare needs that are dear to miss, so that the least apparent loss is a lucky one."""
    need = rng.random(n) < 0.3
    demand = rng.normal(np.where(need, 1.0, 0.0), 0.7)
    data = RoutingData(
        tiers=("cheap", "strong"),
        risk_classes=("critical",),
        required=need.astype(np.int8),
        risk=np.zeros(n, dtype=np.int16),
        weight=np.ones(n),
        demand=demand,
        tier_cost_usd=np.tile([0.0, 1.0], (n, 1)),
        passed=np.ones((n, 2)),
        answered=np.ones((n, 2)),
        contract_failed=np.zeros((n, 2)),
    )
    return data, Settings(classes=(ClassLimit(8.0, 0.10),))


def true_loss(t: float) -> float:
    """Routing loss per request of "up iff demand >= t": 8 a missed need, 1 an unnecessary escalation."""
    return 8.0 * 0.3 * float(stats.norm.cdf(t, 1.0, 0.7)) + 0.7 * float(stats.norm.sf(t, 0.0, 0.7))


class TestNearerToTheTruth:
    def test_than_the_apparent_loss(self) -> None:
        apparent, crossed, true = [], [], []
        for number in range(120):
            data, chosen = population(300, np.random.default_rng([11, number]))
            search = searched(data, chosen)
            assert search.selection.selected is not None
            t = float(search.sweep.levels[search.selection.selected])
            losses = search.measures.routing_loss_usd
            assert losses is not None
            assert data.demand is not None
            tiers = fitted(search)
            assert tiers is not None
            apparent.append(np.take_along_axis(losses, (data.demand >= t).astype(np.int64)[:, None], 1).mean())
            crossed.append(np.take_along_axis(losses, tiers.astype(np.int64)[:, None], 1).mean())
            true.append(true_loss(t))
        optimism = np.mean(true) - np.mean(apparent)
        left = np.mean(crossed) - np.mean(true)
        error = np.std(np.array(crossed) - np.array(true)) / math.sqrt(len(true))
        assert optimism > 3 * error  # the apparent loss is too good to be true
        assert abs(left) < 0.5 * optimism
        assert left > -3 * error  # and the cross-fitted one, if anything, too bad

    def test_the_published_total_and_its_interval(self) -> None:
        data, chosen = helpful(800)
        result = analyse(data, chosen)
        cross = result.cross_fitted
        assert cross is not None
        search = searched(data, chosen)
        assert result.shown.routing_loss_usd is not None
        assert cross.n == 800
        assert cross.lower is not None
        assert cross.upper is not None
        assert cross.lower < cross.routing_loss_usd < cross.upper
        losses = search.measures.routing_loss_usd
        assert losses is not None
        # A t interval on item losses: its half width is that of their spread.
        half = (cross.upper - cross.lower) / 2
        middle = (cross.upper + cross.lower) / 2
        assert middle == pytest.approx(cross.routing_loss_usd, rel=1e-9)
        assert half > 0


class TestLossAtUpperBounds:
    def test_by_hand(self) -> None:
        # 40 needs of class a (3 missed), 10 of class b (none), 50 others of which 5 go up in vain at .5 each.
        required = np.array([1] * 50 + [0] * 50, dtype=np.int8)
        risk = np.array([0] * 40 + [1] * 10 + [0] * 50, dtype=np.int16)
        tier = np.array([0] * 3 + [1] * 37 + [1] * 10 + [1] * 5 + [0] * 45, dtype=np.int8)
        contract = np.zeros((100, 2))
        contract[10, 1] = 1.0
        data = RoutingData(
            tiers=("cheap", "strong"),
            risk_classes=("a", "b"),
            required=required,
            risk=risk,
            weight=np.ones(100),
            tier_cost_usd=np.tile([0.1, 0.6], (100, 1)),
            contract_failed=contract,
        )
        chosen = Settings(classes=(ClassLimit(2.0, None), ClassLimit(7.0, None)), contract_failure_cost_usd=0.3)

        def bound(k: int, n: int) -> float:
            return float(stats.beta.ppf(1 - 0.05 / 4, k + 1, n - k))  # four rates share 5 %

        by_hand = (
            2.0 * 40 * bound(3, 40)
            + 7.0 * 10 * bound(0, 10)
            + 0.5 * 100 * bound(5, 100)
            + 0.3 * 100 * bound(1, 100)
        )
        got = routing_loss_upper_usd(measured(data, chosen), tier, 0.95)
        assert got == pytest.approx(by_hand, rel=1e-9)
        seen = 2.0 * 3 + 0.5 * 5 + 0.3
        assert got is not None
        assert got > seen

    def test_unknown_costs(self) -> None:
        data, chosen = helpful(50)
        assert data.tier_cost_usd is not None
        data.tier_cost_usd[:, 1] = math.nan
        assert routing_loss_upper_usd(measured(data, chosen), np.zeros(50, dtype=np.int8), 0.95) is None


def test_the_certificate_is_not_derived_anew_in_a_fold() -> None:
    # 60 needs at 5 % allow no failure; 54 could not certify 5 % at all, and yet each fold has its threshold.
    assert (max_failures(60, 0.05, 0.05), max_failures(54, 0.05, 0.05)) == (0, -1)
    rng = np.random.default_rng(2)
    data, chosen = population(200, rng)
    required = np.array([1] * 60 + [0] * 140, dtype=np.int8)
    data = replace(data, required=required, demand=np.concatenate([rng.random(60) + 1, rng.random(140) * 2]))
    chosen = replace(chosen, classes=(ClassLimit(0.001, 0.05),))
    tiers = fitted(searched(data, chosen))
    assert tiers is not None
    assert 0 < (tiers == 0).mean() < 1
