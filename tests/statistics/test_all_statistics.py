"""Every statistic is entered here once, with what it claims; the claims are then put to all of them."""

from __future__ import annotations

import dataclasses
import importlib
import math
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalkit.statistics
from evalkit.statistics import (
    agreement,
    agreement_intervals,
    bootstrap,
    bounds,
    cost_effectiveness,
    direction,
    drift,
    judge,
    labels_audit,
    multitier,
    paired,
    paired_score,
    paired_walk,
    percentiles,
    routing_indices,
    sampling,
    separation,
    strata,
    tolerance,
)

Array = np.ndarray


@dataclasses.dataclass(frozen=True)
class Entry:
    """A statistic of items with whole-number values 0 .. 9, weights and ids, and what holds for it.

    order: items may be permuted. repetition: an item of weight 3 is as three items (same id). scale: all weights
    may be multiplied. finite: never NaN or infinite, whatever the items.
    """

    call: Callable[[Array, Array, Array], Any]
    order: bool = True
    repetition: bool = False
    scale: bool = True
    finite: bool = True


def _failures(x: Array) -> int:
    return int((x > 6).sum())


def _weighted_bound(x: Array, w: Array, ids: Array) -> Any:
    n = bounds.effective_n(w)
    return bounds.upper_bound(min(n, n * w[x > 6].sum() / w.sum()), n)


