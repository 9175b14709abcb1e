"""What a run may vary from one time to the next: none of it changes an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from evalkit.replay.retry import RetryPolicy

if TYPE_CHECKING:  # the whole of `study` would be read for one name
    from evalkit.study.calls import CallOptions

__all__ = ["RunSettings"]


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run calls.

    `concurrency` is the most calls in flight to one endpoint; limits per minute hold for each endpoint too.
    `max_attempts` counts the first one, in one run. `request_timeout_s` is for a whole call, `run_timeout_s` for
    the whole run (None: no limit). `max_spend_usd` is for all runs of the folder together. `retry_failed` tries
    anew what failed for good. `grace_s` is how long calls in flight may still end when the run is stopped.
    `backoff_s` and `most_backoff_s` bound the waits between attempts, `longest_wait_s` is the longest Retry-After
    that is waited for. `seed` draws the jitter. `handle_signals`: SIGINT and SIGTERM end the run in good order.
    """

    concurrency: int = 8
    max_attempts: int = 4
    request_timeout_s: float = 120.0
    run_timeout_s: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_spend_usd: Decimal | None = None
    retry_failed: bool = False
    grace_s: float = 1.0
    backoff_s: float = 0.5
    most_backoff_s: float = 30.0
    longest_wait_s: float = 120.0
    seed: int = 0
    handle_signals: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= 10_000:
            self._refuse("concurrency", "be from 1 to 10,000")
        if not 1 <= self.max_attempts <= 100:
            self._refuse("max_attempts", "be from 1 to 100")
        for name in ("request_timeout_s", "run_timeout_s", "requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                self._refuse(name, "be a finite number above 0")
        for name in ("grace_s", "backoff_s", "most_backoff_s", "longest_wait_s"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                self._refuse(name, "be a finite number, at least 0")
        cap = self.max_spend_usd
        if cap is not None and not (isinstance(cap, Decimal) and cap.is_finite() and cap >= 0):
            self._refuse("max_spend_usd", "be a Decimal, at least 0")

    def _refuse(self, name: str, must: str) -> None:
        got = getattr(self, name)
        raise ValueError(f"The `{name}` parameter of `RunSettings` must {must}. Got {got!r} instead.")

    @classmethod
    def of(
        cls,
        options: CallOptions,
        *,
        max_spend_usd: Decimal | None = None,
        retry_failed: bool = False,
        seed: int = 0,
    ) -> RunSettings:
        """The settings that a study's `replay` section says, and what is said beside it."""
        return cls(
            concurrency=options.concurrency,
            max_attempts=options.max_attempts,
            request_timeout_s=options.request_timeout_s,
            run_timeout_s=options.run_timeout_s,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            max_spend_usd=max_spend_usd,
            retry_failed=retry_failed,
            seed=seed,
        )

    @property
    def retry(self) -> RetryPolicy:
        """When a failed call is tried again."""
        return RetryPolicy(self.max_attempts, self.backoff_s, self.most_backoff_s, self.longest_wait_s, self.seed)
