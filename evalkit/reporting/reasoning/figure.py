"""The figure of a ladder: cost or tokens against quality with intervals, the arm in focus, where the curve is
flat, and the price of the next point beside the step that buys it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from evalkit.reporting import numbers, text
from evalkit.reporting.language import ENGLISH, Language
from evalkit.reporting.reasoning.advice import focus, next_on_frontier
from evalkit.reporting.svg import element, nice_ticks, number, place_labels, polyline, scale
from evalkit.reporting.verdict import Result

__all__ = ["budget_curve"]

Place = Callable[[float], float]

_SHAPES = {
    "here": "M0,-7L7,0L0,7L-7,0Z",
    "frontier": "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0Z",
    "off": "M-4.5,-4.5h9v9h-9Z",
}
_LOG_FROM = 8.0


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str
    x: float
    y: float
    x_ends: Sequence[float] | None
    y_ends: Sequence[float] | None
    kind: str


def budget_curve(
    result: Result, *, width: float = 640, height: float = 380, _: Language = ENGLISH
) -> Markup | None:
    """Passed of all tasks against cost per 1,000 requests, or against billed tokens where a cost is unknown.

    None where neither is known for any arm. The x axis is logarithmic where the arms span a factor of 8 or more.
    """
    money = all(arm["cost_usd_per_request"] is not None for arm in result["arms"])
    marks = _marks(result, money)
    if not marks:
        return None
    left, right, top, bottom = 54.0, width - 16, 26.0, height - 46
    low, high = _y_range(marks, _least_pass_rate(result))
    y = scale(low, high, bottom, top)
    x, ticks = _x_axis(marks, left, right, 6 if width > 500 else 4)
    parts: list[Markup] = []
    rungs, step = nice_ticks(low, high, 5)
    for v in rungs:
        parts.append(element("path", d=f"M{number(left)},{number(y(v))}H{number(right)}", class_="grid"))
        parts.append(element("text", numbers.axis(v, step, "share"), x=left - 6, y=y(v) + 4, class_="tick e"))
    for v in ticks:
        shown = numbers.usd(v) if money else numbers.count(v)
        parts.append(element("path", d=f"M{number(x(v))},{number(bottom)}v4", class_="axis"))
        parts.append(element("text", shown, x=x(v), y=bottom + 18, class_="tick m"))
    what = _("cost per 1,000 requests") if money else _("billed tokens per request")
    parts.append(element("text", _("passed, of all tasks"), x=left - 6, y=top - 12, class_="tick"))
    parts.append(element("text", what, x=right, y=bottom + 36, class_="tick e"))
    parts.append(element("path", d=f"M{number(left)},{number(bottom)}H{number(right)}", class_="axis"))
    parts += _flat(result, marks, x, top, bottom, right, _)
    parts += _floor(result, y, left, right, top, _)
    line = sorted((m for m in marks if m.kind != "off"), key=lambda m: m.x)
    if len(line) > 1 and money:
        parts.append(element("path", d=polyline([(x(m.x), y(m.y)) for m in line]), class_="line"))
    for m in marks:
        parts += _bars(m, x, y)
    for m in marks:
        shape = {"transform": f"translate({number(x(m.x))},{number(y(m.y))})"}
        parts.append(element("path", d=_SHAPES[m.kind], class_=f"mk {m.kind}", **shape))
    parts += _labels(result, marks, x, y, (left + 2, top - 4, right + 8, bottom - 2), money)
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        class_="chart",
        role="img",
        aria_labelledby="curve-caption",
    )


def _marks(result: Result, money: bool) -> list[_Mark]:
    here = focus(result)[0]
    found = []
    for arm in result["arms"]:
        value = arm["cost_usd_per_request"] if money else arm.get("billed_tokens_per_request")
        if value is None:
            continue
        spread = arm.get("cost_interval") if money else None
        kind = "here" if arm["name"] == here["name"] else "frontier" if arm.get("status") == "frontier" else "off"
        times = 1000.0 if money else 1.0
        found.append(
            _Mark(
                text.line(arm["name"], 22) if len(arm["name"]) <= 22 else text.line(arm["name"][:18], 18) + "…",
                times * value,
                arm["pass_rate_lower"],
                [times * v for v in spread] if spread else None,
                arm.get("pass_rate_interval"),
                kind,
            )
        )
    return found


def _y_range(marks: Sequence[_Mark], least: float | None) -> tuple[float, float]:
    """All arms with their intervals, and the limit: how far the arms are from it is to be seen."""
    ys = [v for m in marks for v in (m.y, *(m.y_ends or ()))] + ([] if least is None else [least])
    pad = max((max(ys) - min(ys)) * 0.06, 0.005)
    return max(0.0, min(ys) - pad), min(1.0, max(ys) + pad)


def _x_axis(marks: Sequence[_Mark], left: float, right: float, about: int) -> tuple[Place, list[float]]:
    xs = [v for m in marks for v in (m.x, *(m.x_ends or ()))]
    low, high = min(m.x for m in marks), max(xs)
    if low > 0 and high / low >= _LOG_FROM:
        start, end = math.log10(low) - 0.12, math.log10(high) + 0.12
        place = scale(start, end, left, right)
        return (lambda v: place(math.log10(v)) if v > 0 else left), _log_ticks(start, end)
    top = max(high * 1.06, 1e-9)
    ticks, _ = nice_ticks(0, top, about)
    return scale(0, top, left, right), ticks


def _log_ticks(start: float, end: float) -> list[float]:
    """1, 2, 5 times powers of ten inside the range, thinned to what is readable."""
    powers = range(math.floor(start), math.ceil(end) + 1)
    steps = (1, 2, 5) if end - start <= 1.8 else (1, 3) if end - start <= 3 else (1,)
    all_ticks = [float(f"{m * 10.0**p:.6g}") for p in powers for m in steps]
    return [v for v in all_ticks if start <= math.log10(v) <= end]


def _flat(
    result: Result, marks: Sequence[_Mark], x: Place, top: float, bottom: float, right: float, _: Language
) -> list[Markup]:
    """The stretch behind the plateau arm, where no single step gains as much as is worthwhile."""
    names = [arm["name"] for arm in result["arms"]]
    at = result.get("plateau_at")
    known = {m.name: m for m in marks}
    if at is None or text.line(at, 22) not in known:
        return []
    later = [known[text.line(n, 22)] for n in names[names.index(at) :] if text.line(n, 22) in known]
    start = x(known[text.line(at, 22)].x)
    end = max(max(x(m.x) for m in later), min(start + 40, right))
    gain = result.get("smallest_worthwhile_gain_points")
    label, gain_text = _("flat"), f"{gain or 0:g}"
    if gain is not None and right >= 500:  # else no room beside the name of the axis
        label = _.ngettext(
            "flat: each step gains less than %(gain)s point",
            "flat: each step gains less than %(gain)s points",
            1 if gain == 1 else 2,
            gain=gain_text,
        )
    return [
        element("rect", x=start, y=top, width=end - start, height=bottom - top, class_="no", fill="url(#hatch)"),
        element("path", d=f"M{number(start)},{number(top)}V{number(bottom)}", class_="start"),
        element("text", label, x=right, y=top - 12, class_="tick e"),
    ]


def _least_pass_rate(result: Result) -> float | None:
    gate = next((g for g in result["gates"] if g["name"] == "pass_rate"), None)
    return None if gate is None else gate.get("limit")


def _floor(result: Result, y: Place, left: float, right: float, top: float, _: Language) -> list[Markup]:
    """The least pass rate that is allowed, where there is one."""
    least = _least_pass_rate(result)
    if least is None:
        return []
    at = y(least)
    return [
        element("path", d=f"M{number(left)},{number(at)}H{number(right)}", class_="limit"),
        element(
            "text",
            _("at least %(x)s", x=numbers.exact(least, "share")),
            x=left + 5,
            y=at - 5 if at - 17 > top else at + 14,  # at the top stands the name of the axis
            class_="lab",
        ),
    ]


def _bars(mark: _Mark, x: Place, y: Place) -> list[Markup]:
    parts = []
    if mark.y_ends:
        a, b, c = number(y(mark.y_ends[0])), number(y(mark.y_ends[1])), x(mark.x)
        d = f"M{number(c)},{a}V{b}M{number(c - 4)},{a}h8M{number(c - 4)},{b}h8"
        parts.append(element("path", d=d, class_="err"))
    if mark.x_ends:
        a, b, c = number(x(mark.x_ends[0])), number(x(mark.x_ends[1])), y(mark.y)
        d = f"M{a},{number(c)}H{b}M{a},{number(c - 4)}v8M{b},{number(c - 4)}v8"
        parts.append(element("path", d=d, class_="err"))
    return parts


def _labels(
    result: Result,
    marks: Sequence[_Mark],
    x: Place,
    y: Place,
    box: tuple[float, float, float, float],
    money: bool,
) -> list[Markup]:
    """Names of the arms, and the price of the next point beside the step that buys it."""
    anchors = [(x(m.x), y(m.y), m.name) for m in marks]
    price = _price_label(result, marks, x, y) if money else None
    wanted = [*anchors, *([price] if price else [])]
    avoid = [(x(m.x), y(v)) for m in marks for v in m.y_ends or ()]
    spots = place_labels(wanted, box, 12.5, avoid)
    parts = []
    for i, spot in enumerate(spots):
        if spot is None:
            continue
        anchor = {"start": "", "end": " e", "middle": " m"}[spot[2]]
        strong = " strong" if i < len(marks) and marks[i].kind == "here" else ""
        parts.append(element("text", wanted[i][2], x=spot[0], y=spot[1], class_=f"lab{anchor}{strong}"))
    return parts


def _price_label(result: Result, marks: Sequence[_Mark], x: Place, y: Place) -> tuple[float, float, str] | None:
    here = focus(result)[0]
    after: Mapping[str, Any] | None = next_on_frontier(result, here)
    one = next((m for m in marks if m.kind == "here"), None)
    two = next((m for m in marks if after is not None and m.name == text.line(after["name"], 22)), None)
    if after is None or one is None or two is None:
        return None
    price = after.get("marginal_cost_per_quality_point")
    label = "no measurable gain" if price is None else f"{numbers.per_thousand(price, 1)} a point"
    return (x(one.x) + x(two.x)) / 2, (y(one.y) + y(two.y)) / 2, label
