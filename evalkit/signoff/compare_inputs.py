"""Which inputs differ between two runs, and whether their costs may be held against each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalkit.errors import visible
from evalkit.signoff.run_folder import Run

__all__ = ["INPUTS", "input_rows", "why_costs_differ"]

_FILES = ("labels", "audit", "outcomes", "scores", "decisions", "rubric", "prices")
INPUTS = ("study", *_FILES, "router", "policy", "models", "limits", "seed", "evalkit", "python", "dependencies")
"""Everything that is held against each other, in the order in which it is shown."""


def input_rows(base: Run, candidate: Run) -> list[dict[str, Any]]:
    """A row {input, base, candidate, same} for each input that at least one of the runs has, as short text.

    Files are compared by the hash of what was read in them, not by their names.
    """
    rows = []
    for name in INPUTS:
        one, other = _value(base, name), _value(candidate, name)
        if one is None and other is None:
            continue
        same = one is not None and other is not None and one[0] == other[0]
        rows.append({"input": name, "base": one and one[1], "candidate": other and other[1], "same": same})
    return rows


def why_costs_differ(base: Run, candidate: Run) -> str | None:
    """Why costs of the two must not be compared: they were priced with two cards. None where they may be."""
    one, other = (_mapping(run.document["provenance"].get("prices")) for run in (base, candidate))
    if one.get("hash") == other.get("hash") and (one or not other):
        return None
    return (
        f"base is priced {_card(one)} and candidate {_card(other)}; costs of two price tables are not held "
        "against each other. Fix: price both with one card (evalkit reprice), judge both again, and compare those."
    )


def _card(prices: Mapping[str, Any]) -> str:
    if not prices:
        return "without a card (costs as its outcomes give them)"
    return f"with {visible(prices.get('file'))} as of {visible(prices.get('as_of') or 'an unknown date')}"


def _value(run: Run, name: str) -> tuple[str, str] | None:
    """(what is compared, what is shown) of one input; None where the run has none."""
    document = run.document
    facts = document["provenance"]
    if name in _FILES:
        return _file(facts.get(name), name)
    if name == "study":
        return _hashed(facts.get("study_hash"), facts.get("study_file"))
    if name == "policy":
        policy = facts.get("policy")
        if not isinstance(policy, Mapping):
            return None
        return _hashed(policy.get("sha256") or policy.get("hash"), policy.get("file"))
    if name == "models":
        return _models(document)
    if name == "router":
        return _router(document)
    if name == "limits":
        found = {"risk": document["risk_classes"], "gates": [_limit(gate) for gate in document["gates"]]}
        return _whole(found, f"{len(document['gates'])} gates, {len(document['risk_classes'])} risk classes")
    if name == "dependencies":
        found = facts.get("dependencies")
        return _whole(found, f"{len(found)} packages") if isinstance(found, Mapping) else None
    value = document.get("evalkit_version") if name == "evalkit" else facts.get(name)
    return None if value is None else (str(value), visible(value))


def _file(found: Any, name: str) -> tuple[str, str] | None:
    if not isinstance(found, Mapping):
        return None
    shown = _hashed(found.get("hash"), found.get("file"))
    if shown is None or name != "prices" or not found.get("as_of"):
        return shown
    return shown[0], f"{shown[1]}, as of {visible(found['as_of'])}"


def _hashed(digest: Any, file: Any) -> tuple[str, str] | None:
    if not isinstance(digest, str):
        return None
    short = digest.removeprefix("sha256:")[:12]
    return digest.removeprefix("sha256:"), f"{visible(file or 'unnamed')} ({visible(short)})"


def _limit(gate: Mapping[str, Any]) -> list[Any]:
    return [gate["name"], gate.get("limit"), gate.get("limit_is"), gate.get("basis")]


def _models(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """What was asked for and what answered, by tier or arm."""
    found = document["provenance"].get("models")
    if not isinstance(found, Mapping):
        return None
    asked = sorted({str(m.get("requested")) for m in found.values() if isinstance(m, Mapping)})
    return _whole(found, visible(", ".join(asked), 160))


def _router(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """The router that was chosen or run, with what is known of it; None for a single one that a file holds."""
    rows = document.get("routers")
    if not isinstance(rows, list):
        return None
    chosen = [row for row in rows if isinstance(row, Mapping) and row.get("chosen")]
    found = [[row.get("name"), row.get("kind"), row.get("trained_on"), row.get("facts")] for row in chosen]
    names = ", ".join(f"{visible(row.get('name'), 60)} ({visible(row.get('kind'), 20)})" for row in chosen)
    return _whole(found, names if len(rows) == 1 else f"{names}, the best of {len(rows)}")


def _whole(value: Any, shown: str) -> tuple[str, str]:
    return json.dumps(value, sort_keys=True), shown


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
