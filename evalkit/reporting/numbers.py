"""How a number is written for people: the one module that formats them, pure and free of data text.

Rates are fractions, money is USD, times are seconds; `None` is an unknown number and reads "n/a (why)". A rate
that is not 0 never reads as 0, one that is not 1 never reads as 100 %, and a number beside a limit is written
with as many digits as it takes to stand on its own side of it. NaN and infinity are programming errors.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, Literal, TypeAlias

__all__ = [
    "MINUS",
    "Number",
    "Unit",
    "axis",
    "count",
    "exact",
    "interval",
    "na",
    "nearest_rank_note",
    "of",
    "per_thousand",
    "percent",
    "percentile",
    "plain",
    "plain_interval",
    "quantity",
    "seconds",
    "signed",
    "signed_count",
    "signed_percent",
    "threshold",
    "unbroken",
    "usd",
]

Number: TypeAlias = "int | float | None"
Unit: TypeAlias = Literal["share", "usd", "s", "items"]

MINUS: Final = "−"
_SCALE: Final[dict[str, int]] = {"share": 100, "usd": 1, "s": 1, "items": 1}
_MOST_DIGITS: Final = 9
_NOISE: Final = 1e-10  # differences of sums of money below this are rounding of floats


def na(reason: str | None = None) -> str:
    """What stands where a number is unknown."""
    return f"n/a ({reason or 'not known'})"


def quantity(value: Number, unit: Unit, *, limit: Number = None, reason: str | None = None) -> str:
    """`value` in its unit; beside a `limit` it never rounds on to the limit or across it."""
    if value is None:
        return na(reason)
    scaled = _scaled(value, unit)
    if unit == "usd" and abs(value) < _NOISE:
        scaled = Decimal(0)
    digits = _digits(scaled, unit)
    edges = [Decimal(0)] if unit != "share" else [Decimal(0), Decimal(100)]
    if limit is not None:
        edges.append(_scaled(limit, unit))
    while digits < _MOST_DIGITS and _moved(scaled, digits, edges):
        digits += 1
    rounded = _round(scaled, digits)
    if _moved(scaled, digits, edges):
        rounded = scaled.normalize()
        return _write(rounded, unit, max(0, -_exponent(rounded)))
    if unit in ("usd", "s") and rounded == scaled:
        least = 2 if unit == "usd" else 3
        digits = max(min(least, digits), -_exponent(scaled.normalize()))
    return _write(rounded, unit, digits)


def percent(value: Number, *, limit: Number = None, reason: str | None = None) -> str:
    """A fraction as a percentage: .04 is "4.0 %"."""
    return quantity(value, "share", limit=limit, reason=reason)


def usd(value: Number, *, limit: Number = None, reason: str | None = None) -> str:
    """Money with sensible digits: "$1,235", "$3.88", "$0.0123"."""
    return quantity(value, "usd", limit=limit, reason=reason)


def seconds(value: Number, *, limit: Number = None, reason: str | None = None) -> str:
    """A time: "123 s", "12.3 s", "1.23 s", "0.123 s"."""
    return quantity(value, "s", limit=limit, reason=reason)


def per_thousand(total: Number, n: Number, *, reason: str | None = None) -> str:
    """A total over `n` requests, in USD per 1,000 requests."""
    if total is None or not n:
        return na(reason if total is None else "0 requests")
    return usd(1000 * total / n)


def exact(value: Number, unit: Unit, *, reason: str | None = None) -> str:
    """A limit at full precision without padding: .02 is "2 %", .006 is "$0.006"."""
    if value is None:
        return na(reason)
    scaled = _scaled(value, unit).normalize()
    return _write(scaled, unit, max(0, -_exponent(scaled)))


def signed(value: Number, unit: Unit, *, reason: str | None = None) -> str:
    """A difference with its sign; a difference of two rates is in points: "+1.1 points"."""
    if value is None:
        return na(reason)
    _finite(value)
    value = round(value, 10)  # a difference of floats ends in noise
    text = quantity(abs(value), unit)
    if unit == "share":
        text = text.removesuffix(" %") + (" point" if text == "1 %" else " points")
    return text if value == 0 else ("+" if value > 0 else MINUS) + text


def signed_count(value: int | float) -> str:
    """A difference of two counts with its sign."""
    text = count(abs(value))
    return text if value == 0 else ("+" if value > 0 else MINUS) + text


def signed_percent(value: int | float) -> str:
    """A relative change with its sign: "−62.0 %"."""
    text = percent(abs(value))
    return text if value == 0 else ("+" if value > 0 else MINUS) + text


def plain(value: Number, *, reason: str | None = None) -> str:
    """A share without a unit, such as an AUC, to three decimals; only 0, .5 and 1 read as 0, .5 and 1."""
    if value is None:
        return na(reason)
    exact_value = _scaled(value, "usd")
    digits = 3
    while digits < _MOST_DIGITS and _moved(exact_value, digits, [Decimal(0), Decimal("0.5"), Decimal(1)]):
        digits += 1
    return f"{_round(exact_value, digits):f}"


def plain_interval(lower: Number, upper: Number, *, reason: str | None = None) -> str:
    """Two ends without a unit."""
    if lower is None or upper is None:
        return na(reason)
    return f"{plain(lower)} to {plain(upper)}"


def interval(lower: Number, upper: Number, unit: Unit, *, limit: Number = None, reason: str | None = None) -> str:
    """Two ends: "70.0 % to 90.0 %"."""
    if lower is None or upper is None:
        return na(reason)
    return f"{quantity(lower, unit, limit=limit)} to {quantity(upper, unit, limit=limit)}"


def count(value: Number, *, reason: str | None = None) -> str:
    """A number of things: "12,345"; one that is not whole (weights, means of samples) has one decimal."""
    if value is None:
        return na(reason)
    _finite(value)
    if float(value).is_integer():
        return f"{int(value):,}".replace("-", MINUS)
    digits = 1
    while digits < _MOST_DIGITS and float(f"{value:.{digits}f}") == 0:
        digits += 1
    return f"{value:,.{digits}f}".replace("-", MINUS)


def of(k: Number, n: Number, rate: Number = None, *, reason: str | None = None) -> str:
    """A rate with its denominator: "2 of 50 (4.0 %)"; without the rate just the counts."""
    if k is None or n is None:
        return na(reason)
    if n == 0:
        return "n/a (0 of 0)"
    return f"{count(k)} of {count(n)}" + ("" if rate is None else f" ({percent(rate)})")


def threshold(value: Number, *, reason: str | None = None) -> str:
    """A threshold at full precision, in the user's units; production must use the same digits."""
    if value is None:
        return na(reason)
    _finite(value)
    return repr(value)


