"""route-sweep from end to end: read a study, judge its router, write the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.outcomes.decisions import Decisions
from evalkit.outcomes.owed import with_owed
from evalkit.outcomes.rates import nothing_scored, silent_tiers
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.scores import Scores
from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.intervals import point_intervals
from evalkit.routing.routers import best_of
from evalkit.study.calls import Calls
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import LabelsKind, RoutingStudy, Source
from evalkit.study.thresholds import threshold_problems
from evalkit.tabular.fingerprint import rows_hash
from evalkit.workflows.assemble import Assembled, assemble, refuse_small_estimates, settings_of
from evalkit.workflows.evidence import evidence_limits
from evalkit.workflows.gate_policy import under_policy
from evalkit.workflows.items import item_rows, items_gz, worst_items
from evalkit.workflows.label_audit_file import AuditFile, with_audit
from evalkit.workflows.label_facts import label_facts
from evalkit.workflows.looks import Look, looks_path, take_audit, take_look
from evalkit.workflows.pricing import Priced, price_outcomes
from evalkit.workflows.provenance import dependency_versions, source_row, utc_now
from evalkit.workflows.replay_facts import ReplayFacts, replay_facts
from evalkit.workflows.result import result_document
from evalkit.workflows.router_scores import (
    Given,
    Recorded,
    field_of,
    given_by,
    left_out_of,
    not_judged,
    recorded_files,
    recorded_runs,
    role_of,
    run_routers,
)
from evalkit.workflows.routers_result import (
    headline_of,
    next_step_of,
    router_name,
    routers_part,
    routers_provenance,
    tables_of,
    text_hash,
)
from evalkit.workflows.samples import refuse_unmet_samples
from evalkit.workflows.served import as_asked

__all__ = ["Inputs", "RouteSweep", "audit_look", "look_at", "looks_record", "read_inputs", "route_sweep"]


@dataclass(frozen=True)
class Inputs:
    """Everything a study names, read and checked.

    `given` and `arrays` have one entry a router; `scores`, `decisions` and `assembled` are the first one's (`of`
    makes another the first). left_out: labelled items that are not judged, since they leaked into the training of
    the routers named `leaking`. recorded: what has to be kept of routers that evalkit ran
    (`router_scores.recorded_files`). all_labels: with those that are left out.
    """

    study: RoutingStudy
    labels: LabelSet
    outcomes: Outcomes | None
    given: tuple[Given, ...]
    priced: Priced | None
    arrays: tuple[Assembled, ...]
    policy: dict[str, Any] | None = None
    replay: ReplayFacts = field(default_factory=ReplayFacts)
    left_out: tuple[str, ...] = ()
    leaking: tuple[str, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    audit: AuditFile | None = None
    all_labels: LabelSet | None = None

    @property
    def scores(self) -> Scores | None:
        """The scores of the first router."""
        return self.given[0].scores

    @property
    def decisions(self) -> Decisions | None:
        """The decisions of the first router."""
        return self.given[0].decisions

    @property
    def assembled(self) -> Assembled:
        """The arrays with the scores of the first router."""
        return self.arrays[0]

    def of(self, place: int) -> Inputs:
        """The same with one router alone, as what it truly is."""
        study = replace(self.study, router=self.given[place].router)
        return replace(self, study=study, given=(self.given[place],), arrays=(self.arrays[place],))

    @property
    def labels_kind(self) -> LabelsKind:
        """Who set the required tiers: as the study says or, where that is people, as the labels are marked."""
        marks = {m.get("labels_kind") for m in self.labels.metadata or () if isinstance(m, dict)}
        kinds: tuple[LabelsKind, ...] = ("derived", "model", "author_rule")
        for kind in kinds:
            if kind in marks and self.study.labels_kind == "human":
                return kind
        return self.study.labels_kind

    @property
    def notices(self) -> list[str]:
        """What the readers found worth saying."""
        parts: list[Any] = [self.study, self.labels, self.outcomes]
        parts += [part for one in self.given for part in (one.scores, one.decisions)]
        parts += [self.priced, self.replay, self.audit]
        return [note for part in parts if part is not None for note in part.notices]


@dataclass(frozen=True)
class RouteSweep:
    """A judged study: the document of result.json, and the items file."""

    document: dict[str, Any]
    items_gz: bytes
    result: RoutingResult


def read_inputs(
    study: RoutingStudy,
    recorded: Mapping[str, Path] | None = None,
    known: Mapping[str, str] = MappingProxyType({}),
) -> Inputs:
    """Read and check all files of a study, and run the routers that evalkit is to run; raises InputError with the
    faults of every file.

    Where the study names a gate policy, the stricter of two limits holds from here on. `recorded`: files of an
    evidence bundle by role, from which the scores of such routers are read, so that nothing is run. `known`:
    fingerprints of its tables by role, where their copies are not byte for byte what was read.
    """
    faults: list[Fault] = []
    study, policy = under_policy(study)
    labels = _read(faults, read_labels, study.labels, tiers=study.tier_names, risk_classes=study.risk_classes)
    if labels is None:
        raise InputError(faults)
    everyone, all_labels = labels.ids, labels
    runs = run_routers(study, labels) if recorded is None else recorded_runs(study, labels, recorded)
    left_out = left_out_of(study, runs, labels)
    labels = labels.without(set(left_out)) if left_out else labels
    others = not_judged(runs, left_out)
    about: dict[str, Any] = {"ids": labels.ids, "tiers": study.tier_names, "left_out": others}
    outcomes = None
    if study.outcomes is not None:
        outcomes = _read(
            faults, read_outcomes, study.outcomes, **about, pass_at=study.pass_at, missing=study.missing_outcomes
        )
    if outcomes is not None:
        refuse_unmet_samples(study, outcomes, items="item", tiers="a tier")
        outcomes = with_owed(as_asked(outcomes, study.tiers, study.calls.aliases), study.samples)
    given: list[Given] = []
    try:
        given = given_by(study, runs, labels, order=everyone, left_out=left_out)
    except InputError as error:
        faults.extend(error.faults)
    priced = None
    if not faults and outcomes is not None:
        try:
            priced = price_outcomes(study, outcomes)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    _check_points(study, given, searchable=outcomes is not None)
    cost = None if priced is None else priced.cost_usd
    arrays = [assemble(replace(study, router=one.router), labels, outcomes, one.scores, cost) for one in given]
    refuse_small_estimates(study, arrays[0].data)
    audit, arrays = with_audit(study, labels, given, arrays, known)
    kept = recorded_files(study, runs, everyone)
    return Inputs(
        study,
        labels,
        outcomes,
        tuple(given),
        priced,
        tuple(arrays),
        policy,
        replay_facts(study),
        left_out,
        tuple(router_name(study, one.router) for one in given if left_out and one.run.leaks),
        tuple(kept),
        audit,
        all_labels,
    )


def _check_points(study: RoutingStudy, given: Sequence[Given], *, searchable: bool) -> None:
    """Every router has something to judge. Whether one score serves all tiers is known only now: then thresholds
    must climb with the tiers."""
    faults: list[Fault] = []
    for one in given:
        router, scores = one.router, one.scores
        if scores is None and one.decisions is None:
            what = "names neither scores nor decisions, so there is nothing to judge"
            fix = "give a file of scores or of routed tiers"
            faults.append(Fault(what, fix, str(study.path), field=field_of(study, router, "")))
        elif not searchable and router.thresholds is None and one.decisions is None:
            what = "no outcomes: a threshold cannot be searched for without what each tier costs and gets right"
            at = field_of(study, router, "thresholds")
            fix = f"name a file of outcomes, or fix the threshold with {at}"
            faults.append(Fault(what, fix, str(study.path), field="outcomes"))
        elif scores is not None and router.thresholds is not None:
            problems = threshold_problems(
                router.thresholds, study.tier_names, router.higher_means, single_score=not scores.by_tier
            )
            at = field_of(study, router, "thresholds")
            faults += [Fault(what, fix, str(study.path), field=at) for what, fix in problems]
    if faults:
        raise InputError(faults)


def _read(faults: list[Fault], reader: Any, source: Source, **options: Any) -> Any:
    """What `reader` makes of a source of the study, or None with its faults noted."""
    try:
        return reader(source.address, columns=dict(source.columns) or None, encoding=source.encoding, **options)
    except InputError as error:
        faults.extend(error.faults)
        return None


def route_sweep(inputs: Inputs, look: Look | None = None) -> RouteSweep:
    """Judge the study and book the look at its labels. Reads nothing more; writes only the record of looks.

    Of several routers and policies the best is chosen, so each spends its part of the error rate; together they
    are one look. `look`: judge with this one, which was booked before, and write nothing.
    """
    started = utc_now()
    look = look_at(inputs, started) if look is None else look
    results, owners = _judged(inputs, look)
    best = best_of(results)
    place, result = owners[best], results[best]
    own = inputs.of(place)
    others = [r for i, r in enumerate(results) if owners[i] == place and i != best]
    worst, total = worst_items(result, own.labels, own.outcomes, own.scores)
    document = result_document(
        own.study,
        result,
        others=others,
        outcomes=own.outcomes,
        look=look,
        intervals=point_intervals(result),
        worst_items=worst,
        worst_total=total,
        provenance=_provenance(inputs, place, started),
        notices=[*inputs.notices, *own.assembled.notes],
        evidence_limits=evidence_limits(own, result, look),
        headline=headline_of(inputs.given, place, result.verdict.headline),
        next_step=next_step_of(inputs.given, place, result.verdict),
        routers=routers_part(inputs.study, inputs.given, results, owners, best, inputs.left_out),
    )
    rows = item_rows(result, own.labels, own.outcomes, own.scores)
    return RouteSweep(document, items_gz(rows), result)


def _judged(inputs: Inputs, look: Look) -> tuple[list[RoutingResult], list[int]]:
    """Every policy of every router, judged on the same items at its part of the error rate, and whose it is."""
    delta = None if look.delta is None else look.delta / inputs.study.shared
    results: list[RoutingResult] = []
    owners: list[int] = []
    for place, (one, arrays) in enumerate(zip(inputs.given, inputs.arrays, strict=True)):
        study = inputs.of(place).study
        policies = ["direct", "cascade"] if one.router.policy == "both" else [one.router.policy]
        for policy in policies:
            owners.append(place)
            found = analyse(
                arrays.data,
                settings_of(study, policy, delta),
                thresholds=one.router.thresholds,
                decisions=None if one.decisions is None else np.asarray(one.decisions.routed, dtype=np.int8),
            )
            results.append(_not_measured(found, inputs))
    return results, owners


def _not_measured(result: RoutingResult, inputs: Inputs) -> RoutingResult:
    """Where no outcome was answered, or none of a tier that requests end at, say so first: it was not measured."""
    if inputs.outcomes is None:
        return result
    sentence, what = nothing_scored(inputs.outcomes), "nothing was measured"
    if sentence is None:
        silent = [j for j in silent_tiers(inputs.outcomes) if (result.tier == j).any()]
        if not silent or result.verdict.decision.value != "approve":
            return result
        names = ", ".join(inputs.study.tier_names[j] for j in silent)
        sentence = f"No request to {names} was answered, so nothing is known of what is to stay there"
        what = "a tier was not measured"
    from evalkit.gates import Decision, Status, Verdict

    # Nothing can be held against a router on requests that nobody answered: what failed is open.
    failing = {Status.VIOLATED, Status.INFEASIBLE}
    gates = tuple(replace(g, status=Status.NOT_STATABLE) if g.status in failing else g for g in result.gates)
    rules = tuple(
        replace(r, triggered=None) if r.applies and r.triggered and r.on_trigger == "reject" else r
        for r in result.stop_rules
    )
    verdict = Verdict(
        Decision.INSUFFICIENT_EVIDENCE,
        (sentence, *result.verdict.reasons),
        result.verdict.uncertified,
        f"Insufficient evidence: {what}",
        "Put the cause of the errors right and collect the outcomes again",
    )
    return replace(result, verdict=verdict, selected=None, gates=gates, stop_rules=rules)


def looks_record(study: RoutingStudy) -> Path:
    """The record of looks at the study's labels: beside the file, for a dataset of the hub beside the study."""
    return looks_path(study.labels.path if study.labels.path is not None else study.path)


