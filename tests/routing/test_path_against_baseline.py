"""The path to a searched threshold against a baseline: the same shares as sending every item by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from routing_cases import helpful

from evalkit.routing.analysis import analyse
from evalkit.routing.paired_walk import paired_walk
from evalkit.routing.policies import routed_tier
from evalkit.routing.search import certifying_items
from evalkit.statistics.paired_walk import steps_within

N = 400


def more(kind: str) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    if kind == "weights":
        return {"weight": (w := rng.uniform(0.2, 3.0, N)) * N / w.sum()}
    if kind == "groups":
        return {"group": rng.integers(0, 120, N)}
    return {}


@pytest.mark.parametrize("policy", ["direct", "cascade"])
@pytest.mark.parametrize("tiers", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "weights", "groups"])
def test_each_point_is_what_sending_the_items_there_gives(tiers: int, policy: str, kind: str) -> None:
    data, settings = helpful(N, tiers=tiers, **more(kind))
    result = analyse(data, replace(settings, policy=policy))
    search, place = result.search, result.place
    mine = search.measures.data
    baseline = np.random.default_rng(5).integers(0, 3, mine.n) / 2
    walk = paired_walk(search, place, baseline)
    assert walk is not None
    assert mine.passed is not None
    levels = search.sweep.levels[place:][::-1]  # from all-strongest on
    assert len(walk.broken) == len(levels)
    for level, broken, gained in zip(levels, walk.broken, walk.gained, strict=True):
        sent = routed_tier(search.levels, float(level)).astype(int)
        gain = mine.passed[np.arange(mine.n), sent] - baseline
        weight = mine.weight / mine.weight.sum()
        assert broken == pytest.approx(float(weight @ np.maximum(-gain, 0)), abs=1e-9)
        assert gained == pytest.approx(float(weight @ np.maximum(gain, 0)), abs=1e-9)
    assert (routed_tier(search.levels, float(levels[0])) == tiers - 1).all()
    longest = 1 if mine.group is None else np.bincount(mine.group).max()
    assert walk.n == pytest.approx(mine.weight.sum() / mine.weight.max() / longest)


def test_the_last_point_is_the_one_that_is_shown() -> None:
    data, settings = helpful(N, tiers=3)
    result = analyse(data, settings)
    certifying = certifying_items(data)
    assert certifying is not None
    assert data.passed is not None
    ours = np.take_along_axis(data.passed, result.tier[:, None].astype(int), axis=1)[:, 0][certifying]
    theirs = data.passed[:, -1][certifying]
    walk = paired_walk(result.search, result.place, theirs)
    assert walk is not None
    assert walk.gained[-1] - walk.broken[-1] == pytest.approx(float((ours - theirs).mean()))
    assert walk.broken[0] == walk.gained[0] == 0  # all-strongest against always the strongest


def test_without_outcomes_there_is_no_walk() -> None:
    data, settings = helpful(N)
    result = analyse(replace(data, passed=None, answered=None), settings, thresholds=[0.5])
    assert paired_walk(result.search, result.place, np.zeros(N)) is None


def test_a_router_that_is_worth_its_money_is_certified_against_the_strongest() -> None:
    data, settings = helpful(4000)
    result = analyse(data, settings)
    assert result.selected is not None
    assert data.passed is not None
    walk = paired_walk(result.search, result.place, data.passed[:, -1])
    assert walk is not None
    assert steps_within(walk.broken, walk.gained, walk.n, 0.10, 0.05) == len(walk.broken)
    assert steps_within(walk.broken, walk.gained, walk.n, 0.0, 0.05) == 0
