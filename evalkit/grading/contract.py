"""The output contract of a study: the whole reply is one JSON value that fits a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any

from evalkit.errors import visible
from evalkit.grading.grade import Grade
from evalkit.grading.json_text import ContractError, Literal, one_value, unfenced
from evalkit.grading.patterns import Pattern

__all__ = ["Contract", "JsonMode", "schema_problems", "schema_text"]

_MAX_DETAIL = 300
_DECIMAL = re.compile(r"Decimal\('([^']{1,100})'\)")
# How a broken rule is counted; the first of a reply in this order is its reason.
_REASONS = ("wrong_shape", "missing_field", "extra_field", "wrong_type", "bad_value")
_KEYWORDS = {
    "required": "missing_field",
    "dependentRequired": "missing_field",
    "additionalProperties": "extra_field",
    "unevaluatedProperties": "extra_field",
    "propertyNames": "extra_field",
    "type": "wrong_type",
}


class JsonMode(StrEnum):
    """What may stand around the JSON value."""

    STRICT = "strict"
    """Blanks."""
    FENCED_OK = "fenced_ok"
    """Blanks, and one fence, bare or marked `json`, that encloses the whole reply."""


@dataclass(frozen=True, slots=True)
class Contract:
    """One JSON value, and the schema it fits, as canonical JSON text (None: any value).

    Formats are not checked, patterns run in linear time, numbers are compared exactly, and a `$ref` never leaves
    the schema.
    """

    mode: JsonMode = JsonMode.STRICT
    schema: str | None = None

    def breach(self, answer: str) -> Grade | None:
        """The `contract_fail` of an answer, with one reason code; None where it keeps the contract."""
        try:
            value = one_value(answer, fenced_ok=self.mode is JsonMode.FENCED_OK)
        except ContractError as broken:
            return Grade.contract_fail(broken.reason, broken.detail)
        if self.schema is None:
            return None
        try:
            found = [
                (_reason(error), _where(error)) for error in _validator(self.schema).iter_errors(_plain(value))
            ]
        except RecursionError:
            return Grade.contract_fail("not_json", "nested too deeply")
        except ArithmeticError:
            return Grade.contract_fail("bad_value", "a number is too large to be checked")
        if not found:
            return None
        reason, detail = min(found, key=lambda pair: (_REASONS.index(pair[0]), pair[1]))
        return Grade.contract_fail(reason, detail)

    def body(self, answer: str) -> str:
        """What a check sees of an answer that keeps the contract: without its fence."""
        return unfenced(answer) if self.mode is JsonMode.FENCED_OK else answer


def schema_problems(schema: object) -> list[tuple[str, str]]:
    """(what is wrong, how to put it right) for everything that keeps `schema`, a JSON value, from being used."""
    if not isinstance(schema, dict):
        return [("is not a JSON Schema: it is no object", 'write an object such as {"type": "object"}')]
    problems = list(_refused(schema, ""))
    if problems:
        return problems
    from jsonschema.exceptions import SchemaError

    try:
        text = schema_text(schema)
        _validator_class(schema).check_schema(schema)
        validator = _validator(text)
        probes: tuple[Any, ...] = (None, True, Decimal(0), "", [], {}, [{}], {"a": {}})
        for probe in probes:
            list(validator.iter_errors(probe))
        for reference in sorted(set(_references(schema))):
            validator._resolver.lookup(reference)  # the only way to ask for it
    except SchemaError as error:
        where = "/".join(str(step) for step in error.absolute_path)
        return [
            (
                f"is not a JSON Schema: {visible(error.message)}" + (f" (at {visible(where)})" if where else ""),
                _FIX,
            )
        ]
    except RecursionError:
        return [("refers to itself without an end", "give the $ref something that ends, such as properties")]
    except Exception as error:  # noqa: BLE001 (the library raises many kinds for a schema that is none)
        return [(f"cannot be used: {visible(error)}", _FIX)]
    return []


_FIX = "correct the schema (JSON Schema, draft 2020-12 where it names no other)"


def schema_text(schema: Mapping[str, Any]) -> str:
    """The schema as canonical JSON: numbers as written, keys in order."""
    return _dump(schema)


def _dump(value: object) -> str:
    import json

    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(k))}:{_dump(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_dump(item) for item in value) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, allow_nan=False)


def _refused(schema: object, path: str) -> Iterator[tuple[str, str]]:
    """Keywords that reach out of the schema, or run patterns that a reply could slow down."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _refused(item, f"{path}/{index}")
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        here = f"{path}/{key}"
        if key in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(value, str):
            if key != "$ref":
                yield f"{visible(here)} is not supported", "write a $ref to a part of this schema"
            elif not value.startswith("#"):
                what = f"{visible(here)} leaves the schema ({visible(value)}), and nothing is ever fetched"
                yield what, "copy that schema to $defs and refer to it as #/$defs/name"
        elif key in {"$id", "id"} and isinstance(value, str) and path:
            yield f"{visible(here)} changes what a $ref means", "delete it, and refer to #/$defs/name"
        elif key == "pattern" and isinstance(value, str):
            yield from _pattern(here, value)
        elif key == "patternProperties" and isinstance(value, dict):
            for pattern in value:
                yield from _pattern(here, pattern)
            if "unevaluatedProperties" in schema:
                yield f"{visible(here)} stands beside unevaluatedProperties", "use additionalProperties instead"
        if key not in {"const", "enum", "default", "examples"}:
            yield from _refused(value, here)


