"""How often a certified threshold truly breaks a limit, by simulation through the shipped selection.

Usage: python benchmarks/false_approval.py [--studies N] [--seed S] [--only TEXT] [--processes P]

Each study is a fresh sample of a population whose truth is known; `certified_selection` is what `route-sweep`
runs. "broken" may be at most the stated delta (two deltas where limits on safety and on cost are certified
together) plus three Monte Carlo standard errors; otherwise the exit code is 1. Beside it stands the naive choice:
the least expected total among the thresholds that keep every limit as observed.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from populations import SETTINGS, Setting

from evalkit.routing.search import certified_selection

CHUNK = 50


@dataclass(frozen=True)
class Counts:
    """Studies that selected a threshold, whose selected one is broken, whose naive one is."""

    studies: int
    certified: int
    broken: int
    naive_broken: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.studies + other.studies,
            self.certified + other.certified,
            self.broken + other.broken,
            self.naive_broken + other.naive_broken,
        )


@dataclass(frozen=True)
class Line:
    """One setting's result."""

    setting: Setting
    counts: Counts

    @property
    def rate(self) -> float:
        return self.counts.broken / self.counts.studies

    @property
    def error(self) -> float:
        """One Monte Carlo standard error at the allowed rate."""
        return math.sqrt(self.setting.allowed * (1 - self.setting.allowed) / self.counts.studies)

    @property
    def holds(self) -> bool:
        return self.rate <= self.setting.allowed + 3 * self.error


def simulate(place: int, seed: int, first: int, studies: int) -> Counts:
    """Studies `first` .. `first + studies - 1` of a setting; the same whatever the number of processes."""
    setting = SETTINGS[place]
    certified = broken = naive = 0
    for number in range(first, first + studies):
        data = setting.draw(np.random.default_rng([seed, place, number]))
        found = certified_selection(data, setting.settings)
        certified += found.selected is not None
        broken += found.selected is not None and setting.broken(found.selected)
        naive += found.candidate is not None and setting.broken(found.candidate)
    return Counts(studies, certified, broken, naive)


def run(studies: int, seed: int, only: str = "", processes: int = 2) -> list[Line]:
    """All settings whose name holds `only`."""
    places = [i for i, setting in enumerate(SETTINGS) if only in setting.name]
    tasks = [(i, seed, f, min(CHUNK, studies - f)) for i in places for f in range(0, studies, CHUNK)]
    if processes > 1:
        with multiprocessing.get_context("fork").Pool(processes) as pool:
            parts = pool.starmap(simulate, tasks, chunksize=1)
    else:
        parts = [simulate(*task) for task in tasks]
    totals = {i: Counts(0, 0, 0, 0) for i in places}
    for (i, *_), part in zip(tasks, parts, strict=True):
        totals[i] += part
    return [Line(SETTINGS[i], totals[i]) for i in places]


def table(lines: Sequence[Line]) -> str:
    """The table that is printed."""
    head = (
        f"{'setting':<52} {'n':>5} {'allowed':>8} {'broken':>7} {'+-':>6} {'certified':>10} {'naive broken':>13}"
    )
    rows = [head, "-" * len(head)]
    for line in lines:
        counts = line.counts
        rows.append(
            f"{line.setting.name:<52} {line.setting.n:>5} {line.setting.allowed:>8.3f} {line.rate:>7.4f} "
            f"{line.error:>6.4f} {counts.certified / counts.studies:>10.3f} "
            f"{counts.naive_broken / counts.studies:>13.3f}" + ("" if line.holds else "  TOO OFTEN")
        )
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="How often a certified threshold truly breaks a limit.")
    parser.add_argument("--studies", type=int, default=2000, help="simulated studies a setting")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    start = time.perf_counter()
    lines = run(chosen.studies, chosen.seed, chosen.only, chosen.processes)
    print(table(lines))
    print(f"\n{chosen.studies} studies a setting, seed {chosen.seed}, {time.perf_counter() - start:.0f} s")
    failed = [line for line in lines if not line.holds]
    for line in failed:
        allowed = f"{line.setting.allowed:.3f} plus three Monte Carlo standard errors"
        print(f"{line.setting.name}, n = {line.setting.n}: {line.rate:.4f} exceeds {allowed}", file=sys.stderr)
    return 1 if failed or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
