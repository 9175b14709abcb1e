"""Notices about labels that are legal but worth a look before a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from evalkit.tabular.faults import listed
from evalkit.tabular.fields import parse_number
from evalkit.tabular.names import nfc, quoted

__all__ = ["spelling_notice", "spellings"]

_MAX_SPELLINGS = 30
_YES = {"true", "yes", "y", "t"}
_NO = {"false", "no", "n", "f"}


def _fold(text: str) -> str:
    word = nfc(text).strip().casefold()
    if word in _YES:
        return "yes"
    if word in _NO:
        return "no"
    number = parse_number(word)
    if number is None:
        return f"text {word}"
    return {1.0: "yes", 0.0: "no"}.get(number, f"number {number!r}")


def spellings(values: Iterable[Any]) -> Counter[str]:
    """How often each text occurs; counting stops at the first text beyond the 30th."""
    counts: Counter[str] = Counter()
    for value in values:
        if isinstance(value, str):
            counts[value] += 1
            if len(counts) > _MAX_SPELLINGS:
                break
    return counts


def spelling_notice(file: str, field: str, counts: Mapping[str, int]) -> str | None:
    """A notice that lists the spellings of one column where two of them could mean the same, or None.

    TRUE and true, yes and 1, 1 and 1.0, `a` and `A ` are such pairs. Labels stay the text that was typed and are
    compared as text; columns of more than 30 different texts are taken for free text.
    """
    if len(counts) > _MAX_SPELLINGS:
        return None
    folds = Counter(_fold(text) for text in counts)
    if not any(count > 1 for count in folds.values()):
        return None
    found = listed([f"{quoted(text, 40)} ({n})" for text, n in counts.items()], _MAX_SPELLINGS)
    return f"{file}: field {field}: spellings found: {found}; they are compared as text, as they stand"
