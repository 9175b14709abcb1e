"""The JSON check: the whole reply is one JSON object with exactly the declared fields and types."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from evalkit.errors import Fault, visible
from evalkit.grading.checks import CheckKind
from evalkit.grading.grade import Grade
from evalkit.grading.json_text import ContractError, Literal, one_value

__all__ = ["FieldType", "JsonObject"]


class FieldType(StrEnum):
    """Types of a field. A boolean is not a number; 1.0 is a number and not an integer."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"


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
        except ContractError as broken:
            return Grade.contract_fail(broken.reason, broken.detail)
        wanted = self._read(reference)
        differing = [name for name in self.fields if given[name] != wanted[name]]
        return Grade.wrong("wrong_value", ", ".join(differing)) if differing else Grade.ok()

    def reference_fault(self, reference: str) -> Fault | None:
        """The reference keeps the contract itself."""
        try:
            self._read(reference)
        except ContractError as broken:
            what = f"{visible(reference)!r} breaks its own contract ({broken.reason})"
            return Fault(what, "write one JSON object with exactly the declared fields")
        return None

    def _read(self, text: str) -> dict[str, object]:
        value = one_value(text)
        if not isinstance(value, dict):
            raise ContractError("wrong_shape")
        if missing := [name for name in self.fields if name not in value]:
            raise ContractError("missing_field", ", ".join(missing))
        if extra := [name for name in value if name not in self.fields]:
            raise ContractError("extra_field", ", ".join(extra))
        return {name: _typed(name, value[name], kind) for name, kind in self.fields.items()}


def _typed(name: str, value: object, kind: FieldType) -> object:
    if kind is FieldType.STRING and isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    if kind is FieldType.BOOLEAN and isinstance(value, bool):
        return value
    is_number = kind is FieldType.NUMBER or (kind is FieldType.INTEGER and getattr(value, "is_integer", False))
    if isinstance(value, Literal) and is_number:
        return value.value
    raise ContractError("wrong_type", name)