def look_at(inputs: Inputs, now: str, *, book: bool = True, auditing: bool = False) -> Look:
    """The look that judging these inputs is; with `book` False the record of looks is read only. auditing: it is
    to draw an audit, so that none is named yet.

    With two tiers costs are no part of it: whichever threshold of the certified range they choose, the range is
    tested the same way. A path over several thresholds is aimed by the costs of the items that find its direction,
    so other costs of these are another look, and the first that are all known complete one without. So do the
    first requests that are answered.
    """
    study = inputs.study
    about: dict[str, Any] = {"declared": study.looks, "delta": 1.0 - study.confidence, "now": now}
    return take_look(looks_record(study), _parts(inputs), book=book, by_tiers=not auditing, **about)


def audit_look(inputs: Inputs, fingerprint: str, now: str) -> Look:
    """Book an audit of the labels that is read back; the look at these inputs that names it may spend as much."""
    study = inputs.study
    about: dict[str, Any] = {"declared": study.looks, "delta": 1.0 - study.confidence, "now": now}
    return take_audit(looks_record(study), {**_parts(inputs), "audit": fingerprint}, **about)


def _parts(inputs: Inputs) -> dict[str, str]:
    """Fingerprints of all that makes another look."""
    study = inputs.study
    parts = {"labels": inputs.labels.fingerprint, "study": _question_fingerprint(study)}
    for one in inputs.given:
        for name, part in (("scores", one.scores), ("decisions", one.decisions)):
            if part is not None:
                parts[role_of(study, one.router, name)] = part.fingerprint
    if inputs.left_out:  # to leave out others of the same labels is another look
        parts["left_out"] = text_hash(inputs.left_out)
    if inputs.policy is not None:  # to ask for something else of the same labels is another look
        parts["policy"] = inputs.policy["gates_sha256"]
    if inputs.audit is not None:
        parts["audit"] = inputs.audit.fingerprint
    if inputs.outcomes is not None and nothing_scored(inputs.outcomes) is None:
        parts["outcomes"] = _arrays_fingerprint(inputs, *_TESTED)
        data = inputs.assembled.data
        searched = any(one.router.thresholds is None and one.decisions is None for one in inputs.given)
        aiming = data.direction if searched and len(study.tiers) > 2 else None
        cost = None if aiming is None or data.tier_cost_usd is None else data.tier_cost_usd[aiming]
        if cost is not None and not bool(np.isnan(cost).any()):
            parts["costs"] = _arrays_fingerprint(inputs, "tier_cost_usd", only=aiming)
    return parts


