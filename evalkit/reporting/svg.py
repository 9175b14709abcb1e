"""Inline SVG built element by element.

Every attribute and every text is escaped; only elements made here are trusted as markup. Geometry stands in
attributes and paint in classes, because the page's policy allows no style attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

__all__ = ["element", "nice_ticks", "number", "place_labels", "polyline", "scale"]


def element(tag: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """One element. `class_` becomes class, `text_anchor` text-anchor; an attribute that is None is left out."""
    pairs = [
        Markup(' {}="{}"').format(_attribute(name), value if isinstance(value, str) else number(value))
        for name, value in attributes.items()
        if value is not None
    ]
    head = Markup("<{}{}").format(tag, Markup("").join(pairs))
    if not children:
        return head + Markup("/>")
    return head + Markup(">") + Markup("").join(escape(child) for child in children) + Markup("</{}>").format(tag)


def number(value: float) -> str:
    """A coordinate with one decimal at most."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def scale(low: float, high: float, start: float, end: float, *, hold: bool = True) -> Callable[[float], float]:
    """The linear map from [low, high] to [start, end]; with `hold` values outside stay at the ends."""
    span = high - low if high > low else 1.0

    def place(value: float) -> float:
        held = min(max(value, low), high) if hold else value
        return start + (held - low) * (end - start) / span

    return place


def polyline(points: Iterable[tuple[float, float]], *, close: bool = False) -> str:
    """The path data through `points`."""
    return "M" + "L".join(f"{number(x)},{number(y)}" for x, y in points) + ("Z" if close else "")


def nice_ticks(low: float, high: float, about: int) -> tuple[list[float], float]:
    """Round ticks inside [low, high] and their step (1, 2 or 5 times a power of ten)."""
    span = max(high - low, 1e-12)
    raw = span / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)], step


def place_labels(
    anchors: Sequence[tuple[float, float, str]],
    box: tuple[float, float, float, float],
    size: float,
    avoid: Sequence[tuple[float, float]] = (),
) -> list[tuple[float, float, str] | None]:
    """For each (x, y, label) a place (x, y, text-anchor) where it covers no other label and no marker.

    A place on the points to `avoid` is taken only when there is no other; None where no place is free: the table
    beside the figure has the row anyway. `box` is left, top, right, bottom.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y, _ in anchors]
    soft = [(x - 2, y - 2, x + 2, y + 2) for x, y in avoid]
    places: list[tuple[float, float, str] | None] = []
    for x, y, label in anchors:
        width = size * 0.58 * len(label)
        options = [
            (x + 9, y + size * 0.35, "start"),
            (x - 9, y + size * 0.35, "end"),
            (x, y - 10, "middle"),
            (x, y + 10 + size * 0.8, "middle"),
            (x + 8, y - 9, "start"),
            (x - 8, y - 9, "end"),
            (x + 8, y + 9 + size * 0.8, "start"),
            (x - 8, y + 9 + size * 0.8, "end"),
        ]
        found, second = None, None
        for px, py, anchor in options:
            left = px if anchor == "start" else px - width if anchor == "end" else px - width / 2
            area = (left, py - size * 0.85, left + width, py + size * 0.25)
            inside = area[0] >= box[0] and area[1] >= box[1] and area[2] <= box[2] and area[3] <= box[3]
            if inside and not any(_overlap(area, other) for other in taken):
                second = second or (px, py, anchor, area)
                if not any(_overlap(area, other) for other in soft):
                    found = (px, py, anchor, area)
                    break
        found = found or second
        if found:
            taken.append(found[3])
        places.append(found[:3] if found else None)
    return places


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


_CAMEL = {"viewBox", "preserveAspectRatio"}


def _attribute(name: str) -> str:
    return name if name in _CAMEL else name.rstrip("_").replace("_", "-")
