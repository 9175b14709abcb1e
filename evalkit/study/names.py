"""The keys a routing study knows, and where a key belongs that stands in the wrong place."""

from __future__ import annotations

__all__ = ["ROUTER_OPTIONS", "SECTIONS", "elsewhere"]

ROUTER_OPTIONS: dict[str, tuple[str, ...]] = {
    "estimator": ("classifier", "semantic"),
    "features": ("classifier", "semantic"),
    "regularisation": ("classifier", "semantic"),
    "smoothing": ("classifier", "semantic"),
    "unsolvable": ("classifier", "semantic"),
    "folds": ("classifier", "semantic"),
    "neighbours": ("semantic",),
    "embedding": ("semantic",),
    "dimensions": ("semantic",),
}
"""Settings of the routers that evalkit fits, and the kinds that each belongs to."""

_ROUTER = (
    "policy",
    "scores",
    "kind",
    "rules",
    "model",
    "function",
    "train",
    "leaks",
    *ROUTER_OPTIONS,
    "higher_means",
    "trained_on",
    "cost_usd",
    "seconds",
    "thresholds",
    "decisions",
    "missing_scores",
    "probability",
    "routers",
)

SECTIONS: dict[str, tuple[str, ...]] = {
    "": (
        "study",
        "kind",
        "description",
        "labels",
        "labels_kind",
        "outcomes",
        "tiers",
        "prices",
        "rubric",
        "policy",
        "audit",
        "missing_outcomes",
        "pass_at",
        "router",
        "routers",
        "risk",
        "contract_failure_cost",
        "limits",
        "confidence",
        "looks",
        "seed",
        "near_total_escalation",
        "bootstrap_replicates",
        "system_prompt",
        "prompt",
        "samples",
        "aliases",
        "local_models",
        "replay",
    ),
    "router": _ROUTER,
    "routers[]": ("name", *_ROUTER),
    "limits": ("min_pass_rate", "max_cost_per_request", "p95_task_seconds", "max_escalation"),
    "tiers[]": ("name", "model", "params", "cost_usd"),
    "risk.<class>": ("under_route_loss", "max_under_route", "gate_on", "weight"),
    "source": ("path", "columns", "encoding"),
}
"""Known keys by section. `tiers[]`, `routers[]`, `risk.<class>` and `source` occur more than once."""

_PLACES = {
    "": "at the top of the study",
    "tiers[]": "in an entry of tiers",
    "routers[]": "in an entry of routers",
}

_DIRECTION = "write router.higher_means: needs_stronger (a high score asks for a stronger tier) or cheap_is_enough"
_FOREIGN: dict[str, str] = {
    "score_means": _DIRECTION,
    "score_direction": _DIRECTION,
    "escalate_if": _DIRECTION,
    "threshold": "write router.thresholds, a list with one number for each tier above the cheapest",
    "risk_classes": "write risk, with {under_route_loss: ..., max_under_route: ...} for each class",
    "risk_weights": "write risk.<class>.weight",
    "risk_weight": "write risk.<class>.weight",
    "models": "write tiers, a list of {name: ..., model: ...}, least capable first",
    "candidates": "write tiers, a list of {name: ..., model: ...}, least capable first",
    "arms": "write kind: reasoning-budget and run evalkit reasoning-budget, where arms belong",
    "name": "write study, the name of the study",
    "labelset": "write labels",
    "score_file": "write router.scores",
    "routing_file": "write router.decisions",
    "price_card": "write prices",
    "delta": "write confidence, which is 1 - delta",
    "alpha": "write confidence, which is 1 - alpha",
}


def elsewhere(section: str, key: str) -> tuple[str, str] | None:
    """(what, fix) for a key that this section does not know but another section or another tool does."""
    for other, keys in SECTIONS.items():
        if other not in {section, "source"} and key in keys:
            place = _PLACES.get(other, f"under {other}")
            return f"does not belong {_here(section)}", f"write it {place}"
    if key in _FOREIGN:
        return "is not a key of a routing study", _FOREIGN[key]
    return None


def _here(section: str) -> str:
    return _PLACES.get(section, f"under {section}")
