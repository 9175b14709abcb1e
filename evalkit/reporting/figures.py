"""The figures of a report as inline SVG: a gate against its limit, the explorer's curves, cost against quality.

Each has its numbers in a table beside it; a figure shows their shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from . import numbers, text
from .points_view import chosen, point_label
from .svg import element, nice_ticks, number, place_labels, polyline, scale
from .verdict import Result

__all__ = ["ClassCurve", "class_curve", "cost_quality", "gate_bar"]


def gate_bar(gate: Mapping[str, Any], state: str, *, width: float = 176, height: float = 26) -> Markup | None:
    """Estimate (dot) and bound (bar end) against the limit (line); the side that is not allowed is hatched."""
    limit, seen = gate.get("limit"), gate.get("observed")
    least = gate.get("limit_is", "max") == "min"
    bound = gate.get("lower_bound" if least else "upper_bound")
    known = [v for v in (seen, bound) if v is not None]
    if not known or limit is None:
        return None
    low, high = _gate_range(limit, known, least, gate.get("unit") or "share")
    x = scale(low, high, 5, width - 5)
    mid = height / 2
    edge = x(limit)
    start, end = (0.0, edge) if least else (edge, width)
    parts = [
        element(
            "rect", x=start, y=4, width=max(end - start, 0), height=height - 8, class_="no", fill="url(#hatch)"
        ),
        element("path", d=f"M0,{number(mid)}H{number(width)}", class_="base"),
    ]
    if seen is not None and bound is not None:
        a, b = sorted((x(seen), x(bound)))
        parts.append(element("path", d=f"M{number(a)},{number(mid)}H{number(b)}", class_="reach"))
    if bound is not None:
        parts.append(element("path", d=f"M{number(x(bound))},{number(mid - 6)}v12", class_="reach"))
    if seen is not None:
        parts.append(element("circle", cx=x(seen), cy=mid, r=4, class_="dot"))
    parts.append(element("path", d=f"M{number(edge)},1V{number(height - 1)}", class_="limit"))
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        class_=f"bar s-{state}",
        aria_hidden="true",
        focusable="false",
    )


def _gate_range(limit: float, known: list[float], least: bool, unit: str) -> tuple[float, float]:
    if not least:
        return 0.0, max(limit * 1.35, *(v * 1.12 for v in known), 1e-9)
    ends = [limit, *known]
    span = max(max(ends) - min(ends), 0.02 * max(ends, default=1.0), 1e-9)
    high = max(ends) + span * 0.25
    return max(0.0, min(ends) - span * 0.6), min(high, 1.0) if unit == "share" else high


@dataclass(frozen=True, slots=True)
class ClassCurve:
    """The curve of one risk class over all points, and where the moving marks stand at each point.

    `marks[i]` is (x, y of the estimate, y of the bound); None where a figure is unknown.
    """

    svg: Markup
    marks: list[tuple[float, float | None, float | None]]


def class_curve(
    points: Sequence[Mapping[str, Any]],
    risk: str,
    limit: float | None,
    at: int,
    index: int,
    *,
    width: float = 320,
    height: float = 180,
) -> ClassCurve:
    """Under-route rate and its bound against the share escalated, for the class `risk`.

    `at` is the point where the marks start and `index` numbers the class for its ids. The y axis is cut where the
    reading near the limit needs room; curves above it leave the frame.
    """
    left, right, top, bottom = 40.0, width - 10, 12.0, height - 34
    parts_of = [(p.get("by_risk") or {}).get(risk) or {} for p in points]
    rate = [part.get("under_route_rate") for part in parts_of]
    bound = [part.get("under_route_upper_bound") for part in parts_of]
    share = [p.get("escalation_rate") for p in points]
    high = _curve_top(rate, bound, limit, at)
    x, y = scale(0, 1, left, right), scale(0, high, bottom, top)
    free = scale(0, high, bottom, top, hold=False)
    parts = _frame(left, right, top, bottom, x, y, high)
    if limit is not None:
        edge = y(limit)
        parts.append(
            element(
                "rect",
                x=left,
                y=top,
                width=right - left,
                height=max(edge - top, 0),
                class_="no",
                fill="url(#hatch)",
            )
        )
    seen = [(x(s), free(v)) for s, v in zip(share, rate, strict=True) if s is not None and v is not None]
    limits = [(x(s), free(v)) for s, v in zip(share, bound, strict=True) if s is not None and v is not None]
    curves = []
    if seen and limits:
        curves.append(element("path", d=polyline([*seen, *reversed(limits)], close=True), class_="band"))
    if limits:
        curves.append(element("path", d=polyline(limits), class_="bound"))
    if seen:
        curves.append(element("path", d=polyline(seen), class_="rate"))
    inside = element("rect", x=left, y=top, width=right - left, height=bottom - top + 2)
    parts.append(element("clipPath", inside, id=f"frame-{index}"))
    parts.append(element("g", *curves, clip_path=f"url(#frame-{index})"))
    if limit is not None:
        parts.append(element("path", d=f"M{number(left)},{number(y(limit))}H{number(right)}", class_="limit"))
        label = f"limit {numbers.exact(limit, 'share')}"
        parts.append(element("text", label, x=left + 5, y=y(limit) - 5, class_="lab"))
    marks = [
        (
            round(x(s), 1) if s is not None else left,
            None if v is None else round(y(v), 1),
            None if u is None else round(y(u), 1),
        )
        for s, v, u in zip(share, rate, bound, strict=True)
    ]
    here = marks[at]
    parts.append(element("path", d=f"M{number(here[0])},{number(top)}V{number(bottom)}", class_="start"))
    parts.append(
        element("path", d=f"M0,{number(top)}V{number(bottom)}", transform=_shift(here[0], 0), class_="probe")
    )
    for mark, y_at in (("est", here[1]), ("top", here[2])):
        place = {"transform": _shift(here[0], y_at or 0.0), "class_": mark if y_at is not None else f"{mark} gone"}
        parts.append(element("circle", r=4.5, **place) if mark == "est" else element("path", d="M-6,0H6", **place))
    svg = element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        class_="chart",
        role="img",
        aria_labelledby=f"class-{index}",
    )
    return ClassCurve(svg, marks)


def _shift(x: float, y: float) -> str:
    return f"translate({number(x)},{number(y)})"


def _curve_top(rate: list[Any], bound: list[Any], limit: float | None, at: int) -> float:
    known = [v for v in (*rate, *bound) if v is not None]
    most = max(known, default=1.0)
    if limit is None:
        return max(most, 0.02)
    here = [v for v in (rate[at], bound[at]) if v is not None]
    return min(
        max(limit * 2.6, *(v * 1.25 for v in here), 0.01) if here else max(limit * 2.6, 0.01),
        max(most, limit * 1.3, 0.01),
    )


def _frame(left: float, right: float, top: float, bottom: float, x: Any, y: Any, high: float) -> list[Markup]:
    parts = []
    ticks, step = nice_ticks(0, high, 4)
    for v in ticks:
        parts.append(element("path", d=f"M{number(left)},{number(y(v))}H{number(right)}", class_="grid"))
        parts.append(element("text", numbers.axis(v, step, "share"), x=left - 5, y=y(v) + 4, class_="tick e"))
    for v in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            element(
                "text",
                numbers.axis(v, 0.25, "share"),
                x=x(v),
                y=bottom + 15,
                class_="tick m" if v < 1 else "tick e",
            )
        )
    parts.append(element("text", "escalated", x=(left + right) / 2, y=bottom + 30, class_="tick m"))
    return parts


@dataclass(frozen=True, slots=True)
class _Mark:
    x: float
    y: float
    label: str
    kind: str
    x_ends: Sequence[float] | None
    y_ends: Sequence[float] | None


def cost_quality(result: Result, *, width: float = 640, height: float = 360) -> Markup | None:
    """Cost per 1,000 requests against the lower pass rate: all points, the chosen one, the baselines, intervals.

    None where costs or pass rates are unknown.
    """
    marks = _marks(result)
    curve = [
        (1000 * p["cost_usd_per_request"], p["pass_rate_lower"])
        for p in sorted(result.get("points") or [], key=lambda p: p.get("escalation_rate") or 0.0)
        if p.get("cost_usd_per_request") is not None and p.get("pass_rate_lower") is not None
    ]
    if not marks:
        return None
    xs = [m.x for m in marks] + [c[0] for c in curve]
    ys = [v for m in marks for v in (m.y, *(m.y_ends or ()))] + [c[1] for c in curve]
    pad = max((max(ys) - min(ys)) * 0.06, 0.005)
    low, high = max(0.0, min(ys) - pad), min(1.0, max(ys) + pad)
    left, right, top, bottom = 52.0, width - 14, 22.0, height - 46
    x, y = scale(0, max(max(xs) * 1.06, 1e-9), left, right), scale(low, high, bottom, top)
    parts = []
    ticks, step = nice_ticks(low, high, 5)
    for v in ticks:
        parts.append(element("path", d=f"M{number(left)},{number(y(v))}H{number(right)}", class_="grid"))
        parts.append(element("text", numbers.axis(v, step, "share"), x=left - 6, y=y(v) + 4, class_="tick e"))
    ticks, step = nice_ticks(0, max(xs) * 1.06, 6 if width > 500 else 4)
    for v in ticks:
        parts.append(element("text", numbers.axis(v, step, "usd"), x=x(v), y=bottom + 17, class_="tick m"))
    parts.append(element("text", "passed, of all items", x=left - 6, y=top - 9, class_="tick"))
    parts.append(element("text", "cost per 1,000 requests", x=right, y=bottom + 35, class_="tick e"))
    parts.append(element("path", d=f"M{number(left)},{number(bottom)}H{number(right)}", class_="axis"))
    if len(curve) > 1:
        parts.append(element("path", d=polyline([(x(a), y(b)) for a, b in curve]), class_="line"))
    for m in marks:
        parts += _error_bars(m, x, y)
    for m in marks:
        parts.append(element("path", d=_SHAPES[m.kind], transform=_shift(x(m.x), y(m.y)), class_=f"mk {m.kind}"))
    size = 12.5
    spots = place_labels(
        [(x(m.x), y(m.y), m.label) for m in marks],
        (left + 2, top - 4, right + 6, bottom - 2),
        size,
        [(x(a), y(b)) for a, b in curve] + [(x(m.x), y(v)) for m in marks for v in m.y_ends or ()],
    )
    for m, spot in zip(marks, spots, strict=True):
        if spot:
            anchor = {"start": "", "end": " e", "middle": " m"}[spot[2]]
            strong = " strong" if m.kind == "here" else ""
            parts.append(element("text", m.label, x=spot[0], y=spot[1], class_=f"lab{anchor}{strong}"))
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        class_="chart",
        role="img",
        aria_labelledby="cost-quality-caption",
    )


_SHAPES = {
    "here": "M0,-7L7,0L0,7L-7,0Z",
    "alone": "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0Z",
    "other": "M-4.5,-4.5h9v9h-9Z",
    "oracle": "M0,-6L5.5,4.5H-5.5Z",
}


def _marks(result: Result) -> list[_Mark]:
    found = []
    now = chosen(result)
    named = [(now.word, now.point, "here")] if now else []
    for name, point in (result.get("baselines") or {}).items():
        kind = "alone" if name.startswith("always:") else "oracle" if name == "oracle" else "other"
        label = {"random_mix": "random mix", "category_lookup": "look-up", "oracle": "oracle"}.get(name)
        named.append((label or point_label(name), point or {}, kind))
    for label, point, kind in named:
        cost, rate = point.get("cost_usd_per_request"), point.get("pass_rate_lower")
        if cost is None or rate is None:
            continue
        ends = point.get("intervals") or {}
        spread = ends.get("cost_usd_per_request")
        found.append(
            _Mark(
                1000 * cost,
                rate,
                text.line(label, 22) if len(label) <= 22 else text.line(label[:18], 18) + "…",
                kind,
                [1000 * v for v in spread] if spread else None,
                ends.get("pass_rate_lower"),
            )
        )
    return found


def _error_bars(mark: _Mark, x: Any, y: Any) -> list[Markup]:
    parts = []
    if mark.y_ends:
        a, b = (number(y(v)) for v in mark.y_ends)
        c = x(mark.x)
        d = f"M{number(c)},{a}V{b}M{number(c - 4)},{a}h8M{number(c - 4)},{b}h8"
        parts.append(element("path", d=d, class_="err"))
    if mark.x_ends:
        a, b = (number(x(v)) for v in mark.x_ends)
        c = y(mark.y)
        d = f"M{a},{number(c)}H{b}M{a},{number(c - 4)}v8M{b},{number(c - 4)}v8"
        parts.append(element("path", d=d, class_="err"))
    return parts
