"""What is kept of a text to find it again: a hash of the whole, and a sample of the hashes of its shingles.

Letters, digits and signs of arithmetic count; letter case, white space and other punctuation do not. Shingles that
5 % of the items of a set share (an instruction around every prompt) tell nobody apart and are left out, unless a
prompt is little else. Of the rest a sample is kept: the hashes that end in `level` zero bits (Broder 1997, modulo
sketch), with the least level at which at most 128 are left: every shingle of a short text, a fair sample of a long
one. Two samples can be compared at the greater of their levels.

They are hashes and no texts, but who holds one can tell whether a guess at a piece of the text is right.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evalkit.labels.labelset import LabelSet
from evalkit.routers.items import requests_of

__all__ = [
    "LEAST",
    "MOST_HASHES",
    "MOST_LEVEL",
    "Hashes",
    "Sketches",
    "joined",
    "sketch_of",
    "sketches_of",
    "whole_hash",
    "zero_bits",
]

SHINGLE = 6
MOST_HASHES = 128
LEAST = 8
"""Shingles that a prompt needs beside the common ones, to be told by them."""
MOST_LEVEL = 16
_HALF = 10_000  # characters looked at from the beginning and from the end of a longer text
_COMMON, _COUNTED = 0.05, 50  # share of items, and how many items it takes to tell
_LOOKED_AT = 2_000  # among so many a common shingle is found
_BUCKETS = 22  # bits; common shingles are told by counts of buckets, and a few uncommon ones with them
_AT_HAND = 25_000_000  # characters
_KEPT = "*/%-&"  # punctuation to Unicode, arithmetic to a prompt
_ODD = np.uint64(0x9E3779B97F4A7C15)

Hashes = NDArray[np.uint32]


_NONE: Hashes = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Sketches:
    """Sketches of N items. `whole`: hash of the text, None where an item has none. `hashes` ascend within an item;
    those of item i lie from `edges[i]` to `edges[i + 1]`. `group`: hash of the name of its group, None without.
    `common`: the shingles that were left out because so many share them, ascending."""

    ids: tuple[str, ...]
    whole: tuple[str | None, ...]
    group: tuple[str | None, ...]
    level: NDArray[np.int8]
    hashes: Hashes
    edges: NDArray[np.int64]
    common: Hashes

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def owner(self) -> NDArray[np.int64]:
        """The item that each hash belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.edges))


def sketches_of(labels: LabelSet) -> Sketches:
    """The sketches of all items of a label set."""
    requests = requests_of(labels)
    texts = [text if known else None for text, known in zip(requests.text, requests.known, strict=True)]
    whole = [None if text is None else whole_hash(text) for text in texts]
    first: dict[str, int] = {}
    for i, key in enumerate(whole):
        if key is not None:
            first.setdefault(key, i)
    shingles = _shingles_by_place(texts)
    common = _common(shingles, list(first.values()))
    made = []
    for i in range(len(texts)):
        found = shingles(i)
        rest = found[~np.isin(found, common, assume_unique=True)] if common.size else found
        made.append(_sampled(rest if len(rest) >= LEAST else found))
    groups = labels.group if labels.group is not None else (None,) * len(labels)
    group = [None if g is None else _hash(f"group\0{g}") for g in groups]
    return joined(labels.ids, whole, group, made, common)


def _shingles_by_place(texts: Sequence[str | None]) -> Callable[[int], Hashes]:
    """The shingles of text i, all made at once where they fit in little memory."""

    def made(i: int) -> Hashes:
        text = texts[i]
        return _NONE if text is None else _shingles(text)

    if sum(min(len(text or ""), 2 * _HALF) for text in texts) > _AT_HAND:
        return made
    return [made(i) for i in range(len(texts))].__getitem__


