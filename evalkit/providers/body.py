"""The body of a response as it comes, decompressed here and never beyond a limit.

A few kilobytes can unpack to gigabytes, and an endpoint can send without an end: both stop at the limit.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping

import httpx

__all__ = ["ACCEPTED", "MOST_BYTES", "BodyError", "BodyTooLarge", "plain_pieces"]

MOST_BYTES = 64 * 2**20
"""Of one reply, decompressed: 64 MB, a hundred times what a model writes in its longest answer."""

ACCEPTED = "gzip, deflate"
"""What requests say that they take, and what can be decompressed a piece at a time."""

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_PIECE = 2**20


class BodyError(httpx.DecodingError):
    """A body that cannot be decompressed."""


class BodyTooLarge(BodyError):
    """A body beyond the limit; the rest is not read."""


async def plain_pieces(
    pieces: AsyncIterator[bytes], headers: Mapping[str, str], most_bytes: int = MOST_BYTES
) -> AsyncIterator[bytes]:
    """The body in pieces, decompressed as `headers` (lower case) say. Raises `BodyTooLarge`, `BodyError`."""
    coding = headers.get("content-encoding", "").strip().lower() or "identity"
    if coding not in {"identity", "gzip", "x-gzip", "deflate"}:
        raise BodyError(f"the body is compressed in a way that was not asked for ({coding[:40]})")
    unpack = None if coding == "identity" else _Unpacker()
    total = 0
    async for piece in pieces:
        rest: bytes | None = piece
        while rest:
            plain, rest = (rest, None) if unpack is None else unpack.take(rest)
            total += len(plain)
            if total > most_bytes:
                raise BodyTooLarge(f"the body is larger than {most_bytes / 2**20:,.0f} MB")
            if plain:
                yield plain


class _Unpacker:
    """Gzip, of several members too, and deflate with and without its header; a piece of output at a time."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """What comes of `data`, at most a megabyte, and what of `data` is still to be taken."""
        if self._inner.eof:
            self._inner = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            plain = self._inner.decompress(data, _PIECE)
        except zlib.error as error:
            if self._begun:
                raise BodyError(f"the body cannot be decompressed: {error}") from None
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            plain = self._bare(data)
        self._begun = True
        return plain, self._inner.unconsumed_tail or self._inner.unused_data

    def _bare(self, data: bytes) -> bytes:
        try:
            return self._inner.decompress(data, _PIECE)
        except zlib.error as error:
            raise BodyError(f"the body cannot be decompressed: {error}") from None
