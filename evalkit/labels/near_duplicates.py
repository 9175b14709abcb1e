"""Texts that are nearly the same: every pair is found, without comparing every pair.

Two texts are near duplicates when the Jaccard similarity of their sets of character shingles reaches a
threshold (Broder 1997). Each text is compared with the first text of a cluster, so that a cluster never drifts
away from what it is about.

Which pairs are compared is told by prefixes (Chaudhuri, Ganti and Kaushik 2006): with the shingles of all texts in
one order, the rarest first, the prefix of a set of n is its first `n - r`, with r below `threshold * n`. Two sets
of n and m that are similar enough share `threshold / (1 + threshold) * (n + m)` shingles, of which at most the
larger r lie behind a prefix: all others are in both. So what many texts share, a greeting or a template, brings
nobody together.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.tabular.spread import spread

__all__ = ["SHINGLE", "clusters", "similarity"]

SHINGLE = 8
"""Characters a shingle; 4 in texts shorter than 40, so that a short text has shingles at all."""
_SHORT = 40
_MOST = 20_000  # characters looked at: the beginning of a longer text says what it is
_ODD = np.uint64(0x9E3779B97F4A7C15)
_POWERS = {step: np.uint64(pow(int(_ODD), step, 2**64)) for step in (1, 2, 4)}
_COUNTED = 4_000  # texts in which shingles are counted; any order finds all pairs, a good one compares few
_MORE = (
    32  # a part of the shingles by which prefixes are longer than they must be: then few pairs are alike in them
)
_BUCKETS = 20  # bits
_SLACK = 1e-9  # what a product of floats may lie above the whole number that it stands for
_REMEMBERED = 2_000  # texts whose shingles are at hand
_AT_A_TIME = 1 << 19  # pairs of a shingle and an owner that are looked up together
_TEXTS_A_PART = 2_000  # that one process works on at a time

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]
Places = NDArray[np.uint32]

_Job = tuple[list[str], list[int], NDArray[np.uint16], float]
_NONE = np.zeros(0, dtype=np.int64)


def similarity(left: str, right: str) -> float:
    """Jaccard similarity of the shingles of two texts, 0 to 1; letter case and white space do not count."""
    width = SHINGLE if min(len(left), len(right)) >= _SHORT else SHINGLE // 2
    return _jaccard(_shingles(_folded(left), width), _shingles(_folded(right), width))


def clusters(texts: Iterable[str], threshold: float = 0.85, within: Sequence[Hashable] | None = None) -> Positions:
    """(N,) for each text the position of the first one that it nearly repeats; its own where it repeats none.

    First ones repeat no other first one. `within` (N,), where given, parts the texts: only those with equal values
    there are compared. Texts shorter than 40 characters and longer ones are compared among themselves.
    """
    if not 0 < threshold <= 1:
        raise ValueError(
            f"The `threshold` parameter of `clusters` must be above 0 and at most 1. Got {threshold} instead."
        )
    given = texts if isinstance(texts, Sequence) else list(texts)
    parts: dict[Hashable, int] = {}
    part = [parts.setdefault(value, len(parts)) for value in within] if within is not None else [0] * len(given)
    first = _firsts(_digest(given[i]) + part[i].to_bytes(8, "little") for i in range(len(given)))
    own = np.flatnonzero(first == np.arange(len(first)))
    prefixes = _prefixes(given, part, own.tolist(), threshold)
    again = own[_firsts(prefixes.keys)]  # the same but for letter case and white space
    first = again[np.searchsorted(own, first)]
    sets = _Sets(given)
    kept = np.flatnonzero(again == own)
    for i, others in _candidates(prefixes.of(kept), threshold):
        at = int(own[kept[i]])
        for other in own[kept[others]].tolist():
            if first[other] == other and _jaccard(sets[at], sets[other]) >= threshold:
                first[at] = other
                break
    return first[first]


def _firsts(keys: Iterable[bytes]) -> Positions:
    """(N,) for each key where it stands first."""
    seen: dict[bytes, int] = {}
    return np.fromiter((seen.setdefault(key, i) for i, key in enumerate(keys)), dtype=np.int64)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Sets:
    """The shingles of each text, made when they are asked for."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._known: dict[int, Hashes] = {}

    def __getitem__(self, i: int) -> Hashes:
        known = self._known.get(i)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[i] = _shingled(_folded(self._texts[i]))
        return known


