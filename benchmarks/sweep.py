"""Every threshold of ten million rows: time and memory, side by side with what one would use instead.

Usage: python benchmarks/sweep.py [--rows N] [--rounds R] [--large]

From scores, risk classes, required tiers and costs of two tiers, the shipped sweep gives at all thresholds the
under-routed items of each of four risk classes, the escalated items, the cost and the expected total. Beside it,
in the same run: one `numpy.argsort` of the same scores; scikit-learn's precision-recall curve, once a class; and a
loop over 100 thresholds with scikit-learn's `confusion_matrix`, run at a few of them and scaled. At those few, the
figures are compared. Times are of the processor (all of it runs on one core), so that a busy machine changes them
little; the best of the rounds counts, and while the limit is missed there are up to three times as many. Peak
memory is the rise of the peak resident set of a process of its own, inputs included.

Exit code 1 when the sweep takes more than 1.5 times the argsort, is less than 10 times faster than the loop, or
takes more than 150 bytes a row. --large adds a whole analysis of a million items and four tiers with a bootstrap
of 2,000 replicates, in a process of its own, which may take 2 GB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.sweep import Sweep, sweep_of, tier_steps

Floats = NDArray[np.float64]

MOST_OF_ARGSORT = 1.5
LEAST_OF_LOOP = 10.0
MOST_BYTES = 150.0
MOST_LARGE_GB = 2.0
CLASSES = 4
LOSS_USD = np.array([0.05, 0.2, 2.0, 40.0])
THRESHOLDS = 100


@dataclass(frozen=True)
class Inputs:
    """score (N,), risk (N,) 0..3, required (N,) 0 cheap, 1 strong, 2 unsolvable; cost_usd (N, 2)."""

    score: Floats
    risk: NDArray[np.int16]
    required: NDArray[np.int8]
    cost_usd: Floats


@dataclass(frozen=True)
class Curves:
    """At every threshold: under_routed (4, m + 1), and escalated, cost_usd and expected_total_usd (m + 1,)."""

    sweep: Sweep
    under_routed: NDArray[np.int32]
    escalated: NDArray[np.int64]
    cost_usd: Floats
    expected_total_usd: Floats


def inputs(rows: int, seed: int = 7) -> Inputs:
    rng = np.random.default_rng(seed)
    cost = rng.random((rows, 2))
    cost *= np.array([0.002, 0.02])
    risk = rng.integers(0, CLASSES, rows, dtype=np.int16)
    return Inputs(rng.random(rows), risk, rng.integers(0, 3, rows, dtype=np.int8), cost)


def curves(rows: Inputs) -> Curves:
    """All figures at all thresholds by the functions that an analysis is made of."""
    sweep = sweep_of(rows.score)
    codes = rows.risk.astype(np.uint8)
    codes |= (rows.required != 1) * np.uint8(255)
    under = sweep.counts(codes, CLASSES)
    total = under[:, -1].copy()  # at the last candidate all are up
    np.subtract(total[:, None], under, out=under)  # a need is under-routed until it is up
    saved = np.zeros(256)
    saved[:CLASSES] = LOSS_USD
    cost_steps = tier_steps([rows.cost_usd])

    def steps(events: NDArray[np.int64]) -> Floats:
        """What going up adds to the cost, and to the expected total, which a need no longer burdens."""
        out = np.empty((2, len(events)))
        out[0] = cost_steps(events)[0]
        np.subtract(out[0], saved.take(codes.take(events)), out=out[1])
        return out

    cheap = float(rows.cost_usd[:, 0].sum())
    cost, expected = sweep.sums(steps, np.array([cheap, cheap + float(total @ LOSS_USD)]))
    return Curves(sweep, under, sweep.up(), cost, expected)


def loop(rows: Inputs, thresholds: Sequence[float]) -> list[tuple[list[int], int, float]]:
    """(under-routed by class, escalated, cost) at each threshold by scikit-learn's confusion matrix."""
    from sklearn.metrics import confusion_matrix

    out = []
    for t in thresholds:
        routed = (rows.score >= t).astype(np.int8)
        under = []
        for r in range(CLASSES):
            mine = rows.risk == r
            under.append(int(confusion_matrix(rows.required[mine], routed[mine], labels=[0, 1, 2])[1, 0]))
        cost = np.where(routed == 1, rows.cost_usd[:, 1], rows.cost_usd[:, 0]).sum()
        out.append((under, int(routed.sum()), float(cost)))
    return out


