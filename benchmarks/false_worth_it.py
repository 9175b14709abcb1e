"""How often a ladder is judged wrongly, by simulation through the shipped code.

Usage: python benchmarks/false_worth_it.py [--studies N] [--seed S] [--only TEXT] [--processes P]

Each study is a fresh sample of tasks for four arms whose truth is known: equal arms, and arms of which each, or
the last one, truly gains 5 points. Costs are heavy-tailed (lognormal), and a point is worth exactly what it costs,
so that every "worth it" and every "not worth it" is wrong; the smallest worthwhile gain is 5 points, so that a
plateau before a step that gains them is wrong. Beside each rate stands what the t interval alone would have said.
Further settings put every arm's true pass rate or risk failures on the wrong side of its limit, where every
approval is wrong. A study counts once, however many of its steps are wrong. Each rate may be at most delta (5 %)
plus three Monte Carlo standard errors; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.reasoning.analysis import analyse
from evalkit.reasoning.data import ClassLimit, LadderData, Limits, Settings
from evalkit.reasoning.steps import plateau_of, steps_of
from evalkit.reasoning.tasks import task_figures
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.cost_effectiveness import Decision

__all__ = ["DELTA", "SETTINGS", "Counts", "Setting", "main", "run"]

DELTA = 0.05
ARMS = 4
GAIN = 0.05
CHUNK = 50
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Setting:
    """One population. `passed(rng)` (T, A, S); `step_gain` (A - 1,): the true gain of each step. `limits`: where
    given, every arm truly breaks them and the certificate is judged; otherwise the steps are."""

    name: str
    tasks: int
    runs: int
    passed: Callable[[np.random.Generator], Bools]
    step_gain: tuple[float, ...] = (0.0, 0.0, 0.0)
    settings: Settings | None = None


@dataclass(frozen=True)
class Counts:
    """Studies with a wrong "worth it", "not worth it", plateau or approval; those of t alone, or as observed."""

    studies: int = 0
    worth: int = 0
    not_worth: int = 0
    plateau: int = 0
    approved: int = 0
    t_worth: int = 0
    t_not_worth: int = 0
    t_plateau: int = 0
    naive: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def _independent(tasks: int, runs: int, rates: Sequence[float]) -> Callable[[np.random.Generator], Bools]:
    """Tasks of different difficulty, runs independent given the task: mean pass rates are `rates`."""

    def draw(rng: np.random.Generator) -> Bools:
        ease = rng.beta(2.0, 2.0, tasks)[:, None, None]
        mean = np.asarray(rates)[None, :, None]
        spread = 0.8 * np.minimum(mean, 1.0 - mean)  # keeps every task's rate between 0 and 1
        return np.asarray(rng.random((tasks, len(rates), runs)) < mean + spread * (2.0 * ease - 1.0))

    return draw


def _nested(tasks: int, runs: int, rates: Sequence[float]) -> Callable[[np.random.Generator], Bools]:
    """A task passes at an arm or not, whatever the run, and at every later arm too: many steps show no flip."""

    def draw(rng: np.random.Generator) -> Bools:
        place = rng.random(tasks)[:, None, None]
        passed = place < np.asarray(rates)[None, :, None]
        return np.broadcast_to(passed, (tasks, len(rates), runs)).copy()

    return draw


def _step_settings() -> list[Setting]:
    out = []
    for tasks in (20, 30, 50):
        for runs in (1, 3):
            where = f"{tasks} tasks, {runs} run{'s' if runs > 1 else ''}"
            up = [0.75 + GAIN * a for a in range(ARMS)]
            last = [0.85, 0.85, 0.85, 0.9]
            gains, one = (GAIN,) * 3, (0.0, 0.0, GAIN)
            out += [
                Setting(f"equal arms, {where}", tasks, runs, _independent(tasks, runs, [0.8] * ARMS)),
                Setting(f"gain 5 a step, {where}", tasks, runs, _independent(tasks, runs, up), gains),
                Setting(f"gain 5 a step, no noise, {where}", tasks, runs, _nested(tasks, runs, up), gains),
                Setting(f"gain 5 at the end, no noise, {where}", tasks, runs, _nested(tasks, runs, last), one),
            ]
    return out


def _edge(tasks: int, failures: int, arms: int) -> float:
    """A limit on the edge: the bound of `failures` at delta / arms. A true rate just above it breaks it."""
    bound = upper_bound(failures, tasks, 1.0 - DELTA / arms)
    assert bound is not None
    return bound


def _certificate_settings() -> list[Setting]:
    out = []
    for tasks, failures in ((100, 2), (300, 10)):
        limit = _edge(tasks, failures, ARMS)
        rates = [1.0 - limit * 1.0001] * ARMS
        passing = replace(_judged(), limits=Limits(min_pass_rate=1.0 - limit))
        risk = replace(_judged(), classes=(ClassLimit(limit),))
        out += [
            Setting(f"pass rate on the edge, {tasks} tasks, 1 run", tasks, 1,
                    _nested_apart(tasks, 1, rates), settings=passing),
            Setting(f"pass rate on the edge, {tasks} tasks, 3 runs", tasks, 3,
                    _independent(tasks, 3, rates), settings=passing),
            Setting(f"risk failures on the edge, {tasks} tasks, 3 runs", tasks, 3,
                    _nested_apart(tasks, 3, rates), settings=risk),
        ]  # fmt: skip
    return out


def _nested_apart(tasks: int, runs: int, rates: Sequence[float]) -> Callable[[np.random.Generator], Bools]:
    """A task passes in all runs of an arm or in none, arms independently: each has its own chance to look good."""

    def draw(rng: np.random.Generator) -> Bools:
        passed = rng.random((tasks, len(rates), 1)) < np.asarray(rates)[None, :, None]
        return np.broadcast_to(passed, (tasks, len(rates), runs)).copy()

    return draw


def _judged() -> Settings:
    return Settings(classes=(ClassLimit(None),), delta=DELTA, bootstrap_replicates=100)


SETTINGS: tuple[Setting, ...] = (*_step_settings(), *_certificate_settings())


def _study(setting: Setting, rng: np.random.Generator) -> LadderData:
    """One study. Mean costs rise by the value of each step's true gain at 1 USD per unit of pass rate."""
    passed = setting.passed(rng)
    means = 0.2 + np.concatenate([[0.0], np.cumsum(setting.step_gain)])
    task = rng.normal(0.0, 1.0, (setting.tasks, 1, 1))
    own = rng.normal(0.0, 0.5, passed.shape)
    cost = means[None, :, None] * np.exp(task + own - 0.5 * (1.0 + 0.25))
    on, off = np.ones(passed.shape, dtype=bool), np.zeros(passed.shape, dtype=bool)
    number = np.full(passed.shape, 1.0)
    return LadderData(
        arms=tuple(f"arm {a}" for a in range(passed.shape[1])),
        risk_classes=("all",),
        risk=np.zeros(setting.tasks, dtype=np.int16),
        weight=np.ones(setting.tasks),
        sampled=on,
        passed=passed,
        answered=on,
        exhausted=off,
        contract_failed=off,
        abstained=off,
        cost_usd=cost,
        input_tokens=number,
        output_tokens=number,
        billed_output_tokens=number,
        reasoning_tokens=number,
        task_s=number,
        attempts=number,
    )


