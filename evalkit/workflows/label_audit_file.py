"""An audit of the labels, as `evalkit labels audit` wrote it, read back for the certificate.

Only what people judged is taken from the file. Which items were drawn follows from labels, scores, point and seed,
and every count from the judgements; a file that says otherwise is refused, so that no bound can be edited into it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.decisions import Decisions
from evalkit.outcomes.scores import Scores
from evalkit.routing.data import AuditCounts, LabelAudit, RoutingData
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import RoutingStudy
from evalkit.tabular.faults import listed
from evalkit.tabular.names import quoted
from evalkit.workflows.assemble import Assembled
from evalkit.workflows.label_audit_draw import AuditPoint, Drawn, draw_classes, point_at, point_everywhere

__all__ = [
    "SCHEMA",
    "AuditFile",
    "Judged",
    "Routed",
    "audit_fingerprint",
    "missed_of",
    "read_audit",
    "scored_hash",
    "tier_words",
    "with_audit",
    "wrong_of",
]

SCHEMA = "evalkit.labels-audit/1"
_MOST_BYTES = 2**26
_AGAIN = "audit these labels again: evalkit labels audit"


@dataclass(frozen=True)
class Judged:
    """What the judged study holds: hashes as they stand in audit.json (`sha256:...`)."""

    ids: Sequence[str]
    data: RoutingData
    labels_hash: str
    scores_hash: str | None
    decisions: NDArray[np.int8] | None = None


class Routed(Protocol):
    """What routes the items, of one router."""

    @property
    def scores(self) -> Scores | None:
        """Its scores."""

    @property
    def decisions(self) -> Decisions | None:
        """Its decisions."""


@dataclass(frozen=True)
class AuditFile:
    """An audit that belongs to the study. `facts` go into the provenance."""

    audit: LabelAudit
    fingerprint: str
    facts: Mapping[str, Any]
    notices: tuple[str, ...] = ()


def scored_hash(
    scores: Scores | None, decisions: Decisions | None, known: Mapping[str, str] = MappingProxyType({})
) -> str | None:
    """The hash of what routes the items, as audit.json holds it; `known` are fingerprints of tables by role."""
    table, role = (scores, "scores") if decisions is None else (decisions, "decisions")
    return None if table is None else f"sha256:{known.get(role, table.fingerprint).removeprefix('sha256:')}"


def with_audit(
    study: RoutingStudy,
    labels: LabelSet,
    given: Sequence[Routed],
    arrays: Sequence[Assembled],
    known: Mapping[str, str] = MappingProxyType({}),
) -> tuple[AuditFile | None, list[Assembled]]:
    """The audit that the study names, and the arrays of each router with it; the arrays as they are without one.

    known: fingerprints that tables had, by role, where those at hand are copies of them. Raises `InputError`.
    """
    if study.audit is None:
        return None, list(arrays)
    labels_hash = f"sha256:{known.get('labels', labels.fingerprint).removeprefix('sha256:')}"
    found, out = None, []
    for one, made in zip(given, arrays, strict=True):
        routed = None if one.decisions is None else np.asarray(one.decisions.routed, dtype=np.int8)
        judged = Judged(labels.ids, made.data, labels_hash, scored_hash(one.scores, one.decisions, known), routed)
        audit = read_audit(study.audit, study, judged)
        found = found or audit
        out.append(replace(made, data=replace(made.data, audit=audit.audit)))
    return found, out


def tier_words(study: RoutingStudy) -> tuple[str, ...]:
    """What a judgement may say: a tier, least capable first, or unsolvable."""
    return (*study.tier_names, "unsolvable")


def missed_of(
    drawn: Drawn, point: AuditPoint, place: Mapping[str, int], judged: Mapping[str, int], top: int
) -> list[str]:
    """The drawn ids whose judged tier (a code; `top` is unsolvable) is above the one they are routed to."""
    return sorted(name for name in drawn.ids if int(point.tier[place[name]]) < judged[name] < top)


def wrong_of(drawn: Drawn, required: Mapping[str, int], judged: Mapping[str, int], top: int) -> list[str]:
    """The drawn ids of labelled needs that are none or, with more than two tiers, need a stronger one than their
    label says. required: codes of the labels; `top` is unsolvable."""
    return sorted(
        name for name in drawn.need_ids if judged[name] in {0, top} or (top > 2 and judged[name] > required[name])
    )


def read_audit(path: Path, study: RoutingStudy, judged: Judged) -> AuditFile:
    """The audit in `path`, checked against the study it is to hold for. Raises `InputError` with every fault."""
    document = _document(path)
    file = str(path)
    faults: list[Fault] = []

    def fault(field: str, what: str, fix: str = _AGAIN) -> None:
        faults.append(Fault(what, fix, file=file, field=field))

    everywhere = document["everywhere"]
    if document["labels_hash"] != judged.labels_hash:
        fault("labels_hash", "was made of other labels than the study has")
    if not everywhere and document["scores_hash"] != judged.scores_hash:
        fault("scores_hash", "was made at other scores or decisions than the study has")
    if document["seed"] != study.seed:
        what = f"was drawn with the seed {document['seed']}, and the study has {study.seed}"
        fault("seed", what, "draw with the seed of the study: of several draws one would find the least")
    if not everywhere and study.routers:
        what = "is of one router's point, and the study has several"
        fault("everywhere", what, "audit all cheap labels: evalkit labels audit --all")
    if faults:
        raise InputError(faults)
    point = _point(document, study, judged, file)
    size, seed, of_needs = document["per_class"], document["seed"], document["needs_per_class"]
    drawn = draw_classes(
        study, judged.ids, judged.data, point, size, seed, of_needs, labels_hash=judged.labels_hash
    )
    rows = {row["risk"]: row for row in document["classes"]}
    if list(rows) != [d.counts.name for d in drawn] or len(rows) != len(document["classes"]):
        fault("classes", "does not hold the risk classes of the study")
        raise InputError(faults)
    codes = {name: i for i, name in enumerate(tier_words(study))}
    place = {name: i for i, name in enumerate(judged.ids)}
    counts = []
    for one in drawn:
        row = rows[one.counts.name]
        where = f"classes.{visible(one.counts.name, 60)}"
        said = _codes(fault, f"{where}.judged", row["judged"], one.ids, codes)
        of = _codes(fault, f"{where}.judged_needs", row["judged_needs"], one.need_ids, codes)
        if said is None or of is None:
            continue
        top = len(codes) - 1
        required = {key: int(judged.data.required[place[key]]) for key in one.need_ids}
        found = {
            "cheap_labels": one.counts.cheap_labels,
            "audited": len(one.ids),
            "missed": len(missed_of(one, point, place, said, top)),
            "need_labels": one.need_labels,
            "needs_audited": len(one.need_ids),
            "needs_wrong": len(wrong_of(one, required, of, top)),
        }
        for key, value in found.items():
            if row[key] != value:
                fault(f"{where}.{key}", f"is {row[key]}, and the labels and judgements make it {value}")
        counts.append(AuditCounts(scale=one.counts.scale, **found))
    if faults:
        raise InputError(faults)
    fingerprint = audit_fingerprint(document)
    facts = {
        "file": path.name,
        "hash": f"sha256:{fingerprint}",
        "everywhere": everywhere,
        "thresholds": document["thresholds"],
        "seed": document["seed"],
        "classes": [
            {"risk": d.counts.name, **{key: getattr(c, key) for key in _COUNTS}}
            for d, c in zip(drawn, counts, strict=True)
        ],
    }
    return AuditFile(LabelAudit(tuple(counts), point.tier), fingerprint, facts)


_COUNTS = ("cheap_labels", "audited", "missed", "need_labels", "needs_audited", "needs_wrong")


def _codes(
    fault: Callable[[str, str], None],
    where: str,
    said: Mapping[str, str],
    drawn: Sequence[str],
    codes: Mapping[str, int],
) -> dict[str, int] | None:
    """The judged tiers as codes; None, with a fault, where they are not of the drawn items or no tiers."""
    if set(said) != set(drawn):
        odd = sorted(set(said) ^ set(drawn))
        fault(where, f"does not hold the items that its seed draws: {listed([quoted(n) for n in odd])}")
        return None
    unknown = sorted({tier for tier in said.values() if tier not in codes})
    if unknown:
        fault(where, f"names what is no tier of the study: {listed([quoted(n) for n in unknown])}")
        return None
    return {name: codes[tier] for name, tier in said.items()}


def _point(document: Mapping[str, Any], study: RoutingStudy, judged: Judged, file: str) -> AuditPoint:
    if document["everywhere"]:
        return point_everywhere(study, judged.data)
    thresholds = document["thresholds"]
    if judged.decisions is not None:
        if thresholds is None:
            return point_at(study, judged.data, None, judged.decisions)
        raise InputError(
            Fault("is of thresholds, and the study judges decisions", _AGAIN, file=file, field="thresholds")
        )
    width = len(study.tiers) - 1
    if thresholds is None or len(thresholds) != width or judged.data.demand is None:
        what = f"are not {width}, one for each tier above the cheapest"
        raise InputError(Fault(what, _AGAIN, file=file, field="thresholds"))
    return point_at(study, judged.data, [float(t) for t in thresholds])


def _document(path: Path) -> dict[str, Any]:
    fix = "name the file that evalkit labels audit --judged wrote with --json"
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BrokenFileError("is longer than any audit")
        document = strict_json(path.read_bytes())
    except OSError as error:
        raise InputError(Fault(f"cannot be read ({type(error).__name__})", fix, file=str(path))) from None
    except BrokenFileError as error:
        raise InputError(Fault(str(error), fix, file=str(path))) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(Fault("is no audit of labels", fix, file=str(path), field="schema"))
    wrong = [key for key, sound in _FIELDS.items() if key not in document or not sound(document[key])]
    if wrong:
        raise InputError(
            [Fault("is missing or holds what no audit does", fix, str(path), field=key) for key in wrong]
        )
    return document


def _whole(value: Any, low: int = 0) -> bool:
    return type(value) is int and low <= value < 2**53


def _number(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) < 1e300 and math.isfinite(value)


def _row(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("risk"), str)
        and all(_whole(value.get(key)) for key in _COUNTS)
        and all(isinstance(value.get(key), dict) for key in ("judged", "judged_needs"))
        and all(isinstance(t, str) for key in ("judged", "judged_needs") for t in value[key].values())
    )


_FIELDS: dict[str, Any] = {
    "labels_hash": lambda v: isinstance(v, str),
    "scores_hash": lambda v: v is None or isinstance(v, str),
    "everywhere": lambda v: isinstance(v, bool),
    "thresholds": lambda v: v is None or (isinstance(v, list) and all(_number(t) for t in v)),
    "per_class": lambda v: _whole(v, 1),
    "needs_per_class": _whole,
    "seed": _whole,
    "classes": lambda v: isinstance(v, list) and all(_row(row) for row in v),
}


def audit_fingerprint(document: Mapping[str, Any]) -> str:
    """SHA-256 in hex of what the audit is about: its point, its draw and the judgements."""
    keys = ("labels_hash", "scores_hash", "everywhere", "thresholds", "per_class", "needs_per_class", "seed")
    judged = [
        [row["risk"], sorted(row["judged"].items()), sorted(row["judged_needs"].items())]
        for row in document["classes"]
    ]
    said = [document[key] for key in keys]
    text = json.dumps([SCHEMA, said, judged], ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
