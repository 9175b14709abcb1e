"""reasoning-budget from end to end: read a study, judge its ladder of arms, lay out the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.gates import Decision, Status, Verdict
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.outcomes.rates import nothing_scored
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.table import Outcomes
from evalkit.reasoning.analysis import LadderResult, analyse
from evalkit.study.calls import Calls
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import Source
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.tabular.fingerprint import rows_hash
from evalkit.workflows.evidence import unanswered_sentences
from evalkit.workflows.gate_policy import under_policy
from evalkit.workflows.items import items_gz
from evalkit.workflows.label_facts import label_facts
from evalkit.workflows.looks import Look, looks_path, take_look
from evalkit.workflows.pricing import Priced, price_outcomes
from evalkit.workflows.provenance import dependency_versions, source_row, utc_now
from evalkit.workflows.reasoning_assemble import AssembledLadder, assemble_ladder, ladder_settings
from evalkit.workflows.reasoning_items import task_rows, worst_tasks
from evalkit.workflows.reasoning_result import reasoning_document
from evalkit.workflows.reasoning_tokens import settle_outcomes
from evalkit.workflows.replay_facts import ReplayFacts, replay_facts
from evalkit.workflows.served import as_asked

__all__ = ["LadderInputs", "ReasoningBudget", "look_at", "looks_record", "read_ladder", "reasoning_budget"]


@dataclass(frozen=True)
class LadderInputs:
    """Everything a study names, read and checked."""

    study: ReasoningStudy
    labels: LabelSet
    outcomes: Outcomes
    priced: Priced
    assembled: AssembledLadder
    settled_notices: tuple[str, ...]
    policy: dict[str, Any] | None = None
    replay: ReplayFacts = field(default_factory=ReplayFacts)

    @property
    def notices(self) -> list[str]:
        """What the readers found worth saying."""
        parts = (self.study, self.labels, self.outcomes, self.priced, self.replay)
        said = [note for part in parts for note in part.notices]
        return [*said, *self.settled_notices, *self.assembled.notes]


@dataclass(frozen=True)
class ReasoningBudget:
    """A judged ladder: the document of result.json, and the items file."""

    document: dict[str, Any]
    items_gz: bytes
    result: LadderResult


def read_ladder(study: ReasoningStudy) -> LadderInputs:
    """Read and check all files of a study; raises InputError with the faults of every file.

    Where the study names a gate policy, the stricter of two limits holds from here on.
    """
    study, policy = under_policy(study)
    if study.outcomes is None:
        what = "names no recorded outcomes"
        raise InputError(
            Fault(
                what,
                "name the file of outcomes, or make them with evalkit replay",
                str(study.path),
                field="outcomes",
            )
        )
    faults: list[Fault] = []
    labels: LabelSet | None = _read(
        faults,
        read_labels,
        study.labels,
        tiers=(),
        risk_classes=study.risk_classes,
        require_required_tier=False,
    )
    if labels is None:
        raise InputError(faults)
    outcomes: Outcomes | None = _read(
        faults,
        read_outcomes,
        study.outcomes,
        ids=labels.ids,
        tiers=tuple(arm.name for arm in study.tiers),
        pass_at=study.pass_at,
        missing=study.missing_outcomes,
        noun="arm",
    )
    if outcomes is None:
        raise InputError(faults)
    outcomes = as_asked(outcomes, study.tiers, study.calls.aliases)
    replayed = replay_facts(study)
    arms = tuple(replace(arm, sent=arm.sent or replayed.sent.get(arm.name)) for arm in study.arms)
    study = replace(study, arms=arms)
    settled = settle_outcomes(study, outcomes)
    priced = price_outcomes(study, settled.outcomes, noun="arm")
    assembled = assemble_ladder(study, labels, outcomes, settled.outcomes, priced.cost_usd)
    _refuse_small_estimates(study, labels)
    return LadderInputs(study, labels, outcomes, priced, assembled, settled.notices, policy, replayed)


def _read(faults: list[Fault], reader: Any, source: Source, **options: Any) -> Any:
    """What `reader` makes of a source of the study, or None with its faults noted."""
    columns = {("tier" if name == "arm" else name): column for name, column in source.columns.items()}
    try:
        return reader(source.address, columns=columns or None, encoding=source.encoding, **options)
    except InputError as error:
        faults.extend(error.faults)
        return None


def _refuse_small_estimates(study: ReasoningStudy, labels: LabelSet) -> None:
    """A class judged on the estimate needs at least 1 / limit tasks."""
    faults = []
    for r, (name, rule) in enumerate(study.risk.items()):
        if rule.gate_on != "estimate" or not rule.max_failure:
            continue
        have, least = int((labels.risk == r).sum()), int(np.ceil(1 / rule.max_failure - 1e-9))
        if have < least:
            what = (
                f"a limit of {rule.max_failure:g} judged on the estimate needs at least {least} tasks, and the "
                f"labels have {have} of class {name}"
            )
            fix = "collect more tasks of this class, or gate it on the bound"
            faults.append(Fault(what, fix, file=str(study.path), field=f"risk.{name}.gate_on"))
    if faults:
        raise InputError(faults)


def reasoning_budget(inputs: LadderInputs, look: Look | None = None) -> ReasoningBudget:
    """Judge the ladder and book the look at its tasks. Reads nothing more; writes only the record of looks.

    `look`: judge with this one, which was booked before, and write nothing.
    """
    study = inputs.study
    started = utc_now()
    look = look_at(inputs, started) if look is None else look
    result = analyse(inputs.assembled.data, ladder_settings(study, look.delta))
    result = _not_measured(result, inputs.outcomes)
    worst, total = worst_tasks(result, inputs.assembled, inputs.labels, inputs.outcomes)
    document = reasoning_document(
        study,
        inputs.assembled,
        result,
        look=look,
        worst_items=worst,
        worst_total=total,
        provenance=_provenance(inputs, started),
        notices=inputs.notices,
        evidence_limits=_evidence_limits(inputs, result, look),
    )
    rows = task_rows(result, inputs.assembled, inputs.labels, inputs.outcomes)
    return ReasoningBudget(document, items_gz(rows), result)


def _not_measured(result: LadderResult, outcomes: Outcomes) -> LadderResult:
    """Where no run at all was answered, say so first: nothing was measured."""
    sentence = nothing_scored(outcomes)
    if sentence is None:
        return result
    verdict = Verdict(
        Decision.INSUFFICIENT_EVIDENCE,
        (sentence, *result.verdict.reasons),
        result.verdict.uncertified,
        "Insufficient evidence: nothing was measured",
        "Put the cause of the errors right and collect the outcomes again",
    )
    # Nothing can be held against an arm on requests that nobody answered: what failed is open.
    failing = {Status.VIOLATED, Status.INFEASIBLE}
    gates = tuple(
        tuple(replace(g, status=Status.NOT_STATABLE) if g.status in failing else g for g in rows)
        for rows in result.gates
    )
    rules = tuple(
        replace(r, triggered=None) if r.applies and r.triggered and r.on_trigger == "reject" else r
        for r in result.stop_rules
    )
    return replace(
        result, verdict=verdict, selected=None, candidate=None, certified=(), gates=gates, stop_rules=rules
    )


def looks_record(study: ReasoningStudy) -> Path:
    """The record of looks at the study's tasks: beside the file, for a dataset of the hub beside the study."""
    return looks_path(study.labels.path if study.labels.path is not None else study.path)


