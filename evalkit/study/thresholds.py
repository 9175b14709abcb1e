"""What thresholds fixed in advance have to be: finite, one for each tier above the cheapest, in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from evalkit.errors import Fault, InputError, visible
from evalkit.study.models import Direction
from evalkit.study.scalars import MAX_DIGITS

__all__ = ["parse_thresholds", "threshold_problems"]


def threshold_problems(
    thresholds: Sequence[float],
    tiers: Sequence[str],
    higher_means: Direction | None,
    *,
    single_score: bool,
    probability: bool = False,
) -> Iterator[tuple[str, str]]:
    """(what, fix) for everything wrong with `thresholds`, in the user's units.

    `single_score`: one score serves all tiers, so the thresholds have to climb with the tiers (equal ones skip
    a tier): upwards where a high score asks for a stronger tier, downwards where it says that cheap is enough.
    With one score a tier (`score_<tier>`) they are free.
    """
    shown = ", ".join(repr(value) for value in thresholds)
    for value in thresholds:
        if not math.isfinite(value):
            yield f"{value!r} is not a finite number", "write a finite number"
        elif probability and not 0 <= value <= math.nextafter(1, 2):
            yield f"{value!r} is not from 0 to 1, and the score is a probability", "write a number from 0 to 1"
    needed = len(tiers) - 1
    if needed >= 1 and len(thresholds) != needed:
        each = ", ".join(tiers[1:])
        yield (
            f"has {len(thresholds)} thresholds for {len(tiers)} tiers ({shown})",
            f"write {needed}, one to reach each of: {each}",
        )
        return
    if not single_score or higher_means is None or not all(math.isfinite(value) for value in thresholds):
        return
    up = higher_means == "needs_stronger"
    pairs = list(pairwise(thresholds))
    if any(later < earlier if up else later > earlier for earlier, later in pairs):
        order = "never fall" if up else "never rise"
        yield f"{shown} are out of order", f"with one score they must {order} from tier to tier"


def parse_thresholds(given: str | float | Sequence[float | str], option: str = "--threshold") -> tuple[float, ...]:
    """Thresholds as an option of the command line gives them: a number, a list, or text such as `0.3,0.6`.

    Everything that is no finite number is named together with the option.
    """
    parts: list[str | float]
    if isinstance(given, str):
        parts = list(given.split(","))
    elif isinstance(given, int | float):
        parts = [given]
    else:
        parts = [piece for item in given for piece in (item.split(",") if isinstance(item, str) else [item])]
    values: list[float] = []
    faults: list[Fault] = []
    for part in parts:
        value = _number(part)
        if value is None or not math.isfinite(value):
            said = "is not a number" if value is None else "is not a finite number"
            faults.append(
                Fault(f'"{visible(part, 60)}" {said}', "give finite numbers, as 0.41 or 0.3,0.6", field=option)
            )
        else:
            values.append(value)
    if not parts:
        faults.append(Fault("no number is given", "give finite numbers, as 0.41 or 0.3,0.6", field=option))
    if faults:
        raise InputError(faults)
    return tuple(values)


def _number(part: str | float) -> float | None:
    if isinstance(part, bool):
        return None
    if isinstance(part, str):
        if len(part) > MAX_DIGITS or "_" in part or not part.strip().isascii():
            return None
        try:
            return float(part)
        except ValueError:
            return None
    return float(part)
