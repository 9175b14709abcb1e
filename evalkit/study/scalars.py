"""Which unquoted YAML values are taken as they stand, and which are named because readers disagree on them.

YAML 1.1 and 1.2 turn `no`, `1e-3`, `12:30`, `007` or `1_000` into different things, and a date into an object.
Only these plain forms are taken: `true`, `false`, `null`, whole numbers (`-12`), decimals (`0.05`) and text that
no YAML reader takes for anything else. Everything else has to be quoted or written plainly.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from evalkit.errors import visible
from evalkit.study.nodes import Refused

__all__ = ["MAX_DIGITS", "plain_scalar"]

MAX_DIGITS = 30
"""Longest number taken, in characters; no price, rate or count needs more, and giants cost time."""

_INT = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+\Z")
_BOOL_WORD = re.compile(r"(?:y|n|yes|no|on|off)\Z", re.IGNORECASE)
_BOOL_CASE = re.compile(r"(?:true|false)\Z", re.IGNORECASE)
_NULL_FORM = re.compile(r"(?:~|null)\Z", re.IGNORECASE)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|nan)\Z", re.IGNORECASE)
_BASED = re.compile(r"[-+]?0(?:x[0-9a-fA-F_]+|o[0-7_]+|b[01_]+)\Z", re.IGNORECASE)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9_]+(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?\Z", re.DOTALL)
_EXPONENT = re.compile(r"[-+]?(?:[0-9_]+\.?[0-9_]*|\.[0-9_]+)[eE][-+]?[0-9]+\Z")
_NUMBER_LIKE = re.compile(r"[-+]?(?:[0-9_]+(?:\.[0-9_]*)?|\.[0-9_]+)\Z")

Value = str | int | Decimal | bool | None


def plain_scalar(text: str) -> tuple[Value | Refused, tuple[str, str] | None]:
    """The value of the unquoted `text` and, where it is refused, (what is wrong, what to do)."""
    if text == "true":
        return True, None
    if text == "false":
        return False, None
    if text in {"", "null"}:
        return None, None
    if _INT.match(text) or _DECIMAL.match(text):
        if len(text) > MAX_DIGITS:
            return Refused(), (
                f"the number {visible(text, 40)} has more than {MAX_DIGITS} characters",
                "write fewer digits, or put quotes around it where text is meant",
            )
        return (int(text) if _INT.match(text) else Decimal(text)), None
    problem = _refusal(text)
    return (text, None) if problem is None else (Refused(), problem)


def _refusal(text: str) -> tuple[str, str] | None:
    quoted = f'"{visible(text, 60)}"'
    for_text = f"or {quoted} in quotes where text is meant"
    if _BOOL_WORD.match(text):
        truth = "true" if text.lower() in {"y", "yes", "on"} else "false"
        return f"without quotes some YAML readers take {text} for {truth}", f"write {truth}, {for_text}"
    if _BOOL_CASE.match(text):
        return f"{text} is a truth value in an odd form", f"write {text.lower()}, {for_text}"
    if _NULL_FORM.match(text):
        return f"without quotes YAML takes {text} for nothing", f"write null or leave the key out, {for_text}"
    if _NOT_FINITE.match(text):
        return f"{text} is not a finite number", f"write a finite number, {for_text}"
    if text in {"<<", "="}:
        return f"{text} has a special meaning in YAML", f"write the keys out in full, {for_text}"
    if _DATE.match(text):
        return f"without quotes YAML takes {visible(text, 60)} for a date", f"write {quoted}, in quotes"
    if _SEXAGESIMAL.match(text):
        return (
            f"without quotes some YAML readers take {visible(text, 60)} for a number of base 60",
            f"write {quoted}, in quotes",
        )
    if _BASED.match(text) or _EXPONENT.match(text) or _NUMBER_LIKE.match(text):
        decimal = _as_decimal(text)
        write = f"write {decimal}, {for_text}" if decimal else f"write a plain decimal number, {for_text}"
        return f"YAML readers disagree on {visible(text, 60)} without quotes", write
    return None


def _as_decimal(text: str) -> str | None:
    """The plain decimal form of a number in an odd form, where it is short enough to offer."""
    cleaned = text.replace("_", "").lower()
    if _BASED.match(text):
        try:
            return str(int(cleaned, 0)) if len(cleaned) <= MAX_DIGITS else None
        except ValueError:
            return None
    try:
        number = Decimal(cleaned)
    except InvalidOperation:
        return None
    if len(cleaned) > MAX_DIGITS or not number.is_finite() or abs(number.adjusted()) > MAX_DIGITS:
        return None
    shown = format(number, "f")
    return shown if _INT.match(shown) or _DECIMAL.match(shown) else None
