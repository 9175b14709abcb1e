"""What labels say of themselves: how far annotators agree, and when they were made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.labels.labelset import UNSOLVABLE, LabelSet
from evalkit.statistics.agreement import Level, krippendorff_alpha, raw_agreement
from evalkit.statistics.agreement_intervals import agreement_with_intervals
from evalkit.statistics.rounding import clean

__all__ = ["label_facts"]

_MOST_CELLS = 50_000_000
"""Items times squared kinds of labels beyond this are not resampled."""


def label_facts(labels: LabelSet) -> dict[str, Any]:
    """`agreement` of the per-annotator labels and the days of `labelled_at` in metadata, each where there are any.

    agreement: Krippendorff's alpha (ordinal where the labels are tiers, else nominal; None where it is not
    defined) with the lower end of its 95 % interval over items or conversations, raw agreement with that of
    Wilson's interval, and over how many items with two annotators or more. labelled: the oldest and newest
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
    found: dict[str, Any] = {"alpha": None, "alpha_reason": "only one label occurs"}
    if alpha is not None:
        found = {"alpha": clean(alpha), **_lower_ends(table, len(codes), level, labels.group)}
    return {
        **found,
        "level": level.value,
        "raw": None if raw is None else clean(raw),
        "items": twice,
        "annotators": len(raters),
    }


def _lower_ends(
    table: NDArray[np.float64], kinds: int, level: Level, group: tuple[str | None, ...] | None
) -> dict[str, Any]:
    """`lower` and `raw_lower`, each with a reason where it is None. The interval's seed is fixed."""
    if len(table) * kinds**2 > _MOST_CELLS:
        why = "the labels are too many kinds for an interval"
        return {"lower": None, "lower_reason": why, "raw_lower": None, "raw_lower_reason": why}
    units = None
    if group is not None:  # an item without a group is its own
        places: dict[object, int] = {}
        units = [places.setdefault(i if g is None else g, len(places)) for i, g in enumerate(group)]
    found = agreement_with_intervals(table, kinds, level=level, groups=units)
    out: dict[str, Any] = {}
    for name, end in (("lower", found.alpha.lower), ("raw_lower", found.raw.lower)):
        out[name] = None if end is None else clean(end)
        if end is None:
            out[f"{name}_reason"] = "no two labels disagree" if not found.disagreeing else "too few items"
    return out


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
