"""The scikit-learn pipelines that evalkit fits as routers. Imported where one is fitted, not before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evalkit.routers.embeddings import StoredEmbedding, WordLlamaEmbedding
from evalkit.routers.estimators import (
    CategoryLookup,
    GroupCalibrated,
    NearestNeighbours,
    OrdinalTiers,
    TextLength,
)
from evalkit.routers.items import Requests
from evalkit.routers.options import EMBEDDED, WORDLLAMA, FitOptions

__all__ = ["inputs_of", "pipeline_of"]

MOST_CHARACTERS = 20_000
"""Characters of a text that features are taken from: its beginning. The length is that of the beginning too."""
MOST_OF_A_CATEGORY = 200
"""Characters of a category that count: arrays of text are as wide as their longest."""
_BUCKETS = 2**15


def inputs_of(requests: Requests) -> NDArray[np.object_]:
    """(N, 2) what pipelines see of requests: the text and the category, "" where there is none."""
    out = np.empty((len(requests), 2), dtype=object)
    for i, (text, category) in enumerate(zip(requests.text, requests.category, strict=True)):
        out[i] = text[:MOST_CHARACTERS], (category or "")[:MOST_OF_A_CATEGORY]
    return out


def pipeline_of(options: FitOptions, tiers: int, seed: int) -> Pipeline:
    """An unfitted classifier of the required tier; its last step is called `tiers`.

    Words and characters are hashed, so that a fitted model holds none of them.
    """
    if options.estimator == "lookup":
        return Pipeline([("tiers", CategoryLookup(tiers, options.smoothing))])
    parts = ColumnTransformer([(name, *_PARTS[name](options)) for name in options.features])
    if options.estimator == "neighbours":
        last: Any = NearestNeighbours(tiers, options.neighbours, options.smoothing)
    else:
        line = LogisticRegression(C=options.regularisation, max_iter=1000, random_state=seed)
        last = OrdinalTiers(GroupCalibrated(line, options.folds, seed), tiers)
    return Pipeline([("features", parts), ("tiers", last)])


def _hashed(analyzer: str, least: int, most: int) -> Pipeline:
    counts = HashingVectorizer(
        analyzer=analyzer, ngram_range=(least, most), n_features=_BUCKETS, alternate_sign=False, norm=None
    )
    weights = TfidfTransformer(sublinear_tf=True)
    return Pipeline([("counts", counts), ("weights", weights), ("seen", VarianceThreshold())])


def _embedding(options: FitOptions) -> Any:
    if options.embedding == WORDLLAMA:
        return WordLlamaEmbedding(options.dimensions or 256)
    return StoredEmbedding(options.embedding, options.dimensions)


_PARTS: dict[str, Any] = {
    "words": lambda options: (_hashed("word", 1, 2), 0),
    "characters": lambda options: (_hashed("char_wb", 3, 5), 0),
    "category": lambda options: (OneHotEncoder(handle_unknown="ignore"), [1]),
    "length": lambda options: (Pipeline([("measures", TextLength()), ("scale", StandardScaler())]), 0),
    EMBEDDED: lambda options: (_embedding(options), 0),
}
