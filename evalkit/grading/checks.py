"""Deterministic checks of a final answer against a reference: pure, exact, and closed.

A check has three outcomes. `ok` and `wrong` are for answers of the form that was asked for; anything else
is a `contract_fail`. No check guesses: a reply that could be read in two ways breaks the contract.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from evalkit.errors import Fault, visible
from evalkit.grading.grade import Grade

__all__ = ["Boolean", "Check", "CheckKind", "Choice", "Contains", "Exact", "choice_word", "plain"]


class CheckKind(StrEnum):
    """The kinds of check that a label file can ask for."""

    EXACT = "exact"
    CHOICE = "choice"
    NUMBER = "number"
    CONTAINS = "contains"
    JSON = "json"
    BOOLEAN = "boolean"
    REGEX = "regex"


class Check(Protocol):
    """A way to compare final answers with references."""

    kind: ClassVar[CheckKind]

    def grade(self, answer: str, reference: str) -> Grade:
        """The grade of a final answer; `reference` is one that `reference_fault` accepts."""
        ...

    def reference_fault(self, reference: str) -> Fault | None:
        """Why no answer could be compared with `reference`, or None. The fault names no place."""
        ...


def plain(text: str) -> str:
    """`text` in NFC without blanks around it."""
    return unicodedata.normalize("NFC", text).strip()


def _empty_reference() -> Fault:
    return Fault("is empty", "write the text that a right answer has")


@dataclass(frozen=True, slots=True)
class Exact:
    """Right where the answer is the reference, in NFC and without blanks around them; case counts."""

    kind: ClassVar[CheckKind] = CheckKind.EXACT

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok`, `wrong`, or `contract_fail` for an empty answer."""
        given = plain(answer)
        if not given:
            return Grade.contract_fail("empty")
        return Grade.ok() if given == plain(reference) else Grade.wrong()

    def reference_fault(self, reference: str) -> Fault | None:
        """An empty reference cannot be met."""
        return None if plain(reference) else _empty_reference()


@dataclass(frozen=True, slots=True)
class Choice:
    """Right where the answer is one of the closed options and that one is the reference.

    Case and punctuation around the answer do not count. Only whole answers are compared: "not correct",
    "INCORRECT" and "correct, I think" are not the option "correct".
    """

    options: tuple[str, ...]
    kind: ClassVar[CheckKind] = CheckKind.CHOICE

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok`, `wrong` for another option, `contract_fail` for anything that is not an option."""
        given = choice_word(answer)
        if not plain(answer):
            return Grade.contract_fail("empty")
        if given not in {choice_word(option) for option in self.options}:
            return Grade.contract_fail("not_an_option")
        return Grade.ok() if given == choice_word(reference) else Grade.wrong()

    def reference_fault(self, reference: str) -> Fault | None:
        """The reference is one of the options."""
        if choice_word(reference) in {choice_word(option) for option in self.options}:
            return None
        listed = ", ".join(visible(option) for option in self.options)
        return Fault(f"{visible(reference)!r} is not one of the options", f"use one of: {listed}")


def choice_word(text: str) -> str:
    """The form in which choices are compared: NFC, no case, no blanks and punctuation around it."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    start, end = 0, len(folded)
    while start < end and _surrounding(folded[start]):
        start += 1
    while end > start and _surrounding(folded[end - 1]):
        end -= 1
    return folded[start:end]


def _surrounding(ch: str) -> bool:
    return ch.isspace() or ch == "`" or unicodedata.category(ch).startswith("P")


@dataclass(frozen=True, slots=True)
class Contains:
    """Right where the reference stands in the answer as a word of its own; NFC, case counts.

    "CORRECT" is not in "INCORRECT", nor 15 in 150 or 1.5 in 21.5. After a Hangul reference more Hangul may
    follow, because particles are written without a blank; before it none may.
    """

    kind: ClassVar[CheckKind] = CheckKind.CONTAINS

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok` or `wrong`, or `contract_fail` for an empty answer."""
        text, wanted = plain(answer), plain(reference)
        if not text:
            return Grade.contract_fail("empty")
        at = text.find(wanted)
        while at != -1:
            if not _joined_before(text, at) and not _joined_after(text, at + len(wanted)):
                return Grade.ok("contained")
            at = text.find(wanted, at + 1)
        return Grade.wrong("not_contained")

    def reference_fault(self, reference: str) -> Fault | None:
        """An empty reference stands in every answer."""
        return None if plain(reference) else _empty_reference()


def _joined_before(text: str, at: int) -> bool:
    """Whether the character at `at` continues a word or number that begins before it."""
    before, first, earlier = text[:at][-1:], text[at], text[:at][-2:-1]
    if first.isdigit() and before and before in "-−":
        return not earlier.isalnum()  # A sign; between words a hyphen.
    if first.isdigit() and before and before in ".,":
        return earlier.isdigit()
    return _in_word(first) and _in_word(before) and _hangul(first) == _hangul(before)


def _joined_after(text: str, end: int) -> bool:
    """Whether the word or number that ends before `end` goes on."""
    last, following = text[end - 1], text[end : end + 1]
    if last.isdigit() and following and following in ".,":
        return text[end + 1 : end + 2].isdigit()
    return _in_word(last) and _in_word(following) and not _hangul(last) and not _hangul(following)


def _in_word(ch: str) -> bool:
    return bool(ch) and (ch.isalnum() or ch == "_" or unicodedata.category(ch).startswith("M"))


def _hangul(ch: str) -> bool:
    return bool(ch) and ("가" <= ch <= "힣" or "ᄀ" <= ch <= "ᇿ" or "ㄱ" <= ch <= "ㆎ")


@dataclass(frozen=True, slots=True)
class Boolean:
    """Right where answer and reference spell the same truth value; the spellings are declared.

    Nothing is true or false by itself: "False", 0 and "no" mean what the two lists say, and a spelling in
    neither list means nothing.
    """

    true_values: tuple[str, ...]
    false_values: tuple[str, ...]
    kind: ClassVar[CheckKind] = CheckKind.BOOLEAN

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok`, `wrong`, or `contract_fail` for a spelling in neither list."""
        if not plain(answer):
            return Grade.contract_fail("empty")
        given = self.truth(answer)
        if given is None:
            return Grade.contract_fail("not_a_listed_value")
        return Grade.ok() if given == self.truth(reference) else Grade.wrong()

    def truth(self, text: str) -> bool | None:
        """The truth value that `text` spells, None for a spelling in neither list."""
        spelt = plain(text)
        if spelt in {plain(value) for value in self.true_values}:
            return True
        if spelt in {plain(value) for value in self.false_values}:
            return False
        return None

    def reference_fault(self, reference: str) -> Fault | None:
        """The reference is a declared spelling."""
        if self.truth(reference) is not None:
            return None
        return Fault(
            f"{visible(reference)!r} is in neither list of boolean spellings "
            f"(true: {_listed(self.true_values)}; false: {_listed(self.false_values)})",
            "correct the label, or add its spelling to true_values or false_values",
        )


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(visible(value) for value in values)