def _pattern(path: str, source: object) -> Iterator[tuple[str, str]]:
    problem = Pattern(str(source)).problem()
    if problem is not None:
        yield f"{visible(path)}: {problem[0]}", problem[1]


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif key not in {"const", "enum", "default", "examples"}:
                yield from _references(value)


def _plain(value: object) -> object:
    """Numbers as `Decimal`, which compare exactly."""
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _reason(error: Any) -> str:
    reason = _KEYWORDS.get(error.validator, "bad_value")
    return "wrong_shape" if reason == "wrong_type" and not error.absolute_path else reason


def _where(error: Any) -> str:
    place = "/".join(str(step) for step in error.absolute_path)
    text = f"{place}: {error.message}" if place else str(error.message)
    return _DECIMAL.sub(r"\1", text)[:_MAX_DETAIL]


def _validator_class(schema: Mapping[str, Any]) -> Any:
    from jsonschema import validators as known

    drafts = (
        known.Draft202012Validator,
        known.Draft201909Validator,
        known.Draft7Validator,
        known.Draft6Validator,
        known.Draft4Validator,
    )
    asked = str(schema.get("$schema", "")).rstrip("#")
    for draft in drafts:
        meta = draft.META_SCHEMA
        if not asked or asked == str(meta.get("$id", meta.get("id", ""))).rstrip("#"):
            return draft
    raise ValueError(f"$schema {visible(asked)!r} is no known draft")


@lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    import json

    from jsonschema.validators import extend
    from referencing import Registry

    schema = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    base = _validator_class(schema)
    checker = base.TYPE_CHECKER.redefine("integer", _is_integer)
    keywords = {
        "pattern": _pattern_rule,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    make: Any = extend
    exact = make(base, keywords, type_checker=checker)
    registry: Registry[Any] = Registry()  # knows nothing but the schema, and fetches nothing
    return exact(schema, registry=registry)


def _is_integer(_checker: Any, value: object) -> bool:
    return isinstance(value, Decimal) and value == value.to_integral_value()


def _pattern_rule(validator: Any, pattern: str, instance: object, _schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not Pattern(pattern).search(instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: object, _schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for source, below in patterns.items():
        for name, value in instance.items():
            if Pattern(source).search(name):
                yield from validator.descend(value, below, path=name, schema_path=source)


def _additional_properties(validator: Any, rule: Any, instance: object, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, dict):
        return
    patterns = [Pattern(source) for source in schema.get("patternProperties", {})]
    known = schema.get("properties", {})
    extras = [name for name in instance if name not in known and not any(p.search(name) for p in patterns)]
    if rule is False and extras:
        yield ValidationError(f"fields that the schema does not know: {', '.join(extras)}")
    elif rule is not False:
        for name in extras:
            yield from validator.descend(instance[name], rule, path=name)
