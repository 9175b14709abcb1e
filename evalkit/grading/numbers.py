"""The number check: one number in the reply, compared in exact decimal arithmetic."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import ClassVar

from evalkit.errors import Fault, visible
from evalkit.grading.checks import CheckKind, plain
from evalkit.grading.grade import Grade

__all__ = ["Number", "read_number"]

_RUN = re.compile(r"[0-9.,]+")
_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+")
# A word that multiplies the number before it: "3만" and "3k" are not 3.
_SCALE = re.compile(
    r"\s*(?:[십백천만억조十百千万萬億兆]|(?:k|K|M|hundred|thousand|million|billion|dozen)(?![A-Za-z]))"
)
# What makes the number after it a bound or a root and not an answer; "->" and "=>" point at one.
_RELATION = re.compile(r"(?:[<≤≥±√]|(?<![-=])>)\s*$")
_LONGEST = 100
_EXACT = Context(prec=3 * _LONGEST)


def read_number(text: str) -> Decimal | str:
    """The one number in `text`, or the code that says why there is none.

    Thousands may be parted by commas, in groups of three; a unit or currency sign may stand beside the
    number. Codes: `empty`, `no_number`, `several_numbers`, `scaled_number` (3만, 3 million) and
    `malformed_number` (1.234,5; A4; <5; - 5; ½; digits of other scripts; over 100 characters).

    >>> read_number("It costs $12,000.50.")
    Decimal('12000.50')
    >>> read_number("3 or 4")
    'several_numbers'
    """
    shown = plain(text)
    if not shown:
        return "empty"
    if any(not ch.isascii() and unicodedata.category(ch) in {"Nd", "Nl", "No"} for ch in shown):
        return "malformed_number"
    runs = [run for run in _RUN.finditer(shown) if run.group().strip(".,")]
    if not runs:
        return "no_number"
    if len(runs) > 1:
        return "several_numbers"
    digits = runs[0].group().rstrip(".,").lstrip(",")
    start = runs[0].end() - len(runs[0].group().lstrip(","))
    before = shown[:start]
    glued = before[-1:].isascii() and (before[-1:].isalnum() or before[-1:] == "_")
    if len(digits) > _LONGEST or not _NUMBER.fullmatch(digits) or glued or _RELATION.search(before):
        return "malformed_number"
    if _SCALE.match(shown, start + len(digits)):
        return "scaled_number"
    negative = _is_negative(before)
    if negative is None:
        return "malformed_number"
    value = Decimal(digits.replace(",", ""))
    return value.copy_negate() if negative else value


def _is_negative(before: str) -> bool | None:
    """Whether the text before a number ends in a minus sign; None where it may be a dash, bullet or hyphen."""
    head = before.rstrip()
    if head and unicodedata.category(head[-1]) == "Sc":
        before = head = head[:-1]
    if head[-1:] not in {"-", "−", "–"}:
        return False
    is_sign = before[-1:] in {"-", "−"} and not (before[-2:-1].isalnum() or before[-2:-1] in {"-", "−"})
    return True if is_sign else None


@dataclass(frozen=True, slots=True)
class Number:
    """Right where the one number in the answer is near enough to the reference, in exact decimal arithmetic.

    `|given - wanted| <= max(tolerance, relative_tolerance * |wanted|)`.
    """

    tolerance: Decimal = Decimal(0)
    relative_tolerance: Decimal = Decimal(0)
    kind: ClassVar[CheckKind] = CheckKind.NUMBER

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok`, `wrong`, or `contract_fail` where the answer does not hold exactly one readable number."""
        given, wanted = read_number(answer), read_number(reference)
        if isinstance(given, str):
            return Grade.contract_fail(given)
        if isinstance(wanted, str):
            raise ValueError(f"The `reference` parameter must hold one number. Got {reference!r} instead.")
        apart = _EXACT.abs(_EXACT.subtract(given, wanted))
        near = max(self.tolerance, _EXACT.multiply(self.relative_tolerance, wanted.copy_abs()))
        return Grade.ok() if apart <= near else Grade.wrong()

    def reference_fault(self, reference: str) -> Fault | None:
        """The reference holds exactly one number."""
        read = read_number(reference)
        if isinstance(read, Decimal):
            return None
        return Fault(f"{visible(reference)!r} is not one number ({read})", "write the number in digits")
