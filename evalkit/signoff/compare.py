"""Two runs on the same items: paired differences, what newly fails and newly works, which inputs differ. Pure.

It describes; it certifies nothing. Each interval stands for itself and is not corrected for their number, and
where a run chose its threshold on these items, its own figures flatter it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evalkit import __version__
from evalkit.errors import Fault, InputError
from evalkit.signoff.compare_changes import changes_document
from evalkit.signoff.compare_differences import difference_rows
from evalkit.signoff.compare_inputs import input_rows, why_costs_differ
from evalkit.signoff.compare_pairs import Floats, Pairs, losses_by_risk, pair_items
from evalkit.signoff.model import STATE
from evalkit.signoff.run_folder import Run

__all__ = ["MOST_IDS", "SCHEMA", "compare"]

SCHEMA = "evalkit.compare/1"
MOST_IDS = 1000
"""How many ids a list in the document holds; its full length stands beside it."""

_PASSING = {status.value for status, state in STATE.items() if state == "pass"}


def compare(base: Run, candidate: Run, *, confidence: float = 0.95) -> dict[str, Any]:
    """The comparison as one strict-JSON document, schema evalkit.compare/1.

    Differences are candidate - base, paired on the items of both runs, weighted as the candidate weights them.
    Raises InputError where the runs are of two kinds. Pure.
    """
    if base.kind != candidate.kind:
        what = f"is a run of {candidate.kind}, and {base.folder.name} one of {base.kind}"
        raise InputError(Fault(what, "compare two runs of one kind", file=str(candidate.folder)))
    pairs = pair_items(base, candidate)
    costs = why_costs_differ(base, candidate)
    notes = _notes(base, candidate, pairs)
    return {
        "schema": SCHEMA,
        "evalkit_version": __version__,
        "kind": base.kind,
        "confidence": confidence,
        "base": _run_document(base),
        "candidate": _run_document(candidate),
        "pairs": {
            "items": len(pairs.both),
            "groups": None if pairs.groups is None else int(pairs.groups.max()) + 1,
            **_ids("only_in_base", pairs.only_base),
            **_ids("only_in_candidate", pairs.only_candidate),
            **_ids("relabelled", pairs.relabelled),
        },
        "costs": {"compared": costs is None, "reason": costs},
        "differences": difference_rows(base, candidate, pairs, confidence, costs),
        **changes_document(pairs.both, losses_by_risk(candidate), pairs.groups, confidence, MOST_IDS),
        "gates": _gates(base, candidate),
        "inputs": input_rows(base, candidate),
        "notes": notes,
    }


def _run_document(run: Run) -> dict[str, Any]:
    document = run.document
    verdict, facts = document["verdict"], document["provenance"]
    point = document.get("shown")
    shown: Mapping[str, Any] = point if isinstance(point, dict) else {}
    return {
        "folder": run.folder.name,
        "study": document.get("study"),
        "decision": verdict.get("decision"),
        "headline": verdict.get("headline"),
        "looked_at": run.arm if run.arm is not None else shown.get("name"),
        "thresholds": shown.get("thresholds"),
        "rule": document.get("rule"),
        **({"router": document.get("chosen_router")} if len(document.get("routers") or ()) > 1 else {}),
        "items": len(run.items),
        "started_at": facts.get("started_at"),
        "evalkit_version": document.get("evalkit_version"),
    }


def _gates(base: Run, candidate: Run) -> list[dict[str, Any]]:
    """Every gate of either run, those of the candidate first; `lost`: it passed and does not pass now."""
    then = {gate["name"]: gate for gate in base.gates}
    now = {gate["name"]: gate for gate in candidate.gates}
    out = []
    for name in [*now, *(name for name in then if name not in now)]:
        one, other = then.get(name, {}).get("status"), now.get(name, {}).get("status")
        label = now.get(name, then.get(name, {})).get("label", name)
        lost = one in _PASSING and other not in _PASSING
        out.append({"name": name, "label": label, "base": one, "candidate": other, "lost": lost})
    return out


def _notes(base: Run, candidate: Run, pairs: Pairs) -> list[str]:
    notes = []
    if pairs.relabelled:
        count = len(pairs.relabelled)
        notes.append(f"{count:,} items have another risk class or required tier in each run; they are not paired")
    then = np.array([one.weight for one, _ in pairs.both], dtype=np.float64)
    if len(then) and not _proportional(then, pairs.weights):
        notes.append("the runs weight items differently; both are weighted as the candidate does")
    if candidate.kind == "route-sweep" and losses_by_risk(base) != losses_by_risk(candidate):
        notes.append("the runs state different losses of under-routing; the candidate's are used for both")
    one, other = (run.document["provenance"].get("labels") for run in (base, candidate))
    if isinstance(one, dict) and isinstance(other, dict) and one.get("hash") != other.get("hash"):
        notes.append("the labels differ: prompts and references of paired items are not held against each other")
    if not pairs.groups_known:
        notes.append("items hang together in groups, and a run does not say which: no interval can be given")
    return notes


def _proportional(a: Floats, b: Floats) -> bool:
    if not a.any() or not b.any():
        return bool(a.any() == b.any())
    return bool(np.allclose(a / a.sum(), b / b.sum(), rtol=1e-9, atol=0))


def _ids(name: str, ids: Sequence[str]) -> dict[str, Any]:
    return {name: len(ids), f"{name}_ids": list(ids[:MOST_IDS])}