def _steps(setting: Setting, data: LadderData) -> Counts:
    """A value of 1 USD per unit of pass rate makes every true net benefit exactly 0: each decision is wrong."""
    settings = replace(_judged(), value_usd=1.0, smallest_gain=GAIN)
    tasks = task_figures(data)
    steps = steps_of(data, tasks, settings)
    at = plateau_of(steps, settings)
    gain = np.array(setting.step_gain)
    flat_from = int(np.flatnonzero(gain >= GAIN)[-1]) + 1 if (gain >= GAIN).any() else 0
    level = settings.level_per_step(data.a)
    t_low, t_high, t_gain = [], [], []
    for step in steps:
        d = tasks.passed[:, step.arm] - tasks.passed[:, step.before]
        c = tasks.cost_usd[:, step.arm] - tasks.cost_usd[:, step.before]
        low, high = _t_ends(d - c, level)
        t_low.append(low)
        t_high.append(high)
        t_gain.append(_t_ends(d, level)[1])
    decisions = [step.benefit.decision for step in steps if step.benefit is not None]
    t_flat = next((a for a in range(len(t_gain)) if all(g < GAIN for g in t_gain[a:])), None)
    return Counts(
        studies=1,
        worth=int(Decision.WORTH_IT in decisions),
        not_worth=int(Decision.NOT_WORTH_IT in decisions),
        plateau=int(at is not None and at < flat_from),
        t_worth=int(max(t_low) > 0),
        t_not_worth=int(min(t_high) < 0),
        t_plateau=int(t_flat is not None and t_flat < flat_from),
    )