_TESTED = ("sampled", "replied", "passed", "answered", "contract_failed", "task_s")


def _arrays_fingerprint(inputs: Inputs, *names: str, only: NDArray[np.bool_] | None = None) -> str:
    """Hash of arrays of the analysis, of all items or `only` some, each row beside what its item needs and was
    scored.

    No ids: where a secret stands in one, the copies in an evidence bundle have it hidden.
    """
    data = inputs.assembled.data
    blocks = {name: getattr(data, name) for name in ("required", "risk", "weight", *names)}
    blocks |= {f"demand {i}": one.data.demand for i, one in enumerate(inputs.arrays)}
    known = {name: values for name, values in blocks.items() if values is not None}
    return rows_hash("routing", known if only is None else {name: values[only] for name, values in known.items()})


def _question_fingerprint(study: RoutingStudy) -> str:
    """Hash of what the study asks, without how its outcomes came about, what a request costs at each tier and the
    name of its gate policy, whose limits are in the study by now; an audit of the labels is a part of its own."""
    tiers = tuple(replace(tier, cost_usd=None) for tier in study.tiers)
    bare = replace(study, tiers=tiers, outcomes=None, prices=None, rubric=None, policy=None, audit=None)
    bare = replace(bare, calls=Calls())
    return study_fingerprint(bare)