@dataclass(frozen=True)
class _Prefixes:
    """Of N texts: keys, equal for texts that are compared and equal; kind (N,), what a text is compared among;
    size (N,), its shingles; hashes, those of the prefix of each text, one after the other; edges (N + 1,), where
    each prefix begins among them."""

    keys: list[bytes]
    kind: Positions
    size: Positions
    hashes: Places
    edges: Positions

    def of(self, rows: Positions) -> _Prefixes:
        """Those of the texts `rows`, ascending."""
        if len(rows) == len(self.keys):
            return self
        long = np.diff(self.edges)
        kept = np.zeros(len(long), dtype=bool)
        kept[rows] = True
        return _Prefixes(
            [self.keys[i] for i in rows.tolist()],
            self.kind[rows],
            self.size[rows],
            self.hashes[np.repeat(kept, long)],
            np.concatenate([[0], np.cumsum(long[rows])]),
        )


def _rest(size: Positions, threshold: float) -> Positions:
    """How many of `size` shingles stand behind the prefix."""
    must: Positions = np.ceil(threshold * size - _SLACK).astype(np.int64) - 1 - size // _MORE
    return must.clip(min=0)


def _least(size: Positions, other: Positions, threshold: float) -> Positions:
    """The shingles that must be in both prefixes of two texts which are as similar as `threshold`."""
    both: Positions = np.ceil(threshold / (1 + threshold) * (size + other) - _SLACK).astype(np.int64)
    return both - np.maximum(_rest(size, threshold), _rest(other, threshold))


def _needed(size: int, threshold: float) -> int:
    """The fewest shingles that a text of `size` and one as similar have in common in their prefixes."""
    others = np.arange(math.ceil(threshold * size - _SLACK), math.floor(size / threshold + _SLACK) + 1)
    return max(1, int(_least(np.full_like(others, size), others, threshold).min()))


def _candidates(prefixes: _Prefixes, threshold: float) -> Iterator[tuple[int, Positions]]:
    """For each of the texts (ascending) those before it that may be as similar as `threshold`, ascending."""
    n = len(prefixes.keys)
    if not n:
        return
    size, kind = prefixes.size, prefixes.kind
    packed = prefixes.hashes.astype(np.uint64) << np.uint64(32)
    packed |= np.repeat(np.arange(n, dtype=np.uint64), np.diff(prefixes.edges))
    needed = {one: _needed(one, threshold) for one in np.unique(size).tolist()}
    for at, held in _earlier(_postings(packed, n)):
        common = needed[int(size[at])]
        ends = held[common - 1 :]
        often = ends[ends == held[: len(ends)]]  # who stands there `common` times or more
        if not often.size:
            continue
        who = np.unique(often)
        low, high = threshold * size[at] - _SLACK, size[at] / threshold + _SLACK
        who = who[(who < at) & (size[who] >= low) & (size[who] <= high) & (kind[who] == kind[at])]
        if not who.size:
            continue
        count = np.searchsorted(held, who, "right") - np.searchsorted(held, who)
        found = who[count >= _least(size[[at]], size[who], threshold)]
        if found.size:
            yield at, found.astype(np.int64)


def _earlier(postings: tuple[Places, Places, Places, Positions]) -> Iterator[tuple[int, Places]]:
    """For each text the owners before it of the shingles of its prefix, one for each of these, ascending."""
    owners, starts, places, edges = postings
    long = places - starts
    upto = np.concatenate([[0], np.cumsum(long, dtype=np.int64)])[edges]
    first, n = 0, len(edges) - 1
    while first < n:
        last = max(first + 1, int(np.searchsorted(upto, upto[first] + _AT_A_TIME, "right")) - 1)
        mine = slice(edges[first], edges[last])
        begin = np.cumsum(long[mine], dtype=np.int64) - long[mine]
        where = np.repeat(starts[mine] - begin, long[mine])
        held = owners[where + np.arange(len(where))]
        bounds = (upto[first : last + 1] - upto[first]).tolist()
        for at in range(first, last):
            own = held[bounds[at - first] : bounds[at - first + 1]]
            own.sort()
            yield at, own
        first = last


