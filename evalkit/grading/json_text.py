"""The one JSON value that a reply consists of, read strictly; each way to break that has its reason code."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

__all__ = ["ContractError", "Literal", "one_value", "unfenced"]

_OPENING = re.compile(r"(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*(?:\r\n|\r|\n)", re.IGNORECASE)
_CLOSING = re.compile(r"(?:`{3,}|~{3,})\Z")


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as it is written: its exact value, and whether it is written as a whole number."""

    value: Decimal
    is_integer: bool


class ContractError(ValueError):
    """The text is not one JSON value: `reason` is a code for counting, `detail` for a person to read."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def unfenced(text: str) -> str:
    """What stands in the one fence, bare or marked `json`, that is all of `text`; `text` itself where none is."""
    start, end = _inside_fence(text)
    return text[start:end]


def one_value(text: str, *, fenced_ok: bool = False) -> object:
    """The one JSON value that is all of `text`, blanks around it aside; numbers are `Literal`.

    With `fenced_ok` one fence, bare or marked `json`, may enclose it. Raises `ContractError` with one of `empty`,
    `fenced`, `text_before`, `text_after`, `several_values`, `not_json`, `duplicate_key`, `not_finite`.
    """
    start, end = _inside_fence(text) if fenced_ok else (0, len(text))
    body = text[start:end].strip()
    if not body:
        raise ContractError("empty")
    if body.startswith(("```", "~~~")):
        raise ContractError("fenced")
    decoder = _decoder()
    try:
        value, stop = _decode(decoder, body, 0)
    except json.JSONDecodeError:
        opening = re.search(r"[{\[]", body)
        if opening is None or opening.start() == 0:
            raise ContractError("not_json") from None
        try:
            _decode(decoder, body, opening.start())
        except json.JSONDecodeError:
            raise ContractError("not_json") from None
        raise ContractError("text_before") from None
    rest = body[stop:].lstrip()
    if not rest:
        return value
    at = text.index(body, start) + len(body) - len(rest)
    try:
        _decode(decoder, rest, 0)
    except (json.JSONDecodeError, ContractError):
        raise ContractError("text_after", f"extra text from character {at}, counted from 0") from None
    raise ContractError("several_values", f"another value from character {at}, counted from 0")


def _inside_fence(text: str) -> tuple[int, int]:
    """Where the content of the fence starts and ends; the whole text where no fence encloses it."""
    whole = (0, len(text))
    first = len(text) - len(text.lstrip())
    opening = _OPENING.match(text, first)
    stripped = text.rstrip()
    closing = _CLOSING.search(stripped)
    if opening is None or closing is None or closing.start() < opening.end():
        return whole
    mark = opening[1]
    closes = closing.group().startswith(mark) and set(closing.group()) == {mark[0]}
    before = stripped[: closing.start()]
    own_line = before.rstrip(" \t").endswith(("\n", "\r"))
    return (opening.end(), closing.start()) if closes and own_line else whole


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> tuple[object, int]:
    try:
        return decoder.raw_decode(text, at)
    except RecursionError:
        raise ContractError("not_json", "nested too deeply") from None


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_no_duplicates,
        parse_float=lambda text: Literal(_decimal(text), is_integer=False),
        parse_int=lambda text: Literal(_decimal(text), is_integer=True),
        parse_constant=_not_finite,
    )


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ContractError("duplicate_key")
    return found


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except ArithmeticError:
        raise ContractError("not_finite") from None
    if not value.is_finite():
        raise ContractError("not_finite")
    return value


def _not_finite(_name: str) -> NoReturn:
    raise ContractError("not_finite")
