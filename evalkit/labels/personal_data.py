"""Take personal data out of text before anybody reads, labels or stores it.

What is found is replaced by its kind in brackets, `[email]`; what it was is kept nowhere. Rules find what has a
shape. Names, and whatever a sentence only tells, stay: removal makes a log safer to label, not anonymous.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from evalkit.labels.personal_keys import key_spans
from evalkit.labels.personal_numbers import (
    REGIONS,
    account_spans,
    card_spans,
    digit_runs,
    national_id_spans,
    phone_spans,
)
from evalkit.labels.personal_places import address_spans

__all__ = ["KINDS", "Finder", "cleaned", "cleaned_json", "personal_spans"]

KINDS = ("key", "email", "national_id", "card", "account", "phone", "address", "name")
"""What is looked for, in this order: where two overlap, the earlier kind names both. Names are found only by a
`Finder` that is given."""

Finder = Callable[[str], Iterable[tuple[int, int, str]]]
"""(start, end, kind) of what else is to be removed from a text."""

_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w+%'-]{1,64}(?:\.[\w+%'-]{1,64}){0,6}\s?(?:@|%40)\s?(?:[\w-]{1,63}\.){1,6}[A-Za-z가-힣]{2,24}(?![\w-])"
    r"|(?<![\w.+%-])[\w.+%-]{1,64}\s?(?:\[at\]|\(at\)|\{at\})\s?[\w-]{1,63}(?:\s?(?:\.|\[dot\]|\(dot\))\s?[\w-]{2,63}){1,4}"
)
_DIGIT = re.compile(r"\d")
_UNUSUAL = re.compile("[^\x00-\x7f가-힣]")
_NOT_DOMAIN = re.compile(r"(?i)@\s?[\d.]+[a-z]?$|\.(?:png|jpe?g|gif|svg|js|ts|py|css|html?)$")


def cleaned(text: str, found: Counter[str], regions: Sequence[str] = REGIONS, also: Finder | None = None) -> str:
    """`text` with personal data replaced by its kind; adds to `found` how many of each kind there were."""
    spans = _spans(text, tuple(regions)) if also is None else personal_spans(text, regions, also)
    if not spans:
        return text
    parts, at = [], 0
    for start, end, kind in spans:
        parts += [text[at:start], f"[{kind.replace('_', ' ')}]"]
        found[kind] += 1
        at = end
    return "".join([*parts, text[at:]])


def cleaned_json(
    value: Any, found: Counter[str], regions: Sequence[str] = REGIONS, also: Finder | None = None
) -> Any:
    """A JSON value with every text in it `cleaned`, names of keys included; numbers are looked at as text.

    The value itself where there is nothing to remove.
    """
    if isinstance(value, str):
        return cleaned(value, found, regions, also)
    if isinstance(value, list):
        parts = [cleaned_json(part, found, regions, also) for part in value]
        return value if all(map(operator.is_, parts, value)) else parts
    if isinstance(value, dict):
        pairs = {cleaned(str(k), found, regions): cleaned_json(v, found, regions, also) for k, v in value.items()}
        same = all(map(operator.is_, pairs, value)) and all(map(operator.is_, pairs.values(), value.values()))
        return value if same and len(pairs) == len(value) else pairs
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        return value if not personal_spans(text, regions) else cleaned(text, found, regions)
    return value


def personal_spans(
    text: str, regions: Sequence[str] = REGIONS, also: Finder | None = None
) -> list[tuple[int, int, str]]:
    """(start, end, kind) of all personal data in `text`, in order, none overlapping another.

    Digits and letters of full width and characters that are not seen (zero width) hide nothing.
    """
    found = list(_spans(text, tuple(regions)))
    return found if also is None else _merged([*found, *also(text)])


@lru_cache(maxsize=1024)  # system prompts, roles and names of keys stand in a log again and again
def _spans(text: str, regions: tuple[str, ...]) -> Sequence[tuple[int, int, str]]:
    plain, place = _plain(text)
    found: list[tuple[int, int, str]] = []
    for kind, spans in _finders(plain, regions):
        for start, end in spans(plain):
            if end > start:
                found.append((start, end, kind))
    merged = _merged(found)
    if place is None:
        return merged
    return [(place[start], place[end - 1] + 1, kind) for start, end, kind in merged]


def _merged(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans in order, those that overlap as one."""
    rank = {kind: i for i, kind in enumerate(KINDS)}
    found.sort(key=lambda span: (span[0], rank[span[2]]))
    merged: list[tuple[int, int, str]] = []
    for start, end, kind in found:
        if merged and start < merged[-1][1]:
            before = merged[-1]
            first = kind if rank[kind] < rank[before[2]] else before[2]
            merged[-1] = (before[0], max(before[1], end), first)
        else:
            merged.append((start, end, kind))
    return merged


def _finders(
    text: str, regions: Sequence[str]
) -> Iterator[tuple[str, Callable[[str], Iterator[tuple[int, int]]]]]:
    yield "key", key_spans
    if "@" in text or "%40" in text or "(at)" in text or "[at]" in text or "{at}" in text:
        yield "email", _email_spans
    if _DIGIT.search(text):
        yield "address", address_spans
    runs = digit_runs(text)
    if runs:
        yield "national_id", lambda t: national_id_spans(t, runs)
        yield "card", lambda t: card_spans(t, runs)
        yield "account", account_spans
        yield "phone", lambda t: phone_spans(t, regions, runs)


def _email_spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _EMAIL.finditer(text):
        if not _NOT_DOMAIN.search(match[0]):
            yield match.span()


def _plain(text: str) -> tuple[str, list[int] | None]:
    """`text` with full-width forms narrowed and unseen characters left out, and where each character stood."""
    if text.isascii() or not _UNUSUAL.search(text):
        return text, None
    out: list[str] = []
    place: list[int] = []
    for i, ch in enumerate(text):
        if ch.isascii() or "가" <= ch <= "힣":
            new = ch
        elif unicodedata.category(ch) == "Cf":
            continue
        else:
            new = unicodedata.normalize("NFKC", ch)
            new = new if len(new) == 1 else ch
            if unicodedata.category(ch) == "Pd":
                new = "-"
            elif ch.isdigit() and unicodedata.category(ch) == "Nd":
                new = str(unicodedata.digit(ch))
        out.append(new)
        place.append(i)
    return "".join(out), place
