"""Labels, outcomes and scores, as read, into the arrays and settings of a routing analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.scores import Scores
from evalkit.outcomes.status import Status
from evalkit.outcomes.table import Outcomes
from evalkit.routing.data import ClassLimit, Floats, Limits, RoutingData, Settings, rescaled
from evalkit.routing.path import direction_mask
from evalkit.study.models import RoutingStudy

__all__ = ["Assembled", "assemble", "refuse_small_estimates", "settings_of"]


@dataclass(frozen=True)
class Assembled:
    """The arrays, and what had to be assumed or left out on the way."""

    data: RoutingData
    assumed_costs: int
    notes: tuple[str, ...]


def assemble(
    study: RoutingStudy,
    labels: LabelSet,
    outcomes: Outcomes | None,
    scores: Scores | None,
    cost_usd: Floats | None,
) -> Assembled:
    """The data of the analysis. `cost_usd` (N, K, S): outcome costs, priced where they had none; NaN unknown."""
    notes: list[str] = []
    n, k = len(labels), len(study.tiers)
    arrays: dict[str, object] = {}
    assumed = 0
    tier_assumed = np.array([np.nan if t.cost_usd is None else float(t.cost_usd) for t in study.tiers])
    if outcomes is not None:
        sampled = outcomes.present
        count = np.maximum(sampled.sum(axis=2), 1)
        has = np.asarray(sampled.any(axis=2))
        assert cost_usd is not None
        unknown = sampled & np.isnan(cost_usd)
        filled = np.where(unknown, tier_assumed[None, :, None], cost_usd)
        assumed = int((unknown & ~np.isnan(filled)).sum())
        total = np.where(sampled, filled, 0.0).sum(axis=2)
        cost = np.where(has, total / count, np.nan)
        broken = outcomes.having(Status.CONTRACT_FAIL)
        stands_in = np.isnan(outcomes.task_s) & ~np.isnan(outcomes.request_s)
        last = stands_in & (outcomes.attempts > 1)  # of several attempts it is the last alone
        task = np.where(stands_in & ~last, outcomes.request_s, outcomes.task_s)
        if bool((stands_in & ~last).any()):
            notes.append("Where task_s is missing, request_s is taken for the task's time.")
        if bool(last.any()):
            notes.append("Where task_s is missing, the time of a task of several attempts is unknown.")
        arrays = {
            "tier_cost_usd": cost,
            "passed": (outcomes.passed & sampled).sum(axis=2) / count,
            "answered": (outcomes.answered & sampled).sum(axis=2) / count,
            "contract_failed": broken.sum(axis=2) / count,
            "task_s": None if np.isnan(task).all() else task,
            "replied": outcomes.answered & sampled,
            "sampled": sampled if not sampled.all() else None,
        }
        if not has.all():  # a missing outcome that the study counts as unanswered is still one request
            arrays["sampled"] = np.where(has[:, :, None], sampled, np.arange(sampled.shape[2]) == 0)
    elif not np.isnan(tier_assumed).any():
        arrays = {"tier_cost_usd": np.tile(tier_assumed, (n, 1))}
        assumed = n * k
    data = RoutingData(
        tiers=study.tier_names,
        risk_classes=study.risk_classes,
        required=labels.required,
        risk=labels.risk,
        weight=rescaled(labels.weight),
        demand=None if scores is None else _demand(study, scores),
        verifier_usd=None if scores is None else _verifier(study, scores, n, k),
        group=_codes_of_groups(labels.group),
        category=_codes(labels.category),
        direction=_direction(study, labels),
        **arrays,  # type: ignore[arg-type]
    )
    return Assembled(data, assumed, tuple(notes))


def _demand(study: RoutingStudy, scores: Scores) -> Floats:
    """Scores as demand, larger asks for a stronger tier; a missing score is infinite as the study says."""
    sign = 1.0 if study.router.higher_means == "needs_stronger" else -1.0
    missing = np.inf if study.router.missing_scores == "escalate" else -np.inf
    if scores.by_tier:
        values = np.column_stack([scores.by_tier[name] for name in study.tier_names[:-1]])
    else:
        assert scores.score is not None
        values = scores.score
    return np.where(np.isnan(values), missing, sign * values)


def _verifier(study: RoutingStudy, scores: Scores, n: int, k: int) -> Floats | None:
    """(N, K - 1) what verifying each tier's reply costs; the router's cost where a tier has no column."""
    if not scores.verifier_usd:
        return None
    out = np.full((n, k - 1), float(study.router.cost_usd))
    for j, name in enumerate(study.tier_names[:-1]):
        if name in scores.verifier_usd:
            out[:, j] = scores.verifier_usd[name]
    return out


def _codes(values: Sequence[str | None] | None) -> NDArray[np.int32] | None:
    if values is None or all(v is None for v in values):
        return None
    names = sorted({v for v in values if v is not None})
    place = {name: i for i, name in enumerate(names)}
    return np.array([-1 if v is None else place[v] for v in values], dtype=np.int32)


def _codes_of_groups(group: Sequence[str | None] | None) -> NDArray[np.int64] | None:
    """Codes 0..G-1; an item without a group is its own. None where no two items share a group."""
    if group is None:
        return None
    place: dict[object, int] = {}
    codes = [place.setdefault(i if g is None else ("g", g), len(place)) for i, g in enumerate(group)]
    return None if len(place) == len(codes) else np.array(codes, dtype=np.int64)


def _direction(study: RoutingStudy, labels: LabelSet) -> NDArray[np.bool_] | None:
    if len(study.tiers) == 2:
        return None
    keys = [
        i if labels.group is None or labels.group[at] is None else str(labels.group[at])
        for at, i in enumerate(labels.ids)
    ]
    return direction_mask(keys, study.seed)


def settings_of(study: RoutingStudy, policy: str, delta: float | None) -> Settings:
    """How to judge under the study, with what this look may spend."""
    return Settings(
        classes=tuple(
            ClassLimit(r.under_route_loss, r.max_under_route, r.gate_on == "estimate", r.weight)
            for r in study.risk.values()
        ),
        limits=Limits(
            study.limits.min_pass_rate,
            study.limits.max_cost_per_request,
            study.limits.p95_task_seconds,
            study.limits.max_escalation,
        ),
        policy=policy,
        router_cost_usd=float(study.router.cost_usd),
        router_s=study.router.seconds or 0.0,
        contract_failure_cost_usd=study.contract_failure_cost,
        delta=delta,
        confidence=study.confidence,
        seed=study.seed,
        certifiable=study.router.trained_on not in {"cross_fitted", "these_items"},
        near_total_escalation=study.near_total_escalation,
        bootstrap_replicates=study.bootstrap_replicates,
        direction_is_up=study.router.higher_means != "cheap_is_enough",
        chosen_from=study.shared if study.routers or study.router.name or study.router.routers > 1 else 1,
    )


def refuse_small_estimates(study: RoutingStudy, data: RoutingData) -> None:
    """A class judged on the estimate needs at least 1 / limit needs (conversations, where items share them) that
    stand for traffic; raises InputError for those with fewer. No number is enough for a limit of 0."""
    faults = []
    for r, (name, rule) in enumerate(study.risk.items()):
        if rule.gate_on != "estimate" or rule.max_under_route is None:
            continue
        if rule.max_under_route == 0:
            faults.append(
                Fault(
                    "a limit of 0 judged on the estimate is kept by one item without a failure",
                    "write a limit above 0, or gate it on the bound",
                    file=str(study.path),
                    field=f"risk.{name}.gate_on",
                )
            )
            continue
        chosen = data.needs & (data.risk == r) & (data.weight > 0)
        have = int(chosen.sum()) if data.group is None else len(np.unique(data.group[chosen]))
        if have < 1 / rule.max_under_route:
            least = int(np.ceil(1 / rule.max_under_route - 1e-9))
            faults.append(
                Fault(
                    f"a limit of {rule.max_under_route:g} judged on the estimate needs at least {least} items "
                    f"that need more than {study.tier_names[0]}, and the labels have {have} of class {name}",
                    "label more items of this class, or gate it on the bound",
                    file=str(study.path),
                    field=f"risk.{name}.gate_on",
                )
            )
    if faults:
        raise InputError(faults)
