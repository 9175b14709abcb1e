"""The threshold explorer: every figure and every position is made here, the page's script only shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from . import numbers, text
from .figures import ClassCurve, class_curve
from .notes import Notes
from .points_view import Chosen, PointRow, chosen, point_row
from .verdict import Result

__all__ = ["Explorer", "Panel", "explorer", "readings"]

_ROWS: Final = 12
_CURVES: Final = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """One risk class: its curve and its figures at the starting point."""

    name: str
    risk: str
    rank: int
    curve: ClassCurve


@dataclass(frozen=True, slots=True)
class Explorer:
    """All points of the sweep. `rows` are the texts of each point in the order of the page's slots."""

    start: int
    start_word: str
    count: int
    slots: list[str]
    panels: list[Panel]
    left_out: int
    table: list[tuple[PointRow, list[str], bool]]
    classes: list[str]
    steps: list[str]
    script: dict[str, Any]
    notes: list[str]


def explorer(result: Result, ranks: Mapping[str, int]) -> Explorer | None:
    """The explorer of a result, or None where no thresholds were searched."""
    points = sorted(
        result.get("points") or [], key=lambda p: (p.get("escalation_rate") or 0.0, p.get("cost_usd_total") or 0.0)
    )
    if not points:
        return None
    now = chosen(result)
    at = _nearest(points, now)
    exactly = now is not None and _same(points[at], now.point)
    classes = result["risk_classes"]
    shown = classes[:_CURVES]
    panels = []
    for i, risk in enumerate(shown):
        curve = class_curve(points, risk["name"], risk.get("max_under_route"), at, i)
        panels.append(Panel(text.line(risk["name"], 40), risk["name"], ranks[risk["name"]], curve))
    rows = [point_row(point, "", result, chosen=i == at and exactly) for i, point in enumerate(points)]
    texts = [_texts(row, point, shown) for row, point in zip(rows, points, strict=True)]
    notes = Notes()
    table = [
        (notes.row(rows[i]), [_class_cell(points[i], risk) for risk in classes], i == at and exactly)
        for i in _picked(len(points), at)
    ]
    return Explorer(
        start=at,
        start_word=f"{now.word} point" if now and exactly else "nearest point" if now else "first point",
        count=len(points),
        slots=texts[at],
        panels=panels,
        left_out=len(classes) - len(shown),
        table=table,
        classes=[text.line(risk["name"], 40) for risk in classes],
        notes=notes.texts,
        steps=_steps(result, rows[at]),
        script={
            "start": at,
            "text": texts,
            "marks": [[panel.curve.marks[i] for panel in panels] for i in range(len(points))],
        },
    )


def readings(row: PointRow) -> list[str]:
    """The figures that the page shows of the point in view."""
    return [row.escalated, row.cost, row.total, row.passed, row.p95]


def _steps(result: Result, row: PointRow) -> list[str]:
    """The heads of the threshold columns: with more than two tiers each threshold guards one step."""
    names = [text.line(tier["name"], 24) for tier in result["tiers"]]
    if len(row.cuts) == len(names) - 1 > 1:
        return [f"{a} to {b}" for a, b in pairwise(names)]
    return ["Threshold"] if len(row.cuts) == 1 else [f"Threshold {i + 1}" for i in range(len(row.cuts))]


def _texts(row: PointRow, point: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The page's slots in order: threshold, escalated, cost, total, passed, p95, spoken, three a class."""
    parts = [_class_texts(point, risk) for risk in classes]
    spoken = f"{row.thresholds}; {row.escalated} escalated; cost {row.cost} per 1,000"
    spoken += "".join(
        f"; {text.line(risk['name'], 40)} {bound}" for risk, (_, bound, _) in zip(classes, parts, strict=True)
    )
    # The reason of an unknown figure stands in the table below.
    figures = [v.partition(" (")[0] if v.startswith("n/a") else v for v in readings(row)]
    each = [numbers.unbroken(v) for v in (*figures, spoken, *(v for part in parts for v in part))]
    return [row.thresholds, *each]


def _class_texts(point: Mapping[str, Any], risk: Mapping[str, Any]) -> tuple[str, str, str]:
    """Under-routed with its denominator, the bound, and where the bound stands."""
    part = (point.get("by_risk") or {}).get(risk["name"]) or {}
    limit = risk.get("max_under_route")
    needs = part.get("needs")
    under = (
        "n/a (0 needs)"
        if needs == 0
        else numbers.of(part.get("under_route_count"), needs, part.get("under_route_rate"))
    )
    bound = part.get("under_route_upper_bound")
    if bound is None:
        return under, numbers.na("0 needs" if needs == 0 else "no bound"), "not statable"
    shown = f"≤ {numbers.percent(bound, limit=limit)}"
    if limit is None:
        return under, shown, "no limit"
    return under, shown, "bound inside the limit" if bound <= limit else "bound above the limit"


def _class_cell(point: Mapping[str, Any], risk: Mapping[str, Any]) -> str:
    part = (point.get("by_risk") or {}).get(risk["name"]) or {}
    if not part.get("needs"):
        return "n/a (0 needs)"
    _, bound, _ = _class_texts(point, risk)
    return f"{numbers.of(part.get('under_route_count'), part['needs'])} ({bound})"


def _same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return list(a.get("thresholds") or []) == list(b.get("thresholds") or [])


def _nearest(points: Sequence[Mapping[str, Any]], now: Chosen | None) -> int:
    if now is None:
        return 0
    for i, point in enumerate(points):
        if _same(point, now.point):
            return i
    share = now.point.get("escalation_rate") or 0.0
    return min(range(len(points)), key=lambda i: (abs((points[i].get("escalation_rate") or 0.0) - share), i))


def _picked(n: int, at: int) -> list[int]:
    """About a dozen rows: both ends, the starting point, and even steps between."""
    if n <= _ROWS:
        return list(range(n))
    return sorted({at, *(round(i * (n - 1) / (_ROWS - 1)) for i in range(_ROWS))})
