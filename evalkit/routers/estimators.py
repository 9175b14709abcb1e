"""Estimators in the manner of scikit-learn: from requests to the probability that each tier is the required one.

Input of all: X (N, 2) of objects, the text and the category ("" where there is none). Classes: 0 .. tiers - 1, the
place of the required tier. A router's score is the expected share of tiers that are not enough (`expected_share`),
which for two tiers is the probability of a need.

They import scikit-learn, so this module is imported where a router is fitted or run, not before.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression

from evalkit.routers.folds import dealt

__all__ = [
    "CategoryLookup",
    "GroupCalibrated",
    "NearestNeighbours",
    "OrdinalTiers",
    "TextLength",
    "expected_share",
]

Floats = NDArray[np.float64]

_LEAST_SLOPE = 1e-3


def expected_share(model: Any, X: Any, tiers: int) -> Floats:
    """(N,) sum over tiers of P(tier) * place / (tiers - 1), for a classifier whose classes are places of tiers."""
    chance = np.asarray(model.predict_proba(X), dtype=np.float64)
    place = np.asarray(model.classes_, dtype=np.float64)
    return np.asarray(chance @ (place / max(tiers - 1, 1)))


class TextLength(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """(N, 4): log of characters, of words, of lines, and the share of digits."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> Floats:
        """X (N,) texts."""
        rows = [
            (len(t), len(t.split()), t.count("\n"), sum(map(t.count, "0123456789")) / max(len(t), 1)) for t in X
        ]
        out = np.array(rows, dtype=np.float64).reshape(-1, 4)
        out[:, :3] = np.log1p(out[:, :3])
        return out


