"""Regular expressions that no text can slow down: RE2, which takes time linear in the text.

RE2 comes with pyarrow. It has no look-around and no back-reference; a pattern that needs one is refused when the
rubric is read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from evalkit.errors import Fault, visible
from evalkit.grading.checks import CheckKind, plain
from evalkit.grading.grade import Grade

__all__ = ["MAX_PATTERN", "Pattern", "Regex"]

MAX_PATTERN = 2_000
"""The most characters of a pattern."""

_FIX = "write it without look-around, back-references and large repeat counts (RE2 syntax)"
# Private characters that mark where a match starts and ends.
_START, _END = "\ue000", "\ue001"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern in RE2 syntax. Text and pattern are compared in NFC."""

    source: str

    def problem(self) -> tuple[str, str] | None:
        """(what is wrong, how to put it right) of a pattern that cannot be used."""
        if len(self.source) > MAX_PATTERN:
            what = f"has {len(self.source):,} characters, and at most {MAX_PATTERN:,} are taken"
            return what, "write a shorter pattern"
        try:
            # By itself first: wrapped, a stray bracket could close the wrapping.
            _search(self.source, "")
            self.fullmatch("")
        except ValueError as error:
            return f"{visible(self.source)!r} is no pattern: {visible(error)}", _FIX
        return None

    def group_problem(self) -> tuple[str, str] | None:
        """What is wrong with it as a pattern that finds the answer: it has one group, and never an empty one."""
        found = self.problem()
        if found is not None:
            return found
        if not _replaces(self.source, r"\1") or _replaces(self.source, r"\2"):
            what = f"{visible(self.source)!r} does not have exactly one group"
            return what, "put the answer, and nothing else, in round brackets; other brackets as (?:...)"
        if _search(self.source, ""):
            return f"{visible(self.source)!r} matches an empty text", "write what stands beside the answer"
        return None

    def search(self, text: str) -> bool:
        """Whether it matches anywhere in `text`."""
        return _search(_nfc(self.source), _nfc(text))

    def fullmatch(self, text: str) -> bool:
        """Whether it matches all of `text`."""
        return _search(rf"\A(?:{_nfc(self.source)})\z", _nfc(text))

    def groups(self, text: str) -> tuple[str, ...]:
        """What its one group holds at each place where it matches, in order."""
        safe = _nfc(text).replace(_START, "\ufffd").replace(_END, "\ufffd")
        marked = _replace(_nfc(self.source), safe, rf"{_START}\1{_END}")
        return tuple(piece.partition(_END)[0] for piece in marked.split(_START)[1:])


@dataclass(frozen=True, slots=True)
class Regex:
    """Right where the pattern matches the whole answer, blanks around it aside. It needs no reference."""

    pattern: Pattern
    kind: ClassVar[CheckKind] = CheckKind.REGEX

    def grade(self, answer: str, reference: str) -> Grade:
        """`ok` or `wrong`, or `contract_fail` for an empty answer."""
        given = plain(answer)
        if not given:
            return Grade.contract_fail("empty")
        return Grade.ok("match") if self.pattern.fullmatch(given) else Grade.wrong("no_match")

    def reference_fault(self, reference: str) -> Fault | None:
        """Any reference will do: it is not looked at."""
        return None


def _nfc(text: str) -> str:
    """NFC; half of a surrogate pair, which is no text, becomes the replacement character."""
    return unicodedata.normalize("NFC", text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _search(pattern: str, text: str) -> bool:
    import pyarrow.compute as pc

    return bool(_run(lambda array: pc.match_substring_regex(array, pattern), text))


def _replace(pattern: str, text: str, replacement: str) -> str:
    import pyarrow.compute as pc

    return str(_run(lambda array: pc.replace_substring_regex(array, pattern, replacement), text))


def _replaces(pattern: str, replacement: str) -> bool:
    try:
        _replace(pattern, "", replacement)
    except ValueError:
        return False
    return True


def _run(compute: Callable[[Any], Any], text: str) -> object:
    import pyarrow as pa

    # ArrowInvalid, which a pattern that is none raises, is a ValueError.
    return compute(pa.array([text], pa.large_string()))[0].as_py()
