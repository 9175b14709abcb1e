"""From the `check` of a label to the check itself, and from a reply to its grade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import NamedTuple

from evalkit.errors import Fault, InputError, visible
from evalkit.grading.checks import Boolean, Check, CheckKind, Choice, Contains, Exact, choice_word, plain
from evalkit.grading.final_answer import THINK_TAGS, final_text
from evalkit.grading.grade import Grade
from evalkit.grading.json_contract import FieldType, JsonObject
from evalkit.grading.numbers import Number

__all__ = ["Label", "grade_reply", "parse_check", "reference_faults"]


class Label(NamedTuple):
    """One reference in a file: where it stands and what it says."""

    line: int
    row: int
    id: str
    value: str


def parse_check(spec: object) -> Check:
    """The check that `spec` asks for, e.g. `{"kind": "choice", "options": ["yes", "no"]}`.

    Raises `InputError` with every fault of the spec; the faults name a field and no place, which the reader of
    the file adds.
    """
    if not isinstance(spec, Mapping):
        raise InputError(
            Fault(f"is {visible(spec)!r}", 'write an object such as {"kind": "exact"}', field="check")
        )
    kinds = ", ".join(CheckKind)
    try:
        kind = CheckKind(str(spec.get("kind")))
    except ValueError:
        raise InputError(
            Fault(f"is {visible(spec.get('kind'))!r}", f"use one of {kinds}", field="check.kind")
        ) from None
    build, settings = _BUILDERS[kind]
    if unknown := sorted(str(name) for name in spec if name not in {"kind", *settings}):
        allowed = ", ".join(settings) or "none"
        raise InputError(
            Fault(
                f"has no setting {visible(', '.join(unknown))!r}",
                f"a check of kind {kind} takes these settings: {allowed}",
                field="check",
            )
        )
    return build(spec)


def reference_faults(check: Check, labels: Iterable[Label], *, file: str, field: str) -> list[Fault]:
    """Every label that `check` could not compare an answer with, with its place, in file order."""
    found = []
    for label in labels:
        fault = check.reference_fault(label.value)
        if fault is not None:
            found.append(replace(fault, file=file, line=label.line, row=label.row, id=label.id, field=field))
    return found


def grade_reply(
    check: Check,
    reply: str,
    reference: str,
    *,
    tags: Sequence[tuple[str, str]] = THINK_TAGS,
    reasoning: str | None = None,
) -> Grade:
    """The grade of a whole reply: reasoning is taken off first; a reply that is all reasoning has no answer."""
    answer = final_text(reply, tags=tags, reasoning=reasoning)
    if answer is None:
        return Grade.no_final_answer("only_reasoning")
    return check.grade(answer, reference)


def _exact(_spec: Mapping[str, object]) -> Check:
    return Exact()


def _contains(_spec: Mapping[str, object]) -> Check:
    return Contains()


def _choice(spec: Mapping[str, object]) -> Check:
    options = _texts(spec, "options")
    words = [choice_word(option) for option in options]
    if len(words) < 2 or len(set(words)) < len(words) or "" in words:
        raise InputError(
            Fault(
                f"{visible(options)} cannot be told apart when case and punctuation are ignored, or are too few",
                "list two or more options that differ in their words",
                field="check.options",
            )
        )
    return Choice(options)


def _number(spec: Mapping[str, object]) -> Check:
    return Number(_tolerance(spec, "tolerance"), _tolerance(spec, "relative_tolerance"))


def _tolerance(spec: Mapping[str, object], name: str) -> Decimal:
    given = spec.get(name, 0)
    try:
        if isinstance(given, bool):
            raise InvalidOperation
        tolerance = Decimal(str(given))
    except InvalidOperation:
        tolerance = Decimal("NaN")
    if not tolerance.is_finite() or tolerance < 0:
        raise InputError(Fault(f"is {visible(given)!r}", "write a number of 0 or more", field=f"check.{name}"))
    return tolerance


def _regex(spec: Mapping[str, object]) -> Check:
    from evalkit.grading.patterns import Pattern, Regex

    source = spec.get("pattern")
    if not isinstance(source, str) or not source:
        fix = "write the pattern that the whole answer has to match, in single quotes"
        raise InputError(Fault(f"is {visible(source)!r}", fix, field="check.pattern"))
    pattern = Pattern(source)
    problem = pattern.problem()
    if problem is not None:
        raise InputError(Fault(*problem, field="check.pattern"))
    return Regex(pattern)


def _json(spec: Mapping[str, object]) -> Check:
    fields = spec.get("fields")
    if not isinstance(fields, Mapping) or not fields:
        raise InputError(
            Fault(f"is {visible(fields)!r}", 'write an object such as {"sum": "number"}', field="check.fields")
        )
    faults, types = [], {}
    for name, kind in fields.items():
        try:
            types[str(name)] = FieldType(str(kind))
        except ValueError:
            fix = f"use one of {', '.join(FieldType)}"
            faults.append(Fault(f"{visible(name)} is {visible(kind)!r}", fix, field="check.fields"))
    if faults:
        raise InputError(faults)
    return JsonObject(MappingProxyType(types))


def _boolean(spec: Mapping[str, object]) -> Check:
    true_values, false_values = _texts(spec, "true_values"), _texts(spec, "false_values")
    both = {plain(value) for value in true_values} & {plain(value) for value in false_values}
    if both:
        raise InputError(
            Fault(
                f"{visible(', '.join(sorted(both)))} is in both true_values and false_values",
                "leave each spelling in one list",
                field="check.true_values",
            )
        )
    return Boolean(true_values, false_values)


def _texts(spec: Mapping[str, object], name: str) -> tuple[str, ...]:
    values = spec.get(name)
    if not isinstance(values, list | tuple) or not values or not all(isinstance(v, str) for v in values):
        fix = "write a list of texts, quoted where needed"
        raise InputError(Fault(f"is {visible(values)!r}", fix, field=f"check.{name}"))
    return tuple(values)


# What builds each kind, and the settings it takes beside `kind`. A new kind is one more line here.
_Builder = Callable[[Mapping[str, object]], Check]
_BUILDERS: Mapping[CheckKind, tuple[_Builder, tuple[str, ...]]] = MappingProxyType(
    {
        CheckKind.EXACT: (_exact, ()),
        CheckKind.CHOICE: (_choice, ("options",)),
        CheckKind.NUMBER: (_number, ("tolerance", "relative_tolerance")),
        CheckKind.CONTAINS: (_contains, ()),
        CheckKind.JSON: (_json, ("fields",)),
        CheckKind.BOOLEAN: (_boolean, ("true_values", "false_values")),
        CheckKind.REGEX: (_regex, ("pattern",)),
    }
)
