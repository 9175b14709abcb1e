"""Repeats of one item that all came out the same, where they should have varied."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.errors import visible
from evalkit.providers.call import Reply
from evalkit.replay.cells import CellRecord

__all__ = ["repeat_notices"]

_ENOUGH_SAMPLES = 3
_ENOUGH_ITEMS = 10


def repeat_notices(records: Iterable[CellRecord]) -> tuple[str, ...]:
    """A notice for each candidate whose samples are byte for byte equal on every item, at a temperature above 0.

    Spread that was not measured would be reported as certainty. At least 3 samples, or 2 on 10 items; a candidate
    at temperature 0 is meant to repeat itself.
    """
    texts: dict[str, dict[str, tuple[int, str | None, bool]]] = {}
    warm: dict[str, float | None] = {}
    for record in records:
        given = record.cell.first.params.get("temperature")
        temperature = float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None
        if temperature is not None and temperature <= 0:
            continue
        result = record.result
        if not isinstance(result, Reply):
            continue
        name, item = record.cell.candidate, record.cell.item
        warm[name] = temperature
        items = texts.setdefault(name, {})
        count, first, same = items.get(item, (0, result.text, True))
        items[item] = (count + 1, first, same and result.text == first)
    out = []
    for name, items in texts.items():
        repeated = [found for found in items.values() if found[0] > 1]
        if not repeated or not all(same for _, _, same in repeated):
            continue
        least = min(count for count, _, _ in repeated)
        if least >= _ENOUGH_SAMPLES or len(repeated) >= _ENOUGH_ITEMS:
            at = "its default temperature" if warm[name] is None else f"temperature {warm[name]:g}"
            out.append(
                f"{visible(name)}: all {least} samples of every item are byte for byte the same at {at}; "
                "a cache in between may answer, and the spread between samples says nothing"
            )
    return tuple(out)
