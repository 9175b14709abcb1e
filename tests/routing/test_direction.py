"""The thresholds a path is aimed at, against every combination of thresholds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import routing_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from routing_cases import arrays, settings_of, studies
from routing_oracle import Study

from evalkit.routing.data import Limits
from evalkit.routing.direction import target_thresholds
from evalkit.routing.points import item_measures
from evalkit.routing.policies import path_costs


def all_thresholds(study: Study) -> list[tuple[float, ...]]:
    """Every ordered choice of thresholds that tells two routings apart."""
    finite = sorted({i.demand[0] for i in study.items if math.isfinite(i.demand[0])})
    levels = [*finite, math.nextafter(finite[-1], math.inf)] if finite else [0.0]
    return list(itertools.combinations_with_replacement(levels, study.tiers - 1))


@given(
    studies(tiers=(3, 4), unknown=False, per_tier=False),
    st.sampled_from([None, 0.2, 0.5]),
    st.sampled_from([None, 0.3, 0.6]),
    st.sampled_from([None, 0.4, 0.8]),
)
@settings(max_examples=60, deadline=None)
def test_least_expected_total_among_those_that_keep_the_limits(
    study: Study, under: float | None, passing: float | None, escalation: float | None
) -> None:
    study = replace(study, items=tuple(replace(i, weight=1) for i in study.items))
    data, chosen = arrays(study), settings_of(study)
    chosen = replace(
        chosen,
        classes=tuple(replace(c, limit=under) for c in chosen.classes),
        limits=Limits(min_pass_rate=passing, max_escalation=escalation),
    )
    found = target_thresholds(item_measures(data, chosen, path_costs(data, chosen, chosen.policy)))
    assert found is not None

    def judged(thresholds: tuple[float, ...]) -> tuple[float, bool]:
        tiers = [oracle.ends_at(item, thresholds, study.tiers) for item in study.items]
        point = oracle.operating_point(study, tiers)
        rates = [oracle.under_share(study, tiers, r)[0] for r in range(len(study.loss_usd))]
        keeps = under is None or all(rate is None or rate <= under + 1e-9 for rate in rates)
        keeps &= passing is None or float(point["pass_rate_lower"]) >= passing - 1e-9  # type: ignore[arg-type]
        keeps &= escalation is None or float(point["escalation_rate"]) <= escalation + 1e-9  # type: ignore[arg-type]
        return float(point["expected_total_usd"]), bool(keeps)  # type: ignore[arg-type]

    every = [judged(t) for t in all_thresholds(study)]
    inside = [total for total, keeps in every if keeps]
    total, keeps = judged(found)
    assert keeps == bool(inside)
    assert math.isclose(total, min(inside or [t for t, _ in every]), rel_tol=1e-9, abs_tol=1e-9)


@given(studies(tiers=(3, 4), unknown=False, per_tier=True))
@settings(max_examples=40, deadline=None)
def test_with_a_score_a_tier_no_single_threshold_can_be_bettered(study: Study) -> None:
    data, chosen = arrays(study), settings_of(study)
    chosen = replace(chosen, limits=Limits())
    found = target_thresholds(item_measures(data, chosen, path_costs(data, chosen, chosen.policy)))
    assert found is not None

    def total(thresholds: tuple[float, ...]) -> float:
        tiers = [oracle.ends_at(item, thresholds, study.tiers) for item in study.items]
        return float(oracle.expected_total(study, tiers))  # type: ignore[arg-type]

    here = total(found)
    for j in range(study.tiers - 1):
        finite = {i.demand[j] for i in study.items if math.isfinite(i.demand[j])}
        for t in {*finite, max(finite, default=0.0) + 1.0, -math.inf}:
            assert here <= total((*found[:j], t, *found[j + 1 :])) + 1e-9


def test_none_where_a_cost_is_unknown() -> None:
    study = Study(3, (oracle.Item(0, 0, 1, (0.5,), ((oracle.Row("ok", 1.0, 1.0),),) * 3),), (1.0,), (1.0,))
    data, chosen = arrays(study), settings_of(study)
    assert target_thresholds(item_measures(data, chosen, path_costs(data, chosen, "direct"))) is not None
    data = replace(data, tier_cost_usd=np.array([[1.0, math.nan, 1.0]]))
    assert target_thresholds(item_measures(data, chosen, path_costs(data, chosen, "direct"))) is None