def look_at(inputs: LadderInputs, now: str, *, book: bool = True) -> Look:
    """The look that judging these inputs is; with `book` False the record of looks is read only.

    What arms cost is no part of it: every arm is tested on every limit at its share of the error rate, whichever
    is then the least costly. So prices that come later, or another card, are the same look, and a run without any
    cost, which shows every figure and may reject, is one.
    """
    study = inputs.study
    parts = {
        "labels": inputs.labels.fingerprint,
        "study": _question_fingerprint(study),
    }
    if nothing_scored(inputs.outcomes) is None:  # the first runs that are answered complete a look without
        parts["outcomes"] = _judged_fingerprint(inputs)
    if inputs.policy is not None:  # to ask for something else of the same labels is another look
        parts["policy"] = inputs.policy["gates_sha256"]
    delta = 1.0 - study.confidence
    return take_look(looks_record(study), parts, declared=study.looks, delta=delta, now=now, book=book)


def _judged_fingerprint(inputs: LadderInputs) -> str:
    """Hash of what the limits are tested on: what became of every run of every arm, and its time.

    No ids: where a secret stands in one, the copies in an evidence bundle have it hidden.
    """
    data = inputs.assembled.data
    names = ("risk", "weight", "sampled", "passed", "answered", "task_s")
    return rows_hash("ladder", {name: getattr(data, name) for name in names})


