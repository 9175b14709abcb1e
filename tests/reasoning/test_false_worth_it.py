"""A short run of the simulation of wrong decisions; the long one is benchmarks/false_worth_it.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

STUDIES = 150


@pytest.fixture(scope="module")
def simulation(repo: Path) -> ModuleType:
    name = "false_worth_it"
    spec = importlib.util.spec_from_file_location(name, repo / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def setting(simulation: ModuleType, name: str) -> int:
    return next(at for at, s in enumerate(simulation.SETTINGS) if s.name == name)


@pytest.mark.parametrize("name", ["equal arms, 20 tasks, 3 runs", "gain 5 a step, no noise, 20 tasks, 1 run"])
def test_steps_are_rarely_judged_wrongly(simulation: ModuleType, name: str) -> None:
    seen = simulation.run(setting(simulation, name), STUDIES, 1)
    for count in (seen.worth, seen.not_worth, seen.plateau):
        assert not simulation.too_often(count, STUDIES)
    if "no noise" in name:
        # the t interval alone collapses where no task flips: the test can fail
        assert simulation.too_often(seen.t_plateau, STUDIES)


@pytest.mark.parametrize("name", ["pass rate on the edge, 100 tasks, 1 run"])
def test_arms_that_break_a_limit_are_rarely_approved(simulation: ModuleType, name: str) -> None:
    seen = simulation.run(setting(simulation, name), STUDIES, 1)
    assert not simulation.too_often(seen.approved, STUDIES)
    assert simulation.too_often(seen.naive, STUDIES)
