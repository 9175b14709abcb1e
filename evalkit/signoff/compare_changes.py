"""What newly fails and what newly works: paired items by id, counts by risk class with exact bounds. Pure.

An item fails in up to two ways: it is under-routed; its reply does not pass in every run. Each way that the
candidate adds makes it newly failing, each that it takes away newly working, so that one item may be both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.signoff.run_folder import RunItem
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.rounding import clean

__all__ = ["changes_document", "ways_to_fail"]

Pair = tuple[RunItem, RunItem]


def ways_to_fail(item: RunItem) -> frozenset[str]:
    """Of "under_routed" and "not_passed" those that hold; what is not known does not."""
    ways = set()
    if item.under_routed:
        ways.add("under_routed")
    if item.passed is not None and item.passed < 1:
        ways.add("not_passed")
    return frozenset(ways)


def changes_document(
    pairs: Sequence[Pair],
    losses: Mapping[str, float],
    groups: NDArray[np.intp] | None,
    confidence: float,
    most: int,
) -> dict[str, Any]:
    """newly_failing, newly_working: count, a bound on the share, and the items, those of the dearest risk class
    first (at most `most`); changes_by_risk; passes_known: whether both runs have outcomes for every pair."""
    known = all(item.passed is not None for pair in pairs for item in pair)
    size = _largest(groups)
    changed: dict[str, list[tuple[Pair, list[str]]]] = {"newly_failing": [], "newly_working": []}
    for pair in pairs:
        then, now = (ways_to_fail(item) for item in pair)
        if pair[0].passed is None or pair[1].passed is None:  # one side unknown: nothing can be said of the reply
            then, now = then - {"not_passed"}, now - {"not_passed"}
        for name, ways in (("newly_failing", now - then), ("newly_working", then - now)):
            if ways:
                changed[name].append((pair, sorted(ways, reverse=True)))
    out: dict[str, Any] = {"passes_known": known}
    for name, rows in changed.items():
        rows.sort(key=lambda row: -losses.get(row[0][1].risk or "", 0.0))  # stable: else the order of the labels
        out[name] = {
            "count": len(rows),
            "under_routed": sum("under_routed" in ways for _, ways in rows),
            "not_passed": sum("not_passed" in ways for _, ways in rows),
            **_bound(len(rows), len(pairs), size, confidence),
            "items": [_item(pair, ways) for pair, ways in rows[:most]],
        }
    out["changes_by_risk"] = _by_risk(pairs, changed, size, confidence)
    return out


def _by_risk(
    pairs: Sequence[Pair], changed: Mapping[str, list[tuple[Pair, list[str]]]], size: int, confidence: float
) -> list[dict[str, Any]]:
    counts: dict[str | None, int] = {}
    for _, now in pairs:
        counts[now.risk] = counts.get(now.risk, 0) + 1
    out = []
    for risk, n in counts.items():
        row: dict[str, Any] = {"risk": risk, "items": n}
        for name, rows in changed.items():
            k = sum(pair[1].risk == risk for pair, _ in rows)
            under = sum(pair[1].risk == risk and "under_routed" in ways for pair, ways in rows)
            row[name] = {"count": k, "under_routed": under, **_bound(k, n, size, confidence)}
        out.append(row)
    return sorted(out, key=lambda row: (row["risk"] is None, row["risk"] or ""))


def _bound(k: int, n: int, size: int, confidence: float) -> dict[str, Any]:
    """The share and its exact one-sided upper bound; items that hang together count as k / m of n / m, m the
    largest number of them, since they may all change at once."""
    bound = upper_bound(k / size, n / size, confidence) if n else None
    share = clean(k / n) if n else None
    return {"of": n, "share": share, "upper_bound": None if bound is None else clean(bound)}


def _largest(groups: NDArray[np.intp] | None) -> int:
    return 1 if groups is None or not len(groups) else int(np.bincount(groups).max())


def _item(pair: Pair, ways: list[str]) -> dict[str, Any]:
    then, now = pair
    out: dict[str, Any] = {"id": now.id, "risk": now.risk, "category": now.category, "ways": ways}
    if now.required is not None:
        out["required"] = now.required
    return out | {"base": _fared(then), "candidate": _fared(now)}


def _fared(item: RunItem) -> dict[str, Any]:
    return {"routed": item.routed, "passed": item.passed, "status": item.status}
