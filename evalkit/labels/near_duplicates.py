"""Texts that are nearly the same: MinHash signatures, candidates by bands, the last word to the shingles.

Two texts are near duplicates when the Jaccard similarity of their sets of character shingles reaches a
threshold (Broder 1997). Candidates share a band of their signatures; each is compared in full with the first text
of a cluster, so that a cluster never drifts away from what it is about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHINGLE", "clusters", "similarity"]

SHINGLE = 8
"""Characters a shingle; 4 in texts shorter than 40, so that a short text has shingles at all."""
_SHORT = 40
_BANDS, _ROWS = 6, 3
_MOST = 20_000  # characters looked at: the beginning of a longer text says what it is
_BLANK = re.compile(r"\s+")
_ODD = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint64]


def similarity(left: str, right: str) -> float:
    """Jaccard similarity of the shingles of two texts, 0 to 1; letter case and white space do not count."""
    width = SHINGLE if min(len(left), len(right)) >= _SHORT else SHINGLE // 2
    return _jaccard(_shingles(_folded(left), width), _shingles(_folded(right), width))


def clusters(texts: Iterable[str], threshold: float = 0.85) -> NDArray[np.int64]:
    """(N,) for each text the position of the first one that it nearly repeats; its own where it repeats none."""
    first: list[int] = []
    exact: dict[str, int] = {}
    bands: dict[tuple[int, bytes], list[int]] = {}
    kept: dict[int, tuple[int, Hashes]] = {}
    a, b = _permutations()
    for i, text in enumerate(texts):
        plain = _folded(text)
        same = exact.setdefault(plain, i)
        if same != i:
            first.append(first[same])
            continue
        width = SHINGLE if len(plain) >= _SHORT else SHINGLE // 2
        shingles = _shingles(plain, width)
        signature = ((shingles[:, None] * a + b) >> np.uint64(32)).min(axis=0)
        keys = [(width * _BANDS + k, signature[k * _ROWS : (k + 1) * _ROWS].tobytes()) for k in range(_BANDS)]
        seen: set[int] = set()
        found = i
        for key in keys:
            for other in bands.get(key, ()):
                if other not in seen:
                    seen.add(other)
                    if _jaccard(shingles, kept[other][1]) >= threshold:
                        found = min(found, other)
        first.append(found)
        if found == i:
            kept[i] = (width, shingles)
            for key in keys:
                bands.setdefault(key, []).append(i)
    return np.array(first, dtype=np.int64)


def _folded(text: str) -> str:
    return _BLANK.sub(" ", unicodedata.normalize("NFKC", text[:_MOST]).casefold()).strip()


def _shingles(text: str, width: int) -> Hashes:
    """Hashes of the distinct runs of `width` characters, ascending; of the whole text where it is shorter."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    if codes.size < width:
        codes = np.concatenate([codes, np.zeros(width - codes.size, dtype=np.uint64)])
    with np.errstate(over="ignore"):
        out = np.zeros(codes.size - width + 1, dtype=np.uint64)
        for k in range(width):
            out = out * _ODD + codes[k : k + out.size] + np.uint64(1)
        out ^= out >> np.uint64(29)
        out *= np.uint64(0xBF58476D1CE4E5B9)
        out ^= out >> np.uint64(32)
    return np.unique(out)


def _permutations() -> tuple[Hashes, Hashes]:
    """Fixed, so that the same texts have the same clusters everywhere."""
    rng = np.random.default_rng(20261201)
    a = rng.integers(1, 2**63, size=_BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return a, rng.integers(0, 2**63, size=_BANDS * _ROWS, dtype=np.uint64)


def _jaccard(left: Hashes, right: Hashes) -> float:
    both = np.intersect1d(left, right, assume_unique=True).size
    either = left.size + right.size - both
    return both / either if either else 1.0
