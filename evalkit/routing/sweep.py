"""Every threshold of a path, from one sort and cumulative sums.

An item passes boundary j (from tier j to tier j + 1) at level `x` when its own level is at least `x`. So any
additive figure at `x` is its value with nobody up plus the increments of all (item, boundary) events whose level
is at least `x`: sort the events once, and each figure at every threshold is one cumulative sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats

__all__ = ["Sweep", "descending_order", "sweep_of"]

_BELOW_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)


def descending_order(values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """(order, values[order]) with the largest first and ties in input order; exact for every float but NaN.

    Sorting (leading bits of the value, index) packed into one 64-bit integer is several times faster than an
    argsort. Values that agree in the leading bits alone are put right afterwards, run by run.
    """
    n = len(values)
    if n == 0:
        return np.empty(0, dtype=np.int64), np.empty(0)
    index_bits = np.uint64(max(1, int(n - 1).bit_length()))
    bits = (values + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 one value
    # Ascending order of these keys is descending order of the values: a negative number keeps its bits, a
    # positive one has all but its sign bit flipped.
    flip = (bits.view(np.int64) >> 63).view(np.uint64)
    np.invert(flip, out=flip)
    flip &= _BELOW_SIGN
    key = np.bitwise_xor(bits, flip, out=bits)
    del flip
    key >>= index_bits
    key <<= index_bits
    key |= np.arange(n, dtype=np.uint64)
    key.sort()
    index_mask = (np.uint64(1) << index_bits) - np.uint64(1)
    order = (key & index_mask).view(np.int64)
    ranked = values.take(order)
    wrong = np.flatnonzero(ranked[1:] > ranked[:-1])
    if len(wrong):
        _repair(order, ranked, key, key[wrong] >> index_bits, index_bits)
    return order, ranked


def _repair(
    order: NDArray[np.int64],
    ranked: Floats,
    key: NDArray[np.uint64],
    prefixes: NDArray[np.uint64],
    index_bits: np.uint64,
) -> None:
    """Sort, in place, the runs of `key` that share one of `prefixes`: each holds a pair in the wrong order."""
    prefixes = np.unique(prefixes)
    start = np.searchsorted(key, prefixes << index_bits, side="left")
    stop = np.searchsorted(key, (prefixes << index_bits) | ((np.uint64(1) << index_bits) - np.uint64(1)), "right")
    length = stop - start
    run = np.repeat(np.arange(len(prefixes)), length)
    offset = np.concatenate(([0], np.cumsum(length)[:-1]))
    places = np.arange(int(length.sum())) + np.repeat(start - offset, length)
    inner = np.lexsort((order[places], -ranked[places], run))
    order[places] = order[places][inner]
    ranked[places] = ranked[places][inner]


@dataclass(frozen=True)
class Sweep:
    """The candidates of a path. Candidate 0 sends nobody up who need not go; candidate p >= 1 sends up every
    event whose level is at least `levels[p]`.

    levels (m + 1,): strictly descending; levels[0] is the adjacent float above the largest finite level.
    always: how many events (level +inf) are up at every candidate, candidate 0 included.
    last (m,): place in `order` of the last event that is up at candidate p, for p = 1..m; None where candidate p
    is exactly the first p events.
    """

    levels: Floats
    always: int
    last: NDArray[np.int64] | None
    order: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.levels)

    def cumulative(self, increments: Floats, base: float = 0.0) -> Floats:
        """(m + 1,) `base` plus the increments (M,) of the events that are up, at every candidate."""
        out = np.empty(len(self.levels))
        self._running(increments.take(self.order), out)
        if base:
            out += base
        return out

    def counts(self, codes: NDArray[np.uint8], wanted: int) -> NDArray[np.int32]:
        """(wanted, m + 1) number of events up with each code 0..wanted-1; other codes are not counted."""
        ranked = codes.take(self.order)
        out = np.empty((wanted, len(self.levels)), dtype=np.int32)
        for code in range(wanted):
            self._running(ranked == code, out[code])
        return out

    def _running(self, ranked: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the running sums of `ranked` (M,) at the candidates into `out` (m + 1,)."""
        if self.last is None:
            out[0] = 0
            np.cumsum(ranked, dtype=out.dtype, out=out[1:])
            return
        running = np.cumsum(ranked, dtype=out.dtype)
        out[0] = running[self.always - 1] if self.always else 0
        np.take(running, self.last, out=out[1:])


def sweep_of(levels: Floats) -> Sweep:
    """The sweep over the events of `levels` ((N,) or (N, J)); event e = j * N + i is item i at boundary j.

    A level of +inf is up at every candidate, -inf at none; NaN raises ValueError.
    """
    flat = np.ascontiguousarray(levels.T).ravel() if levels.ndim == 2 else np.ascontiguousarray(levels)
    if np.isnan(flat).any():
        raise ValueError("The `levels` parameter of `sweep_of` must not hold NaN.")
    order, ranked = descending_order(flat)
    always = _run_length(ranked, np.inf)
    never = _run_length(ranked[::-1], -np.inf)
    finite = ranked[always : max(always, len(ranked) - never)]
    if len(finite) == 0:
        return Sweep(np.array([0.0]), always, np.empty(0, dtype=np.int64), order)
    ends_run = np.empty(len(finite), dtype=bool)
    ends_run[-1] = True
    np.not_equal(finite[1:], finite[:-1], out=ends_run[:-1])
    if always == 0 and never == 0 and ends_run.all():
        distinct, last = finite, None
    else:
        places = np.flatnonzero(ends_run)
        distinct, last = finite[places], places + always
    out = np.empty(len(distinct) + 1)
    out[0] = np.nextafter(distinct[0], np.inf)
    out[1:] = distinct
    return Sweep(out, always, last, order)


def _run_length(values: Floats, value: float) -> int:
    """How many elements at the front of `values` equal `value`."""
    if len(values) == 0 or values[0] != value:
        return 0
    other = values != value
    return int(np.argmax(other)) if other.any() else len(values)
