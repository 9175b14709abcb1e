"""`--fail-on`: conditions on a comparison that make a CI job fail; what cannot be worked out is never fine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.signoff.compare_inputs import INPUTS

__all__ = ["CONDITIONS", "exit_code", "judge_conditions", "parse_conditions"]

CONDITIONS = {
    "newly-failing": "an item fails that did not",
    "newly-under-routed": "an item is under-routed that was not",
    "lower-pass-rate": "the pass rate fell: its whole interval lies below 0",
    "higher-cost": "the cost rose: its whole interval lies above 0",
    "higher-under-route-loss": "the under-route loss rose: its whole interval lies above 0",
    "gate-lost": "a gate that passed no longer passes",
    "worse-verdict": "the verdict is worse",
    "inputs-differ": "an input differs",
    "items-differ": "not every item is in both runs with the same label",
}
"""Every condition, and what it says. The first two take a risk class behind a colon, `inputs-differ` an input."""

_BY_RISK = {"newly-failing": "count", "newly-under-routed": "under_routed"}
_WORSE = {
    "lower-pass-rate": "pass_rate",
    "higher-cost": "cost_per_request",
    "higher-under-route-loss": "under_route_loss",
}
_RANK = {"approve": 2, "insufficient_evidence": 1, "reject": 0}


def parse_conditions(texts: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """(condition, what it is narrowed to) of each text; several may stand in one, with commas between.

    InputError with every text that is no condition.
    """
    found: list[tuple[str, str | None]] = []
    faults = []
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        name, colon, narrowed = text.partition(":")
        if (
            name not in CONDITIONS
            or (colon and not narrowed)
            or (colon and name not in {*_BY_RISK, "inputs-differ"})
        ):
            what = f'"{visible(text)}" is no condition'
            faults.append(Fault(what, f"write one of {', '.join(CONDITIONS)}", field="--fail-on"))
        elif name == "inputs-differ" and narrowed and narrowed not in INPUTS:
            what = f'"{visible(narrowed)}" is no input'
            faults.append(Fault(what, f"write one of {', '.join(INPUTS)}", field="--fail-on"))
        else:
            found.append((name, narrowed or None))
    if faults:
        raise InputError(faults)
    return tuple(found)


def judge_conditions(
    document: Mapping[str, Any], conditions: Sequence[tuple[str, str | None]]
) -> list[dict[str, Any]]:
    """A row {condition, met, detail} for each; met is None where it cannot be worked out.

    InputError where one is narrowed to a risk class that no paired item has.
    """
    known = {row["risk"] for row in document["changes_by_risk"]}
    for name, narrowed in conditions:
        if name in _BY_RISK and narrowed is not None and narrowed not in known:
            held = ", ".join(sorted(visible(risk) for risk in known if risk is not None)) or "none"
            what = f'"{visible(narrowed)}" is no risk class of the paired items'
            raise InputError(Fault(what, f"the classes are: {held}", field="--fail-on"))
    out = []
    for name, narrowed in conditions:
        met, detail = _judge(document, name, narrowed)
        shown = name if narrowed is None else f"{name}:{narrowed}"
        out.append({"condition": shown, "met": met, "detail": detail})
    return out


def exit_code(judged: Sequence[Mapping[str, Any]]) -> int:
    """1 where a condition is met, 3 where none is but one could not be worked out, else 0."""
    if any(row["met"] for row in judged):
        return 1
    return 3 if any(row["met"] is None for row in judged) else 0


def _judge(document: Mapping[str, Any], name: str, narrowed: str | None) -> tuple[bool | None, str]:
    if name in _BY_RISK:
        return _newly(document, name, narrowed)
    if name in _WORSE:
        return _worse(document, _WORSE[name])
    if name == "gate-lost":
        lost = [gate["name"] for gate in document["gates"] if gate["lost"]]
        return bool(lost), ", ".join(lost) or "every gate that passed still passes"
    if name == "worse-verdict":
        one, other = (document[side]["decision"] for side in ("base", "candidate"))
        if one not in _RANK or other not in _RANK:
            return None, "a run has no verdict"
        return _RANK[other] < _RANK[one], f"{one}, now {other}"
    if name == "inputs-differ":
        rows = [row for row in document["inputs"] if narrowed in {None, row["input"]}]
        differing = [row["input"] for row in rows if not row["same"]]
        return bool(differing), ", ".join(differing) or "no difference"
    apart = _apart(document)
    return bool(apart), apart or "the same items in both"


def _newly(document: Mapping[str, Any], name: str, risk: str | None) -> tuple[bool | None, str]:
    key = _BY_RISK[name]
    rows = [row for row in document["changes_by_risk"] if risk in {None, row["risk"]}]
    count = sum(row["newly_failing"][key] for row in rows)
    of = sum(row["items"] for row in rows)
    detail = f"{count:,} of {of:,} items"
    if count:
        return True, detail
    if not of:
        return None, "no item is in both runs"
    if name == "newly-failing" and not document["passes_known"]:
        return None, f"{detail}, and a run has no outcomes for all of them"
    if name == "newly-under-routed" and document["kind"] != "route-sweep":
        return None, "a ladder of arms routes nothing"
    apart = _apart(document)
    return (None, f"{detail}, but {apart}") if _missing(document) else (False, detail)


def _worse(document: Mapping[str, Any], figure: str) -> tuple[bool | None, str]:
    row = next((row for row in document["differences"] if row["figure"] == figure), None)
    if row is None:
        return None, "there is no such figure here"
    if row["lower"] is None or row["upper"] is None:
        return None, str(row["reason"])
    detail = f"{row['difference']:+.6g} ({row['lower']:+.6g} to {row['upper']:+.6g})"
    return row["better"] == "base", detail


def _missing(document: Mapping[str, Any]) -> bool:
    """Whether an item of the base could not be looked at again."""
    return bool(document["pairs"]["only_in_base"] or document["pairs"]["relabelled"])


def _apart(document: Mapping[str, Any]) -> str:
    said = {
        "only_in_base": "are in base only",
        "only_in_candidate": "are in candidate only",
        "relabelled": "have another label",
    }
    pairs = document["pairs"]
    return ", ".join(f"{pairs[key]:,} {what}" for key, what in said.items() if pairs[key])
