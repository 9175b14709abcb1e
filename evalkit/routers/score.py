"""The scores of a router that evalkit runs itself: computed, checked, and told how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.routers.items import Requests, requests_of
from evalkit.routers.leaks import Leak
from evalkit.routers.rules import read_rules
from evalkit.study.models import Router, RoutingStudy, TrainedOn
from evalkit.tabular.fingerprint import Fingerprint, order_of

__all__ = ["Leak", "RouterScores", "leaks_of", "score_items", "scores_fingerprint"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RouterScores:
    """The scores of N judged items, in the order of the labels and the direction of the router.

    score: (N,) finite. trained_on: what the router truly is, not what was said of it. fingerprint: of ids and
    scores, as `outcomes.scores.read_scores` would give it for a file of them. facts: for the provenance (kind,
    hashes, seed, folds, versions). leaks: judged items that stand in the training labels too. fold: (N,) where
    cross-fitted, which fold's model scored the item (the model that did not see it).
    """

    score: Floats
    trained_on: TrainedOn
    fingerprint: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[Leak, ...] = ()
    notices: tuple[str, ...] = ()
    fold: NDArray[np.int16] | None = None


def score_items(study: RoutingStudy, router: Router, labels: LabelSet) -> RouterScores:
    """Run the router on every item. Raises `InputError`: a router that cannot be read or run, scores that are no
    scores, a router that was trained on the items it is judged on, and, with `leaks: error`, items that leaked."""
    spec = router.spec
    if spec is None:
        raise InputError(Fault("the router has no kind, so evalkit cannot run it", "write kind:, or scores:"))
    requests = requests_of(labels)
    if spec.kind == "rules":
        return _by_rules(router, labels, requests)
    raise InputError(Fault(f"kind: {spec.kind} is not run yet", "write scores: with a file of scores"))


def leaks_of(router: Router, labels: LabelSet, study: RoutingStudy) -> tuple[Leak, ...]:
    """Judged items that stand in the training labels of the router too; empty where it names none."""
    return ()


def scores_fingerprint(ids: tuple[str, ...], score: Floats) -> str:
    """SHA-256 over ids and scores, whatever their order: that of `outcomes.scores` for the same content."""
    import pyarrow as pa

    array = pa.array(list(ids), pa.large_string())
    mark = Fingerprint("scores", order_of(array))
    mark.texts("id", array)
    mark.numbers("score", score)
    return mark.hexdigest()


def _by_rules(router: Router, labels: LabelSet, requests: Requests) -> RouterScores:
    spec = router.spec
    assert spec is not None
    if spec.path is None:
        raise InputError(Fault("kind: rules names no file", "write rules: rules.yaml", field="router.rules"))
    rules = read_rules(spec.path)
    score = rules.score(requests)
    return RouterScores(
        score=score,
        trained_on=router.trained_on or "untrained",
        fingerprint=scores_fingerprint(labels.ids, score),
        facts={"kind": "rules", "file": spec.written, "sha256": rules.fingerprint, "rules": len(rules.rules)},
    )
