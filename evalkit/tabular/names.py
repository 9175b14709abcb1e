"""Names that people mistype: normal form and nearest known names."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["did_you_mean", "folded", "nearest", "nfc", "quoted"]


def nfc(text: str) -> str:
    """`text` in Unicode normal form C, so that one name has one spelling."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """`text` without what a typist does not see or mean: case, blanks, separators, a plural s."""
    return re.sub(r"[\s_.\-]+", "", unicodedata.normalize("NFKC", text).casefold()).rstrip("s")


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The `known` names most like `name`, best first; names that differ only in case or blanks lead."""
    options = list(dict.fromkeys(known))
    same = [option for option in options if folded(option) == folded(name)]
    by_fold: dict[str, str] = {}
    for option in options:
        by_fold.setdefault(option.casefold(), option)
    close = difflib.get_close_matches(name.casefold().strip(), list(by_fold), n=count, cutoff=0.6)
    return list(dict.fromkeys([*same, *(by_fold[c] for c in close)]))[:count]


def quoted(value: object, limit: int = 80) -> str:
    """`value` in quotes as safe text, so that blanks at its ends are seen."""
    from evalkit.errors import visible

    return f'"{visible(value, limit)}"'


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """` (did you mean a or b?)`, or nothing where no known name is near."""
    close = nearest(name, known, 2)
    return f" (did you mean {' or '.join(quoted(c) for c in close)}?)" if close else ""
