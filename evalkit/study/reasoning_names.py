"""The keys a reasoning-budget study knows, and where a key belongs that stands in the wrong place."""

from __future__ import annotations

__all__ = ["REASONING_SECTIONS", "reasoning_elsewhere"]

REASONING_SECTIONS: dict[str, tuple[str, ...]] = {
    "": (
        "study",
        "kind",
        "description",
        "labels",
        "labels_kind",
        "outcomes",
        "arms",
        "prices",
        "rubric",
        "policy",
        "missing_outcomes",
        "pass_at",
        "risk",
        "limits",
        "value_per_point_usd",
        "smallest_worthwhile_gain",
        "samples",
        "client",
        "confidence",
        "looks",
        "seed",
        "bootstrap_replicates",
        "system_prompt",
        "prompt",
        "aliases",
        "local_models",
        "replay",
    ),
    "limits": ("min_pass_rate", "max_cost_per_request", "p95_task_seconds"),
    "arms[]": (
        "name",
        "model",
        "params",
        "cost_usd",
        "budget_tokens",
        "budget_sweep",
        "min_budget_tokens",
        "max_tokens",
        "effort",
        "steps",
        "of",
        "vote",
        "at_once",
        "loop",
        "check_usd",
        "check_seconds",
        "declines_as",
        "fallback",
        "sent",
    ),
    "arms[].fallback": ("arm", "cost_usd", "seconds"),
    "risk.<class>": ("max_failure", "gate_on"),
}
"""Known keys by section. `arms[]` and `risk.<class>` are sections that occur more than once."""

_FOREIGN: dict[str, str] = {
    "tiers": "write arms, or kind: routing and run evalkit route-sweep",
    "router": "a reasoning study has no router; write kind: routing and run evalkit route-sweep",
    "under_route_loss": "write max_failure, the largest share of the class's tasks that may fail",
    "max_under_route": "write max_failure, the largest share of the class's tasks that may fail",
    "max_failure_rate": "write max_failure",
    "max_escalation": "a reasoning study does not route; delete it",
    "models": "write arms, a list of {name: ..., model: ..., budget_tokens: ...}, in budget order",
    "budgets": "write arms, or budget_sweep: [1024, 4096] in one arm",
    "reasoning_effort": "write effort: low in the arm",
    "thinking_budget": "write budget_tokens in the arm",
    "thinking": "write budget_tokens in the arm",
    "value_per_point": "write value_per_point_usd",
    "lambda": "write value_per_point_usd: USD that one quality point is worth per request",
    "willingness_to_pay": "write value_per_point_usd: USD that one quality point is worth per request",
    "smallest_gain": "write smallest_worthwhile_gain, in points",
    "runs": "write samples",
    "epochs": "write samples",
    "delta": "write confidence, which is 1 - delta",
    "alpha": "write confidence, which is 1 - alpha",
    "name": "write study, the name of the study",
}


def reasoning_elsewhere(section: str, key: str) -> tuple[str, str] | None:
    """(what, fix) for a key that this section does not know but another section or another tool does."""
    for other, keys in REASONING_SECTIONS.items():
        if other != section and key in keys:
            place = {"": "at the top of the study", "arms[]": "in an entry of arms"}.get(other, f"under {other}")
            here = {"": "at the top of the study", "arms[]": "in an entry of arms"}.get(
                section, f"under {section}"
            )
            return f"does not belong {here}", f"write it {place}"
    if key in _FOREIGN:
        return "is not a key of a reasoning-budget study", _FOREIGN[key]
    return None
