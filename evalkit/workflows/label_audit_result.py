"""What result.json and the evidence limits say of an audit of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.routing.analysis import RoutingResult
from evalkit.routing.points import OperatingPoint, clean

__all__ = ["audit_part", "audit_sentences", "audited_bound", "needs_audited"]

UNAUDITED = "No audit of the labels is part of this run: it assumes that they miss no need."


def audit_part(result: RoutingResult) -> dict[str, Any]:
    """`label_audit` of result.json, by class; nothing where the labels were not audited.

    missed_share_upper and _lower bound the share of the true needs that are labelled cheap (missed needs over the
    conversations with a need, where these are counted), each at `delta`; label_limit is what the limit leaves to
    the rate among the labelled needs, null where it leaves nothing.
    """
    data, settings = result.measures.data, result.measures.settings
    if data.audit is None:
        return {}
    classes = []
    for name, rule, counts, found in zip(
        data.risk_classes, settings.classes, data.audit.classes, result.audited, strict=True
    ):
        room = None if found is None or rule.limit is None else found.label_limit(rule.limit)
        row: dict[str, Any] = {
            "risk": name,
            "cheap_labels": counts.cheap_labels,
            "audited": counts.audited,
            "missed": counts.missed,
            "missed_share": None if found is None else clean(found.share_seen),
            "missed_share_lower": None if found is None else clean(found.share_lower),
            "missed_share_upper": None if found is None else clean(min(1.0, found.share)),
            "label_limit": clean(room),
        }
        if counts.needs_audited:
            row |= {"need_labels": counts.need_labels, "needs_audited": counts.needs_audited}
            row |= {"needs_wrong": counts.needs_wrong, "wrong_share_upper": found and clean(found.wrong)}
        why = "the class has no need" if found is None else "the class has no limit"
        if found is not None and rule.limit is not None:
            why = "the audit leaves no room below the limit"
        for key in ("missed_share", "missed_share_lower", "missed_share_upper", "label_limit"):
            if row[key] is None:
                row[f"{key}_reason"] = why
        classes.append(row)
    delta = 1.0 - settings.confidence if settings.delta is None else settings.delta
    both = any(counts.needs_audited for counts in data.audit.classes)
    return {"label_audit": {"delta": clean(delta / (4.0 if both else 2.0)), "classes": classes}}


def needs_audited(result: RoutingResult) -> bool:
    """The audit looked at labelled needs of every class that has some and a limit."""
    audit, settings = result.measures.data.audit, result.measures.settings
    if audit is None:
        return False
    held = zip(audit.classes, settings.classes, strict=True)
    seen = [counts.needs_audited > 0 for counts, rule in held if counts.need_labels and rule.limit is not None]
    return bool(seen) and all(seen)


def audited_bound(result: RoutingResult, point: OperatingPoint, r: int) -> tuple[float | None, str]:
    """The upper bound on the true under-route rate of class `r` at a point, and why there is none where
    it is None: an audit of a point says nothing of those where less goes up."""
    data, figures, found = result.measures.data, point.by_risk[r], result.audited[r]
    assert data.audit is not None
    if found is None or figures.needs == 0:
        return None, "0 needs: not statable"
    on_path = point.name.startswith("point ") or point.name in {"selected", "candidate", "judged", "shown"}
    if data.audit.tier.any() and not (on_path and point.thresholds in result.audit_covers):
        return None, "the labels were audited where more goes up"
    return found.bound(found.n * figures.under_route_count / figures.needs), ""


def audit_sentences(result: RoutingResult, facts: Mapping[str, Any] | None) -> list[str]:
    """What the run takes of its labels: that they miss no need, or what an audit found. `facts`: of the file."""
    data = result.measures.data
    if data.audit is None or facts is None:
        return [UNAUDITED]
    out = ["Items labelled with the cheapest tier that stay below the strongest one were audited."]
    if facts["everywhere"]:
        out = ["Items labelled with the cheapest tier were audited, wherever a router sends them."]
    for name, counts, found in zip(data.risk_classes, data.audit.classes, result.audited, strict=True):
        text = f"Audit of {name}: {counts.missed:,} of {counts.audited:,} drawn items need more"
        if found is not None:
            text += f", so at most {100 * min(1.0, found.share):.3g} % of its needs are labelled cheap"
        out.append(f"{text}.")
        if counts.needs_audited and found is not None:
            out.append(
                f"Audit of the needs of {name}: {counts.needs_wrong:,} of {counts.needs_audited:,} drawn are "
                f"labelled wrongly, at most {100 * min(1.0, found.wrong):.3g} %."
            )
    if needs_audited(result):
        out.append(
            "The audit takes unsolvable labels as right, and the ratio of cheap labels to needs as it is in the "
            "labels."
        )
    else:
        out.append(
            "The audit takes labels above the cheapest tier as right, and the ratio of cheap labels to needs as "
            "it is in the labels."
        )
    return out
