"""Whether a failed call is tried again, and when: pure and seeded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from evalkit.providers.call import Failure, FailureKind

__all__ = ["FINAL_KINDS", "RetryPolicy"]

FINAL_KINDS = frozenset({FailureKind.BAD_REQUEST, FailureKind.REFUSAL})
"""What the same request gets again, whoever asks and whenever: kept as the result of a cell, not tried anew by the
next run. A wrong key is not final: the next run may have the right one."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `max_attempts` in one run, with exponential backoff from `base_s` to `most_s`.

    The wait after attempt n is drawn evenly from the upper half of min(most_s, base_s * 2^(n-1)), by `seed`, key
    and attempt alone, so that calls which failed together do not come back together. What the provider asked to
    wait (Retry-After) is the least that is waited; where it is more than `longest_s`, the call is left to a later
    run.
    """

    max_attempts: int = 4
    base_s: float = 0.5
    most_s: float = 30.0
    longest_s: float = 120.0
    seed: int = 0

    def wait_s(self, failure: Failure, attempt: int, key: str) -> float | None:
        """Seconds before the next attempt after `attempt` (from 1) failed; None where there is none."""
        if not failure.retryable or attempt >= self.max_attempts:
            return None
        step = min(self.most_s, self.base_s * 2.0 ** min(attempt - 1, 60))
        wait = step * (0.5 + 0.5 * _share(f"{self.seed}|{key}|{attempt}"))
        asked = failure.retry_after_s
        if asked is None:
            return wait
        return None if asked > self.longest_s else max(wait, asked + 0.1 * wait)


def _share(text: str) -> float:
    """A number of [0, 1) that depends on `text` alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
