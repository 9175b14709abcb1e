"""What result.json says of the routers of a study: each at its best point, and how the chosen one compares.

A study with one router that is read from a file has none of this but its file: its result is as it always was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from evalkit.gates import Decision, Verdict
from evalkit.routing.analysis import RoutingResult
from evalkit.routing.calibration import Calibration, calibration
from evalkit.routing.points import clean
from evalkit.routing.routers import against_others, rank
from evalkit.routing.units import rule_text
from evalkit.study.models import Router, RoutingStudy, Source
from evalkit.workflows.provenance import source_row
from evalkit.workflows.router_scores import Given

__all__ = [
    "checked_for_leaks",
    "headline_of",
    "next_step_of",
    "router_name",
    "routers_part",
    "routers_provenance",
    "tables_of",
    "text_hash",
]

Document = dict[str, Any]
MOST_LEAKS = 100
"""Leaks of one router that result.json lists; the evidence bundle has all."""


def text_hash(texts: Sequence[str]) -> str:
    """SHA-256 in hex of texts in their order."""
    mark = hashlib.sha256()
    for text in texts:
        raw = text.encode("utf-8")
        mark.update(len(raw).to_bytes(8, "big") + raw)
    return mark.hexdigest()


def tables_of(given: Given) -> Document:
    """The scores and decisions of one router as the provenance names them."""
    router, scores, decisions = given.router, given.scores, given.decisions
    name: Source | str | None = router.scores
    more: Document = {"trained_on": router.trained_on}
    if router.spec is not None:
        name = router.spec.written or f"computed ({router.spec.kind})"
        more |= {"computed_by": router.spec.kind}
    return {
        "scores": source_row(name, None if scores is None else scores.fingerprint, **more),
        "decisions": source_row(router.decisions, None if decisions is None else decisions.fingerprint),
    }


def routers_provenance(study: RoutingStudy, given: Sequence[Given], left_out: Sequence[str]) -> Document:
    """What was run and what was left out, by router; nothing for a single router that is read from a file."""
    if not _said(study):
        return {}
    rows = [
        {
            "name": router_name(study, one.router),
            "kind": _kind(one.router),
            **({} if one.router.train is None else {"train": one.router.train.written}),
            **tables_of(one),
            "facts": dict(one.run.facts),
        }
        for one in given
    ]
    out: Document = {"routers": rows}
    if any(checked_for_leaks(one.router) for one in given):
        out["left_out"] = {"items": len(left_out), "hash": f"sha256:{text_hash(left_out)}"}
    return out


def router_name(study: RoutingStudy, router: Router) -> str:
    """The name of a router; the only one of a study is called by its kind."""
    return router.name if router.name else _kind(router)


def headline_of(given: Sequence[Given], chosen: int, headline: str) -> str:
    """The headline of a verdict with the router that it is about, where there are several."""
    if len(given) < 2:
        return headline
    return f"{headline}: router {given[chosen].router.name}, the best of {len(given)}"


def next_step_of(given: Sequence[Given], chosen: int, verdict: Verdict) -> str:
    """What to do next; of several routers an approval names the one to deploy."""
    if len(given) < 2 or verdict.decision is not Decision.APPROVE:
        return verdict.next_step
    return f"Deploy router {given[chosen].router.name} with the selected threshold as printed"


def routers_part(
    study: RoutingStudy,
    given: Sequence[Given],
    results: Sequence[RoutingResult],
    owners: Sequence[int],
    best: int,
    left_out: Sequence[str],
) -> Document:
    """`routers`, `chosen_router`, `router_comparisons` and `left_out` of result.json; {} as `routers_provenance`.

    results: every policy of every router, `owners` whose it is, `best` the chosen one.
    """
    if not _said(study):
        return {}
    shown = [_best_of(results, owners, place, best) for place in range(len(given))]
    chosen = owners[best]
    out: Document = {
        "routers": [
            _row(
                study, one, results[at], [results[i] for i, o in enumerate(owners) if o == place], place == chosen
            )
            for place, (one, at) in enumerate(zip(given, shown, strict=True))
        ],
        "chosen_router": router_name(study, given[chosen].router),
        "router_comparisons": _comparisons(study, given, [results[i] for i in shown], chosen),
    }
    if any(checked_for_leaks(one.router) for one in given):
        out["left_out"] = {"items": len(left_out), "ids": list(left_out[:MOST_LEAKS])}
    return out


def _said(study: RoutingStudy) -> bool:
    return bool(study.routers) or any(r.spec is not None or r.train is not None for r in study.all_routers)


def checked_for_leaks(router: Router) -> bool:
    """Its training was held against the judged items."""
    fitted = (
        router.spec is not None and router.spec.kind in {"classifier", "semantic"} and router.spec.path is not None
    )
    return router.train is not None or fitted


def _kind(router: Router) -> str:
    if router.spec is not None:
        return router.spec.kind
    return "decisions" if router.decisions is not None else "scores"


def _best_of(results: Sequence[RoutingResult], owners: Sequence[int], place: int, best: int) -> int:
    if owners[best] == place:
        return best
    return min((i for i, owner in enumerate(owners) if owner == place), key=lambda i: rank(results[i]))


def _row(
    study: RoutingStudy, given: Given, result: RoutingResult, policies: Sequence[RoutingResult], chosen: bool
) -> Document:
    from evalkit.workflows.result import gate_document, point_document, policy_row

    router, data, separation = given.router, result.measures.data, result.separation
    point = point_document(result.shown, data, result, {})
    per_tier = data.demand is not None and data.demand.ndim == 2
    rule = (
        "as the decisions say"
        if result.policy == "decisions"
        else rule_text(router.higher_means != "cheap_is_enough", result.policy, data.k, per_tier)
    )
    leaks = given.run.leaks
    return {
        "name": router_name(study, router),
        "kind": _kind(router),
        "trained_on": router.trained_on,
        "chosen": chosen,
        "policy": result.policy,
        "policies": [policy_row(r) for r in policies] if len(policies) > 1 else [],
        "rule": rule,
        "verdict": {
            "decision": result.verdict.decision.value,
            "headline": result.verdict.headline,
            "reasons": list(result.verdict.reasons),
            "uncertified": list(result.verdict.uncertified),
        },
        "point_is": _point_is(result),
        **{key: value for key, value in point.items() if key.removesuffix("_reason") in _FIGURES},
        "gates": [
            {key: value for key, value in gate_document(gate).items() if key in _GATE} for gate in result.gates
        ],
        "separation": None
        if separation is None
        else {
            "auc": clean(separation.auc),
            "lower": clean(separation.lower),
            "upper": clean(separation.upper),
            "n_needs": separation.n_positive,
            "n_other": separation.n_negative,
        },
        "calibration": _calibration_row(_calibrated(given, result), _of_tiers(given, data.k)),
        **({} if _calibrated_is_due(given) else {"calibration_reason": "the score declares no probability"}),
        "facts": dict(given.run.facts),
        "leaks": [
            {"id": leak.id, "training_id": leak.training, "kind": leak.kind, "similarity": clean(leak.similarity)}
            for leak in leaks[:MOST_LEAKS]
        ],
        "leaks_total": len(leaks),
        "leaks_checked": checked_for_leaks(router),
    }


_FIGURES = frozenset(
    {
        "thresholds",
        "escalation_rate",
        "under_route_count",
        "under_route_rate",
        "routing_loss_usd",
        "expected_total_usd",
        "cost_usd_per_request",
        "pass_rate_lower",
        "p95_task_s",
        "by_risk",
    }
)
_GATE = frozenset({"name", "label", "limit", "observed", "upper_bound", "lower_bound", "status", "confidence"})


def _point_is(result: RoutingResult) -> str:
    """What the figures of a router are at."""
    if result.judged is not None:
        return "judged"
    if result.selected is not None:
        return "selected"
    return "candidate" if result.candidate is not None else "all_strongest"


def _fitted(given: Given) -> bool:
    """The score is evalkit's own: the expected share of tiers that are not enough, of two the chance of a need."""
    return given.router.spec is not None and given.router.spec.kind in {"classifier", "semantic"}


