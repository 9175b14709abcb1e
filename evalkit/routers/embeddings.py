"""Embeddings of texts without a network: WordLlama, whose weights are in its package, or stored ones.

Imported where a router is fitted or run, not before: it needs scikit-learn.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from evalkit.errors import Fault, InputError
from evalkit.routers.stored_embeddings import MOST_CHARACTERS, embedded

__all__ = ["StoredEmbedding", "WordLlamaEmbedding", "wordllama_weights_sha256"]

_BATCH = 64


class WordLlamaEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """(N, dimensions): the mean of the token vectors of each text, of length 1; all 0 for a text without tokens.

    Nothing is learned and nothing but the parameters is kept with a model: the weights are those of the installed
    package, whose hash is recorded beside the model.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """X (N,) texts. Raises `InputError` where the package is missing."""
        model = _model(self.dimensions)
        texts = [str(text)[:MOST_CHARACTERS] for text in X]
        out = np.zeros((len(texts), self.dimensions))
        # Not model.embed: it pads a batch to its longest text, in memory too, and so its last digits depend on it.
        for start in range(0, len(texts), _BATCH):
            for i, found in enumerate(model.tokenize(texts[start : start + _BATCH]), start):
                ids = np.array(found.ids, dtype=np.int64)[np.array(found.attention_mask, dtype=np.bool_)]
                if ids.size:
                    out[i] = model.embedding[np.minimum(ids, len(model.embedding) - 1)].mean(
                        axis=0, dtype=np.float64
                    )
        length = np.sqrt((out * out).sum(axis=1, keepdims=True))
        return np.asarray(out / np.where(length > 0, length, 1.0))


class StoredEmbedding(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """(N, D): the embeddings of a provider's model, as they were collected into the ledger that is at hand
    (`stored_embeddings.embeddings_in`). Nothing but the parameters is kept with a model."""

    def __init__(self, model: str = "", dimensions: int | None = None) -> None:
        self.model = model
        self.dimensions = dimensions

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """X (N,) texts. Raises `InputError` where one has no embedding."""
        return embedded(self.model, self.dimensions, [str(text) for text in X])


@lru_cache(maxsize=1)
def _folder() -> Path:
    try:
        import wordllama
    except ImportError:
        what = "kind: semantic needs the package wordllama, which is not installed"
        raise InputError(Fault(what, 'install it: pip install "evalkit[semantic]"')) from None
    return Path(str(wordllama.__file__)).parent


@lru_cache(maxsize=3)
def _model(dimensions: int) -> Any:
    folder = _folder()
    from wordllama import WordLlama

    # Without the two settings it would look in the home folder, and ask the network.
    trunc = None if dimensions == 256 else dimensions
    return WordLlama.load(cache_dir=folder, dim=256, trunc_dim=trunc, disable_download=True)


@lru_cache(maxsize=1)
def wordllama_weights_sha256() -> str:
    """SHA-256 of the weights and the tokenizer of the installed package, 64 hex digits."""
    mark = hashlib.sha256()
    for part in ("weights", "tokenizers"):
        for path in sorted((_folder() / part).iterdir()):
            if path.suffix in {".safetensors", ".json"}:
                mark.update(path.name.encode() + b"\0" + path.read_bytes())
    return mark.hexdigest()