STATISTICS: dict[str, Entry] = {
    # Two raters, of whom the second calls the values above 6 lower by one; resampled by kind, not by place.
    "agreement_with_intervals": Entry(
        lambda x, w, ids: agreement_intervals.agreement_with_intervals(
            np.stack([x, x - (x > 6)], axis=1), 10, replicates=100
        )
    ),
    "leanings": Entry(lambda x, w, ids: direction.leanings(np.stack([x, x - (x > 6)], axis=1))),
    "draws_for": Entry(lambda x, w, ids: sampling.draws_for(_failures(x), 0.3)),
    "allocate": Entry(lambda x, w, ids: sampling.allocate(x.size, sorted(x.astype(int).tolist()), [1.0] * x.size)),
    "inclusion_chances": Entry(lambda x, w, ids: np.sort(sampling.inclusion_chances(w, x.size // 2))),
    # Positions of items, which go with their order.
    "systematic_sample": Entry(
        lambda x, w, ids: sampling.systematic_sample(
            sampling.inclusion_chances(w, x.size // 2), np.random.default_rng(1)
        ),
        order=False,
        scale=False,
    ),
    "upper_bound": Entry(lambda x, w, ids: bounds.upper_bound(_failures(x), x.size)),
    "lower_bound": Entry(lambda x, w, ids: bounds.lower_bound(_failures(x), x.size)),
    "upper_bounds": Entry(lambda x, w, ids: bounds.upper_bounds([_failures(x)], x.size)),
    "wilson_interval": Entry(lambda x, w, ids: bounds.wilson_interval(_failures(x), x.size)),
    "max_failures": Entry(lambda x, w, ids: bounds.max_failures(x.size, 0.1, 0.05)),
    "max_failures_real": Entry(lambda x, w, ids: bounds.max_failures_real(bounds.effective_n(w), 0.1, 0.05)),
    "required_n": Entry(lambda x, w, ids: bounds.required_n(0.1, _failures(x), 0.05)),
    "missing_n": Entry(lambda x, w, ids: bounds.missing_n(_failures(x), x.size, 0.1, 0.05)),
    "certification_power": Entry(
        lambda x, w, ids: bounds.certification_power(x.size, 0.1, _failures(x) / x.size, 0.05)
    ),
    "effective_n": Entry(lambda x, w, ids: bounds.effective_n(w)),
    "weighted upper bound": Entry(_weighted_bound),
    "korn_graubard": Entry(
        lambda x, w, ids: bounds.korn_graubard(
            [_failures(x[w == h]) for h in (1, 2, 3)],
            [(w == h).sum() for h in (1, 2, 3)],
            [w[w == h].sum() + 0.5 for h in (1, 2, 3)],
        ),
        scale=False,
    ),
    # -inf says that nothing can be certified.
    "certified_threshold": Entry(lambda x, w, ids: tolerance.certified_threshold(x, 0.3, 0.2, w), finite=False),
    "certified_threshold, equal weights": Entry(
        lambda x, w, ids: tolerance.certified_threshold(x, 0.3, 0.2), finite=False
    ),
    # A sequence: its order is its meaning.
    "walk": Entry(lambda x, w, ids: tolerance.walk(x / 10, x.size, 0.5, 0.05), order=False),
    "percentile": Entry(lambda x, w, ids: percentiles.percentile(x, 0.9, w), repetition=True),
    "percentile, median": Entry(lambda x, w, ids: percentiles.percentile(x, 0.5, w), repetition=True),
    "describe_percentile": Entry(lambda x, w, ids: percentiles.describe_percentile(x, 0.8, w)),
    "percentile_rank": Entry(lambda x, w, ids: percentiles.percentile_rank(x.size, 0.95)),
    "upper_bound_rank": Entry(lambda x, w, ids: percentiles.upper_bound_rank(x.size, 0.8)),
    # One group per id: an item of weight 3 is a group of three equal items. `n` counts items, so it is left out.
    "paired_difference": Entry(
        lambda x, w, ids: dataclasses.astuple(paired.paired_difference(x - 4, w, ids))[:5], repetition=True
    ),
    "paired_difference, mean": Entry(lambda x, w, ids: paired.paired_difference(x, w).mean, repetition=True),
    "mcnemar_exact": Entry(lambda x, w, ids: paired.mcnemar_exact(int((x < 3).sum()), int((x > 6).sum()))),
    "score_lower": Entry(
        lambda x, w, ids: paired_score.score_lower(int((x > 6).sum()), int((x < 3).sum()), x.size, 0.05)
    ),
    "task_means": Entry(lambda x, w, ids: paired.task_means(x, w)),
    "minimum_detectable_effect": Entry(
        lambda x, w, ids: paired.minimum_detectable_effect(x.size, float(x.var()), float(x.mean()), 3)
    ),
    "separation": Entry(lambda x, w, ids: separation.separation(x, w > 1), scale=False),
    "stratified_mean": Entry(
        lambda x, w, ids: dataclasses.astuple(strata.stratified_mean(x, w, {1.0: 5, 2.0: 3, 3.0: 2}))[:-1],
        scale=False,
    ),
    "raw_agreement": Entry(lambda x, w, ids: agreement.raw_agreement(np.stack([x, w], 1)), scale=False),
    "krippendorff_alpha": Entry(
        lambda x, w, ids: agreement.krippendorff_alpha(np.stack([x, w], 1), agreement.Level.ORDINAL), scale=False
    ),
    "gwet_ac1": Entry(lambda x, w, ids: agreement.gwet_ac1(np.stack([x, w], 1)), scale=False),
    "cohen_kappa": Entry(lambda x, w, ids: agreement.cohen_kappa(np.stack([x, w], 1)), scale=False),
    "drift": Entry(lambda x, w, ids: drift.drift(np.bincount(x.astype(int), minlength=10), np.ones(10))),
    "goodness_of_fit": Entry(
        lambda x, w, ids: drift.goodness_of_fit(np.bincount(x.astype(int), minlength=10), np.arange(1, 11))
    ),
    "rogan_gladen": Entry(lambda x, w, ids: judge.rogan_gladen(_failures(x), x.size, 9, 10, 18, 20)),
    "prediction_powered_mean": Entry(
        lambda x, w, ids: judge.prediction_powered_mean(x, w, [1.0, 2.0, 5.0]), scale=False
    ),
    "true_rate_bound": Entry(lambda x, w, ids: labels_audit.true_rate_bound(_failures(x) / x.size, 0.1, 0.5)),
    "label_rate_limit": Entry(lambda x, w, ids: labels_audit.label_rate_limit(_failures(x) / x.size, 0.1, 0.5)),
    "paired_loss_upper": Entry(
        lambda x, w, ids: paired_walk.paired_loss_upper(_failures(x) / x.size, 0.1, x.size, 0.05).tolist()
    ),
    "steps_within": Entry(
        lambda x, w, ids: paired_walk.steps_within([0.0, _failures(x) / x.size], [0.0, 0.1], x.size, 0.5, 0.05)
    ),
    "audited_rate": Entry(lambda x, w, ids: labels_audit.audited_rate(_failures(x), x.size, 10, 5, 1)),
    "net_benefit": Entry(lambda x, w, ids: cost_effectiveness.net_benefit((x - 4) / 5, w, 1.0, 0.05), scale=False),
    "cost_per_gain": Entry(lambda x, w, ids: cost_effectiveness.cost_per_gain(x - 2, w), scale=False),
    "frontier": Entry(
        lambda x, w, ids: sorted((a.status, a.ratio or 0.0) for a in cost_effectiveness.frontier(x, w)),
        scale=False,
    ),
    "best_arm": Entry(lambda x, w, ids: x[cost_effectiveness.best_arm(x, w, 1.0)], scale=False),
    "plateau": Entry(lambda x, w, ids: cost_effectiveness.plateau(x.tolist(), 3.0), order=False),
    "fieller": Entry(
        lambda x, w, ids: cost_effectiveness.fieller(
            float(x.mean()), float(w.mean()), float(x.var()), float(w.var()), 0.0, 2.0
        ),
        scale=False,
    ),
    "acceptability": Entry(
        lambda x, w, ids: cost_effectiveness.acceptability(
            np.stack([x, x + w], 1), np.stack([w, 2 * w], 1), [0.5, 2.0], replicates=20, seed=1
        ),
        order=False,
        scale=False,
    ),
    "aiq": Entry(lambda x, w, ids: routing_indices.aiq(x, w), scale=False),
    "gap_recovered": Entry(lambda x, w, ids: routing_indices.gap_recovered(x, 1.0, 5.0), order=False),
    "apgr": Entry(lambda x, w, ids: routing_indices.apgr(np.arange(x.size), x, 1.0, 5.0), order=False),
    "call_share_for": Entry(
        lambda x, w, ids: routing_indices.call_share_for(np.arange(x.size), x, 4.0), order=False
    ),
    "ordered_minimum": Entry(lambda x, w, ids: multitier.ordered_minimum([x - 4, w]), order=False, scale=False),
    "constrained_minimum": Entry(
        lambda x, w, ids: multitier.constrained_minimum([x - 4, w], [[w, x]], [6.0]), order=False, scale=False
    ),
    # Draws go with the place of an item; with groups, with its id.
    "poisson_means": Entry(
        lambda x, w, ids: bootstrap.poisson_means(x, weights=w, replicates=20, seed=1), order=False
    ),
    "poisson_means, groups": Entry(
        lambda x, w, ids: bootstrap.poisson_means(x, weights=w, groups=ids, replicates=20, seed=1), repetition=True
    ),
    "percentile_interval": Entry(lambda x, w, ids: bootstrap.percentile_interval(x)),
    "too_few_groups": Entry(lambda x, w, ids: bootstrap.too_few_groups(ids)),
    "hashed_poisson": Entry(lambda x, w, ids: np.sort(bootstrap.hashed_poisson(ids, range(3), 1), axis=1)),
    "minimum_detectable_from_se": Entry(
        lambda x, w, ids: paired.minimum_detectable_from_se(float(x.std()), x.size - 1)
    ),
}

ITEMS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=40)


def flat(result: Any) -> list[Any]:
    """All numbers and words of a result in order."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return flat(dataclasses.astuple(result))
    if isinstance(result, np.ndarray):
        return flat(result.tolist())
    if isinstance(result, list | tuple):
        return [part for item in result for part in flat(item)]
    if isinstance(result, Enum):
        return [result.value]
    return [result.item() if isinstance(result, np.generic) else result]


def alike(one: Any, other: Any) -> bool:
    first, second = flat(one), flat(other)
    return len(first) == len(second) and all(
        a == b
        if not (isinstance(a, float) and isinstance(b, float))
        else a == pytest.approx(b, rel=1e-9, abs=1e-9)
        for a, b in zip(first, second, strict=True)
    )


def arrays(items: list[tuple[int, int]]) -> tuple[Array, Array, Array]:
    x, w = np.array(items, dtype=float).T
    return x, w, np.arange(x.size)


def claiming(claim: str) -> list[str]:
    return [name for name, entry in STATISTICS.items() if getattr(entry, claim)]


@pytest.mark.parametrize("name", claiming("order"))
@settings(max_examples=20)
@given(items=ITEMS, seed=st.integers(0, 99))
def test_order_does_not_matter(name: str, items: list[tuple[int, int]], seed: int) -> None:
    x, w, ids = arrays(items)
    p = np.random.default_rng(seed).permutation(x.size)
    call = STATISTICS[name].call
    assert alike(call(x, w, ids), call(x[p], w[p], ids[p]))


@pytest.mark.parametrize("name", claiming("repetition"))
@settings(max_examples=20)
@given(items=ITEMS)
def test_weight_is_repetition(name: str, items: list[tuple[int, int]]) -> None:
    x, w, ids = arrays(items)
    times = w.astype(int)
    call = STATISTICS[name].call
    assert alike(call(x, w, ids), call(*(np.repeat(a, times) for a in (x, np.ones_like(w), ids))))


@pytest.mark.parametrize("name", claiming("scale"))
@settings(max_examples=20)
@given(items=ITEMS, factor=st.sampled_from([0.001, 0.3, 7.0, 1e6]))
def test_scale_of_weights_does_not_matter(name: str, items: list[tuple[int, int]], factor: float) -> None:
    x, w, ids = arrays(items)
    call = STATISTICS[name].call
    assert alike(call(x, w, ids), call(x, w * factor, ids))


@pytest.mark.parametrize("name", claiming("finite"))
@settings(max_examples=20)
@given(items=st.one_of(ITEMS, st.tuples(st.integers(0, 9), st.integers(1, 3)).flatmap(
    lambda item: st.integers(1, 40).map(lambda n: [item] * n))))  # fmt: skip
def test_never_nan_or_infinite(name: str, items: list[tuple[int, int]]) -> None:
    for value in flat(STATISTICS[name].call(*arrays(items))):
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("name", list(STATISTICS))
@pytest.mark.parametrize("value", [0, 4, 9])
def test_single_item_has_an_answer(name: str, value: int) -> None:
    x, w, ids = arrays([(value, 1)])
    assert alike(STATISTICS[name].call(x, w, ids), STATISTICS[name].call(x, w, ids))


@pytest.mark.parametrize("name", list(STATISTICS))
def test_same_input_same_answer_and_no_input_is_changed(name: str) -> None:
    x, w, ids = arrays([(i * 7 % 10, i % 3 + 1) for i in range(30)])
    before = x.copy(), w.copy(), ids.copy()
    for array in (x, w, ids):
        array.flags.writeable = False
    call = STATISTICS[name].call
    assert flat(call(x, w, ids)) == flat(call(x, w, ids))
    assert all((a == b).all() for a, b in zip(before, (x, w, ids), strict=True))


def modules() -> list[ModuleType]:
    package = evalkit.statistics
    return [
        importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)
    ]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_all_is_what_a_module_defines(module: ModuleType) -> None:
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    constants = {name for name in vars(module) if name.isupper() and not name.startswith("_")}
    assert set(module.__all__) == public | constants
    assert list(module.__all__) == sorted(module.__all__)


def test_every_function_is_entered() -> None:
    public = {
        name
        for module in modules()
        if not module.__name__.rpartition(".")[2].startswith("_")
        for name in module.__all__
        if callable(vars(module)[name]) and not isinstance(vars(module)[name], type)
    }
    public -= {"clean"}  # stores numbers, states none
    assert public == {name.split(",")[0] for name in STATISTICS if name != "weighted upper bound"}


def test_importing_brings_in_nothing_heavy() -> None:
    names = ", ".join(module.__name__ for module in modules())
    heavy = ("scipy", "statsmodels", "sklearn", "pandas")
    code = f"import sys, {names}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
