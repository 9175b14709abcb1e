"""Fit a router on labels: one model, or one a fold where the labels are those it will be judged on.

What is learned: the required tier of an item from its text and category. An unsolvable item needs no stronger
tier, as design counts it, so it is trained on as one that the cheapest tier does for, or left out. Items count
by their weight. A fold holds no group, and no prompt nearly the same as one, that another fold holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.labels.labelset import UNSOLVABLE, LabelSet
from evalkit.routers.folds import dealt
from evalkit.routers.items import Requests, requests_of
from evalkit.routers.leaks import alike, find_leaks
from evalkit.routers.options import EMBEDDED, WORDLLAMA, FitOptions
from evalkit.routers.sketches import Sketches, sketches_of
from evalkit.tabular.fingerprint import canonical_json
from evalkit.tabular.names import quoted

__all__ = ["DECIMALS", "FittedRouter", "fit_router", "training_sha256", "versions_of"]

Floats = NDArray[np.float64]

DECIMALS = 9
"""Scores are rounded to so many: in which batch a request was scored shows only behind them."""
_FEW = 10


@dataclass(frozen=True)
class FittedRouter:
    """A fitted router.

    models: one, or one a fold, of which the mean is deployed. training: sketches of the items it was fitted on;
    fold: (n,) the fold of each, where cross-fitted. counts: items by required tier. training_sha256: of ids,
    texts, tiers, weights and groups. versions: of the packages it was made with. embedding_sha256: of the
    weights behind its embeddings.
    """

    options: FitOptions
    tiers: tuple[str, ...]
    trained_on: Literal["other_items", "cross_fitted"]
    seed: int
    models: tuple[Any, ...]
    training: Sketches
    counts: Mapping[str, int]
    training_sha256: str
    versions: Mapping[str, str]
    embedding_sha256: str | None = None
    fold: NDArray[np.int16] | None = None
    notices: tuple[str, ...] = ()

    def score(self, labels: LabelSet) -> tuple[Floats, NDArray[np.int16] | None]:
        """(N,) the expected share of tiers that are not enough, and which fold's model gave each score.

        An item of the training labels, or nearly one, is scored by the model of its fold, which did not see it;
        any other by the mean of all (fold -1). Raises `InputError` for items that it cannot score.
        """
        from evalkit.routers.pipelines import inputs_of

        requests = requests_of(labels)
        _refuse_empty(requests, labels, self.options)
        inputs = inputs_of(requests)
        tiers = len(self.tiers)
        if self.fold is None:
            with _one_thread():
                return _sound(_share(self.models[0], inputs, tiers), labels), None
        place = {name: i for i, name in enumerate(self.training.ids)}
        fold = np.full(len(labels), -1, dtype=np.int16)
        row = {name: j for j, name in enumerate(labels.ids)}
        for leak in find_leaks(self.training, sketches_of(labels)):
            fold[row[leak.id]] = self.fold[place[leak.training]]
        score = np.zeros(len(labels))
        fresh = fold < 0
        for f, model in enumerate(self.models):
            mine = fold == f
            asked = mine | fresh
            if asked.any():
                with _one_thread():
                    found = _share(model, inputs[asked], tiers)
                score[mine] = found[mine[asked]]
                score[fresh] += found[fresh[asked]] / len(self.models)
        return _sound(score, labels), fold


def fit_router(
    labels: LabelSet,
    options: FitOptions,
    *,
    seed: int = 0,
    cross_fitted: bool = False,
    estimator: Any = None,
) -> FittedRouter:
    """Fit a router on labels with required tiers.

    `estimator`: any classifier of scikit-learn with `predict_proba` in place of the one that the options name;
    it is given X (N, 2) of objects, text and category, y (N,) the places of the required tiers, and the weights
    as `sample_weight` where it takes them. The same labels, options and seed give the same router.

    Raises `InputError`: no required tier, no text, a single class of items, too few groups for the folds.
    """
    from sklearn.base import clone

    from evalkit.routers.pipelines import inputs_of, pipeline_of

    requests = requests_of(labels)
    _refuse_unlabelled(labels)
    _refuse_empty(requests, labels, options)
    training = sketches_of(labels)
    unit = alike(training)
    tiers = len(labels.tiers)
    unsolvable = labels.required == tiers
    used = ~unsolvable if options.unsolvable == "leave_out" else np.ones(len(labels), dtype=np.bool_)
    y = np.where(unsolvable, 0, labels.required).astype(np.int64)
    used &= labels.weight > 0
    notices = _refuse_one_class(labels, y, used)
    inputs = inputs_of(requests)
    stratum = y * max(len(labels.risk_classes), 1) + np.maximum(labels.risk, 0)
    fold = None
    if cross_fitted:
        groups = len(np.unique(unit[used]))
        if groups < options.folds:
            what = f"{groups} groups of items cannot be dealt to {options.folds} folds"
            raise InputError(Fault(what, "label more, or write fewer folds", file=labels.file))
        fold = dealt(unit, stratum, seed=seed, folds=options.folds)
    models = []
    for f in range(options.folds if cross_fitted else 1):
        mine = used if fold is None else used & (fold != f)
        if len(np.unique(y[mine])) < 2:
            what = (
                f"all items outside fold {f} require {labels.tiers[int(y[mine][0])] if mine.any() else 'nothing'}"
            )
            raise InputError(Fault(what, "label more needs, or write fewer folds", file=labels.file))
        model = clone(estimator) if estimator is not None else pipeline_of(options, tiers, seed)
        weight = labels.weight[mine] / labels.weight[mine].mean()
        with _one_thread(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            _fit(model, inputs[mine], y[mine], weight, unit[mine])
        if any("converge" in str(one.message) for one in told):
            notices.append("logistic regression did not converge: write a smaller regularisation")
        models.append(model)
    counts = {name: int((labels.required == k).sum()) for k, name in enumerate([*labels.tiers, UNSOLVABLE])}
    embedded = None
    if EMBEDDED in options.features and options.embedding == WORDLLAMA and estimator is None:
        from evalkit.routers.embeddings import wordllama_weights_sha256

        embedded = wordllama_weights_sha256()
    return FittedRouter(
        options, labels.tiers, "cross_fitted" if cross_fitted else "other_items", seed, tuple(models), training,
        counts, training_sha256(labels, training), versions_of(embedded is not None), embedded, fold,
        tuple(dict.fromkeys(notices)),
    )  # fmt: skip


def training_sha256(labels: LabelSet, sketches: Sketches) -> str:
    """SHA-256 of what a router learns from: id, text, group, required tier, weight, category; in any order."""
    mean = labels.weight.sum() / max(len(labels), 1)
    category = labels.category if labels.category is not None else (None,) * len(labels)
    weight = (labels.weight / mean).round(DECIMALS).tolist()
    rows = [
        [name, sketches.whole[i], sketches.group[i], labels.required_name(i), category[i], weight[i]]
        for i, name in enumerate(labels.ids)
    ]
    return hashlib.sha256(canonical_json(["evalkit.training/1", sorted(rows, key=str)]).encode()).hexdigest()


def versions_of(embedded: bool) -> dict[str, str]:
    """The versions of Python and of the packages that a fitted router depends on."""
    import evalkit

    found = {"python": platform.python_version(), "evalkit": evalkit.__version__}
    for name in ("numpy", "scipy", "scikit-learn", "skops", *(("wordllama",) if embedded else ())):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _fit(model: Any, X: Any, y: Any, weight: Floats, groups: NDArray[np.int64]) -> None:
    """Fit with weights and groups, where the classifier takes them; in a pipeline its last step is asked."""
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import has_fit_parameter

    last, prefix = (model.steps[-1][1], f"{model.steps[-1][0]}__") if isinstance(model, Pipeline) else (model, "")
    more = {}
    for name, value in (("sample_weight", weight), ("groups", groups)):
        if has_fit_parameter(last, name):
            more[prefix + name] = value
    model.fit(X, y, **more)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums in one order, on every machine; and small matrices are slower with more threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def _share(model: Any, inputs: Any, tiers: int) -> Floats:
    """`expected_share`; `InputError` where the model breaks, as one read from a file may that nobody fitted."""
    from evalkit.routers.estimators import expected_share

    try:
        found = expected_share(model, inputs, tiers)
        if found.shape != (len(inputs),):
            raise ValueError(f"{found.shape} scores for {len(inputs)} items")
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 (whatever a file made of it)
        what = f"the fitted model cannot score: {type(error).__name__}: {visible(error)}"
        raise InputError(Fault(what, "fit the router again")) from None
    return found


def _sound(score: Floats, labels: LabelSet) -> Floats:
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        what = (
            f"the router gives {bad.size:,} items no finite score; the first is {quoted(labels.ids[int(bad[0])])}"
        )
        raise InputError(Fault(what, "fit it again"))
    return np.round(score, DECIMALS) + 0.0


def _refuse_unlabelled(labels: LabelSet) -> None:
    lack = np.flatnonzero(labels.required < 0)
    if lack.size:
        named = ", ".join(quoted(labels.ids[int(i)]) for i in lack[:10])
        what = f"{lack.size:,} of {len(labels):,} items have no required tier: {named}"
        raise InputError(Fault(what, "label them, or leave them out", file=labels.file, field="required_tier"))


def _refuse_empty(requests: Requests, labels: LabelSet, options: FitOptions) -> None:
    """Items without what the router goes by."""
    if options.estimator == "lookup":
        if not any(requests.category):
            what = "no item has a category, and a look-up goes by nothing else"
            raise InputError(Fault(what, "give the labels a column category", file=labels.file, field="category"))
        return
    lack = [name for name, known in zip(labels.ids, requests.known, strict=True) if not known]
    if lack:
        what = f"{len(lack):,} of {len(labels):,} items have neither prompt nor messages: "
        named = ", ".join(quoted(name) for name in lack[:10])
        raise InputError(Fault(what + named, "give their text", file=labels.file, field="prompt"))


def _refuse_one_class(labels: LabelSet, y: NDArray[np.int64], used: NDArray[np.bool_]) -> list[str]:
    """Nothing can be learned from items that all require the same; little from a few that differ."""
    count = np.bincount(y[used], minlength=len(labels.tiers))
    seen = np.flatnonzero(count)
    if len(seen) < 2:
        only = labels.tiers[int(seen[0])] if len(seen) else None
        what = (
            "there is no item to learn from"
            if only is None
            else f"all {count.sum():,} items require {quoted(only)}"
        )
        fix = f"add items that require {'another tier' if only is None or seen[0] else 'a stronger tier'}"
        raise InputError(Fault(what, fix, file=labels.file, field="required_tier"))
    needs, rest = int(count[1:].sum()), int(count[0])
    if min(needs, rest) < _FEW:
        return [f"{labels.file}: {needs:,} of {needs + rest:,} training items are needs: little to learn from"]
    return []
