"""What a set of labels holds, as figures and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalkit.errors import padded, visible, width_of
from evalkit.labels.labelset import UNSOLVABLE, LabelSet

__all__ = ["LabelSummary", "summarise", "summary_lines"]


@dataclass(frozen=True)
class LabelSummary:
    """Counts of items: `table` has a row per required tier (then `unsolvable`), a column per risk class."""

    file: str
    items: int
    rows: tuple[str, ...]
    risk_classes: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    needs: dict[str, int]
    weighted: bool
    weight_zero: int
    groups: int | None
    categories: int | None
    fingerprint: str
    notices: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The figures as a JSON object."""
        return {
            "file": self.file,
            "items": self.items,
            "by_required_tier": {
                row: dict(zip(self.risk_classes, counts, strict=True))
                for row, counts in zip(self.rows, self.table, strict=True)
            },
            "needs": self.needs,
            "weighted": self.weighted,
            "weight_zero": self.weight_zero,
            "groups": self.groups,
            "categories": self.categories,
            "fingerprint": self.fingerprint,
            "notices": list(self.notices),
        }


def summarise(labels: LabelSet) -> LabelSummary:
    """Counts by required tier and risk class. A need requires more than the cheapest tier and is solvable."""
    rows = [*labels.tiers, UNSOLVABLE]
    k, r = len(rows), len(labels.risk_classes)
    known = labels.required >= 0
    cell = labels.required[known].astype(np.int64) * r + labels.risk[known]
    table = np.bincount(cell, minlength=k * r).reshape(k, r)
    if not known.all():
        rows.append("not known")
        table = np.vstack([table, np.bincount(labels.risk[~known], minlength=r)])
    groups = None
    if labels.group is not None:
        named = {g for g in labels.group if g is not None}
        groups = len(named) + sum(1 for g in labels.group if g is None)
    return LabelSummary(
        file=labels.file,
        items=len(labels),
        rows=tuple(rows),
        risk_classes=labels.risk_classes,
        table=tuple(tuple(int(c) for c in row) for row in table),
        needs={name: int(table[1 : len(labels.tiers), j].sum()) for j, name in enumerate(labels.risk_classes)},
        weighted=bool(np.ptp(labels.weight) > 0),
        weight_zero=int((labels.weight == 0).sum()),
        groups=groups,
        categories=None if labels.category is None else len({c for c in labels.category if c is not None}),
        fingerprint=labels.fingerprint,
        notices=labels.notices,
    )


def summary_lines(summary: LabelSummary) -> list[str]:
    """The summary as lines of plain text."""
    head = ["required tier", *summary.risk_classes, "all"]
    body = [
        [row, *(f"{c:,}" for c in counts), f"{sum(counts):,}"]
        for row, counts in zip(summary.rows, summary.table, strict=True)
    ]
    needs = [*(f"{n:,}" for n in summary.needs.values()), f"{sum(summary.needs.values()):,}"]
    lines = [f"{visible(summary.file, 400)}: {summary.items:,} items"]
    lines += _grid([head, *body, ["needs more than cheapest", *needs]])
    if summary.groups is not None:
        lines.append(f"groups: {summary.groups:,} (an item without one is its own)")
    if summary.categories is not None:
        lines.append(f"categories: {summary.categories:,}")
    lines.append("weights: " + ("given" if summary.weighted else "all equal"))
    lines.append(f"fingerprint: {summary.fingerprint}")
    return lines


def _grid(rows: Sequence[Sequence[str]]) -> list[str]:
    shown = [[visible(cell, 40) for cell in row] for row in rows]
    widths = [max(width_of(row[j]) for row in shown) for j in range(len(shown[0]))]
    lines = []
    for row in shown:
        right = [padded(c, w, right=True) for c, w in zip(row[1:], widths[1:], strict=True)]
        cells = [padded(row[0], widths[0]), *right]
        lines.append("  ".join(cells).rstrip())
    return lines