class GroupCalibrated(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes whose probabilities are calibrated on items it was not fitted on.

    Platt scaling (Platt 1999): a logistic regression of the class on the log-odds that models fitted without an
    item's fold give it, folds by group; the classifier itself is fitted on all items. The slope is kept positive,
    so that the calibration changes no order.
    """

    def __init__(self, estimator: Any = None, folds: int = 5, seed: int = 0) -> None:
        self.estimator = estimator
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """X (N, F), y (N,) of 0 and 1, sample_weight (N,), groups (N,) integers."""
        y = np.asarray(y, dtype=np.int64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        unit = np.arange(len(y)) if groups is None else np.asarray(groups)
        base = LogisticRegression() if self.estimator is None else self.estimator
        self.classes_ = np.array([0, 1])
        self.estimator_ = clone(base).fit(X, y, sample_weight=weight)
        self.slope_, self.intercept_ = 1.0, 0.0
        fold = dealt(unit, y, seed=self.seed, folds=self.folds)
        odds = np.full(len(y), np.nan)
        for f in range(self.folds):
            rest, held = fold != f, fold == f
            if held.any() and len(np.unique(y[rest & (weight > 0)])) == 2:
                odds[held] = (
                    clone(base).fit(X[rest], y[rest], sample_weight=weight[rest]).decision_function(X[held])
                )
        seen = ~np.isnan(odds) & (weight > 0)
        if len(np.unique(y[seen])) == 2:
            # All but without a penalty, so that only separable classes are held back.
            line = LogisticRegression(C=1e3).fit(odds[seen, None], y[seen], sample_weight=weight[seen])
            self.slope_ = max(float(line.coef_[0, 0]), _LEAST_SLOPE)
            self.intercept_ = float(line.intercept_[0])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(N, 2)."""
        odds = self.slope_ * self.estimator_.decision_function(X) + self.intercept_
        high = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return np.column_stack([1.0 - high, high])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(N,) the likelier class."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


class OrdinalTiers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Ordered classes by one classifier for each boundary between two tiers (Frank and Hall 2001).

    P(above tier k) of each boundary; where they cross, the least so far counts. A boundary that all items lie on
    one side of has a constant probability. For two tiers it is the one classifier.
    """

    def __init__(self, estimator: Any = None, tiers: int = 2) -> None:
        self.estimator = estimator
        self.tiers = tiers

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """X (N, F), y (N,) places of tiers, sample_weight (N,), groups (N,) for estimators that take them."""
        y = np.asarray(y, dtype=np.int64)
        base = GroupCalibrated() if self.estimator is None else self.estimator
        self.tiers_ = self.tiers
        self.classes_ = np.arange(self.tiers)
        self.estimators_: list[Any] = []
        self.constant_ = np.full(self.tiers - 1, np.nan)
        for k in range(self.tiers - 1):
            above = (y > k).astype(np.int64)
            if len(np.unique(above if sample_weight is None else above[np.asarray(sample_weight) > 0])) == 2:
                more = {} if groups is None else {"groups": groups}
                self.estimators_.append(clone(base).fit(X, above, sample_weight=sample_weight, **more))
            else:
                self.estimators_.append(None)
                self.constant_[k] = float(above.mean() > 0.5)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(N, tiers)."""
        above = np.column_stack([
            np.full(X.shape[0], self.constant_[k]) if one is None else one.predict_proba(X)[:, 1]
            for k, one in enumerate(self.estimators_)
        ])  # fmt: skip
        above = np.minimum.accumulate(above, axis=1)
        edges = np.column_stack([np.ones(len(above)), above, np.zeros(len(above))])
        return np.asarray(edges[:, :-1] - edges[:, 1:])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(N,) the likeliest tier."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


class CategoryLookup(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The shares of required tiers in a request's category, mixed with `smoothing` items of the overall shares.

    X (N, 2), of which the second column is read. A category that was not seen, and none, have the overall shares.
    """

    def __init__(self, tiers: int = 2, smoothing: float = 10.0) -> None:
        self.tiers = tiers
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (N,) places of tiers, sample_weight (N,)."""
        y = np.asarray(y, dtype=np.int64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.tiers_ = self.tiers
        self.classes_ = np.arange(self.tiers)
        overall = np.bincount(y, weights=weight, minlength=self.tiers)
        self.overall_ = overall / overall.sum()
        names, place = np.unique(np.asarray(X[:, 1], dtype=str), return_inverse=True)
        table = np.zeros((len(names), self.tiers))
        np.add.at(table, (place, y), weight)
        total = table.sum(axis=1, keepdims=True) + self.smoothing
        mixed = (table + self.smoothing * self.overall_) / np.where(total > 0, total, 1.0)
        mixed[(total[:, 0] <= 0) | (names == "")] = self.overall_
        self.categories_, self.shares_ = names, mixed
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(N, tiers)."""
        known = {str(name): self.shares_[i] for i, name in enumerate(self.categories_)}
        return np.array([known.get(str(name), self.overall_) for name in X[:, 1]]).reshape(-1, self.tiers)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(N,) the likeliest tier."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


_UNIT = 2**14


def _whole(X: Any) -> NDArray[np.int16]:
    """Numbers from -1 to 1 in steps of 1 / 16384."""
    return np.asarray(np.round(np.clip(X, -1, 1) * _UNIT), dtype=np.int16)


class NearestNeighbours(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The shares of required tiers among the nearest training items, mixed with the overall shares.

    Each of the `neighbours` nearest by cosine counts with its weight times its similarity, if that is above 0; the
    overall shares count as `smoothing` items. X (N, D) rows of length 1, or 0 for a text without words.
    """

    def __init__(self, tiers: int = 2, neighbours: int = 50, smoothing: float = 10.0) -> None:
        self.tiers = tiers
        self.neighbours = neighbours
        self.smoothing = smoothing

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """y (N,) places of tiers, sample_weight (N,)."""
        y = np.asarray(y, dtype=np.int64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.tiers_ = self.tiers
        self.classes_ = np.arange(self.tiers)
        self.points_ = _whole(X)
        self.y_, self.weight_ = y, weight / weight.mean()
        overall = np.bincount(y, weights=weight, minlength=self.tiers)
        self.overall_ = overall / overall.sum()
        return self

    def predict_proba(self, X: Any) -> Floats:
        """(N, tiers)."""
        k = min(self.neighbours, len(self.points_))
        points = self.points_.astype(np.float64)
        out = np.zeros((len(X), self.tiers))
        for start in range(0, len(X), 1024):
            part = slice(start, start + 1024)
            # Sums of whole numbers are exact: the order they are added in, another batch, changes no neighbour.
            near = _whole(X[part]).astype(np.float64) @ points.T / _UNIT**2
            nearest = np.argsort(-near, axis=1, kind="stable")[:, :k]
            count = np.maximum(np.take_along_axis(near, nearest, axis=1), 0.0) * self.weight_[nearest]
            for tier in range(self.tiers):
                out[part, tier] = (count * (self.y_[nearest] == tier)).sum(axis=1)
        out += self.smoothing * self.overall_
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.where(total > 0, total, 1.0), self.overall_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(N,) the likeliest tier."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))
