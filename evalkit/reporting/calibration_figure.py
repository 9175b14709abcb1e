"""Predicted against observed shares of needs, one small square for each router."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from . import numbers
from .svg import element, number, polyline, scale

__all__ = ["calibration_curve"]


def calibration_curve(bins: Sequence[Mapping[str, Any]], index: int, *, size: float = 300) -> Markup:
    """The bins of one router as points with their intervals, beside the line on which probabilities come true.

    `index` numbers the router for the id of its caption, `calibration-<index>`.
    """
    left, right, top, bottom = 46.0, size - 8, 10.0, size - 42
    x, y = scale(0, 1, left, right), scale(0, 1, bottom, top)
    parts: list[Markup] = []
    for v in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(element("path", d=f"M{number(left)},{number(y(v))}H{number(right)}", class_="grid"))
        parts.append(element("text", numbers.axis(v, 0.25, "share"), x=left - 5, y=y(v) + 4, class_="tick e"))
        if v in {0.0, 0.5, 1.0}:
            anchor = "tick m" if v < 1 else "tick e"
            parts.append(element("text", numbers.axis(v, 0.5, "share"), x=x(v), y=bottom + 16, class_=anchor))
    parts.append(element("text", "predicted", x=(left + right) / 2, y=bottom + 34, class_="tick m"))
    parts.append(element("path", d=polyline([(x(0), y(0)), (x(1), y(1))]), class_="start"))
    known = [one for one in bins if one.get("predicted") is not None and one.get("observed") is not None]
    places = [(x(one["predicted"]), y(one["observed"])) for one in known]
    for one, (at, _) in zip(known, places, strict=True):
        if one.get("lower") is not None and one.get("upper") is not None:
            a, b = number(y(one["lower"])), number(y(one["upper"]))
            d = f"M{number(at)},{a}V{b}M{number(at - 4)},{a}h8M{number(at - 4)},{b}h8"
            parts.append(element("path", d=d, class_="err"))
    if len(places) > 1:
        parts.append(element("path", d=polyline(places), class_="line"))
    parts += [element("circle", cx=px, cy=py, r=4, class_="est") for px, py in places]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {number(size)} {number(size)}",
        class_="chart",
        role="img",
        aria_labelledby=f"calibration-{index}",
    )
