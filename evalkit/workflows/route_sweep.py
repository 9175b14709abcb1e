"""route-sweep from end to end: read a study, judge its router, write the report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.outcomes.decisions import Decisions, read_decisions
from evalkit.outcomes.owed import with_owed
from evalkit.outcomes.rates import nothing_scored, silent_tiers
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.scores import Scores, read_scores
from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult, analyse
from evalkit.routing.intervals import point_intervals
from evalkit.study.calls import Calls
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import LabelsKind, RoutingStudy, Source
from evalkit.study.thresholds import threshold_problems
from evalkit.tabular.fingerprint import Fingerprint
from evalkit.workflows.assemble import Assembled, assemble, refuse_small_estimates, settings_of
from evalkit.workflows.evidence import evidence_limits
from evalkit.workflows.gate_policy import under_policy
from evalkit.workflows.items import item_rows, items_gz, worst_items
from evalkit.workflows.label_facts import label_facts
from evalkit.workflows.looks import Look, looks_path, take_look
from evalkit.workflows.pricing import Priced, price_outcomes
from evalkit.workflows.provenance import dependency_versions, utc_now
from evalkit.workflows.replay_facts import ReplayFacts, replay_facts
from evalkit.workflows.result import result_document
from evalkit.workflows.samples import refuse_unmet_samples
from evalkit.workflows.served import as_asked

__all__ = ["Inputs", "RouteSweep", "look_at", "looks_record", "read_inputs", "route_sweep"]


@dataclass(frozen=True)
class Inputs:
    """Everything a study names, read and checked."""

    study: RoutingStudy
    labels: LabelSet
    outcomes: Outcomes | None
    scores: Scores | None
    decisions: Decisions | None
    priced: Priced | None
    assembled: Assembled
    policy: dict[str, Any] | None = None
    replay: ReplayFacts = field(default_factory=ReplayFacts)

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
        read: list[Any] = [self.study, self.labels, self.outcomes, self.scores, self.decisions]
        parts = [*read, self.priced, self.replay]
        return [note for part in parts if part is not None for note in part.notices]


@dataclass(frozen=True)
class RouteSweep:
    """A judged study: the document of result.json, and the items file."""

    document: dict[str, Any]
    items_gz: bytes
    result: RoutingResult


def read_inputs(study: RoutingStudy) -> Inputs:
    """Read and check all files of a study; raises InputError with the faults of every file.

    Where the study names a gate policy, the stricter of two limits holds from here on.
    """
    faults: list[Fault] = []
    study, policy = under_policy(study)
    labels = _read(faults, read_labels, study.labels, tiers=study.tier_names, risk_classes=study.risk_classes)
    if labels is None:
        raise InputError(faults)
    about: dict[str, Any] = {"ids": labels.ids, "tiers": study.tier_names}
    outcomes = scores = decisions = None
    if study.outcomes is not None:
        outcomes = _read(
            faults, read_outcomes, study.outcomes, **about, pass_at=study.pass_at, missing=study.missing_outcomes
        )
    if outcomes is not None:
        refuse_unmet_samples(study, outcomes, items="item", tiers="a tier")
        outcomes = with_owed(as_asked(outcomes, study.tiers, study.calls.aliases), study.samples)
    router = study.router
    if router.scores is not None:
        scores = _read(
            faults,
            read_scores,
            router.scores,
            **about,
            cascade=router.policy != "direct",
            missing=router.missing_scores,
            probability=router.probability,
            risk=labels.risk_names,
            weight=labels.weight,
        )
    if router.decisions is not None:
        decisions = _read(faults, read_decisions, router.decisions, **about)
    priced = None
    if not faults and outcomes is not None:
        try:
            priced = price_outcomes(study, outcomes)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    if scores is None and decisions is None:
        what = "names neither router.scores nor router.decisions, so there is nothing to judge"
        raise InputError(Fault(what, "give a file of scores or of routed tiers", str(study.path), field="router"))
    if outcomes is None and router.thresholds is None and decisions is None:
        raise InputError(
            Fault(
                "no outcomes: a threshold cannot be searched for without what each tier costs and gets right",
                "name a file of outcomes, or fix the threshold with router.thresholds",
                str(study.path),
                field="outcomes",
            )
        )
    if scores is not None and router.thresholds is not None:
        _check_thresholds(study, per_tier=bool(scores.by_tier))
    cost = None if priced is None else priced.cost_usd
    assembled = assemble(study, labels, outcomes, scores, cost)
    refuse_small_estimates(study, assembled.data)
    return Inputs(study, labels, outcomes, scores, decisions, priced, assembled, policy, replay_facts(study))


def _check_thresholds(study: RoutingStudy, *, per_tier: bool) -> None:
    """Whether one score serves all tiers is known only now: then thresholds must climb with the tiers."""
    problems = threshold_problems(
        study.router.thresholds or (), study.tier_names, study.router.higher_means, single_score=not per_tier
    )
    faults = [Fault(what, fix, str(study.path), field="router.thresholds") for what, fix in problems]
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

    `look`: judge with this one, which was booked before, and write nothing.
    """
    study, data = inputs.study, inputs.assembled.data
    started = utc_now()
    look = look_at(inputs, started) if look is None else look
    router = study.router
    policies = ["direct", "cascade"] if router.policy == "both" else [router.policy]
    shared = router.routers * len(policies)  # the best of several is chosen: each may spend its part
    delta = None if look.delta is None else look.delta / shared
    results = [
        analyse(
            data,
            settings_of(study, policy, delta),
            thresholds=router.thresholds,
            decisions=None if inputs.decisions is None else np.asarray(inputs.decisions.routed, dtype=np.int8),
        )
        for policy in policies
    ]
    result = min(results, key=_rank)
    others = [r for r in results if r is not result]
    result = _not_measured(result, inputs)
    worst, total = worst_items(result, inputs.labels, inputs.outcomes, inputs.scores)
    document = result_document(
        study,
        result,
        others=others,
        outcomes=inputs.outcomes,
        look=look,
        intervals=point_intervals(result),
        worst_items=worst,
        worst_total=total,
        provenance=_provenance(inputs, started),
        notices=[*inputs.notices, *inputs.assembled.notes],
        evidence_limits=evidence_limits(inputs, result, look),
    )
    rows = item_rows(result, inputs.labels, inputs.outcomes, inputs.scores)
    return RouteSweep(document, items_gz(rows), result)