def sklearn_curves(rows: Inputs) -> None:
    """Confusion counts at all thresholds, once a class: no costs and no escalation yet."""
    from sklearn.metrics import precision_recall_curve

    for r in range(CLASSES):
        mine = rows.risk == r
        precision_recall_curve(rows.required[mine] == 1, rows.score[mine])


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def agree(rows: Inputs, found: Curves, thresholds: Sequence[float]) -> None:
    """The sweep's figures at some thresholds are those of the loop."""
    for t, (under, escalated, cost) in zip(thresholds, loop(rows, thresholds), strict=True):
        at = max(0, int(np.searchsorted(-found.sweep.levels, -t, side="right")) - 1)  # the last at or above t
        assert found.under_routed[:, at].tolist() == under
        assert found.escalated[at] == escalated
        assert abs(found.cost_usd[at] - cost) <= 1e-9 * cost
        expected = cost + float(np.array(under) @ LOSS_USD)
        assert abs(found.expected_total_usd[at] - expected) <= 1e-9 * expected


def compare(count: int, rounds: int) -> list[str]:
    """Print the table of times; what broke its limit."""
    rows = inputs(count)
    curves(inputs(1000))  # warm up
    sorting, ours = [], []
    # What else runs on the machine takes memory bandwidth from both, seldom alike: then more rounds are needed.
    while len(ours) < rounds or (len(ours) < 3 * rounds and min(ours) > MOST_OF_ARGSORT * min(sorting)):
        sorting.append(seconds(lambda: np.argsort(rows.score)))
        ours.append(seconds(lambda: curves(rows)))
    library = seconds(lambda: sklearn_curves(rows))
    few = [0.25, 0.5, 0.75]
    slow = seconds(lambda: loop(rows, few)) * THRESHOLDS / len(few)
    agree(rows, curves(rows), few)
    best, argsort = min(ours), min(sorting)
    print(f"{count:,} rows, {CLASSES} risk classes, CPU seconds, best of {len(ours)}")
    print(f"  {'numpy.argsort of the scores':<66} {argsort:>8.2f}")
    print(f"  {'all figures at all thresholds':<66} {best:>8.2f}   {best / argsort:.2f} x argsort")
    what = "scikit-learn precision_recall_curve, once a class, no costs"
    print(f"  {what:<66} {library:>8.2f}   {library / best:.1f} x ours")
    what = f"scikit-learn confusion_matrix in a loop of {THRESHOLDS} (scaled from {len(few)})"
    print(f"  {what:<66} {slow:>8.2f}   {slow / best:.0f} x ours")
    broken = []
    if best > MOST_OF_ARGSORT * argsort:
        broken.append(f"{best / argsort:.2f} times the argsort is more than {MOST_OF_ARGSORT}")
    if slow < LEAST_OF_LOOP * best:
        broken.append(f"{slow / best:.1f} times faster than the loop is less than {LEAST_OF_LOOP:.0f}")
    return broken


