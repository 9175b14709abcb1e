"""Small ladders for the tests: arrays from plain lists, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.reasoning.data import LadderData
from evalkit.reasoning.runs import ArmRuns

FLAGS = ("sampled", "passed", "answered", "exhausted", "contract_failed", "abstained")
NUMBERS = (
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "billed_output_tokens",
    "reasoning_tokens",
    "task_s",
    "attempts",
)


def ladder_of(passed: Any, *, cost: Any = None, **changes: Any) -> LadderData:
    """A ladder from `passed` (T, A, S) or (T, A): everything is sampled and answered unless `changes` say other.

    `cost`: (A,), (T, A) or (T, A, S) USD; without it each arm costs .01 more than the one before.
    """
    p = np.array(passed, dtype=bool)
    p = p[:, :, None] if p.ndim == 2 else p
    shape = p.shape
    tasks, arms, _ = shape
    c = np.asarray(0.01 * (1 + np.arange(arms)) if cost is None else cost, dtype=float)
    c = c[None, :, None] if c.ndim == 1 else c[:, :, None] if c.ndim == 2 else c
    arrays: dict[str, Any] = {name: np.zeros(shape, dtype=bool) for name in FLAGS}
    arrays |= {name: np.full(shape, 100.0) for name in NUMBERS}
    arrays |= {
        "sampled": np.ones(shape, dtype=bool),
        "answered": np.ones(shape, dtype=bool),
        "passed": p,
        "cost_usd": np.broadcast_to(c, shape).copy(),
        "task_s": np.ones(shape),
    }
    whole: dict[str, Any] = {
        "arms": tuple(f"arm-{i}" for i in range(arms)),
        "risk_classes": ("high",),
        "risk": np.zeros(tasks, dtype=np.int16),
        "weight": np.ones(tasks),
    }
    return LadderData(**(whole | arrays | changes))


def random_ladder(seed: int, tasks: int = 40, arms: int = 3, samples: int = 3, **changes: Any) -> LadderData:
    """Missing runs, unanswered runs, unknown usage, weights and heavy-tailed costs, all at once."""
    rng = np.random.default_rng(seed)
    shape = (tasks, arms, samples)
    sampled = rng.random(shape) < 0.9
    answered = sampled & (rng.random(shape) < 0.9)
    passed = answered & (rng.random(shape) < 0.7)
    tokens = np.where(rng.random(shape) < 0.1, np.nan, rng.integers(10, 5000, shape).astype(float))
    weight = rng.choice([0.5, 1.0, 2.0], tasks)
    whole: dict[str, Any] = {
        "cost": rng.lognormal(-5, 1, shape) * (1 + np.arange(arms))[None, :, None],
        "sampled": sampled,
        "answered": answered,
        "exhausted": sampled & ~answered & (rng.random(shape) < 0.5),
        "billed_output_tokens": tokens,
        "task_s": rng.lognormal(0, 1, shape),
        "weight": weight * tasks / weight.sum(),
        "risk": rng.integers(0, 2, tasks).astype(np.int16),
        "risk_classes": ("high", "low"),
    }
    return ladder_of(passed, **(whole | changes))


def arm_runs(passed: Any, **changes: Any) -> ArmRuns:
    """The runs of one arm from `passed` (T, S)."""
    data = ladder_of(np.asarray(passed, dtype=bool)[:, None, :])
    arrays: dict[str, NDArray[Any]] = {name: getattr(data, name)[:, 0] for name in (*FLAGS, *NUMBERS)}
    return ArmRuns(**{**arrays, **{k: np.asarray(v) for k, v in changes.items()}})
