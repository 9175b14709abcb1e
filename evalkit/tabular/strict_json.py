"""Strict JSON: what other parsers take for granted or let pass is refused. Loads none of the heavy packages."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from evalkit.tabular.faults import listed
from evalkit.tabular.names import quoted

__all__ = ["LiteralFloat", "StrictJSONError", "parse_json"]


class StrictJSONError(ValueError):
    """Text that is not strict JSON; the message says why."""


class LiteralFloat(float):
    """A JSON number with a decimal point or exponent that remembers how it was written."""

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> LiteralFloat:
        """The number `literal` says."""
        number = super().__new__(cls, literal)
        number.literal = literal
        return number


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise StrictJSONError(f"the key {listed([quoted(key) for key in twice])} stands more than once")
    return found


def _constant(name: str) -> NoReturn:
    raise StrictJSONError(f"{name} is not a JSON number")


def _float(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise StrictJSONError(f"{literal} is too large a number")
    return number


def _literal_float(literal: str) -> float:
    _float(literal)
    return LiteralFloat(literal)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_LITERAL_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_literal_float
)


def parse_json(text: str, *, literals: bool = False) -> Any:
    """The value of strict JSON `text`: no duplicate keys, no NaN or Infinity, no lone surrogates.

    With `literals`, floats come as `LiteralFloat`. Raises `StrictJSONError` with the reason.
    """
    try:
        value = (_LITERAL_DECODER if literals else _DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise StrictJSONError(f"is not valid JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise StrictJSONError("is nested too deep") from None
    except StrictJSONError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise StrictJSONError(str(error)) from None
    if "\\u" in text and (not text.isascii() or _SURROGATE.search(text)):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise StrictJSONError(
                "holds half of a surrogate pair (\\ud800 to \\udfff), which is no text"
            ) from None
    return value
