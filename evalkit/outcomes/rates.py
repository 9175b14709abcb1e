"""Pass rates that say what they leave open, and what to print when nothing was scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalkit.outcomes.rules import unanswered
from evalkit.outcomes.status import STATUSES, Status
from evalkit.outcomes.table import Outcomes

__all__ = ["PassRate", "nothing_scored", "pass_rate", "silent_tiers"]


@dataclass(frozen=True, slots=True)
class PassRate:
    """A pass rate with its bounds over the unanswered.

    `passed` and `answered` count items of `total` (a sample of an item counts 1/k, so they may be fractions).
    `rate` = passed / answered, None where nothing was answered; `lower` = passed / all; `upper` = (passed +
    unanswered) / all, where a gate takes the lower. None where there are no items.
    """

    passed: float
    answered: float
    total: int
    rate: float | None
    lower: float | None
    upper: float | None

    @property
    def unanswered(self) -> float:
        """Items (or shares of items) without an answer."""
        return self.total - self.answered

    def sentence(self) -> str:
        """ "7 of 8 answered right, 2 of 10 unanswered, 70.0 % to 90.0 %"."""
        if self.lower is None or self.upper is None:
            return "no items"
        return (
            f"{_count(self.passed)} of {_count(self.answered)} answered right, "
            f"{_count(self.unanswered)} of {self.total:,} unanswered, "
            f"{100 * self.lower:.1f} % to {100 * self.upper:.1f} %"
        )


def _count(value: float) -> str:
    nearest = round(value)
    return f"{nearest:,}" if abs(value - nearest) < 1e-9 else f"{value:,.1f}"


def pass_rate(outcomes: Outcomes, tier: int, weight: npt.NDArray[np.float64] | None = None) -> PassRate:
    """The pass rate of one tier over all items.

    Each item counts once: its k samples weigh 1/k each, and an item without a row is unanswered. The counts are
    plain; the rates use `weight` (N,), where given.
    """
    k = outcomes.samples[:, tier]
    passed = _share(outcomes.passed[:, tier], k)
    answered = _share(outcomes.answered[:, tier], k)
    n = len(outcomes.ids)
    w = np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    sum_passed, sum_answered = float(w @ passed), float(w @ answered)
    if n == 0 or total <= 0:
        return PassRate(float(passed.sum()), float(answered.sum()), n, None, None, None)
    return PassRate(
        passed=float(passed.sum()),
        answered=float(answered.sum()),
        total=n,
        rate=sum_passed / sum_answered if sum_answered > 0 else None,
        lower=sum_passed / total,
        upper=min(1.0, (sum_passed + total - sum_answered) / total),
    )


def _share(values: npt.NDArray[np.bool_], k: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray(values.sum(axis=1) / np.maximum(k, 1), dtype=np.float64)


def nothing_scored(outcomes: Outcomes) -> str | None:
    """The sentence for outcomes among which nothing was answered, or None where something was.

    "5 of 5 errored, nothing was scored; first error: HTTP 401 invalid key (5 times)".
    """
    if outcomes.answered.any():
        return None
    present = int((outcomes.status >= 0).sum())
    open_rows = int(unanswered(outcomes.status).sum())
    errors = int((outcomes.status == STATUSES.index(Status.ERROR)).sum())
    how = "errored" if errors == open_rows else "unanswered"
    text = f"{open_rows:,} of {present:,} {how}, nothing was scored"
    first = next((seen for seen in outcomes.errors if seen.first is not None), None)
    if first is not None:
        text += f"; first error: {first.first} ({first.same:,} time{'' if first.same == 1 else 's'})"
    return text


def silent_tiers(outcomes: Outcomes) -> list[int]:
    """The tiers of which no request at all was answered: nothing is known of what they get right."""
    return [int(j) for j in np.flatnonzero(~outcomes.answered.any(axis=(0, 2)))]
