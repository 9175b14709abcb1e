"""Which requests the ledger may know: an answer without a look into the file, for nearly all that it does not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["Seen"]

_BITS = 1 << 23
_MARKS = 5


class Seen:
    """A Bloom filter of 1 MB: what was added is always found, what was not is found by mistake now and then.

    Beside a million keys 1 in 50 is found by mistake, beside a hundred thousand 1 in a million. A mistake costs a
    look into the ledger and nothing else. Its size is the same for every run.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._bits = bytearray(_BITS // 8)
        for key in keys:
            self.add(key)

    def add(self, key: str) -> None:
        """Remember a key."""
        for place in _places(key):
            self._bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, key: str) -> bool:
        return all(self._bits[place >> 3] >> (place & 7) & 1 for place in _places(key))


def _places(key: str) -> list[int]:
    digest = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=16).digest())
    return [(digest >> (23 * mark)) % _BITS for mark in range(_MARKS)]