def percentile(
    value: Number,
    q: int,
    n: int | None,
    *,
    censored: int | None = None,
    note: str | None = None,
    limit: Number = None,
    reason: str | None = None,
) -> str:
    """A nearest-rank percentile of `n` times with what is to be known of it: "1.23 s (n 180; 2 censored)"."""
    if n == 0:
        return "n/a (0 values)"
    if value is None:
        return na(reason or note)
    notes = [] if n is None else [f"n {count(n)}"]
    if censored:
        notes.append(f"{count(censored)} censored")
    mark = nearest_rank_note(q, n)
    notes += [text for text in dict.fromkeys((mark, note)) if text]
    return seconds(value, limit=limit) + (f" ({'; '.join(notes)})" if notes else "")


def nearest_rank_note(q: int, n: int | None) -> str | None:
    """Says that the percentile `q` of `n` values is their maximum, which for a high `q` means too few values."""
    if n is None or n < 1 or q <= 50:
        return None
    rank = -(-q * n // 100)
    return "equals maximum, n too small" if rank == n else None


def axis(value: float, step: float, unit: Unit) -> str:
    """The label of a tick on an axis whose ticks are `step` apart."""
    scaled = _scaled(value, unit)
    gap = _scaled(step, unit)
    digits = max(0, -gap.adjusted()) if gap else 0
    if gap and _round(gap, digits) != gap:
        digits += 1
    return _write(_round(scaled, digits), unit, digits)


def unbroken(shown: str) -> str:
    """The same number for a page, where no line may break before its unit or after its sign."""
    shown = shown.replace(f"{MINUS}$", f"{MINUS}\u2060$")
    return re.sub(r"(?<=[≤≥]) |(?<=\d) (?=(?:%|s|points?)(?:[ ;,:.)]|$))", "\u00a0", shown)


def _scaled(value: int | float, unit: Unit) -> Decimal:
    _finite(value)
    return Decimal(repr(value) if isinstance(value, float) else int(value)) * _SCALE[unit]


def _finite(value: int | float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            "The `value` parameter of a number format must be an int or a float. "
            f"Got {type(value).__name__} instead."
        )
    if not math.isfinite(value):
        raise ValueError(f"The `value` parameter of a number format must be finite. Got {value} instead.")


def _digits(scaled: Decimal, unit: Unit) -> int:
    size = abs(scaled)
    if size == 0:
        return 1 if unit == "share" else 0
    if unit == "share":
        return 1 if size >= 1 else 2
    if unit == "items":
        return max(0, -_exponent(scaled.normalize()))
    if size >= 1000 or (unit == "s" and size >= 100):
        return 0
    if unit == "s" and size >= 10:
        return 1
    return 2 if size >= 1 else 2 - size.adjusted()


def _round(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)


def _moved(value: Decimal, digits: int, edges: list[Decimal]) -> bool:
    """Whether rounding puts `value` on an edge or on its other side."""
    rounded = _round(value, digits)
    return any(rounded.compare(edge) != value.compare(edge) for edge in edges)


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _write(value: Decimal, unit: Unit, digits: int) -> str:
    sign = MINUS if value < 0 else ""
    body = f"{abs(value):,.{digits}f}"
    return {"share": f"{sign}{body} %", "usd": f"{sign}${body}", "s": f"{sign}{body} s", "items": f"{sign}{body}"}[
        unit
    ]