def _prefixes(texts: Sequence[str], part: Sequence[int], own: Sequence[int], threshold: float) -> _Prefixes:
    """The prefixes of the texts `own`, ascending, of which none is equal to another of its part."""
    seen = np.zeros(1 << _BUCKETS, dtype=np.uint16)
    for i in own[:: max(1, len(own) // _COUNTED)]:
        seen[_bucket(_shingled(_folded(texts[i])))] += 1

    def jobs() -> Iterator[_Job]:
        for start in range(0, len(own), _TEXTS_A_PART):
            rows = own[start : start + _TEXTS_A_PART]
            yield [texts[i][:_MOST] for i in rows], [part[i] for i in rows], seen, threshold

    made = list(spread(_part_prefixes, jobs()))
    long = np.concatenate([[0], *(one.edges[1:] - one.edges[:-1] for one in made)])
    return _Prefixes(
        [key for one in made for key in one.keys],
        np.concatenate([_NONE, *(one.kind for one in made)]),
        np.concatenate([_NONE, *(one.size for one in made)]),
        np.concatenate([np.zeros(0, dtype=np.uint32), *(one.hashes for one in made)]),
        np.cumsum(long),
    )


def _part_prefixes(job: _Job) -> _Prefixes:
    """With the rarest shingles first, so that what many texts share is in few prefixes."""
    texts, part, seen, threshold = job
    keys, kinds, sizes, hashes = [], [], [], []
    for text, number in zip(texts, part, strict=True):
        plain = _folded(text)
        keys.append(_digest(plain) + number.to_bytes(8, "little"))
        kinds.append(2 * number + _is_short(plain))
        shingles = _shingled(plain)
        rank = (seen[_bucket(shingles)].astype(np.uint64) << np.uint64(40)) | (shingles >> np.uint64(24))
        rank.sort()
        salt = np.uint64(kinds[-1] * int(_ODD) & 0xFFFFFFFF)  # keeps the shingles of one kind apart from another's
        sizes.append(shingles.size)
        hashes.append((rank ^ salt).astype(np.uint32))
    size = np.array(sizes, dtype=np.int64)
    prefix = (size - _rest(size, threshold)).tolist()
    return _Prefixes(
        keys,
        np.array(kinds, dtype=np.int64),
        size,
        np.concatenate([one[:n] for one, n in zip(hashes, prefix, strict=True)]),
        np.cumsum([0, *prefix]),
    )


def _postings(packed: Hashes, n: int) -> tuple[Places, Places, Places, Positions]:
    """Who holds which shingle of a prefix: `packed` has (shingle, owner) in the halves of a number and is used up.

    Gives the owners by shingle, each list ascending; then, by owner, of each entry whose shingle an owner before
    it holds too, the start and the end of these; and where the entries of each of the n owners lie.
    """
    packed.sort()
    owners = packed.astype(np.uint32)
    packed >>= np.uint64(32)
    first = np.ones(len(packed), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    del packed
    start = np.arange(len(first), dtype=np.uint32)
    start *= first
    np.maximum.accumulate(start, out=start)
    follows = np.flatnonzero(~first).astype(np.uint64)
    by_owner = owners[follows].astype(np.uint64)
    by_owner <<= np.uint64(32)
    by_owner |= follows
    del first, follows
    by_owner.sort()
    places = by_owner.astype(np.uint32)
    by_owner >>= np.uint64(32)
    edges = np.searchsorted(by_owner, np.arange(n + 1, dtype=np.uint64))
    return owners, start[places], places, edges


def _bucket(shingles: Hashes) -> Hashes:
    return shingles >> np.uint64(64 - _BUCKETS)


def _folded(text: str) -> str:
    text = text[:_MOST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def _is_short(folded: str) -> bool:
    return len(folded) < _SHORT


def _shingled(folded: str) -> Hashes:
    return _shingles(folded, SHINGLE // 2 if _is_short(folded) else SHINGLE)


def _shingles(text: str, width: int) -> Hashes:
    """Hashes of the distinct runs of `width` characters, ascending; of the whole text where it is shorter."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    if codes.size < width:
        codes = np.concatenate([codes, np.zeros(width - codes.size, dtype=np.uint64)])
    out = codes + np.uint64(1)
    step = 1
    while step < width:  # from runs of `step` characters to runs of twice as many
        out = out[:-step] * _POWERS[step] + out[step:]
        step *= 2
    out ^= out >> np.uint64(29)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    out ^= out >> np.uint64(32)
    out.sort()
    new = np.ones(out.size, dtype=bool)
    np.not_equal(out[1:], out[:-1], out=new[1:])
    return out[new]


def _jaccard(left: Hashes, right: Hashes) -> float:
    both = np.intersect1d(left, right, assume_unique=True).size
    either = left.size + right.size - both
    return both / either if either else 1.0
