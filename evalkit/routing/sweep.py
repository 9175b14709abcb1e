"""Every threshold of a path, from one sort and cumulative sums.

An item passes boundary j (from tier j to tier j + 1) at level `x` when its own level is at least `x`. So any
additive figure at `x` is its value with nobody up plus the increments of all (item, boundary) events whose level
is at least `x`: sort the events once, and each figure at every threshold is one cumulative sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.routing.data import Floats

__all__ = ["Increments", "Sweep", "descending_order", "sweep_of", "tier_steps"]

Increments = Callable[[NDArray[np.int64]], Floats]

_BELOW_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
_BLOCK = 1 << 15  # rows held at a time: a block and what is made of it stay in the processor's cache


def descending_order(values: Floats, ranked: Floats | None = None) -> tuple[NDArray[np.int64], Floats]:
    """(order, values[order]) with the largest first and ties in input order; exact for every float but NaN.

    Sorting (leading bits of the value, index) packed into one 64-bit integer is several times faster than an
    argsort. Values that agree in the leading bits alone are put right afterwards, run by run. `ranked` (n,): where
    to write the sorted values.
    """
    n = len(values)
    ranked = np.empty(n) if ranked is None else ranked
    if n == 0:
        return np.empty(0, dtype=np.int64), ranked
    index_bits = np.uint64(max(1, int(n - 1).bit_length()))
    index_mask = (np.uint64(1) << index_bits) - np.uint64(1)
    key = _packed(values, index_mask)
    key.sort()
    order = (key & index_mask).view(np.int64)
    values.take(order, out=ranked, mode="clip")  # every place is inside; "raise" would copy
    wrong = np.flatnonzero(ranked[1:] > ranked[:-1])
    if len(wrong):
        _repair(order, ranked, key, key[wrong] >> index_bits, index_bits)
    return order, ranked


def _packed(values: Floats, index_mask: np.uint64) -> NDArray[np.uint64]:
    """(n,) keys whose ascending order is the descending order of the values' leading bits, then of the index.

    A negative number keeps its bits, a positive one has all but its sign bit flipped.
    """
    n = len(values)
    key = np.empty(n, dtype=np.uint64)
    places = np.arange(min(n, _BLOCK), dtype=np.uint64)
    for start in range(0, n, _BLOCK):
        block = values[start : start + _BLOCK] + 0.0  # makes -0.0 and 0.0 one value
        bits = block.view(np.uint64)
        if block.min() >= 0.0:
            bits ^= _BELOW_SIGN
        else:
            flip = (bits.view(np.int64) >> 63).view(np.uint64)
            np.invert(flip, out=flip)
            flip &= _BELOW_SIGN
            bits ^= flip
        bits &= ~index_mask
        np.bitwise_or(bits, places[: len(bits)], out=key[start : start + _BLOCK])
        places += np.uint64(_BLOCK)
    return key


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

    def up(self) -> NDArray[np.int64]:
        """(m + 1,) number of events that are up at every candidate."""
        if self.last is None:
            return np.arange(len(self.levels), dtype=np.int64)
        return np.concatenate(([self.always], self.last + 1))

    def cumulative(self, increments: Floats, base: float = 0.0) -> Floats:
        """(m + 1,) `base` plus the increments (M,) of the events that are up, at every candidate."""
        one: Floats = self.sums(increments[:, None], np.array([base]))[0]
        return one

    def sums(self, increments: Floats | Increments, base: Floats) -> Floats:
        """(Q, m + 1) `base` (Q,) plus the increments (M, Q) of the events that are up, at every candidate.

        In place of the increments themselves a function may give those of any events (E,) as (Q, E): they are then
        worked out block by block and never held together. Gathering takes the time: columns that lie side by side
        are gathered at once.
        """
        if not callable(increments):
            held = np.ascontiguousarray(increments)  # a strided source would be copied anew for every block
            return self.sums(lambda events: held.take(events, axis=0).T, base)
        out = np.empty((len(base), len(self.levels)))
        out[:, 0] = base
        carry = np.zeros(len(base))
        for events, at in self._blocks():
            block = increments(self.order[events])
            block[:, 0] += carry
            for q in range(len(base)):
                running = np.cumsum(block[q])
                carry[q] = running[-1]
                self._write(out[q], running, base[q], events, at)
        return out

    def counts(self, codes: NDArray[np.uint8], wanted: int) -> NDArray[np.int32]:
        """(wanted, m + 1) number of events up with each code 0..wanted-1; other codes are not counted."""
        out = np.empty((wanted, len(self.levels)), dtype=np.int32)
        out[:, 0] = 0
        carry = np.zeros(wanted, dtype=np.int32)
        # Four counters share one integer of 64 bits; a block is too short for one of them to overflow.
        lanes = np.zeros((-(-wanted // 4), 256), dtype=np.uint64)
        for code in range(wanted):
            lanes[code // 4, code] = 1 << 16 * (code % 4)
        for events, at in self._blocks():
            block = codes.take(self.order[events])
            for group, lane in enumerate(lanes):
                packed = np.cumsum(lane.take(block)).astype("<u8", copy=False).view("<u2").reshape(-1, 4)
                for code in range(4 * group, min(4 * group + 4, wanted)):
                    running = packed[:, code % 4]
                    self._write(out[code], running, carry[code], events, at)
                    carry[code] += running[-1]
        return out

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Blocks of events in order, each with the candidates 1..m whose last event it holds."""
        events = len(self.order)
        for start in range(0, events, _BLOCK):
            stop = min(start + _BLOCK, events)
            if self.last is None:
                yield slice(start, stop), slice(start + 1, stop + 1)
            else:
                first, past = np.searchsorted(self.last, (start, stop))
                yield slice(start, stop), slice(int(first) + 1, int(past) + 1)

    def _write(
        self, out: NDArray[Any], running: NDArray[Any], before: np.generic, events: slice, at: slice
    ) -> None:
        """Write a block's running sums plus `before` at the candidates that end in the block."""
        if self.last is None:
            np.add(running, before, out=out[at], casting="unsafe")
            return
        np.add(
            running[self.last[at.start - 1 : at.stop - 1] - events.start], before, out=out[at], casting="unsafe"
        )
        if events.start < self.always <= events.stop:
            out[0] = running[self.always - 1 - events.start] + before


