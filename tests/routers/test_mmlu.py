"""Real text: what look-up, classifier and semantic routers recover on MMLU, beside chance and the oracle.

A smaller `benchmarks/routers.py --data`, which does 20 splits. The bounds are below and above what those gave, by
several standard deviations.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SPLITS = {"look-up": 3, "classifier": 1, "semantic": 1}


@pytest.fixture(scope="module")
def benchmark(repo: Path) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("routers_benchmark", repo / "benchmarks" / "routers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["routers_benchmark"] = module  # its dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.modules.pop("routers_benchmark", None)


@pytest.fixture(scope="module")
def mmlu(benchmark: ModuleType, shared: Path) -> Any:
    return benchmark.read_mmlu(shared / "data/routellm")


@pytest.fixture(scope="module")
def splits(benchmark: ModuleType, mmlu: Any) -> Any:
    return benchmark.splits_of(mmlu, 3, 1500)


def test_no_judged_question_leaked(benchmark: ModuleType, mmlu: Any, splits: Any) -> None:
    for training, judged in splits:
        assert len(training) == 1500
        assert 12_300 < len(judged) < 12_500
        assert not {mmlu.prompts[i] for i in training} & {mmlu.prompts[i] for i in judged}


def test_chance_is_a_half_and_the_oracle_is_the_most(benchmark: ModuleType, mmlu: Any, splits: Any) -> None:
    rng = np.random.default_rng(0)
    chance = [benchmark.Split(j, rng.random(len(j))) for _, j in splits for _ in range(5)]
    assert abs(benchmark.mean_apgr(mmlu, chance).mean() - 0.5) < 0.01
    constant = [benchmark.Split(j, np.zeros(len(j))) for _, j in splits]
    assert benchmark.mean_apgr(mmlu, constant) == pytest.approx([0.5] * 3)
    gain = mmlu.strong.astype(float) - mmlu.weak
    best = benchmark.mean_apgr(mmlu, [benchmark.Split(j, gain[j]) for _, j in splits])
    worst = benchmark.mean_apgr(mmlu, [benchmark.Split(j, -gain[j]) for _, j in splits])
    assert (best > 1.2).all()
    assert best + worst == pytest.approx([1.0] * 3)


@pytest.mark.parametrize(("name", "low", "high"), [("look-up", 0.61, 0.68), ("classifier", 0.60, 0.69),
                                                   ("semantic", 0.58, 0.65)])  # fmt: skip
def test_routers_recover_more_than_chance(
    benchmark: ModuleType, mmlu: Any, splits: Any, name: str, low: float, high: float
) -> None:
    found = [benchmark.scores_of(mmlu, benchmark.ROUTERS[name], t, j) for t, j in splits[: SPLITS[name]]]
    each = benchmark.mean_apgr(mmlu, found)
    assert low < each.mean() < high
    lower, upper = benchmark.interval(mmlu, found, 60)
    assert 0.5 < lower < each.mean() < upper