def _provenance(inputs: Inputs, chosen: int, started: str) -> dict[str, Any]:
    study, priced, own = inputs.study, inputs.priced, inputs.given[chosen]
    outcomes = inputs.outcomes
    cost_kind = "assumed" if inputs.assembled.assumed_costs else "measured"
    if priced is not None and priced.card_kind is not None:
        cost_kind = priced.card_kind
    return {
        "started_at": started,
        "finished_at": utc_now(),
        "seed": study.seed,
        "study_file": study.path.name,
        "study_hash": f"sha256:{study.fingerprint.removeprefix('sha256:')}",
        "labels": source_row(
            study.labels, inputs.labels.fingerprint, kind=inputs.labels_kind, **label_facts(inputs.labels)
        ),
        "outcomes": source_row(study.outcomes, outcomes.fingerprint if outcomes else None),
        **tables_of(own),
        **routers_provenance(study, inputs.given, inputs.left_out),
        "prices": None if priced is None else priced.provenance,
        **({} if inputs.policy is None else {"policy": inputs.policy}),
        **({} if inputs.audit is None else {"audit": dict(inputs.audit.facts)}),
        **inputs.replay.provenance,
        "models": {
            tier.name: {
                "requested": tier.model,
                "served": [] if outcomes is None else list(outcomes.model[j]),
            }
            for j, tier in enumerate(study.tiers)
        },
        **dependency_versions(),
        "numbers": {
            "pass rates and contract failures": "measured",
            "times": "measured",
            "costs": cost_kind,
            "router cost and seconds": "assumed",
            "losses, weights and limits": "assumed",
        },
    }
