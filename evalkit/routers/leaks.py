"""Leaks: judged items that the labels a router was trained on hold too.

A router that has seen the items it is judged on looks better than it is. Four kinds are found (`Leak.kind`). Near
ones are told by the share of shingles of the shorter prompt that the longer one holds, where neither is more than
twice the other; prompts too short for that by the Jaccard similarity of their shingles. What 5 % of all items
share does not count (`sketches`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault
from evalkit.routers.sketches import LEAST, MOST_LEVEL, Sketches, zero_bits
from evalkit.tabular.names import quoted

__all__ = ["NEAR", "Leak", "LeakKind", "alike", "find_leaks", "leak_fault"]

LeakKind = Literal["exact", "near", "group", "id"]

NEAR = 0.85
"""The least similarity of near ones."""
_SHORT = 24  # shingles
_TWICE = 0.5
_CHUNK = 512


@dataclass(frozen=True, slots=True)
class Leak:
    """One judged item that leaked: `id`, the training item it repeats (`training`, its id), and how.

    exact: the same prompt; letter case, white space and punctuation at the ends aside. near: `similarity` of the
    shingles of both prompts is at least `NEAR`. group: another prompt of the same group. id: an item of the same
    id, where one of the two has no prompt.
    """

    id: str
    training: str
    kind: LeakKind
    similarity: float


def find_leaks(training: Sketches, judged: Sketches) -> tuple[Leak, ...]:
    """The judged items that leaked, in their order, each with the training item that is most alike."""
    texts = _first(training.whole)
    groups = _first(training.group)
    ids = {name: i for i, name in enumerate(training.ids)}
    near: dict[int, tuple[int, float]] = {}
    open_ = np.array([w is not None and w not in texts for w in judged.whole], dtype=np.bool_)
    for j, t, alike_ in _near(training, judged, open_):
        if j not in near or (alike_, -t) > (near[j][1], -near[j][0]):
            near[j] = (t, alike_)
    found = []
    for j, name in enumerate(judged.ids):
        whole, group = judged.whole[j], judged.group[j]
        same = ids.get(name)
        if whole is not None and whole in texts:
            found.append(Leak(name, training.ids[texts[whole]], "exact", 1.0))
        elif j in near:
            found.append(Leak(name, training.ids[near[j][0]], "near", near[j][1]))
        elif group is not None and group in groups:
            found.append(Leak(name, training.ids[groups[group]], "group", 0.0))
        elif same is not None and (whole is None or training.whole[same] is None):
            found.append(Leak(name, name, "id", 0.0))
    return tuple(found)


def alike(items: Sketches) -> NDArray[np.int64]:
    """(N,) a number for each item that those share which are the same, near or of one group, also over others."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(items)
    pairs = [(i, j) for keys in (items.whole, items.group) for i, j in _to_first(keys)]
    open_ = np.array([w is not None for w in items.whole], dtype=np.bool_)
    pairs += [(j, t) for j, t, _ in _near(items, items, open_)]
    rows, columns = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    graph = coo_matrix((np.ones(len(pairs)), (rows, columns)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def leak_fault(leaks: Sequence[Leak], judged: int, file: str, trained_on: str) -> Fault:
    """The fault that names leaked items on both sides."""
    shown = [f"{quoted(leak.id)} ({_how(leak)})" for leak in leaks[:20]]
    more = f" and {len(leaks) - 20:,} more" if len(leaks) > 20 else ""
    many = "item stands" if len(leaks) == 1 else "items stand"
    return Fault(
        f"{len(leaks):,} of {judged:,} judged {many} in what the router was trained on, {quoted(trained_on)}, "
        f"too: {', '.join(shown)}{more}",
        "take them out of one of the two, or write leaks: drop so that they are not judged",
        file=file,
        field="router.leaks",
    )


def _how(leak: Leak) -> str:
    if leak.kind == "near":
        return f"near {quoted(leak.training)}, {leak.similarity:.2f} alike"
    if leak.kind == "group":
        return f"of the group of {quoted(leak.training)}"
    return f"the same {'id' if leak.kind == 'id' else 'prompt'} as {quoted(leak.training)}"


def _first(keys: Sequence[str | None]) -> dict[str, int]:
    found: dict[str, int] = {}
    for i, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, i)
    return found


def _to_first(keys: Sequence[str | None]) -> Iterator[tuple[int, int]]:
    first = _first(keys)
    return ((i, first[key]) for i, key in enumerate(keys) if key is not None)


def _near(training: Sketches, judged: Sketches, open_: NDArray[np.bool_]) -> Iterator[tuple[int, int, float]]:
    """(judged, training, similarity) of every near pair among the judged items that are `open_`."""
    from scipy.sparse import csr_matrix

    common = np.union1d(training.common, judged.common)
    left, right = _Kept(judged, common), _Kept(training, common)
    words, place = np.unique(right.hashes, return_inverse=True)
    if not words.size:
        return
    by_training = csr_matrix(
        (np.ones(len(place), dtype=np.int32), (right.owner, place)), shape=(len(training), len(words))
    ).T.tocsr()
    at = np.minimum(np.searchsorted(words, left.hashes), len(words) - 1)
    known = (words[at] == left.hashes) & open_[left.owner]
    by_judged = csr_matrix(
        (np.ones(int(known.sum()), dtype=np.int32), (left.owner[known], at[known])),
        shape=(len(judged), len(words)),
    )
    for start in range(0, len(judged), _CHUNK):
        both = (by_judged[start : start + _CHUNK] @ by_training).tocoo()
        j, t, shared = both.row.astype(np.int64) + start, both.col.astype(np.int64), both.data.astype(np.float64)
        level = np.maximum(judged.level[j], training.level[t]).astype(np.int64)
        a, b = left.counts[j, level], right.counts[t, level]
        less, more = np.minimum(a, b), np.maximum(a, b)
        short = less * 2.0**level < _SHORT
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(short, shared / (a + b - shared), shared / less)
        enough = (value >= NEAR) & (short | (less >= _TWICE * more))
        yield from zip(j[enough].tolist(), t[enough].tolist(), value[enough].tolist(), strict=True)


class _Kept:
    """The hashes of items without the common ones, but of those items whole that are little else."""

    def __init__(self, items: Sketches, common: NDArray[np.uint32]) -> None:
        owner = items.owner
        keep = ~np.isin(items.hashes, common)
        rest = np.bincount(owner[keep], minlength=len(items))
        keep |= (rest < LEAST)[owner]
        self.hashes, self.owner = items.hashes[keep], owner[keep]
        bits = zero_bits(self.hashes)
        # counts[i, l]: hashes of item i that a sketch of level l would hold
        table = np.zeros((len(items), MOST_LEVEL + 1), dtype=np.int64)
        np.add.at(table, (self.owner, bits.astype(np.int64)), 1)
        self.counts = table[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.float64)