def sweep_of(levels: Floats) -> Sweep:
    """The sweep over the events of `levels` ((N,) or (N, J)); event e = j * N + i is item i at boundary j.

    A level of +inf is up at every candidate, -inf at none; NaN raises ValueError.
    """
    flat = np.ascontiguousarray(levels.T).ravel() if levels.ndim == 2 else np.ascontiguousarray(levels)
    if np.isnan(flat).any():
        raise ValueError("The `levels` parameter of `sweep_of` must not hold NaN.")
    out = np.empty(len(flat) + 1)
    order, ranked = descending_order(flat, out[1:])
    always = _run_length(ranked, np.inf)
    never = _run_length(ranked[::-1], -np.inf)
    finite = ranked[always : max(always, len(ranked) - never)]
    if len(finite) == 0:
        return Sweep(np.array([0.0]), always, np.empty(0, dtype=np.int64), order)
    ends_run = np.empty(len(finite), dtype=bool)
    ends_run[-1] = True
    np.not_equal(finite[1:], finite[:-1], out=ends_run[:-1])
    last = None
    if always or never or not ends_run.all():
        places = np.flatnonzero(ends_run)
        out, last = np.concatenate(([0.0], finite[places])), places + always
    out[0] = np.nextafter(out[1], np.inf)
    return Sweep(out, always, last, order)


def tier_steps(figures: Sequence[Floats], weight: Floats | None = None) -> Increments:
    """For `Sweep.sums`: by how much each of the figures (N, K), times the weight (N,), changes with an event.

    Event j * N + i takes item i from tier j to tier j + 1.
    """
    n, tiers = figures[0].shape

    def of(events: NDArray[np.int64]) -> Floats:
        boundary, item = np.divmod(events, n) if tiers > 2 else (np.zeros(1, dtype=np.int64), events)
        out = np.empty((len(figures), len(events)))
        for step, figure in zip(out, figures, strict=True):
            rows = figure.take(item, axis=0)
            if tiers == 2:
                np.subtract(rows[:, 1], rows[:, 0], out=step)
            else:
                at = boundary + np.arange(len(events)) * tiers
                np.subtract(rows.take(at + 1), rows.take(at), out=step)
        if weight is not None:
            out *= weight.take(item)
        return out

    return of


def _run_length(values: Floats, value: float) -> int:
    """How many elements at the front of `values` equal `value`."""
    if len(values) == 0 or values[0] != value:
        return 0
    other = values != value
    return int(np.argmax(other)) if other.any() else len(values)
