"""Reasons not to release a router, at the figures where they begin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from routing_cases import helpful
from scipy import stats

from evalkit.gates import StopRule
from evalkit.routing.data import RoutingData, Settings
from evalkit.routing.stop_rules import router_separation, stop_rules_of
from evalkit.routing.units import demand_threshold, rule_text, user_threshold


def rules(data: RoutingData, chosen: Settings, **other: object) -> dict[str, StopRule]:
    values: dict[str, object] = {
        "ranked": router_separation(data, chosen.confidence),
        "escalated": None,
        "router_total_usd": None,
        "arm_totals_usd": {},
    }
    found = stop_rules_of(data, chosen, **(values | other))  # type: ignore[arg-type]
    assert [r.name for r in found] == [
        "router_not_shown_to_separate",
        "quality_overlaps",
        "escalates_nearly_everything",
        "no_gain_over_best_fixed_arm",
    ]
    return {r.name: r for r in found}


class TestSeparation:
    def rule(self, demand: list[float], needs: list[int]) -> StopRule:
        data, chosen = helpful(len(demand))
        data = replace(data, demand=np.array(demand), required=np.array(needs, dtype=np.int8))
        return rules(data, chosen)["router_not_shown_to_separate"]

    def test_perfect_and_perfectly_wrong(self) -> None:
        assert self.rule([1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 1, 1]).triggered is False
        wrong = self.rule([1, 2, 3, 4, 5, 6], [1, 1, 1, 0, 0, 0])
        assert wrong.triggered
        assert "reversed" in wrong.detail

    def test_too_little_and_nothing_to_tell_apart(self) -> None:
        # 3 of 4 pairs in order: AUC .75, and an interval that takes in .5 by far.
        assert self.rule([1, 3, 2, 4], [0, 0, 1, 1]).triggered
        constant = self.rule([0.5] * 40, [0, 1] * 20)
        assert constant.triggered
        assert "AUC 0.500" in constant.detail
        # One of 400 pairs out of order: not the perfect 1.00 of two digits.
        assert "AUC 0.998" in self.rule([*range(19), 20, 19, *range(21, 40)], [0] * 20 + [1] * 20).detail
        for needs in ([0, 0, 0], [1, 1, 1], [2, 2, 2]):  # 2: unsolvable, neither a need nor not one
            assert self.rule([1, 2, 3], needs).triggered is None

    def test_it_asks_for_evidence_and_does_not_reject(self) -> None:
        assert self.rule([1, 3, 2, 4], [0, 0, 1, 1]).on_trigger == "insufficient_evidence"

    def test_infinite_demands_rank_last(self) -> None:
        assert self.rule([-math.inf, 1, math.inf, math.inf], [0, 0, 1, 1]).triggered is False

    def test_decisions_have_no_score(self) -> None:
        data, chosen = helpful(20, demand=None)
        rule = rules(data, chosen)["router_not_shown_to_separate"]
        assert (rule.triggered, rule.applies) == (None, False)

    def test_of_a_cascade_the_first_verifier(self) -> None:
        data, _ = helpful(200, tiers=3)
        assert data.demand is not None
        both = np.column_stack([data.demand, -data.demand])
        assert router_separation(replace(data, demand=both), 0.95) == router_separation(data, 0.95)


class TestQualityOverlap:
    def rule(self, cheap: list[float], strong: list[float], **other: object) -> StopRule:
        data, chosen = helpful(len(cheap), passed=np.column_stack([cheap, strong]).astype(np.float64), **other)
        return rules(data, chosen)["quality_overlaps"]

    def test_a_paired_t_interval(self) -> None:
        # 12 gained, 3 lost of 60: mean .15, and t with 59 degrees of freedom.
        strong = [1] * 12 + [0] * 3 + [1] * 45
        cheap = [0] * 12 + [1] * 3 + [1] * 45
        d = np.array(strong) - np.array(cheap)
        lower = d.mean() - stats.t.ppf(0.975, 59) * d.std(ddof=1) / math.sqrt(60)
        assert lower > 0
        rule = self.rule(cheap, strong)
        assert rule.triggered is False
        assert f"[{100 * lower:+.1f}," in rule.detail
        assert self.rule([0] * 8 + [1] * 52, [1] * 8 + [0] * 3 + [1] * 49).triggered  # 8 gained, 3 lost

    def test_as_good_or_worse(self) -> None:
        assert self.rule([1] * 40, [1] * 40).triggered
        assert self.rule([1] * 40, [0] * 40).triggered

    def test_turns_of_one_conversation_are_one(self) -> None:
        # The same gain in 40 turns, all of two conversations.
        strong, cheap = [1] * 40, [0] * 12 + [1] * 28
        assert self.rule(cheap, strong).triggered is False
        assert self.rule(cheap, strong, group=np.repeat([0, 1], 20)).triggered

    def test_not_known(self) -> None:
        data, chosen = helpful(20, passed=None)
        assert rules(data, chosen)["quality_overlaps"].triggered is None
        assert self.rule([0], [1]).triggered is None


class TestNearTotalEscalation:
    def rule(self, up: int, n: int = 300, **other: object) -> StopRule:
        data, chosen = helpful(n)
        chosen = replace(chosen, **other)  # type: ignore[arg-type]
        return rules(data, chosen, escalated=np.arange(n) < up)["escalates_nearly_everything"]

    def test_printed_bounds(self) -> None:
        # Lower bounds of 297, 290 of 300: .97435861 and .94411526; the stop is at .95.
        assert self.rule(297).triggered
        assert "at least 97.4 %" in self.rule(297).detail
        assert self.rule(290).triggered is False
        assert self.rule(290, near_total_escalation=0.94).triggered
        assert self.rule(0).triggered is False

    def test_conversations_count_whole(self) -> None:
        data, chosen = helpful(300)
        grouped = replace(data, group=np.repeat(np.arange(60), 5))
        # 60 effective requests, 59.4 of them up: the lower bound is below .95.
        assert (
            rules(grouped, chosen, escalated=np.arange(300) < 297)["escalates_nearly_everything"].triggered
            is False
        )

    def test_without_a_point(self) -> None:
        data, chosen = helpful(30)
        assert rules(data, chosen)["escalates_nearly_everything"].applies is False


class TestGain:
    def rule(self, router: np.ndarray | None, **arms: np.ndarray) -> StopRule:
        n = 50 if router is None else len(router)
        data, chosen = helpful(n)
        return rules(data, chosen, router_total_usd=router, arm_totals_usd=arms)["no_gain_over_best_fixed_arm"]

    def test_over_the_best_arm(self) -> None:
        noise = np.random.default_rng(1).normal(0, 0.1, 50)
        router, dear, good = np.full(50, 1.0), np.full(50, 3.0), 1.1 + noise
        assert self.rule(router, dear=dear).triggered is False
        assert self.rule(router, dear=dear, good=good).triggered is False
        assert "Better than good" in self.rule(router, dear=dear, good=good).detail
        assert self.rule(router, dear=dear, good=good - 0.09).triggered  # a gain of .01 in noise of .1
        assert self.rule(router, dear=dear, good=router).triggered  # no gain at all

    def test_a_gain_at_thresholds_chosen_without_the_item_says_so(self) -> None:
        data, chosen = helpful(50)
        arms = {"dear": np.full(50, 3.0)}
        for router, word in ((np.full(50, 1.0), "Better than dear"), (arms["dear"], "No gain is shown over dear")):
            totals = {"router_total_usd": router, "arm_totals_usd": arms}
            apparent, fitted = (
                rules(data, chosen, **totals, cross_fitted=cross)["no_gain_over_best_fixed_arm"].detail
                for cross in (False, True)
            )
            assert apparent.startswith(word)
            assert apparent.endswith("over 50 items")
            assert fitted == f"{apparent}, each at a threshold chosen without it"

    def test_not_known(self) -> None:
        assert self.rule(None, dear=np.ones(50)).triggered is None
        assert self.rule(np.ones(50)).triggered is None


ANY = st.floats(allow_nan=False, allow_infinity=False)


class TestUnits:
    @given(ANY, ANY)
    def test_one_rule_in_both_directions(self, score: float, threshold: float) -> None:
        assert (score >= demand_threshold(threshold, True)) == (score >= threshold)
        assert (-score >= demand_threshold(threshold, False)) == (score < threshold)

    @given(ANY, st.booleans())
    def test_there_and_back(self, threshold: float, needs_stronger: bool) -> None:
        there = demand_threshold(threshold, needs_stronger)
        if math.isfinite(there):
            assert user_threshold(there, needs_stronger) == threshold

    @given(ANY, ANY, st.booleans())
    def test_a_demand_threshold_prints_as_itself(self, demand: float, at: float, needs_stronger: bool) -> None:
        printed = user_threshold(at, needs_stronger)
        score = demand if needs_stronger else -demand
        assert ((score >= printed) if needs_stronger else (score < printed)) == (demand >= at)

    def test_never_infinite(self) -> None:
        for demand in (math.inf, -math.inf):
            for needs_stronger in (True, False):
                assert math.isfinite(user_threshold(demand, needs_stronger))

    def test_words(self) -> None:
        assert "score >= threshold" in rule_text(True, "direct", 2, False)
        assert "score < threshold" in rule_text(False, "direct", 2, False)
        assert "score < threshold" in rule_text(False, "cascade", 3, True)
        kinds = [(p, k, t) for p in ("direct", "cascade") for k, t in ((2, False), (3, False), (3, True))]
        assert len({rule_text(True, *kind) for kind in kinds}) == 4
