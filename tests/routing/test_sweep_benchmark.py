"""The benchmark of the sweep, in small: what it times is right, and it fails when a limit is broken."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def benchmark(repo: Path) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("sweep_benchmark", repo / "benchmarks" / "sweep.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sweep_benchmark"] = module  # its dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.modules.pop("sweep_benchmark", None)


def test_it_agrees_with_confusion_matrices(benchmark: ModuleType) -> None:
    rows = benchmark.inputs(20_000)
    found = benchmark.curves(rows)
    assert len(found.sweep) == 20_001
    benchmark.agree(rows, found, [*np.linspace(0.0, 1.0, 21), float(rows.score[7]), float(rows.score.max())])


def test_a_wrong_figure_is_found_out(benchmark: ModuleType) -> None:
    rows = benchmark.inputs(5_000)
    found = benchmark.curves(rows)
    found.under_routed[2] += 1
    with pytest.raises(AssertionError):
        benchmark.agree(rows, found, [0.5])


def test_a_broken_limit_fails_the_run(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "MOST_OF_ARGSORT", 1e9)
    monkeypatch.setattr(benchmark, "LEAST_OF_LOOP", 0.0)
    monkeypatch.setattr(benchmark, "MOST_BYTES", 1e9)
    assert benchmark.main(["--rows", "20000", "--rounds", "1"]) == 0
    monkeypatch.setattr(benchmark, "MOST_BYTES", 0.001)
    assert benchmark.main(["--rows", "20000", "--rounds", "1"]) == 1
    printed = capsys.readouterr()
    assert "bytes a row" in printed.out
    assert "Too much" in printed.err
