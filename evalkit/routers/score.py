"""The scores of a router that evalkit runs itself: computed, checked, and told how they came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.routers.fit import FittedRouter, fit_router, training_sha256
from evalkit.routers.items import requests_of
from evalkit.routers.leaks import Leak, find_leaks
from evalkit.routers.options import fit_options
from evalkit.routers.python_function import call_router, source_sha256
from evalkit.routers.rules import read_rules
from evalkit.routers.sketches import sketches_of
from evalkit.routers.stored_embeddings import EMBEDDINGS, embeddings_in
from evalkit.study.models import Router, RoutingStudy, Source, TrainedOn
from evalkit.tabular.fingerprint import Fingerprint, order_of
from evalkit.tabular.names import quoted

__all__ = ["Leak", "RouterScores", "leaks_of", "read_train", "score_items", "scores_fingerprint"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RouterScores:
    """The scores of N judged items, in the order of the labels and the direction of the router.

    score: (N,) finite. trained_on: what the router truly is, not what was said of it. fingerprint: of ids and
    scores, as `outcomes.scores.read_scores` would give it for a file of them. facts: for the provenance (kind,
    hashes, seed, folds, versions). leaks: judged items that stand in the training labels too. fold: (N,) where
    cross-fitted, which fold's model scored the item (the model that did not see it). trained_ids: of the items
    that a fitted model was trained on.
    """

    score: Floats
    trained_on: TrainedOn
    fingerprint: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[Leak, ...] = ()
    notices: tuple[str, ...] = ()
    fold: NDArray[np.int16] | None = None
    trained_ids: tuple[str, ...] = ()


def score_items(study: RoutingStudy, router: Router, labels: LabelSet) -> RouterScores:
    """Run the router on every item, and say which items leaked; what is to be done about those is the caller's.

    Raises `InputError`: a router that cannot be read or run, scores that are no scores, and a router that was
    trained on the very items it is judged on.
    """
    spec = router.spec
    if spec is None:
        raise _fault(study, router, "kind", "is missing, so evalkit cannot run the router", "write kind:")
    if spec.kind == "rules":
        return _by_rules(study, router, labels)
    if spec.kind == "python":
        return _by_function(study, router, labels)
    with embeddings_in(study.base / EMBEDDINGS):
        return _by_model(study, router, labels)


def leaks_of(router: Router, labels: LabelSet, study: RoutingStudy) -> tuple[Leak, ...]:
    """Judged items that stand in the labels the router names under `train`; empty where it names none."""
    if router.train is None:
        return ()
    return find_leaks(sketches_of(read_train(router.train, study)), sketches_of(labels))


def read_train(source: Source, study: RoutingStudy) -> LabelSet:
    """The labels a router was or is to be trained on. They need no risk class. Raises `InputError`."""
    return read_labels(
        source.address,
        tiers=study.tier_names,
        risk_classes=(),
        columns=dict(source.columns) or None,
        encoding=source.encoding,
        require_required_tier=False,
    )


def scores_fingerprint(ids: tuple[str, ...], score: Floats) -> str:
    """SHA-256 over ids and scores, whatever their order: that of `outcomes.scores` for the same content."""
    import pyarrow as pa

    array = pa.array(list(ids), pa.large_string())
    mark = Fingerprint("scores", order_of(array))
    mark.texts("id", array)
    mark.numbers("score", score)
    return mark.hexdigest()


def _fault(study: RoutingStudy, router: Router, key: str, what: str, fix: str) -> InputError:
    return InputError(Fault(what, fix, file=str(study.path), field=f"{_section(study, router)}.{key}"))


def _section(study: RoutingStudy, router: Router) -> str:
    places = [i for i, one in enumerate(study.routers) if one.name == router.name]
    return f"routers[{places[0]}]" if places else "router"


def _by_rules(study: RoutingStudy, router: Router, labels: LabelSet) -> RouterScores:
    spec = router.spec
    assert spec is not None
    if spec.path is None:
        raise _fault(study, router, "rules", "names no file", "write rules: rules.yaml")
    rules = read_rules(spec.path)
    requests = requests_of(labels)
    lack = [name for name, known in zip(labels.ids, requests.known, strict=True) if not known]
    if lack and rules.reads_text:
        what = f"{len(lack):,} items have neither prompt nor messages, which the rules read: {_some(lack)}"
        raise InputError(Fault(what, "give their text", file=labels.file, field="prompt"))
    place = rules.first(requests)
    score = rules.score(requests, place)
    met = np.bincount(place, minlength=len(rules.rules) + 1)
    names = [rule.name or f"rules[{i}]" for i, rule in enumerate(rules.rules)]
    never = [name for name, count in zip(names, met, strict=False) if not count]
    notices = [f"{rules.file}: no item meets {_some(never)}"] if never else []
    counted = [[name, int(count)] for name, count in zip([*names, "otherwise"], met, strict=True)]
    facts = {"kind": "rules", "file": spec.written, "sha256": rules.fingerprint, "met": counted}
    trained_on = router.trained_on or "untrained"
    return _scores(labels, score, trained_on, facts, leaks_of(router, labels, study), notices)


def _by_function(study: RoutingStudy, router: Router, labels: LabelSet) -> RouterScores:
    spec = router.spec
    assert spec is not None
    if spec.function is None or router.trained_on is None:
        key = "function" if spec.function is None else "trained_on"
        raise _fault(study, router, key, "is required", 'write function: "module:function" and trained_on:')
    score = call_router(
        spec.function, study.base, requests_of(labels), labels.ids,
        file=str(study.path), field=f"{_section(study, router)}.function",
    )  # fmt: skip
    facts = {"kind": "python", "function": spec.function, "sha256": source_sha256(spec.function, study.base)}
    return _scores(labels, score, router.trained_on, facts, leaks_of(router, labels, study))


def _by_model(study: RoutingStudy, router: Router, labels: LabelSet) -> RouterScores:
    from evalkit.routers.folder import read_router

    spec = router.spec
    assert spec is not None
    kept: dict[str, Any] = {}
    if spec.path is not None:
        stored = read_router(spec.path)
        fitted = stored.fitted
        kept = {"model": spec.written, "sha256": stored.sha256, "model_sha256": stored.model_sha256}
        if fitted.options.kind != spec.kind:
            what = f"is a {fitted.options.kind}, and the study says {spec.kind}"
            raise _fault(study, router, "model", what, f"write kind: {fitted.options.kind}")
        _check_options(study, router, fitted)
    elif router.trained_on == "cross_fitted":
        said = fit_options(router, str(study.path), _section(study, router))
        fitted = fit_router(labels, said, seed=study.seed, cross_fitted=True)
    else:
        fix = "fit it: evalkit router fit, and name the folder; or write trained_on: cross_fitted"
        raise _fault(study, router, "model", "is required where the router is not cross-fitted", fix)
    notices = list(fitted.notices)
    if len(fitted.tiers) != len(study.tiers):
        what = f"was fitted for {len(fitted.tiers)} tiers, and the study has {len(study.tiers)}"
        raise _fault(study, router, "model", what, "fit it on labels of these tiers")
    if fitted.tiers != study.tier_names:
        notices.append(f"the router was fitted for the tiers {', '.join(fitted.tiers)}")
    score, fold = fitted.score(labels)
    trained_on: TrainedOn = fitted.trained_on
    leaks = leaks_of(router, labels, study)
    if fold is not None and (fold < 0).all():  # the mean of the fold models, on items that none of them saw
        trained_on, fold = "other_items", None
    if trained_on == "other_items":
        judged = sketches_of(labels)
        own = find_leaks(fitted.training, judged)
        leaks = tuple(sorted({leak.id: leak for leak in (*leaks, *own)}.values(), key=_order(labels)))
        notices += _same_ids(fitted, labels, own)
        seen = sum(leak.kind in {"exact", "id"} for leak in own)
        if training_sha256(labels, judged) == fitted.training_sha256 or seen == len(labels):
            what = "was trained on these very items, so they cannot judge it"
            fix = "judge it on other items, or cross-fit it: trained_on: cross_fitted without model"
            raise _fault(study, router, "model", what, fix)
    options = fitted.options.as_json()
    about = {"items": len(fitted.training), "sha256": fitted.training_sha256, "counts": dict(fitted.counts)}
    facts: dict[str, Any] = {
        "kind": options.pop("kind"),
        "options": options,
        "seed": fitted.seed,
        "training": about,
        "versions": dict(fitted.versions),
        "embedding_sha256": fitted.embedding_sha256,
        "models": len(fitted.models),
        **kept,
    }
    return replace(
        _scores(labels, score, trained_on, facts, leaks, notices, fold), trained_ids=fitted.training.ids
    )


def _same_ids(fitted: FittedRouter, labels: LabelSet, leaks: Sequence[Leak]) -> list[str]:
    """A notice of ids that stand on both sides, with other prompts: numbers, or items whose text was changed."""
    both = set(fitted.training.ids) & set(labels.ids) - {leak.id for leak in leaks}
    if not both:
        return []
    named = _some([name for name in labels.ids if name in both])
    return [f"{len(both):,} ids stand in the training labels too, with other prompts, so as other items: {named}"]


def _check_options(study: RoutingStudy, router: Router, fitted: FittedRouter) -> None:
    """What a study says of a fitted router has to be what it was fitted with."""
    spec = router.spec
    assert spec is not None
    if not spec.options:
        return
    said = fit_options(router, str(study.path), _section(study, router)).as_json()
    true = fitted.options.as_json()
    faults = [
        Fault(f"is {said[key]}, and the model was fitted with {true[key]}", "delete it, or fit the router again",
              file=str(study.path), field=f"{_section(study, router)}.{key}")
        for key in spec.options
        if said[key] != true[key]
    ]  # fmt: skip
    if faults:
        raise InputError(faults)


def _scores(
    labels: LabelSet,
    score: Floats,
    trained_on: TrainedOn,
    facts: Mapping[str, Any],
    leaks: tuple[Leak, ...] = (),
    notices: Sequence[str] = (),
    fold: NDArray[np.int16] | None = None,
) -> RouterScores:
    fingerprint = scores_fingerprint(labels.ids, score)
    return RouterScores(score, trained_on, fingerprint, facts, leaks, tuple(notices), fold)


def _order(labels: LabelSet) -> Callable[[Leak], int]:
    place = {name: i for i, name in enumerate(labels.ids)}
    return lambda leak: place[leak.id]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
    return ", ".join(quoted(name) for name in names[:10]) + more
