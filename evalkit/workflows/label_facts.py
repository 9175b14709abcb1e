"""What labels say of themselves: how far annotators agree, and when they were made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from evalkit.labels.labelset import UNSOLVABLE, LabelSet
from evalkit.statistics.agreement import Level, krippendorff_alpha, raw_agreement
from evalkit.statistics.rounding import clean

__all__ = ["label_facts"]


def label_facts(labels: LabelSet) -> dict[str, Any]:
    """`agreement` of the per-annotator labels and the days of `labelled_at` in metadata, each where there are any.

    agreement: Krippendorff's alpha (ordinal where the labels are tiers, else nominal; None where it is not
    defined), raw agreement, and over how many items with two annotators or more. labelled: the oldest and newest
    day, of how many items; with an item without a day the oldest is not known.
    """
    found: dict[str, Any] = {}
    agreement = _agreement(labels)
    if agreement is not None:
        found["agreement"] = agreement
    labelled = _labelled(labels)
    if labelled is not None:
        found["labelled"] = labelled
    return found


def _agreement(labels: LabelSet) -> dict[str, Any] | None:
    rows = [_ratings(value) for value in labels.annotations or ()]
    raters = list(dict.fromkeys(name for row in rows for name in row))
    if len(raters) < 2:
        return None
    order = {name: i for i, name in enumerate([*labels.tiers, UNSOLVABLE])}
    seen = sorted({label for row in rows for label in row.values()})
    tiers = bool(labels.tiers) and all(label in order for label in seen)
    codes = order if tiers else {label: i for i, label in enumerate(seen)}
    table = np.array([[codes[row[r]] if r in row else np.nan for r in raters] for row in rows], dtype=np.float64)
    twice = int(((~np.isnan(table)).sum(axis=1) > 1).sum())
    if not twice:
        return None
    level = Level.ORDINAL if tiers else Level.NOMINAL
    alpha, raw = krippendorff_alpha(table, level), raw_agreement(table)
    return {
        **(
            {"alpha": clean(alpha)}
            if alpha is not None
            else {"alpha": None, "alpha_reason": "only one label occurs"}
        ),
        "level": level.value,
        "raw": None if raw is None else clean(raw),
        "items": twice,
        "annotators": len(raters),
    }


def _ratings(value: Any) -> dict[str, str]:
    """Annotator -> label: from an object, from a list of {annotator, label}, or from a list of labels in order."""
    if isinstance(value, Mapping):
        return {str(name): label for name, label in value.items() if isinstance(label, str) and label}
    out: dict[str, str] = {}
    for at, one in enumerate(value if isinstance(value, list) else ()):
        if isinstance(one, str) and one:
            out[f"#{at}"] = one
        elif isinstance(one, Mapping) and isinstance(one.get("label"), str):
            out[str(one.get("annotator", f"#{at}"))] = one["label"]
    return out


def _labelled(labels: LabelSet) -> dict[str, Any] | None:
    days = [_day(row) for row in labels.metadata or ()]
    known = sorted(day for day in days if day is not None)
    if not known:
        return None
    missing = len(labels) - len(known)
    oldest: dict[str, Any] = {"oldest": known[0]}
    if missing:
        oldest = {
            "oldest": None,
            "oldest_reason": f"{missing} {'item has' if missing == 1 else 'items have'} no day",
        }
    return {**oldest, "newest": known[-1], "items": len(known)}


def _day(row: Any) -> str | None:
    written = row.get("labelled_at", row.get("labeled_at")) if isinstance(row, Mapping) else None
    try:
        return date.fromisoformat(str(written)[:10]).isoformat()
    except ValueError:
        return None
