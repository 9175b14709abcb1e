"""How often the best of several routers truly breaks a limit, by simulation through the shipped selection.

Usage: python benchmarks/best_router.py [--studies N] [--seed S] [--processes P]

Each study is a fresh sample of items on which M routers give independent scores of the same quality; every router
selects its threshold (`certified_selection`, what `route-sweep` runs), and the one of least expected total is
chosen, as `route-sweep` chooses among approved ones. With the error rate shared, delta / M each, the chosen may
break the limit in at most delta of studies (plus three Monte Carlo standard errors; otherwise the exit code is 1).
Beside it stands what an error rate that is not shared would do.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from populations import COST, DELTA, Floats, edge, rules, study

from evalkit.routing.data import RoutingData
from evalkit.routing.search import certified_selection

CHUNK = 50
NEEDS = 0.6


@dataclass(frozen=True)
class Setting:
    """n items and `routers` routers; the limit is one that the shared error rate uses up in full."""

    n: int
    routers: int

    @property
    def limit(self) -> float:
        """Just above the bound of a whole number of failures at delta / M."""
        needs, failures = int(NEEDS * self.n), 0
        while _edge(failures + 1, needs, DELTA / self.routers) <= 0.05:
            failures += 1
        return _edge(failures, needs, DELTA / self.routers)

    def draw(self, rng: np.random.Generator) -> tuple[RoutingData, list[Floats]]:
        """Items, and what each router asks for: a need's score is uniform, so that the true rate at t is t."""
        needs = int(NEEDS * self.n)
        required = np.repeat([1, 0], [needs, self.n - needs]).astype(np.int8)
        data = study(rng, np.zeros(self.n), required)
        return data, [
            np.where(required == 1, rng.random(self.n), rng.random(self.n) ** 2) for _ in range(self.routers)
        ]


SETTINGS = tuple(Setting(n, routers) for n in (300, 1000) for routers in (1, 2, 5, 10))


def _edge(failures: int, n: int, delta: float) -> float:
    from evalkit.statistics.bounds import upper_bound

    if delta == DELTA:
        return edge(failures, n)
    bound = upper_bound(failures, n, 1 - delta)
    assert bound is not None
    return bound * (1 + 1e-9)


@dataclass(frozen=True)
class Counts:
    """Studies that chose a router, whose chosen one is broken: with the error rate shared, and not shared."""

    studies: int
    chosen: int
    broken: int
    unshared_chosen: int
    unshared_broken: int

    def __add__(self, other: Counts) -> Counts:
        mine, others = vars(self), vars(other)
        return Counts(**{key: mine[key] + others[key] for key in mine})


@dataclass(frozen=True)
class Line:
    """One setting's result."""

    setting: Setting
    counts: Counts

    @property
    def rate(self) -> float:
        return self.counts.broken / self.counts.studies

    @property
    def holds(self) -> bool:
        return self.rate <= DELTA + 3 * math.sqrt(DELTA * (1 - DELTA) / self.counts.studies)


def chosen_threshold(data: RoutingData, demands: Sequence[Floats], limit: float, delta: float) -> float | None:
    """The threshold of the chosen router; None where no router certifies one."""
    best: tuple[float, float] | None = None
    settings = replace(rules(limit), delta=delta)
    assert data.tier_cost_usd is not None
    for demand in demands:
        found = certified_selection(replace(data, demand=demand), settings)
        if found.selected is None:
            continue
        threshold = found.selected[0]
        cost = float(np.where(demand >= threshold, data.tier_cost_usd[:, 1], data.tier_cost_usd[:, 0]).sum())
        if best is None or cost < best[0]:
            best = cost, threshold
    return None if best is None else best[1]


def simulate(place: int, seed: int, first: int, studies: int) -> Counts:
    """Studies `first` .. `first + studies - 1` of a setting; the same whatever the number of processes."""
    setting = SETTINGS[place]
    limit = setting.limit
    found = [0, 0, 0, 0]
    for number in range(first, first + studies):
        data, demands = setting.draw(np.random.default_rng([seed, place, number]))
        for at, delta in ((0, DELTA / setting.routers), (2, DELTA)):
            threshold = chosen_threshold(data, demands, limit, delta)
            found[at] += threshold is not None
            found[at + 1] += threshold is not None and threshold > limit
    return Counts(studies, *found)


def run(studies: int, seed: int, places: Sequence[int] = range(len(SETTINGS)), processes: int = 2) -> list[Line]:
    """The settings at `places`."""
    tasks = [(i, seed, f, min(CHUNK, studies - f)) for i in places for f in range(0, studies, CHUNK)]
    if processes > 1:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            parts = pool.starmap(simulate, tasks, chunksize=1)
    else:
        parts = [simulate(*task) for task in tasks]
    totals = {i: Counts(0, 0, 0, 0, 0) for i in places}
    for (i, *_), part in zip(tasks, parts, strict=True):
        totals[i] += part
    return [Line(SETTINGS[i], totals[i]) for i in places]


def table(lines: Sequence[Line]) -> str:
    """The table that is printed."""
    head = f"{'n':>5} {'routers':>8} {'broken':>7} {'chosen':>7} {'not shared: broken':>19} {'chosen':>7}"
    rows = [head, "-" * len(head)]
    for line in lines:
        c = line.counts
        rows.append(
            f"{line.setting.n:>5} {line.setting.routers:>8} {line.rate:>7.4f} {c.chosen / c.studies:>7.3f} "
            f"{c.unshared_broken / c.studies:>19.4f} {c.unshared_chosen / c.studies:>7.3f}"
            + ("" if line.holds else "  TOO OFTEN")
        )
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often the best of several routers truly breaks a limit.")
    parser.add_argument("--studies", type=int, default=2000, help="simulated studies a setting")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    lines = run(chosen.studies, chosen.seed, processes=chosen.processes)
    print(table(lines))
    print(
        f"allowed: {DELTA:g}, {chosen.studies:,} studies a setting, seed {chosen.seed}; costs are {COST.tolist()}"
    )
    return 0 if all(line.holds for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
