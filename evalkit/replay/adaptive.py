"""How many calls may be in flight to one endpoint: fewer when it says slow down, more while all is well."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Concurrency"]

_FIRST = 4.0
_SHRINK = 0.5


@dataclass(slots=True)
class Concurrency:
    """Additive increase, multiplicative decrease, between 1 and `most`. Pure: it knows no call and no clock.

    It starts at 4 at most and grows by one with every success until the endpoint first says 429, then by one for
    every round of successes; only while the calls in flight use what there is. A 429 halves it, once for all calls
    that were in flight together: those which began before the last halving say nothing new. Server errors and
    timeouts leave it as it is, since fewer calls at a time would not cure them. `cuts` counts the halvings,
    `lowest` is what the deepest of them left (None: there was none), `highest` the most there ever was.
    """

    most: int
    limit: float = field(default=0.0)
    cuts: int = 0
    lowest: int | None = None
    highest: int = 0

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"The `most` parameter of `Concurrency` must be at least 1. Got {self.most} instead.")
        self.limit = min(self.limit or _FIRST, float(self.most))
        self.highest = self.allowed

    @property
    def allowed(self) -> int:
        """Calls that may be in flight now."""
        return max(1, int(self.limit))

    @property
    def mark(self) -> int:
        """To be kept by a call when it begins, and given back with its result."""
        return self.cuts

    def succeeded(self, used: int) -> None:
        """A call got a reply while `used` places, its own included, were taken."""
        if used >= self.allowed:
            self.limit = min(float(self.most), self.limit + (1.0 if self.cuts == 0 else 1.0 / self.limit))
            self.highest = max(self.highest, self.allowed)

    def rate_limited(self, mark: int) -> None:
        """A call that began at `mark` was told to slow down."""
        if mark == self.cuts:
            self.cuts += 1
            self.limit = max(1.0, self.limit * _SHRINK)
            self.lowest = self.allowed if self.lowest is None else min(self.lowest, self.allowed)