def _common(shingles: Callable[[int], Hashes], which: Sequence[int]) -> Hashes:
    """Shingles that 5 % of the texts `which` have, ascending. Each text stands there once: what many people
    ask in the same words is no instruction around a prompt."""
    if len(which) < _COUNTED:
        return _NONE
    counted = np.zeros(1 << _BUCKETS, dtype=np.int32)
    for i in which:
        counted[np.unique(shingles(i) >> np.uint32(32 - _BUCKETS))] += 1
    often = counted >= max(_COMMON * len(which), 2)
    if not often.any():
        return _NONE
    found: set[int] = set()
    for i in which[:_LOOKED_AT]:
        own = shingles(i)
        found.update(own[often[own >> np.uint32(32 - _BUCKETS)]].tolist())
    return np.array(sorted(found), dtype=np.uint32)


def joined(
    ids: Sequence[str],
    whole: Sequence[str | None],
    group: Sequence[str | None],
    made: Iterable[tuple[int, Hashes]],
    common: Hashes = _NONE,
) -> Sketches:
    """Sketches from those of single items."""
    parts = list(made)
    sizes = [len(hashes) for _, hashes in parts]
    return Sketches(
        tuple(ids),
        tuple(whole),
        tuple(group),
        np.array([level for level, _ in parts], dtype=np.int8),
        np.concatenate([_NONE, *(hashes for _, hashes in parts)]),
        np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
        common,
    )


def whole_hash(text: str) -> str:
    """Hash of a text, 32 hex digits: white space, letter case and punctuation at both ends aside."""
    plain = " ".join(_plain(text).split())
    start, end = 0, len(plain)
    while start < end and _is_mark(plain[start]):
        start += 1
    while end > start and _is_mark(plain[end - 1]):
        end -= 1
    return _hash("text\0" + (plain[start:end] or plain))


def sketch_of(text: str) -> tuple[int, Hashes]:
    """(level, hashes that are kept, ascending) of a text by itself."""
    return _sampled(_shingles(text))


def _shingles(text: str) -> Hashes:
    """Hashes of the distinct shingles of a text, ascending."""
    if len(text) > 2 * _HALF:
        text = text[:_HALF] + text[-_HALF:]
    plain = _dropped().sub("", _plain(text))
    codes = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    if codes.size < SHINGLE:
        codes = np.concatenate([codes, np.zeros(SHINGLE - codes.size, dtype=np.uint64)])
    out = np.zeros(codes.size - SHINGLE + 1, dtype=np.uint64)
    for k in range(SHINGLE):
        out = out * _ODD + codes[k : k + out.size] + np.uint64(1)
    out ^= out >> np.uint64(29)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    return np.unique((out >> np.uint64(32)).astype(np.uint32))


def _sampled(found: Hashes) -> tuple[int, Hashes]:
    level = 0
    while len(found) > MOST_HASHES:
        level += 1
        found = found[(found & np.uint32((1 << level) - 1)) == 0]
    return level, found


def zero_bits(hashes: Hashes) -> NDArray[np.int8]:
    """How many zero bits each hash ends in, at most `MOST_LEVEL`."""
    low = hashes & np.uint32((1 << MOST_LEVEL) - 1)
    out = np.full(len(hashes), MOST_LEVEL, dtype=np.int8)
    some = low > 0
    out[some] = np.log2(low[some] & (~low[some] + np.uint32(1))).astype(np.int8)
    return out


def _plain(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _is_mark(ch: str) -> bool:
    return ch not in _KEPT and unicodedata.category(ch)[0] in "PZ"


@lru_cache(maxsize=1)
def _dropped() -> re.Pattern[str]:
    """Characters that say nothing: punctuation, white space, control and format characters."""
    drop = [c for c in map(chr, range(0x10000)) if unicodedata.category(c)[0] in "PZC" and c not in _KEPT]
    runs: list[list[int]] = []
    for c in map(ord, drop):
        if 0xD800 <= c <= 0xF8FF:  # halves of pairs and private characters are kept as they are
            continue
        if runs and runs[-1][1] == c - 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return re.compile("[" + "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in runs) + "]+")
