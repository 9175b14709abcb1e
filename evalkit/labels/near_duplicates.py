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
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHINGLE", "clusters", "similarity"]

SHINGLE = 8
"""Characters a shingle; 4 in texts shorter than 40, so that a short text has shingles at all."""
_SHORT = 40
_MOST = 20_000  # characters looked at: the beginning of a longer text says what it is
_ODD = np.uint64(0x9E3779B97F4A7C15)
_POWERS = {step: np.uint64(pow(int(_ODD), step, 2**64)) for step in (1, 2, 4)}
_COUNTED = 4_000  # texts in which shingles are counted; any order finds all pairs, a good one compares few
_MORE = (
    32  # a part of the shingles by which prefixes are longer than they must be: then fewer pairs are alike in them
)
_BUCKETS = 20  # bits
_SLACK = 1e-9  # what a product of floats may lie above the whole number that it stands for
_REMEMBERED = 2_000  # texts whose shingles are at hand

Hashes = NDArray[np.uint64]
Positions = NDArray[np.int64]
Places = NDArray[np.uint32]


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
    first = np.arange(len(given), dtype=np.int64)
    parts: dict[Hashable, int] = {}
    part = [parts.setdefault(value, len(parts)) for value in within] if within is not None else [0] * len(given)
    exact: dict[bytes, int] = {}
    own: list[int] = []
    for i, text in enumerate(given):
        plain = _folded(text)
        key = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        same = exact.setdefault(key + part[i].to_bytes(8, "little"), i)
        first[i] = same
        if same == i:
            own.append(i)
    sets = _Sets(given, part)
    for i, others in _candidates(sets, own, threshold):
        for other in others:
            if first[other] == other and _jaccard(sets[i], sets[other]) >= threshold:
                first[i] = other
                break
    return first[first]


class _Sets:
    """The shingles of each text, made when they are asked for; a text's kind is what it is compared among."""

    def __init__(self, texts: Sequence[str], part: Sequence[int]) -> None:
        self._texts = texts
        self._part = part
        self._known: dict[int, Hashes] = {}
        self.kinds: dict[int, int] = {}

    def __getitem__(self, i: int) -> Hashes:
        known = self._known.get(i)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[i] = self.made(i)
        return known

    def made(self, i: int) -> Hashes:
        plain = _folded(self._texts[i])
        short = len(plain) < _SHORT
        self.kinds[i] = 2 * self._part[i] + short
        return _shingles(plain, SHINGLE // 2 if short else SHINGLE)

    def salt(self, i: int) -> np.uint64:
        """What keeps the shingles of one kind apart from the same ones of another."""
        return np.uint64(self.kinds[i] * int(_ODD) & 0xFFFFFFFF)


def _candidates(sets: _Sets, own: Sequence[int], threshold: float) -> Iterator[tuple[int, list[int]]]:
    """For each of the texts `own` (ascending) those before it that may be as similar as `threshold`, ascending."""
    if not own:
        return
    size = np.zeros(len(own), dtype=np.int64)
    rest = np.zeros(len(own), dtype=np.int64)  # shingles behind the prefix
    owners, starts, places, edges = _postings(_prefixes(sets, own, threshold, size, rest), len(own))
    part = threshold / (1 + threshold)
    for at in range(len(own)):
        if edges[at] == edges[at + 1]:
            continue
        mine = slice(edges[at], edges[at + 1])
        runs = zip(starts[mine].tolist(), places[mine].tolist(), strict=True)
        who, count = np.unique_counts(np.concatenate([owners[start:end] for start, end in runs]))
        least = np.ceil(part * (size[at] + size[who]) - _SLACK) - np.maximum(rest[at], rest[who])
        enough = count >= least
        if not enough.any():
            continue
        who = who[enough & (who < at)]
        alike = np.minimum(size[at], size[who]) >= threshold * np.maximum(size[at], size[who]) - _SLACK
        found = who[alike].tolist()
        if found:
            yield own[at], [own[k] for k in found if sets.kinds[own[k]] == sets.kinds[own[at]]]


def _prefixes(sets: _Sets, own: Sequence[int], threshold: float, size: Positions, rest: Positions) -> Hashes:
    """The shingles of every prefix, each with its owner in the lower half; fills in `size` and `rest`."""
    seen = np.zeros(1 << _BUCKETS, dtype=np.uint32)
    for i in own[:: max(1, len(own) // _COUNTED)]:
        seen[_bucket(sets.made(i))] += 1
    packed = array("Q")
    for at, i in enumerate(own):
        shingles = sets.made(i)
        n = size[at] = shingles.size
        rest[at] = max(0, math.ceil(threshold * n - _SLACK) - 1 - n // _MORE)
        rank = (seen[_bucket(shingles)].astype(np.uint64) << np.uint64(40)) | (shingles >> np.uint64(24))
        rank.sort()
        prefix = (rank[: n - rest[at]] ^ sets.salt(i)) << np.uint64(32)
        packed.frombytes((prefix | np.uint64(at)).tobytes())
    return np.frombuffer(packed, dtype=np.uint64)


def _postings(packed: Hashes, n: int) -> tuple[Places, Places, Places, list[int]]:
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
    edges = np.searchsorted(by_owner, np.arange(n + 1, dtype=np.uint64)).tolist()
    return owners, start[places], places, edges


def _bucket(shingles: Hashes) -> Hashes:
    return shingles >> np.uint64(64 - _BUCKETS)


def _folded(text: str) -> str:
    text = text[:_MOST]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


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
