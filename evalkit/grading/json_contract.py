"""The JSON check: the whole reply is one JSON object with exactly the declared fields and types."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, NoReturn

from evalkit.errors import Fault, visible
from evalkit.grading.checks import CheckKind
from evalkit.grading.grade import Grade

__all__ = ["FieldType", "JsonObject"]


class FieldType(StrEnum):
    """Types of a field. A boolean is not a number; 1.0 is a number and not an integer."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class _Literal:
    """A number as it is written in the reply."""

    value: Decimal
    types: frozenset[FieldType]


_FLOAT_TYPES = frozenset({FieldType.NUMBER})
_INT_TYPES = frozenset({FieldType.NUMBER, FieldType.INTEGER})


class _ContractError(ValueError):
    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Right where the reply is one JSON object with the declared fields and the reference's values.

    Strict: blanks around the object are the only thing allowed beside it. Texts are compared in NFC without
    blanks around them, numbers by value. Reasons of a broken contract: `empty`, `fenced`, `text_before`,
    `text_after`, `several_values`, `not_json`, `duplicate_key`, `not_finite`, `wrong_shape`, `missing_field`,
    `extra_field`, `wrong_type`.
    """

    fields: Mapping[str, FieldType]
    kind: ClassVar[CheckKind] = CheckKind.JSON

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok`, `wrong` with the names of the fields that differ, or `contract_fail` with its reason."""
        try:
            given = self._read(answer)
        except _ContractError as broken:
            return Grade.contract_fail(broken.reason, broken.detail)
        wanted = self._read(reference)
        differing = [name for name in self.fields if given[name] != wanted[name]]
        return Grade.wrong("wrong_value", ", ".join(differing)) if differing else Grade.ok()

    def reference_fault(self, reference: str) -> Fault | None:
        """The reference keeps the contract itself."""
        try:
            self._read(reference)
        except _ContractError as broken:
            what = f"{visible(reference)!r} breaks its own contract ({broken.reason})"
            return Fault(what, "write one JSON object with exactly the declared fields")
        return None

    def _read(self, text: str) -> dict[str, object]:
        value = _one_value(text)
        if not isinstance(value, dict):
            raise _ContractError("wrong_shape")
        if missing := [name for name in self.fields if name not in value]:
            raise _ContractError("missing_field", ", ".join(missing))
        if extra := [name for name in value if name not in self.fields]:
            raise _ContractError("extra_field", ", ".join(extra))
        return {name: _typed(name, value[name], kind) for name, kind in self.fields.items()}


def _typed(name: str, value: object, kind: FieldType) -> object:
    if kind is FieldType.STRING and isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if kind is FieldType.BOOLEAN and isinstance(value, bool):
        return value
    if isinstance(value, _Literal) and kind in value.types:
        return value.value
    raise _ContractError("wrong_type", name)


def _one_value(text: str) -> object:
    """The one JSON value that is all of `text`, blanks around it aside."""
    body = text.strip()
    if not body:
        raise _ContractError("empty")
    if body.startswith(("```", "~~~")):
        raise _ContractError("fenced")
    decoder = _decoder()
    try:
        value, end = _decode(decoder, body, 0)
    except json.JSONDecodeError:
        opening = re.search(r"[{\[]", body)
        if opening is None or opening.start() == 0:
            raise _ContractError("not_json") from None
        try:
            _decode(decoder, body, opening.start())
        except json.JSONDecodeError:
            raise _ContractError("not_json") from None
        raise _ContractError("text_before") from None
    rest = body[end:].lstrip()
    if not rest:
        return value
    at = text.index(body) + len(body) - len(rest)
    try:
        _decode(decoder, rest, 0)
    except (json.JSONDecodeError, _ContractError):
        raise _ContractError("text_after", f"extra text from character {at}, counted from 0") from None
    raise _ContractError("several_values", f"another value from character {at}, counted from 0")


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> tuple[object, int]:
    try:
        return decoder.raw_decode(text, at)
    except RecursionError:
        raise _ContractError("not_json", "nested too deeply") from None


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_no_duplicates,
        parse_float=lambda text: _Literal(_decimal(text), _FLOAT_TYPES),
        parse_int=lambda text: _Literal(_decimal(text), _INT_TYPES),
        parse_constant=_not_finite,
    )


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _ContractError("duplicate_key")
    return found


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except ArithmeticError:
        raise _ContractError("not_finite") from None
    if not value.is_finite():
        raise _ContractError("not_finite")
    return value


def _not_finite(_name: str) -> NoReturn:
    raise _ContractError("not_finite")