def peak_bytes() -> int:
    """The peak resident set of this process (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM line: memory can be measured on Linux only")


def measure_memory(count: int) -> dict[str, float]:
    """In a process of its own: bytes a row by which the peak rises, inputs and results included."""
    curves(inputs(1000))
    before = peak_bytes()
    found = curves(inputs(count))
    return {"bytes_a_row": (peak_bytes() - before) / count, "thresholds": len(found.sweep)}


def measure_large(count: int = 1_000_000, tiers: int = 4, replicates: int = 2000) -> dict[str, float]:
    """In a process of its own: a whole analysis with its bootstrap."""
    from evalkit.routing.analysis import analyse
    from evalkit.routing.data import ClassLimit, Limits, RoutingData, Settings
    from evalkit.routing.intervals import point_intervals

    rng = np.random.default_rng(7)
    required = rng.integers(0, tiers + 1, count).astype(np.int8)
    better = np.arange(tiers)[None, :] >= required[:, None]
    data = RoutingData(
        tiers=("cheap", "mid", "frontier", "reasoning"),
        risk_classes=("low", "medium", "high", "critical"),
        required=required,
        risk=rng.integers(0, CLASSES, count).astype(np.int16),
        weight=np.ones(count),
        demand=required + rng.normal(0, 1.0, count),
        tier_cost_usd=rng.random((count, tiers)) * np.array([0.002, 0.006, 0.02, 0.06]),
        passed=np.where(better, rng.random((count, tiers)) < 0.97, rng.random((count, tiers)) < 0.2) * 1.0,
        answered=np.ones((count, tiers)),
        contract_failed=np.zeros((count, tiers)),
        task_s=rng.gamma(2.0, 1.0, (count, tiers, 1)),
        replied=np.ones((count, tiers, 1), dtype=bool),
        category=rng.integers(0, 8, count).astype(np.int32),
        direction=rng.random(count) < 0.4,
    )
    settings = Settings(
        classes=tuple(
            ClassLimit(float(x), limit) for x, limit in zip(LOSS_USD, (0.6, 0.5, 0.4, 0.3), strict=True)
        ),
        limits=Limits(min_pass_rate=0.4, max_escalation=0.99, p95_task_s=30.0),
        router_cost_usd=1e-4,
        bootstrap_replicates=replicates,
    )
    start, cpu = time.perf_counter(), time.process_time()
    result = analyse(data, settings)
    middle = time.perf_counter()
    intervals = point_intervals(result)
    return {
        "peak_gb": peak_bytes() / 1e9,
        "analysis_s": middle - start,
        "bootstrap_s": time.perf_counter() - middle,
        "cpu_s": time.process_time() - cpu,
        "thresholds": result.thresholds_evaluated,
        "selected": float(result.selected is not None),
        "intervals": float(sum(len(v) for v in intervals.values())),
    }


def in_child(name: str, count: int) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", name, "--rows", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"the process that measures {name} failed:\n{done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Every threshold of many rows: time and memory.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--large", action="store_true", help="also a whole analysis of a million items, four tiers"
    )
    parser.add_argument("--child", choices=("memory", "large"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child == "memory":
        print(json.dumps(measure_memory(chosen.rows)))
        return 0
    if chosen.child == "large":
        print(json.dumps(measure_large()))
        return 0
    broken = compare(chosen.rows, chosen.rounds)
    memory = in_child("memory", chosen.rows)
    print(f"  {'peak memory, inputs and results included':<66} {memory['bytes_a_row']:>8.1f}   bytes a row")
    if memory["bytes_a_row"] > MOST_BYTES:
        broken.append(f"{memory['bytes_a_row']:.0f} bytes a row are more than {MOST_BYTES:.0f}")
    if chosen.large:
        large = in_child("large", chosen.rows)
        print("1,000,000 items, 4 tiers, 2,000 bootstrap replicates")
        for what, value, unit in (
            ("analysis", large["analysis_s"], "s"),
            ("bootstrap", large["bootstrap_s"], f"s for {large['intervals']:.0f} intervals"),
            ("both, CPU", large["cpu_s"], "s"),
            ("peak memory", large["peak_gb"], "GB"),
        ):
            print(f"  {what:<66} {value:>8.2f}   {unit}")
        if large["peak_gb"] > MOST_LARGE_GB:
            broken.append(f"the large analysis took {large['peak_gb']:.2f} GB, more than {MOST_LARGE_GB:.0f}")
    for line in broken:
        print(f"Too much: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
