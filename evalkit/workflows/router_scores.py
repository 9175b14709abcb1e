"""What the routers of a study give for its items: read from files, or computed by evalkit, with what leaked.

A router that evalkit runs is run once, by the run itself. Its scores and what is known of it go into the evidence
bundle (`recorded_files`), and from there they are read (`recorded_runs`): nothing of a bundle is ever run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from evalkit.errors import Fault, InputError, visible
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.decisions import Decisions, read_decisions
from evalkit.outcomes.scores import Scores, read_scores
from evalkit.routers.leaks import Leak, LeakKind
from evalkit.routing.data import Floats
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import Router, RoutingStudy, TrainedOn

__all__ = [
    "RECORD",
    "Given",
    "Recorded",
    "Run",
    "field_of",
    "given_by",
    "left_out_of",
    "not_judged",
    "read_source_of",
    "recorded_files",
    "recorded_runs",
    "role_of",
    "run_routers",
]

RECORD = "routers.json"
SCHEMA = "evalkit.routers/1"
MOST_NAMED = 20
"""Leaks beyond these are counted, not named, in a message."""


class Recorded(NamedTuple):
    """A file for the evidence bundle: its role, the name that the study uses, its own name and content."""

    role: str
    written: str
    name: str
    content: bytes


@dataclass(frozen=True)
class Run:
    """What evalkit found out about one router by running it, or by holding its training labels against the items.

    score (N,): of all labelled items, whether or not some are left out; None where the study names a file.
    trained_on: what the router truly is; None where only the study says it. fold (N,): see `RouterScores`.
    trained_ids: of the items that it was trained on and that are not labelled here.
    """

    trained_on: TrainedOn | None = None
    score: Floats | None = None
    fingerprint: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[Leak, ...] = ()
    fold: tuple[int, ...] | None = None
    notices: tuple[str, ...] = ()
    trained_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Given:
    """One router and what it gives for the judged items. `router` says what it truly is: `trained_on`, and whether
    its score is a probability."""

    router: Router
    run: Run
    scores: Scores | None = None
    decisions: Decisions | None = None


def role_of(study: RoutingStudy, router: Router, table: str) -> str:
    """What a router's table is called in bundles and provenance: `scores`, or `scores.<name>` of several."""
    return f"{table}.{router.name}" if study.routers else table


def field_of(study: RoutingStudy, router: Router, key: str) -> str:
    """The field `key` of a router's section in the study file; without a key the section itself."""
    at = "router"
    if study.routers:
        at = f"routers[{[r.name for r in study.routers].index(router.name)}]"
    return f"{at}.{key}" if key else at


def run_routers(study: RoutingStudy, labels: LabelSet) -> list[Run]:
    """Run the routers that evalkit is to run on all items; look for leaks wherever training labels are named.

    One entry a router, in their order. Raises `InputError` with the faults of all: one that cannot be run, that
    is not what the study says of it, or whose leaks are not dropped.
    """
    runs: list[Run] = []
    faults: list[Fault] = []
    for router in study.all_routers:
        if router.spec is None and router.train is None:
            runs.append(Run())
            continue
        try:
            run = _run(study, router, labels)
        except InputError as error:
            faults.extend(error.faults)
            continue
        faults.extend(_not_as_said(study, router, run))
        if router.leaks == "error":
            faults.extend(_leak_faults(study, router, run.leaks))
        runs.append(run)
    if faults:
        raise InputError(faults)
    return runs


def _run(study: RoutingStudy, router: Router, labels: LabelSet) -> Run:
    from evalkit.routers.score import leaks_of, read_train, score_items

    trained = () if router.train is None else read_train(router.train, study).ids
    if router.spec is None:
        return Run(leaks=tuple(leaks_of(router, labels, study)), trained_ids=_other_than(labels, trained))
    found = score_items(study, router, labels)
    return Run(
        trained_on=found.trained_on,
        score=found.score,
        fingerprint=found.fingerprint,
        facts=json.loads(json.dumps(dict(found.facts), allow_nan=False)),
        leaks=tuple(found.leaks),
        fold=None if found.fold is None else tuple(int(f) for f in found.fold),
        notices=(*found.notices, *_constant(router, found.score)),
        trained_ids=_other_than(labels, (*trained, *found.trained_ids)),
    )


def _other_than(labels: LabelSet, ids: Sequence[str]) -> tuple[str, ...]:
    """The ids that no label has, each once and in order."""
    return tuple(sorted(set(ids) - set(labels.ids)))


def _constant(router: Router, score: Floats) -> list[str]:
    if len(score) < 2 or (score != score[0]).any():
        return []
    which = f"{router.name}: " if router.name else ""
    return [f"{which}all {len(score):,} scores equal {score[0]:g}: the score carries no information"]