def _rank(result: RoutingResult) -> tuple[int, float]:
    """Of two policies: an approved one first, then the one of less expected total."""
    order = {"approve": 0, "insufficient_evidence": 1, "reject": 2}[result.verdict.decision.value]
    total = result.shown.expected_total_usd
    return order, float("inf") if total is None else total


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


def look_at(inputs: Inputs, now: str, *, book: bool = True) -> Look:
    """The look that judging these inputs is; with `book` False the record of looks is read only.

    With two tiers costs are no part of it: whichever threshold of the certified range they choose, the range is
    tested the same way. A path over several thresholds is aimed at least cost, so there other costs are another
    look, and the first that are known complete one without. So do the first requests that are answered.
    """
    study = inputs.study
    parts = {"labels": inputs.labels.fingerprint, "study": _question_fingerprint(study)}
    for name, part in (("scores", inputs.scores), ("decisions", inputs.decisions)):
        if part is not None:
            parts[name] = part.fingerprint
    if inputs.policy is not None:  # to ask for something else of the same labels is another look
        parts["policy"] = inputs.policy["gates_sha256"]
    if inputs.outcomes is not None and nothing_scored(inputs.outcomes) is None:
        parts["outcomes"] = _arrays_fingerprint(inputs, *_TESTED)
        cost = inputs.assembled.data.tier_cost_usd
        fixed = study.router.thresholds is not None or inputs.decisions is not None
        if len(study.tiers) > 2 and not fixed and cost is not None and not bool(np.isnan(cost).any()):
            parts["costs"] = _arrays_fingerprint(inputs, "tier_cost_usd")
    delta = 1.0 - study.confidence
    return take_look(looks_record(study), parts, declared=study.looks, delta=delta, now=now, book=book)


_TESTED = ("sampled", "replied", "passed", "answered", "contract_failed", "task_s")


def _arrays_fingerprint(inputs: Inputs, *names: str) -> str:
    """Hash of arrays of the analysis by item, whatever the order of the items."""
    data = inputs.assembled.data
    mark = Fingerprint("routing")
    order = sorted(range(data.n), key=lambda i: inputs.labels.ids[i])
    for name in names:
        values = getattr(data, name)
        if values is not None:
            mark.numbers(name, values[order].astype(np.float64).ravel())
    return mark.hexdigest()


def _question_fingerprint(study: RoutingStudy) -> str:
    """Hash of what the study asks, without how its outcomes came about, what a request costs at each tier and the
    name of its gate policy, whose limits are in the study by now."""
    tiers = tuple(replace(tier, cost_usd=None) for tier in study.tiers)
    bare = replace(study, tiers=tiers, outcomes=None, prices=None, rubric=None, policy=None, calls=Calls())
    return study_fingerprint(bare)


def _provenance(inputs: Inputs, started: str) -> dict[str, Any]:
    study, priced = inputs.study, inputs.priced

    def source(written: Source | None, fingerprint: str | None, **more: Any) -> dict[str, Any] | None:
        if written is None or fingerprint is None:
            return None
        return {"file": written.written, "hash": f"sha256:{fingerprint.removeprefix('sha256:')}", **more}

    outcomes, scores, decisions = inputs.outcomes, inputs.scores, inputs.decisions
    cost_kind = "assumed" if inputs.assembled.assumed_costs else "measured"
    if priced is not None and priced.card_kind is not None:
        cost_kind = priced.card_kind
    return {
        "started_at": started,
        "finished_at": utc_now(),
        "seed": study.seed,
        "study_file": study.path.name,
        "study_hash": f"sha256:{study.fingerprint.removeprefix('sha256:')}",
        "labels": source(
            study.labels, inputs.labels.fingerprint, kind=inputs.labels_kind, **label_facts(inputs.labels)
        ),
        "outcomes": source(study.outcomes, outcomes.fingerprint if outcomes else None),
        "scores": source(
            study.router.scores, scores.fingerprint if scores else None, trained_on=study.router.trained_on
        ),
        "decisions": source(study.router.decisions, decisions.fingerprint if decisions else None),
        "prices": None if priced is None else priced.provenance,
        **({} if inputs.policy is None else {"policy": inputs.policy}),
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
