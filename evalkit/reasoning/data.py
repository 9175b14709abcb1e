"""The arrays a ladder of arms is judged on, and the settings it is judged under."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["P95_SLOW_SHARE", "Bools", "ClassLimit", "Floats", "LadderData", "Limits", "Settings"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

P95_SLOW_SHARE = 0.05
"""A p95 limit holds where at most this share of the requests is slower, or unanswered."""


@dataclass(frozen=True)
class LadderData:
    """T tasks, A arms in declared (budget) order, S samples.

    risk (T,): index of the risk class, -1 where the study has no classes. weight (T,): traffic weight, mean 1.
    group (T,): code 0..G-1 of tasks that hang together; None where every task is its own.
    (T, A, S), bool: sampled, that run exists; passed and answered, of a run that exists; exhausted: it spent its
        budget without an answer; contract_failed; abstained: the arm declined and the task went to its fallback.
    (T, A, S), float, NaN unknown: cost_usd; input_tokens; output_tokens as reported; billed_output_tokens with
        reasoning inside; reasoning_tokens; task_s; attempts.
    A task without a run of an arm counts as one unanswered run there.
    """

    arms: tuple[str, ...]
    risk_classes: tuple[str, ...]
    risk: NDArray[np.int16]
    weight: Floats
    sampled: Bools
    passed: Bools
    answered: Bools
    exhausted: Bools
    contract_failed: Bools
    abstained: Bools
    cost_usd: Floats
    input_tokens: Floats
    output_tokens: Floats
    billed_output_tokens: Floats
    reasoning_tokens: Floats
    task_s: Floats
    attempts: Floats
    group: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """Number of tasks."""
        return len(self.weight)

    @property
    def a(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def runs(self) -> NDArray[np.int64]:
        """(T, A) runs of each task at each arm; a task without one counts as one unanswered run."""
        return np.asarray(np.maximum(self.sampled.sum(axis=2), 1), dtype=np.int64)

    def with_arrays(self, **arrays: NDArray[Any]) -> LadderData:
        """The same ladder with some arrays replaced."""
        return replace(self, **arrays)  # type: ignore[arg-type]


@dataclass(frozen=True)
class ClassLimit:
    """How often a task of one risk class may fail. `limit` None: the class has no gate."""

    limit: float | None
    on_estimate: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits on an arm as a whole; None where there is none."""

    min_pass_rate: float | None = None
    max_cost_per_request_usd: float | None = None
    p95_task_s: float | None = None


@dataclass(frozen=True)
class Settings:
    """How to judge.

    delta: the error rate of this look, shared by the arms (certificates) and by the steps (worth it or not); None:
    nothing is certified any more. value_usd: what one unit of pass rate (100 points) is worth per request.
    smallest_gain: the least gain worth having, as a fraction of pass rate.
    """

    classes: tuple[ClassLimit, ...] = ()
    limits: Limits = field(default_factory=Limits)
    value_usd: float | None = None
    smallest_gain: float | None = None
    delta: float | None = 0.05
    confidence: float = 0.95
    seed: int = 0
    bootstrap_replicates: int = 2000

    def delta_per_arm(self, arms: int) -> float | None:
        """What the certificate of one arm may spend: every arm is tested, so that any of those that pass may be
        chosen. Within an arm all limits have to hold, which needs no correction."""
        return None if self.delta is None else self.delta / max(arms, 1)

    def level_per_step(self, arms: int) -> float:
        """The error rate of one step of the ladder, on each side: delta / (arms - 1)."""
        return (1.0 - self.confidence if self.delta is None else self.delta) / max(arms - 1, 1)
