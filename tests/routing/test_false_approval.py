"""The simulation of false approvals, in small: it holds, it can fail, and it does not depend on how it is run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from evalkit.routing import certify
from evalkit.statistics.tolerance import Tolerance, certified_threshold


@pytest.fixture(scope="module")
def simulation(repo: Path) -> Iterator[ModuleType]:
    sys.path.insert(0, str(repo / "benchmarks"))
    try:
        import false_approval

        yield false_approval
    finally:
        sys.path.remove(str(repo / "benchmarks"))
        for name in ("false_approval", "populations"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["ten scores only", "conversations, by"])
def test_a_certified_threshold_seldom_breaks_its_limit(simulation: ModuleType, name: str) -> None:
    lines = simulation.run(200, seed=1, only=name, processes=1)
    assert len(lines) == 3  # n = 300, 1000, 5000
    for line in lines:
        assert line.holds, simulation.table([line])
        assert line.counts.certified == 200
        assert line.counts.naive_broken > 60  # the population is one in which a wrong method is found out


@pytest.mark.parametrize(
    "name", ["one class", "a quarter unsolvable", "weights of 4 : 1 within the class", "ten scores only"]
)
def test_one_failure_too_many_is_found_out(
    simulation: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def one_more(demands: Any, limit: float, delta: float, weights: Any = None) -> Tolerance:
        honest = certified_threshold(demands, limit, delta, weights)
        higher = [d for d in np.unique(demands) if d > honest.threshold]
        return replace(honest, threshold=float(higher[0]))

    monkeypatch.setattr(certify, "certified_threshold", one_more)
    places = [i for i, s in enumerate(simulation.SETTINGS) if s.name == name and s.n == 300]
    counts = simulation.simulate(places[0], 1, 0, 400)
    line = simulation.Line(simulation.SETTINGS[places[0]], counts)
    assert not line.holds, simulation.table([line])


def test_chunks_and_processes_change_nothing(simulation: ModuleType) -> None:
    whole = simulation.simulate(0, 3, 0, 60)
    assert whole == simulation.simulate(0, 3, 0, 25) + simulation.simulate(0, 3, 25, 35)
    assert whole != simulation.simulate(0, 4, 0, 60)
    assert whole == simulation.run(60, seed=3, only="one class", processes=2)[0].counts


def test_a_rate_that_is_too_high_fails_the_run(simulation: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    setting = simulation.SETTINGS[0]
    assert not simulation.Line(setting, simulation.Counts(2000, 2000, 131, 0)).holds  # .0655 > .05 + 3 x .00487
    assert simulation.Line(setting, simulation.Counts(2000, 2000, 129, 0)).holds
    assert simulation.main(["--studies", "50", "--only", "no such setting"]) == 1
    assert simulation.main(["--studies", "20", "--only", "one class, cascade", "--processes", "1"]) == 0
    assert "naive broken" in capsys.readouterr().out
