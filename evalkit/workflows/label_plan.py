"""`evalkit labels plan`: how many labels each risk class of a study still needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.plan import CHANCE, ClassPlan, ClassState, plan_class, plan_lines
from evalkit.labels.read import is_unlabelled, read_labels
from evalkit.routing.certify import class_units
from evalkit.routing.path import DIRECTION_SHARE
from evalkit.statistics.bounds import effective_n
from evalkit.study.models import RoutingStudy
from evalkit.study.routing import read_study
from evalkit.tabular.names import quoted
from evalkit.workflows.assemble import assemble
from evalkit.workflows.gate_policy import planned_under_policy
from evalkit.workflows.labels import pairs_in, show, write_summary
from evalkit.workflows.looks import looks_path, take_look
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["Budget", "next_budget", "plan_labels", "share_of_units", "states_of"]


@dataclass(frozen=True)
class Budget:
    """What the next look at grown labels may spend. look: its number. fresh: no look is left, so that only a fresh
    sample can be certified, and `delta` is that of its first look."""

    delta: float
    look: int
    declared: int
    routers: int
    fresh: bool


def next_budget(study: RoutingStudy, fingerprint: str | None) -> Budget:
    """The error rate of the next look, shared as the certificate shares it: looks, routers, policies compared, an
    audit of the labels."""
    source = study.labels.path
    record = looks_path(source if source is not None else study.path)
    parts = {"labels": fingerprint or "none", "study": "not judged: a plan"}
    whole = 1.0 - study.confidence
    look = take_look(record, parts, declared=study.looks, delta=whole, now="", book=False)
    routers = study.shared
    delta, fresh = look.delta, look.delta is None
    if delta is None:
        delta = whole if study.looks == 1 else whole / 2
    if study.audit is not None:
        delta /= 2  # the other half is the audit's
    return Budget(delta / routers, look.number, study.looks, routers, fresh)


def share_of_units(study: RoutingStudy) -> float:
    """The share of items that certify: all, but where the others find the direction over three or more tiers."""
    searched = any(router.thresholds is None and router.decisions is None for router in study.all_routers)
    return 1.0 - DIRECTION_SHARE if len(study.tiers) > 2 and searched else 1.0


def states_of(
    study: RoutingStudy,
    labels: LabelSet | None,
    *,
    needs_share: Mapping[str, float],
    fresh: bool = False,
) -> list[ClassState]:
    """What the labels hold for each class, as the certificate counts it; a given share of needs takes the place of
    the observed one. `fresh`: the labels count for their shares only."""
    certifying = share_of_units(study)
    out = []
    data = None if labels is None else assemble(study, labels, None, None, None).data
    total = 0.0 if data is None else float(data.weight.sum())
    for r, (name, rule) in enumerate(study.risk.items()):
        have, worth, share, of_all = 0.0, 1.0, needs_share.get(name), None
        if data is not None:
            flat = np.zeros((data.n, data.k - 1))
            units, weight = class_units(data, flat, r)
            mine = data.risk == r
            of_all = float(data.weight[mine].sum()) / total
            items = mine & (data.weight > 0)
            n_units = int(items.sum()) if data.group is None else len(np.unique(data.group[items]))
            if share is None and len(units) and n_units:
                share = len(units) / n_units
            if len(units):
                worth = effective_n(weight) / len(units)
            searched = certifying < 1.0 and data.direction is not None
            if searched and data.direction is not None and (~data.direction).any():
                held = data.subset(~data.direction)
                weight = class_units(held, np.zeros((held.n, held.k - 1)), r)[1]
            have = 0.0 if fresh else effective_n(weight)
        out.append(ClassState(
            name, rule.max_under_route, rule.gate_on == "estimate", have, share, of_all, certifying, worth,
        ))  # fmt: skip
    return out


def plan_labels(
    study: Path, *, labels: Path | None, needs_share: Sequence[str], json_file: Path | None, quiet: bool
) -> None:
    """Print what each class needs. Raises `InputError` with every fault of the study and the labels."""
    read, stricter = planned_under_policy(read_study(study, files_exist=False))
    given = _shares(needs_share, read.risk_classes)
    source = read.labels
    if json_file is not None:
        refuse_to_overwrite([study, labels, source.path], [json_file])
    found, notices = _at_hand(read, labels)
    budget = next_budget(read, None if found is None else found.fingerprint)
    states = states_of(read, found, needs_share=given, fresh=budget.fresh)
    plans = [plan_class(state, budget.delta) for state in states]
    grouped = found is not None and found.group is not None and len(set(found.group)) < len(found)
    if json_file is not None:
        document = {
            "schema": "evalkit.labels-plan/1",
            "study": read.name,
            "delta": budget.delta,
            "look": budget.look,
            "looks_declared": budget.declared,
            "policies_or_routers": budget.routers,
            "fresh_sample": budget.fresh,
            "units": "conversations with a need" if grouped else "needs",
            "draw_chance": CHANCE,
            "labels": None if found is None else {"file": found.file, "fingerprint": found.fingerprint},
            "classes": [plan.as_json() for plan in plans],
        }
        write_summary(json_file, document)
    show([] if quiet else _lines(read, budget, plans, grouped), [*stricter, *notices])


def _at_hand(study: RoutingStudy, labels: Path | None) -> tuple[LabelSet | None, Sequence[str]]:
    """The labels that there are, and notices; None where there is no file yet or nothing in it is labelled."""
    source = study.labels
    if labels is None and source.hf is None and (source.path is None or not source.path.exists()):
        return None, ()
    file = str(labels) if labels is not None else source.address
    columns = dict(source.columns) or None
    if is_unlabelled(file, columns=columns, encoding=source.encoding):
        return None, (f"{file}: no row has a required_tier yet: nothing is labelled",)
    found = read_labels(
        file, tiers=study.tier_names, risk_classes=study.risk_classes, columns=columns, encoding=source.encoding
    )
    return found, found.notices


def _shares(given: Sequence[str], classes: Sequence[str]) -> dict[str, float]:
    out = {}
    for name, text in pairs_in("--needs-share", given).items():
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name not in classes:
            what, fix = f"{quoted(name)} is no risk class of the study", f"name one of {', '.join(classes)}"
            raise InputError(Fault(what, fix, field="--needs-share"))
        if not 0 < value <= 1:
            what, fix = f"{quoted(text)} is not above 0 and at most 1", "write a fraction: critical=0.3"
            raise InputError(Fault(what, fix, field="--needs-share"))
        out[name] = value
    return out


def _lines(study: RoutingStudy, budget: Budget, plans: Sequence[ClassPlan], grouped: bool) -> list[str]:
    lines = [f"{study.name}: labels that certification needs; error rate {budget.delta:.4g} on the safety side"]
    if budget.fresh:
        lines.append("No look at these labels is left: only a fresh sample can be certified, so none is at hand.")
    elif budget.declared > 1:
        lines.append(f"For look {budget.look} of {budget.declared} declared.")
    if budget.routers > 1:
        lines.append(f"Shared by {budget.routers} routers or policies that are compared.")
    if study.audit is not None:
        lines.append("Half of it is the audit's.")
        lines.append("The audit takes the needs that labels may miss from each limit: plan for more.")
    lines += plan_lines(plans, "needs")
    unit = "conversations with one" if grouped else "items"
    lines.append(f"needs: {unit} whose required tier is above {study.tier_names[0]}, not unsolvable")
    if share_of_units(study) < 1:
        lines.append("needs and have: of the 60 % that certify; 40 % of what is drawn finds the direction")
    if any(plan.state.worth < 1 - 1e-9 for plan in plans):
        lines.append("have: what the needs are worth with their weights, sum / largest")
    lines.append(f"draw: at random, so that with {CHANCE:.0%} chance none is missing (- where not known)")
    lines.append("chance: that so many needs certify when the true rate is half the limit")
    if any(plan.state.on_estimate for plan in plans):
        lines.append("any: judged on the estimate (gate_on), which certifies nothing")
    if all(router.trained_on == "cross_fitted" for router in study.all_routers):
        lines.append("The scores are cross-fitted: their bounds are approximate, and nothing is certified.")
    for plan in plans:
        if plan.state.limit is not None and plan.state.needs_share is None:
            lines.append(f"{plan.state.name}: no need is labelled yet; give --needs-share {plan.state.name}=0.2")
    return lines