def _t_ends(values: Floats, level: float) -> tuple[float, float]:
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, 1.0 - level)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def _certificate(setting: Setting, data: LadderData) -> Counts:
    """Every arm truly breaks the limit: each approval is wrong. naive: some arm is inside it as observed."""
    assert setting.settings is not None
    result = analyse(data, setting.settings)
    return Counts(studies=1, approved=int(bool(result.certified)), naive=int(result.candidate is not None))


def _chunk(job: tuple[int, int, int, int]) -> Counts:
    at, seed, first, last = job
    setting, total = SETTINGS[at], Counts()
    for study in range(first, last):
        data = _study(setting, np.random.default_rng([seed, at, study]))
        total += _steps(setting, data) if setting.settings is None else _certificate(setting, data)
    return total


def run(at: int, studies: int, seed: int, pool: multiprocessing.pool.Pool | None = None) -> Counts:
    """The counts of `studies` studies of setting `at`; the same whatever the number of processes."""
    jobs = [(at, seed, first, min(first + CHUNK, studies)) for first in range(0, studies, CHUNK)]
    parts = map(_chunk, jobs) if pool is None else pool.imap(_chunk, jobs)
    total = Counts()
    for part in parts:
        total += part
    return total


def too_often(count: int, studies: int) -> bool:
    """More than delta and three Monte Carlo standard errors at delta."""
    return count / studies > DELTA + 3.0 * math.sqrt(DELTA * (1.0 - DELTA) / studies)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line a setting; 1 where a rate is too high."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="settings whose name holds this text")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    error = math.sqrt(DELTA * (1.0 - DELTA) / options.studies)
    print(f"{options.studies:,} studies a setting; a rate may be {DELTA:.3f} + 3 x {error:.4f}")
    print(f"{'in brackets: by the t interval alone':48}  {'worth it':>14}  {'not worth it':>14}  {'plateau':>14}")
    start, broken = time.perf_counter(), 0
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for at, setting in enumerate(SETTINGS):
            if options.only not in setting.name:
                continue
            seen = run(at, options.studies, options.seed, pool)
            broken += _print(setting, seen)
    print(f"{time.perf_counter() - start:.0f} s; {broken} rates too high")
    return 1 if broken else 0


def _print(setting: Setting, seen: Counts) -> int:
    n = seen.studies
    if setting.settings is not None:
        mark = " TOO HIGH" if too_often(seen.approved, n) else ""
        print(
            f"{setting.name:48}  wrong approval {seen.approved / n:.4f} (as observed {seen.naive / n:.3f}){mark}",
            flush=True,
        )
        return int(bool(mark))
    cells, broken = [], 0
    for own, by_t in (
        (seen.worth, seen.t_worth),
        (seen.not_worth, seen.t_not_worth),
        (seen.plateau, seen.t_plateau),
    ):
        high = too_often(own, n)
        broken += high
        cells.append(f"{own / n:.4f} ({by_t / n:.3f}){'!' if high else ''}")
    print(f"{setting.name:48}  " + "  ".join(f"{cell:>14}" for cell in cells), flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main())
