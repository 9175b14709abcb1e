"""Embeddings that a provider was paid for: collected once into a ledger, read from it ever after.

`evalkit router embed` asks (`embedding_provider`); fitting, scoring and judging only read, so they call nobody.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.providers.call import Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay.ledger import Ledger

__all__ = ["EMBEDDINGS", "MOST_CHARACTERS", "embedded", "embeddings_in", "request_of", "vector_of", "vector_text"]

EMBEDDINGS = "embeddings.sqlite"
"""The ledger of embeddings, beside the study."""
MOST_CHARACTERS = 20_000
"""Characters of a text that are embedded: its beginning."""

_LEDGER: ContextVar[Path | None] = ContextVar("evalkit_embeddings", default=None)


@contextlib.contextmanager
def embeddings_in(path: Path) -> Iterator[None]:
    """Within it embeddings are read from the ledger at `path`."""
    token = _LEDGER.set(path)
    try:
        yield
    finally:
        _LEDGER.reset(token)


def request_of(model: str, dimensions: int | None, text: str) -> Request:
    """The request for the embedding of a text. No output is paid for: `max_tokens` 0 is for the spend cap."""
    params = {"max_tokens": 0} if dimensions is None else {"max_tokens": 0, "dimensions": dimensions}
    return Request(model, ({"role": "user", "content": text[:MOST_CHARACTERS]},), params, endpoint="embeddings")


def vector_text(vector: Sequence[float]) -> str:
    """An embedding as the text of a reply: base64 of little-endian 32-bit floats."""
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def vector_of(text: str | None) -> NDArray[np.float64] | None:
    """The embedding that a reply holds; None where it holds none."""
    try:
        found = np.frombuffer(base64.b64decode(text or "", validate=True), dtype="<f4").astype(np.float64)
    except (ValueError, binascii.Error):
        return None
    return found if found.size and bool(np.isfinite(found).all()) else None


def embedded(model: str, dimensions: int | None, texts: Sequence[str]) -> NDArray[np.float64]:
    """(N, D) the embeddings of texts, each of length 1; all 0 for a blank text, which no provider takes.

    Raises `InputError` where there is no ledger, or a text has no embedding in it.
    """
    path = _LEDGER.get()
    if path is None or not path.is_file():
        where = str(path) if path is not None else EMBEDDINGS
        what = f"there are no embeddings of {model}"
        raise InputError(Fault(what, "collect them: evalkit router embed STUDY", file=where))
    found: dict[str, NDArray[np.float64]] = {}
    missing = 0
    with Ledger.read(path) as ledger:
        for text in dict.fromkeys(text for text in texts if text.strip()):
            attempt = ledger.latest(request_key(request_of(model, dimensions, text)))
            reply = None if attempt is None else attempt.result
            vector = vector_of(reply.text) if isinstance(reply, Reply) else None
            if vector is None:
                missing += 1
            else:
                found[text] = vector
    sizes = {len(vector) for vector in found.values()}
    if missing or len(sizes) > 1:
        what = f"{missing:,} texts have no embedding of {model}"
        if not missing:
            what = f"embeddings of {model} have different lengths: {', '.join(map(str, sorted(sizes)))}"
        raise InputError(Fault(what, "collect them: evalkit router embed STUDY", file=str(path)))
    out = np.zeros((len(texts), sizes.pop() if sizes else dimensions or 1))
    for i, text in enumerate(texts):
        if text in found:
            out[i] = found[text]
    length = np.sqrt((out * out).sum(axis=1, keepdims=True))
    return np.asarray(out / np.where(length > 0, length, 1.0))