def _question_fingerprint(study: ReasoningStudy) -> str:
    """Hash of what the study asks, without how its outcomes came about, what anything costs and the name of its
    gate policy, whose limits are in the study by now."""
    arms = tuple(replace(arm, cost_usd=None, sent=None) for arm in study.arms)
    bare = replace(study, arms=arms, outcomes=None, prices=None, rubric=None, policy=None, calls=Calls())
    return study_fingerprint(bare)


def _evidence_limits(inputs: LadderInputs, result: LadderResult, look: Look) -> list[str]:
    """What the evidence does not cover, in sentences for the approver, weightiest first."""
    data = result.data
    out = []
    if look.delta is None:
        out.append(
            f"This is look {look.number} at these tasks and {look.declared} declared: nothing is certified any "
            "more. Collect fresh tasks, or declare the number of looks before the first."
        )
    elif look.declared > 1:
        out.append(f"Look {look.number} of {look.declared} declared: each spends its part of the error rate.")
    if not look.recorded:
        out.append(
            "The record of looks beside the tasks could not be written, so later looks will not be counted."
        )
    out += unanswered_sentences(inputs.outcomes)
    if data.n < 59:
        out.append(
            f"{data.n:,} tasks: no 95th percentile of time and no failure limit of 5 % can be certified below 59, "
            "and a plateau of 1 point takes about 300 tasks."
        )
    if result.minimum_detectable_gain is not None:
        out.append(
            f"A true gain below {100 * result.minimum_detectable_gain:.1f} points between neighbouring arms would "
            "often be missed: that is the least this study finds with a chance of 80 %."
        )
    if result.plateau_at is not None:
        out.append(
            "A plateau speaks of single steps: several together may gain more than the smallest worthwhile gain."
        )
    if inputs.assembled.assumed_costs:
        out.append(f"{inputs.assembled.assumed_costs:,} costs are the arm's assumed cost per request.")
    if inputs.priced.note is not None:
        out.append(inputs.priced.note)
    outside = [a.name for a in inputs.assembled.arms if a.fallback is not None and a.fallback.arm is None]
    if outside:
        out.append(
            f"What {', '.join(outside)} decline{'s' if len(outside) == 1 else ''} goes to a fallback that was not "
            "measured: these runs count as unanswered, at the stated cost."
        )
    made = [a.name for a in inputs.assembled.arms if not a.recorded]
    if made:
        out.append(f"{', '.join(made)}: made of recorded runs of another arm, not run by itself.")
    if np.ptp(data.weight) > 0:
        out.append("Rates, USD, tokens and times are weighted to traffic shares; counts are not.")
    if data.group is not None:
        out.append("Tasks share groups: bounds count groups, each by its worst task.")
    if int(data.sampled.sum(axis=2).max(initial=0)) > 1:
        out.append("A task fails its risk class where any of its runs fails; more runs make that stricter.")
    out.append("The frontier and the acceptability curve are descriptive; they select nothing.")
    return out


def _provenance(inputs: LadderInputs, started: str) -> dict[str, Any]:
    study, priced, outcomes = inputs.study, inputs.priced, inputs.outcomes
    cost_kind = "assumed" if inputs.assembled.assumed_costs else "measured"
    if priced.card_kind is not None:
        cost_kind = priced.card_kind
    return {
        "started_at": started,
        "finished_at": utc_now(),
        "seed": study.seed,
        "study_file": study.path.name,
        "study_hash": f"sha256:{study.fingerprint.removeprefix('sha256:')}",
        "labels": source_row(
            study.labels, inputs.labels.fingerprint, kind=study.labels_kind, **label_facts(inputs.labels)
        ),
        "outcomes": source_row(study.outcomes, outcomes.fingerprint),
        "prices": priced.provenance,
        **({} if inputs.policy is None else {"policy": inputs.policy}),
        **inputs.replay.provenance,
        "models": {
            arm.name: {"requested": arm.model, "served": list(outcomes.model[j])}
            for j, arm in enumerate(study.tiers)
        },
        **dependency_versions(),
        "numbers": {
            "pass rates, failures and flips": "measured",
            "tokens and times": "measured",
            "costs": cost_kind,
            "value per point, smallest gain and limits": "assumed",
        },
    }