def _not_as_said(study: RoutingStudy, router: Router, run: Run) -> list[Fault]:
    """A certificate stands on what the router truly was trained on."""
    said, true = router.trained_on, run.trained_on
    if router.spec is None or true is None:
        return []
    file, at = str(study.path), field_of(study, router, "trained_on")
    if true == "these_items":
        what = "the router was trained on these very items, so they cannot judge it"
        fix = "score these items with a router trained on others, or cross-fitted"
        return [Fault(what, fix, file=file, field=at)]
    if said is not None and said != true:
        what = f"is {said}, and what is run says that it is {true}"
        return [Fault(what, f"write {true}, or delete it", file=file, field=at)]
    return []


def _leak_faults(study: RoutingStudy, router: Router, leaks: Sequence[Leak]) -> list[Fault]:
    """The leaks of one router, the first of them by their ids on both sides."""
    if not leaks:
        return []
    count = len({leak.id for leak in leaks})
    pairs = [f"{visible(leak.id, 60)} is in training as {_told(leak)}" for leak in leaks[:MOST_NAMED]]
    more = f", and {len(leaks) - MOST_NAMED:,} more" if len(leaks) > MOST_NAMED else ""
    who = f"{visible(router.name, 60)}: " if router.name else ""
    what = f"{who}{count:,} judged items stand in the training labels too: {'; '.join(pairs)}{more}"
    if count == 1:
        what = f"{who}1 judged item stands in the training labels too: {pairs[0]}"
    fix = "train on other items, or write leaks: drop to leave these out of the judged items, for all routers"
    key = "train" if router.train is not None else "model"
    return [Fault(what, fix, file=str(study.path), field=field_of(study, router, key))]


def _told(leak: Leak) -> str:
    kind = f"near, {leak.similarity:.2f}" if leak.kind == "near" else leak.kind
    return f"{visible(leak.training, 60)} ({kind})"


def left_out_of(study: RoutingStudy, runs: Sequence[Run], labels: LabelSet) -> tuple[str, ...]:
    """Judged items that leaked into the training of any router whose leaks are dropped, in the labels' order, with
    all items of their groups: a router that saw one turn of a conversation saw what the others are about.

    Raises `InputError` where none would be left.
    """
    pairs = zip(study.all_routers, runs, strict=True)
    leaked = {leak.id for router, run in pairs if router.leaks == "drop" for leak in run.leaks}
    groups = labels.group if labels.group is not None else (None,) * len(labels)
    told = {group for name, group in zip(labels.ids, groups, strict=True) if name in leaked} - {None}
    out = tuple(n for n, group in zip(labels.ids, groups, strict=True) if n in leaked or group in told)
    if out and len(out) == len(labels):
        what = "every judged item stands in the training labels of a router, so none is left to judge"
        raise InputError(Fault(what, "label items that no router was trained on", file=str(study.path)))
    return out


def not_judged(runs: Sequence[Run], left_out: Sequence[str]) -> tuple[str, ...]:
    """Ids that files of outcomes and scores may hold beside those that are judged: of items that are left out, and
    of those that a router was trained on. Labelled together and then split, both stand in the same files."""
    return (*left_out, *sorted({name for run in runs for name in run.trained_ids}))


def given_by(
    study: RoutingStudy, runs: Sequence[Run], labels: LabelSet, *, order: Sequence[str], left_out: Sequence[str]
) -> list[Given]:
    """What each router gives for the judged items `labels`; `order` are the ids that the runs are in.

    Raises `InputError` with the faults of every file of scores and decisions.
    """
    found: list[Given] = []
    faults: list[Fault] = []
    gone = set(left_out)
    keep = np.array([i for i, name in enumerate(order) if name not in gone], dtype=np.int64)
    others = not_judged(runs, left_out)
    about: dict[str, Any] = {"ids": labels.ids, "tiers": study.tier_names, "left_out": others}
    for router, run in zip(study.all_routers, runs, strict=True):
        scores = decisions = None
        try:
            if run.score is not None and router.spec is not None:
                name = router.spec.written or router.spec.kind
                scores = Scores(name, run.score[keep], fingerprint=run.fingerprint, notices=run.notices)
            elif router.scores is not None:
                scores = read_source_of(router.scores, read_scores, **about, **_scores_options(router, labels))
            if router.decisions is not None:
                decisions = read_source_of(router.decisions, read_decisions, **about)
        except InputError as error:
            faults.extend(error.faults)
            continue
        found.append(Given(_as_it_is(study, router, run), run, scores, decisions))
    if faults:
        raise InputError(faults)
    return found


def _scores_options(router: Router, labels: LabelSet) -> dict[str, Any]:
    return {
        "cascade": router.policy != "direct",
        "missing": router.missing_scores,
        "probability": router.probability,
        "risk": labels.risk_names,
        "weight": labels.weight,
    }


