"""`evalkit router score`: the scores of a router that evalkit runs, as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.routers.leaks import leak_fault
from evalkit.routers.score import RouterScores, score_items
from evalkit.study.models import Router, RoutingStudy
from evalkit.study.routing import override, read_study
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.write import check_table_suffix, write_atomic, write_table
from evalkit.workflows.labels import show
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["judged_labels", "router_named", "score_command", "study_with"]


def score_command(
    study: Path, *, router: str | None, out: Path, seed: int | None, json_file: Path | None, quiet: bool
) -> None:
    """Score every label of the study. Raises `InputError`, also for leaks that the study does not drop."""
    check_table_suffix(out)
    read = study_with(study, seed)
    one = router_named(read, router)
    refuse_to_overwrite([study, read.labels.path, None if one.train is None else one.train.path],
                        [out, *([json_file] if json_file else [])])  # fmt: skip
    labels = judged_labels(read)
    found = score_items(read, one, labels)
    if found.leaks and one.leaks == "error":
        training = one.train.written if one.train is not None else one.spec.written if one.spec else ""
        raise InputError(leak_fault(found.leaks, len(labels), str(study), training))
    columns: dict[str, list[Any]] = {"id": list(labels.ids), "score": [float(s) for s in found.score]}
    if found.fold is not None:
        columns["fold"] = [int(f) for f in found.fold]
    write_table(out, columns)
    if json_file is not None:
        document = _document(read, one, labels, found)
        write_atomic(json_file, json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    notices = [*read.notices, *labels.notices, *found.notices]
    if found.leaks:
        notices.append(f"{len(found.leaks):,} of these items stand in the training labels too (leaks: drop): "
                       f"{', '.join(quoted(leak.id) for leak in found.leaks[:20])}")  # fmt: skip
    show([] if quiet else _lines(out, one, found), notices)


def study_with(path: Path, seed: int | None) -> RoutingStudy:
    """The study; files that it names may come later."""
    read = read_study(path, files_exist=False)
    return read if seed is None else override(read, seed=seed)


def judged_labels(study: RoutingStudy) -> LabelSet:
    """The labels that the study judges."""
    return read_labels(
        study.labels.address,
        tiers=study.tier_names,
        risk_classes=study.risk_classes,
        columns=dict(study.labels.columns) or None,
        encoding=study.labels.encoding,
    )


def router_named(study: RoutingStudy, name: str | None, kinds: tuple[str, ...] = ()) -> Router:
    """The router of that name; without one the only one, or the only one of these kinds.

    Raises `InputError` where there is none, or several to choose from.
    """
    among = study.all_routers
    names = [one.name for one in among]
    if name is not None:
        found = [one for one in among if one.name == nfc(name)]
        if not found:
            known = f"the study names {', '.join(names)}" if study.routers else "the study has one router, unnamed"
            what = f"{quoted(name)} is no router: {known}{did_you_mean(name, names)}"
            raise InputError(Fault(what, "name one of them", file=str(study.path), field="--router"))
        return found[0]
    fitting = [one for one in among if one.spec is not None and (not kinds or one.spec.kind in kinds)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        of = " or ".join(kinds) or "rules, classifier, semantic or python"
        what = "has no router that evalkit can do this with"
        raise InputError(Fault(what, f"write a router of kind: {of}", file=str(study.path), field="router"))
    what = f"has several routers: {', '.join(one.name for one in fitting)}"
    raise InputError(Fault(what, "name one with --router", file=str(study.path), field="--router"))


def _document(study: RoutingStudy, router: Router, labels: LabelSet, found: RouterScores) -> dict[str, Any]:
    return {
        "schema": "evalkit.router-score/1",
        "study": study.name,
        "router": router.name or None,
        "labels": {"file": labels.file, "fingerprint": labels.fingerprint, "items": len(labels)},
        "trained_on": found.trained_on,
        "higher_means": router.higher_means,
        "fingerprint": found.fingerprint,
        "facts": dict(found.facts),
        "leaks": [
            {"id": leak.id, "training": leak.training, "kind": leak.kind, "similarity": leak.similarity}
            for leak in found.leaks
        ],
    }


def _lines(out: Path, router: Router, found: RouterScores) -> list[str]:
    low, middle, high = np.percentile(found.score, [0, 50, 100], method="inverted_cdf")
    lines = [
        f"{out}: {len(found.score):,} scores from {low:g} to {high:g}, median {middle:g}",
        f"higher_means: {router.higher_means}, trained_on: {found.trained_on}",
    ]
    if found.trained_on == "cross_fitted":
        lines.append(
            "Cross-fitted: each item is scored by a model that did not see it; approximate, no certificate."
        )
    return lines
