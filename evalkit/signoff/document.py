"""signoff.json: the whole sign-off as one language-free document, from which every view is made. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit import __version__
from evalkit.signoff.baseline import goes_with
from evalkit.signoff.build import SOURCE, source_sha256
from evalkit.signoff.changes import change_rows
from evalkit.signoff.digest import document_digest
from evalkit.signoff.evaluate import all_gates
from evalkit.signoff.model import RunFacts
from evalkit.signoff.policy import Policy
from evalkit.signoff.redacted import redacted
from evalkit.signoff.verdict import signoff_verdict

__all__ = ["MOST_ITEMS", "SCHEMA", "signoff_document"]

SCHEMA = "evalkit.signoff/1"
MOST_ITEMS = 40
TEXT_LIMIT = 600

Document = dict[str, Any]


def signoff_document(
    policy: Policy,
    runs: Sequence[RunFacts],
    *,
    created_at: str,
    manifest: Sequence[Mapping[str, Any]],
    baseline: Mapping[str, Any] | None = None,
) -> Document:
    """The document. `manifest` lists the files that are copied beside it; `baseline` is what is known of the run
    of today. The same arguments give the same document, whose digest covers everything else in it."""
    gates = all_gates(policy, runs, created_at)
    fixed = bool(runs) and all(g.state == "pass" for g in gates if g.gate.name == "policy_before_run")
    worst, total = _worst(runs)
    document: Document = {
        "schema": SCHEMA,
        "evalkit_version": __version__,
        "name": policy.name,
        "created_at": created_at,
        "verdict": signoff_verdict(gates, runs),
        "policy": {"file": policy.file, "sha256": policy.sha256, "fixed_before_run": fixed},
        "changes": [row for run in runs for row in change_rows(policy, run)],
        "runs": [_run(run) for run in runs],
        "gates": [gate.as_json() for gate in gates],
        "stop_rules": [{"run": run.id, **dict(rule)} for run in runs for rule in run.result["stop_rules"]],
        "risk_slices": [row for run in runs for row in _slices(run)],
        "worst_items": worst,
        "worst_total": total,
        "ladder": _ladder(runs),
        "evidence_limits": _limits(policy, runs),
        "release": {key: list(v) if isinstance(v, tuple) else v for key, v in policy.release.items()},
        "baseline": None if baseline is None else dict(baseline),
        "provenance": _provenance(runs),
        "signers": [{"role": signer.role, "name": signer.name} for signer in policy.signers],
        "manifest": [dict(row) for row in manifest],
    }
    document = redacted(document)
    document["digest"] = document_digest(document)
    return document


def _run(run: RunFacts) -> Document:
    result = run.result
    verdict = result["verdict"]
    selected: Any = result.get("selected") if not run.is_routing else None
    if run.is_routing:
        point = result.get("selected") or (result.get("judged") if verdict["decision"] == "approve" else None)
        if point is not None:
            rule = result.get("rule")
            selected = {"thresholds": point["thresholds"], "rule": rule} if point["thresholds"] else rule
    return {
        "id": run.id,
        "kind": run.kind,
        "study": run.study,
        "folder": f"runs/{run.id}",
        **{f"{name}_sha256": run.hashes.get(name) for name in ("result", "report", "items", "evidence")},
        "verdict": {"decision": verdict["decision"], "headline": verdict["headline"]},
        "selected": selected,
        **_router(run),
        "looks": {key: result["looks"][key] for key in ("this", "declared")},
    }


def _router(run: RunFacts) -> Document:
    """The router that the run chose and out of how many, where it judged several."""
    rows = run.result.get("routers") if run.is_routing else None
    if not isinstance(rows, Sequence) or len(rows) < 2:
        return {}
    return {"router": {"name": run.result["chosen_router"], "of": len(rows)}}


def _slices(run: RunFacts) -> list[Document]:
    """Each risk class: what was missed of what needed more (routing), or failed of all tasks (a ladder)."""
    by_risk = run.shown.get("by_risk" if run.is_routing else "risk_failure") or {}
    head = "under_route" if run.is_routing else "risk_failure"
    gates = {row["name"]: row for row in run.result["gates"]}
    rows = []
    for name, seen in by_risk.items():
        gate = gates.get(f"{head}:{name}")
        if run.is_routing:
            needs, missed = seen["needs"], seen["under_route_count"]
            rate, bound = seen["under_route_rate"], seen["under_route_upper_bound"]
        else:
            needs, missed, rate, bound = seen["tasks"], seen["failed"], seen["rate"], seen["upper_bound"]
        rows.append(
            {
                "run": run.id,
                "risk": name,
                "needs": needs,
                "missed": missed,
                "rate": rate,
                "bound": bound if gate is None else gate.get("upper_bound"),
                "limit": None if gate is None else gate["limit"],
                "certified": gate is not None and gate["status"] == "certified",
            }
        )
    return rows


def _worst(runs: Sequence[RunFacts]) -> tuple[list[Document], int]:
    """The worst items of all runs, taken from each in turn so that no run crowds out another."""
    total = sum(int(run.result["worst_items_total"]) for run in runs)
    queues = [[(run, row) for row in run.result["worst_items"]] for run in runs]
    picked: list[Document] = []
    for place in range(max((len(queue) for queue in queues), default=0)):
        for queue in queues:
            if place < len(queue) and len(picked) < MOST_ITEMS:
                picked.append(_item(*queue[place]))
    return picked, total


def _item(run: RunFacts, row: Mapping[str, Any]) -> Document:
    text = row.get("prompt")
    out: Document = {
        "run": run.id,
        "id": row["id"],
        "risk": row.get("risk"),
        "text": None if text is None else text[:TEXT_LIMIT],
        "required": row.get("required_tier"),
        "routed": row.get("routed_tier") if run.is_routing else run.result.get("shown"),
        "why": list(row["flags"]),
        "loss_usd": row.get("loss_usd"),
    }
    if out["loss_usd"] is None:
        out["loss_usd_reason"] = "not stated"
    if text is not None and len(text) > TEXT_LIMIT:
        out["text_characters"] = row.get("prompt_characters") or len(text)
    elif row.get("prompt_characters"):
        out["text_characters"] = row["prompt_characters"]
    return out


def _ladder(runs: Sequence[RunFacts]) -> list[Document] | None:
    rows = []
    for run in runs:
        if run.is_routing:
            continue
        for arm in run.result["arms"]:
            price = arm.get("marginal_cost_per_quality_point")
            row = {
                "run": run.id,
                "arm": arm["name"],
                "budget": arm.get("requested_budget"),
                "pass_rate": arm.get("pass_rate_lower"),
                "interval": arm.get("pass_rate_interval"),
                "cost_usd": arm.get("cost_usd_per_request"),
                "marginal_usd_per_point": price,
                "status": arm.get("status"),
                "chosen": arm["name"] == run.result.get("selected"),
                "plateau": arm["name"] == run.result.get("plateau_at"),
            }
            reason = arm.get("marginal_cost_per_quality_point_reason")
            rows.append(row | ({"marginal_usd_per_point_reason": reason} if price is None and reason else {}))
    return rows or None


def _limits(policy: Policy, runs: Sequence[RunFacts]) -> list[Document]:
    """What the evidence does not cover, each sentence once for every run that says it."""
    said: dict[str, list[str]] = {}
    for run in runs:
        for text in run.result["evidence_limits"]:
            said.setdefault(str(text), []).append(run.id)
        held = run.provenance.get("policy")
        for change in (held.get("stricter") if isinstance(held, Mapping) else None) or []:
            what = f"{change['field']} {change['after']}, there {change['before']}"
            said.setdefault(f"{policy.file} is stricter than the study: {what}.", []).append(run.id)
    if policy.baseline is None:
        said.setdefault("The policy names no baseline: nothing holds the pass rate against production.", [])
    for run in runs:
        if policy.baseline is not None and not goes_with(policy.baseline, run):
            text = "No baseline of the policy goes with this run: nothing holds its pass rate against production."
            said.setdefault(text, []).append(run.id)
    if len(runs) > 1:
        text = (
            "Each run keeps its error rate by itself: over all runs together the chance of a wrong pass adds up."
        )
        said.setdefault(text, [])
    return [{"text": text, "runs": ids} for text, ids in said.items()]


def _provenance(runs: Sequence[RunFacts]) -> Document:
    """Where the numbers come from, by run; the same for all runs stands there once."""
    out: Document = {"evalkit_version": __version__, SOURCE: source_sha256()}
    for run in runs:
        facts = run.provenance
        kept = (
            "study_file",
            "study_hash",
            "labels",
            "outcomes",
            "scores",
            "decisions",
            "routers",
            "left_out",
            "prices",
            "models",
            "seed",
        )
        out[run.id] = {
            "evalkit_version": run.result.get("evalkit_version"),
            SOURCE: facts.get(SOURCE),
            "python": facts.get("python"),
            "started_at": facts.get("started_at"),
            **{key: facts[key] for key in kept if facts.get(key) is not None},
            "dependencies": dict(facts.get("dependencies") or {}),
        }
    return out