def _as_it_is(study: RoutingStudy, router: Router, run: Run) -> Router:
    """A fitted router is what its model says, and with two tiers its score is the chance of a need."""
    if router.spec is None or run.score is None:
        return router
    chance = router.spec.kind in {"classifier", "semantic"} and len(study.tiers) == 2
    chance = chance and bool(((run.score >= 0) & (run.score <= 1)).all())
    return replace(router, trained_on=run.trained_on, probability=router.probability or chance)


def read_source_of(source: Any, reader: Any, **options: Any) -> Any:
    """What `reader` makes of a source of the study."""
    return reader(source.address, columns=dict(source.columns) or None, encoding=source.encoding, **options)


def recorded_files(study: RoutingStudy, runs: Sequence[Run], ids: Sequence[str]) -> list[Recorded]:
    """What has to be kept of runs to judge again without them; empty where evalkit ran nothing."""
    from evalkit.tabular.write import jsonl_text

    out: list[Recorded] = []
    rows: list[dict[str, Any]] = []
    for router, run in zip(study.all_routers, runs, strict=True):
        if router.spec is None and router.train is None:
            continue
        if run.score is not None and router.spec is not None:
            columns: dict[str, Sequence[Any]] = {"id": list(ids), "score": [float(s) for s in run.score]}
            if run.fold is not None:
                columns["fold"] = list(run.fold)
            text = jsonl_text(columns).encode("utf-8")
            out.append(Recorded(role_of(study, router, "scores"), router.spec.written, "scores.jsonl", text))
        rows.append(
            {
                "name": router.name,
                "trained_on": run.trained_on,
                "facts": dict(run.facts),
                "leaks": [[leak.id, leak.training, leak.kind, leak.similarity] for leak in run.leaks],
                "trained_ids": list(run.trained_ids),
            }
        )
    if rows:
        document = {"schema": SCHEMA, "routers": rows}
        text = (json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode("ascii")
        out.append(Recorded("routers", "", RECORD, text))
    return out


def recorded_runs(study: RoutingStudy, labels: LabelSet, paths: Mapping[str, Path]) -> list[Run]:
    """The runs of a bundle, by the roles of its files; runs nothing.

    Raises BrokenFileError where they are not what evalkit writes, InputError where the scores are not those of the
    labels.
    """
    if all(router.spec is None and router.train is None for router in study.all_routers):
        return [Run() for _ in study.all_routers]
    if "routers" not in paths:
        raise BrokenFileError("does not hold what is known of its routers")
    rows = _rows(strict_json(paths["routers"].read_bytes()))
    runs: list[Run] = []
    for router in study.all_routers:
        if router.spec is None and router.train is None:
            runs.append(Run())
            continue
        row = rows.get(router.name)
        if row is None or (row.trained_on is None) != (router.spec is None):
            raise BrokenFileError(f"{RECORD} does not say what the study's routers are")
        if _not_as_said(study, router, row):
            raise BrokenFileError(f"{RECORD} says of a router what the study does not")
        if router.leaks == "error" and row.leaks:
            raise BrokenFileError(f"{RECORD} holds leaks that the study does not take")
        if router.spec is None:
            runs.append(row)
            continue
        role = role_of(study, router, "scores")
        if role not in paths:
            raise BrokenFileError(f"does not hold the {role} that its router gave")
        read = read_scores(paths[role], ids=labels.ids, tiers=study.tier_names, cascade=False)
        runs.append(replace(row, score=read.score, fingerprint=read.fingerprint))
    return runs


def _rows(document: Any) -> dict[str, Run]:
    """The rows of routers.json by name, checked whole: they come from elsewhere."""
    rows = document.get("routers") if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise BrokenFileError(f"{RECORD} does not hold what it should")
    return {
        row["name"]: Run(
            trained_on=row["trained_on"],
            facts=row["facts"],
            leaks=tuple(Leak(str(a), str(b), c, float(d)) for a, b, c, d in row["leaks"]),
            trained_ids=tuple(row["trained_ids"]),
        )
        for row in rows
    }


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and set(row) == {"name", "trained_on", "facts", "leaks", "trained_ids"}
        and isinstance(row["name"], str)
        and row["trained_on"] in (None, "other_items", "cross_fitted", "untrained")
        and isinstance(row["facts"], dict)
        and isinstance(row["leaks"], list)
        and all(_is_leak(leak) for leak in row["leaks"])
        and isinstance(row["trained_ids"], list)
        and all(isinstance(name, str) for name in row["trained_ids"])
    )


def _is_leak(leak: Any) -> bool:
    if not isinstance(leak, list) or len(leak) != 4:
        return False
    sound = isinstance(leak[0], str) and isinstance(leak[1], str) and leak[2] in get_args(LeakKind)
    return sound and type(leak[3]) in {int, float}
