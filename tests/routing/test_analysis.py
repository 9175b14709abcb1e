"""A whole analysis: no crash, nothing unprintable, and printed thresholds that do what is printed beside them."""

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
from routing_cases import arrays, helpful, settings_of, studies
from routing_oracle import Study
from test_points import same

from evalkit.gates import Decision, Status
from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.data import Floats, Limits, RoutingData, Settings
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
