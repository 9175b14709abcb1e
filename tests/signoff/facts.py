"""Runs of a sign-off as small as they can be, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalkit.signoff.model import RunFacts
from evalkit.signoff.policy import Policy, read_policy

AT = "2026-12-01T12:00:00Z"


def gate_row(name: str = "under_route:critical", status: str = "certified", **changes: Any) -> dict[str, Any]:
    """A gate as result.json has it."""
    row: dict[str, Any] = {
        "name": name,
        "label": f"label of {name}",
        "limit": 0.05,
        "limit_is": "max",
        "unit": "share",
        "observed": 0.01,
        "upper_bound": 0.04,
        "k": 2.0,
        "n": 200.0,
        "n_is": "needs",
        "status": status,
        "missing_n": None,
        "message": f"{name}: message",
        "basis": "bound",
        "confidence": 0.95,
    }
    row |= changes
    if row["limit_is"] == "min":
        row["lower_bound"] = row.pop("upper_bound")
    return row


def write_policy(path: Path, text: str) -> Policy:
    path.write_text(text, encoding="utf-8")
    return read_policy(path)


def run_facts(
    *gates: dict[str, Any], policy_sha256: str | None = None, decision: str = "approve", **changes: Any
) -> RunFacts:
    """A routing run; `changes` replace parts of result.json or, for what is no part of it, of the facts."""
    point = {
        "thresholds": [0.5],
        "name": "selected",
        "by_risk": {},
        "pass_rate_lower": 0.95,
        "pass_rate_upper": 0.96,
        "cost_usd_per_request": 0.002,
        "escalation_rate": 0.3,
        "p95_task_s": 1.5,
    }
    result: dict[str, Any] = {
        "study": "support",
        "evalkit_version": "0",
        "verdict": {
            "decision": decision,
            "headline": decision,
            "reasons": [],
            "uncertified": [],
            "next_step": "go on",
        },
        "risk_classes": [{"name": "critical"}, {"name": "low"}],
        "counts": {"items": 400},
        "selected": point if decision == "approve" else None,
        "judged": None,
        "shown": point,
        "baselines": {},
        "gates": list(gates),
        "stop_rules": [],
        "looks": {"declared": 1, "this": 1, "delta": 0.05, "recorded": True},
        "evidence_limits": ["Required tiers were set by people."],
        "worst_items": [],
        "worst_items_total": 0,
        "provenance": {
            "policy": None if policy_sha256 is None else {"file": "gates.yaml", "sha256": policy_sha256},
            "numbers": {"costs": "measured"},
        },
    }
    facts: dict[str, Any] = {"evidence": "recomputed"}
    for key, value in changes.items():
        if key in {"evidence", "paired", "paired_missing", "today", "id", "kind", "hidden_in"}:
            facts[key] = value
        elif key == "provenance":
            result["provenance"] |= value
        else:
            result[key] = value
    facts = {"id": "support", "kind": "route-sweep", "hashes": {}} | facts
    return RunFacts(result=result, **facts)
