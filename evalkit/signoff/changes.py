"""What a release would change: each figure in production and with the candidate. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.signoff.model import RunFacts
from evalkit.signoff.policy import Policy

__all__ = ["change_rows"]

Row = dict[str, Any]


def change_rows(policy: Policy, run: RunFacts) -> list[Row]:
    """Rows {run, what, before, after, unit, kind}: production against what the run shows.

    Production is the run of today or the first arm of the policy's baseline that the run has; without one there is
    nothing to compare with, and no row.
    """
    before = _production(policy, run)
    if before is None:
        return []
    after = run.shown
    if run.is_routing:
        rows = [_row(run, "threshold", _setting(before), _setting(after), "threshold", "assumed")]
        figures: tuple[tuple[str, str, str], ...] = (
            ("cost_per_request", "cost_usd_per_request", "usd"),
            ("pass_rate", "pass_rate_lower", "share"),
            ("escalation", "escalation_rate", "share"),
            ("p95_task", "p95_task_s", "s"),
        )
    else:
        rows = [_row(run, "arm", before.get("name"), after.get("name"), "", "assumed")]
        figures = (
            ("cost_per_request", "cost_usd_per_request", "usd"),
            ("pass_rate", "pass_rate_lower", "share"),
            ("p95_task", "p95_task_s", "s"),
        )
    for what, key, unit in figures:
        kind = run.cost_kind if what == "cost_per_request" else "measured"
        row = _row(run, what, before.get(key), after.get(key), unit, kind)
        for side, point in (("before", before), ("after", after)):
            if row[side] is None and point.get(f"{key}_reason"):
                row[f"{side}_reason"] = point[f"{key}_reason"]
        rows.append(row)
    classes, head, rate = (
        ("by_risk", "under_route", "under_route_rate")
        if run.is_routing
        else ("risk_failure", "risk_failure", "rate")
    )
    for name, seen in (after.get(classes) or {}).items():
        was = (before.get(classes) or {}).get(name) or {}
        rows.append(_row(run, f"{head}:{name}", was.get(rate), seen.get(rate), "share", "measured"))
    return rows


def _production(policy: Policy, run: RunFacts) -> Mapping[str, Any] | None:
    """The operating point or arm that is in production."""
    if policy.baseline is None:
        return None
    if policy.baseline.today is not None:
        return run.today
    for arm in policy.baseline.arms:
        if run.is_routing:
            found = (run.result.get("baselines") or {}).get(arm)
        else:
            found = next((row for row in run.result["arms"] if row["name"] == arm), None)
        if isinstance(found, Mapping):
            return found
    return None


def _setting(point: Mapping[str, Any]) -> Any:
    """The thresholds of a point; what it is called where it has none."""
    thresholds = point.get("thresholds")
    return list(thresholds) if thresholds else point.get("name")


def _row(run: RunFacts, what: str, before: Any, after: Any, unit: str, kind: str) -> Row:
    return {"run": run.id, "what": what, "before": before, "after": after, "unit": unit, "kind": kind}