def _calibrated_is_due(given: Given) -> bool:
    declared = given.router.probability or _fitted(given)
    return declared and given.scores is not None and given.scores.score is not None


def _calibrated(given: Given, result: RoutingResult) -> Calibration | None:
    """What the scores predict against the labels: a declared probability that an item needs more than the cheapest
    tier, or the share of tiers that are not enough."""
    if not _calibrated_is_due(given):
        return None
    assert given.scores is not None
    assert given.scores.score is not None
    data, score = result.measures.data, given.scores.score
    need = score if given.router.higher_means != "cheap_is_enough" else 1.0 - score
    inside = data.solvable
    happened = data.required[inside] / (data.k - 1) if _of_tiers(given, data.k) else data.needs[inside]
    confidence = result.measures.settings.confidence
    return calibration(np.asarray(need[inside]), happened, data.weight[inside], confidence)


def _of_tiers(given: Given, tiers: int) -> bool:
    return tiers > 2 and _fitted(given) and not given.router.probability


def _calibration_row(found: Calibration | None, of_tiers: bool) -> Document | None:
    if found is None:
        return None
    what = "share of tiers that are not enough" if of_tiers else "share that needs more than the cheapest tier"
    return {
        "bins": [
            {
                "predicted": clean(one.predicted),
                "observed": clean(one.observed),
                "lower": clean(one.lower),
                "upper": clean(one.upper),
                "n": one.n,
            }
            for one in found.bins
        ],
        "brier": clean(found.brier),
        "n": found.n,
        "what": what,
        "detail": f"{what}, over solvable items; bins of equal numbers of items",
    }


def _comparisons(
    study: RoutingStudy, given: Sequence[Given], shown: Sequence[RoutingResult], chosen: int
) -> list[Document]:
    rows = []
    for one in against_others(shown, chosen, study.confidence):
        seen = one.difference
        better = None
        if seen.lower is not None and seen.upper is not None and not seen.lower <= 0 <= seen.upper:
            better = seen.lower > 0 if one.what == "pass_rate" else seen.upper < 0
        rows.append(
            {
                "against": router_name(study, given[one.against].router),
                "what": one.what,
                "difference": clean(seen.mean),
                "lower": clean(seen.lower),
                "upper": clean(seen.upper),
                "n": seen.n,
                "confidence": clean(one.confidence),
                "better": better,
                **(
                    {} if one.p_value is None else {"gained": one.gained, "lost": one.lost, "p_value": one.p_value}
                ),
            }
        )
    return rows
