"""`Outcomes`: what every tier made of every item, as arrays (N items, K tiers, S samples)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalkit.outcomes.status import Status

__all__ = ["ErrorsSeen", "Outcomes", "Replies"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ErrorsSeen:
    """The unanswered requests of one status: how many, the first error text, and how often that very text."""

    status: Status
    count: int
    first: str | None
    same: int


class Replies:
    """The texts that were replied, looked up by item, tier and sample; nothing is copied."""

    def __init__(self, texts: Sequence[str | None], row: npt.NDArray[np.int64]) -> None:
        self._texts = texts
        self._row = row

    def get(self, item: int, tier: int, sample: int = 0) -> str | None:
        """The reply, or None where there is none."""
        row = int(self._row[item, tier, sample])
        return None if row < 0 else self._texts[row]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes aligned with `ids` (N) and `tiers` (K); S is the largest number of samples of any item.

    `status` (int8, `STATUSES` by code, -1 where there is no row), `passed` and `answered` (bool) and all the
    numbers have the shape (N, K, S). Numbers are NaN where unknown: `score` 0 to 1 (NaN where unanswered), USD,
    tokens, seconds and attempts as given. `samples` (N, K) counts the rows. Sample numbers are paired across the
    tiers of an item. `model` holds, per tier, the model names of its rows, sorted;
    `model_code` (N, K, S) is each row's position there, -1 where it names none. `errors` has one entry per
    unanswered status that occurs.
    """

    file: str
    ids: tuple[str, ...]
    tiers: tuple[str, ...]
    status: npt.NDArray[np.int8]
    passed: npt.NDArray[np.bool_]
    answered: npt.NDArray[np.bool_]
    score: Floats
    cost_usd: Floats
    input_tokens: Floats
    cache_read_tokens: Floats
    cache_write_tokens: Floats
    output_tokens: Floats
    reasoning_tokens: Floats
    ttft_s: Floats
    request_s: Floats
    task_s: Floats
    attempts: Floats
    samples: npt.NDArray[np.int64]
    model: tuple[tuple[str, ...], ...]
    model_code: npt.NDArray[np.int16]
    errors: tuple[ErrorsSeen, ...]
    reply: Replies | None
    fingerprint: str
    notices: tuple[str, ...]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """(N, K, S) where there is a row."""
        return np.asarray(self.status >= 0)

    def having(self, status: Status) -> npt.NDArray[np.bool_]:
        """(N, K, S) where the status is `status`."""
        return np.asarray(self.status == list(Status).index(status))
