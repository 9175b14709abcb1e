"""Requests and tokens per minute: a token bucket on a clock that the caller gives. Pure."""

from __future__ import annotations

import math

__all__ = ["TokenBucket"]


class TokenBucket:
    """Lets `per_minute` pass each minute, and at most a `burst_s` of it at once (never less than one).

    In any window of t seconds no more than `burst + per_minute * t / 60` pass, where nothing asks for more than
    `burst` at a time. What asks for more waits for a full bucket and leaves it in debt: those behind it wait for
    the debt, too. `now` is in seconds on any clock that does not go back.
    """

    def __init__(self, per_minute: float, *, burst_s: float = 1.0, now: float = 0.0) -> None:
        if not (math.isfinite(per_minute) and per_minute > 0):
            raise ValueError(
                f"The `per_minute` parameter of `TokenBucket` must be above 0. Got {per_minute} instead."
            )
        self.rate = per_minute / 60.0
        self.burst = max(1.0, self.rate * burst_s)
        self._level = self.burst
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Take `amount`; how many seconds to wait before it may be used. Those who come later wait longer."""
        self._fill(now)
        short = min(amount, self.burst) - self._level
        self._level -= amount
        return max(0.0, short / self.rate)

    def give_back(self, amount: float, now: float) -> None:
        """Return what was taken and not used; a negative amount takes what was used beyond."""
        self._fill(now)
        self._level = min(self.burst, self._level + amount)

    def _fill(self, now: float) -> None:
        self._level = min(self.burst, self._level + max(0.0, now - self._at) * self.rate)
        self._at = max(self._at, now)
