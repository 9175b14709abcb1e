"""What can go wrong, as values and as exceptions.

EvalkitError            base of all errors that evalkit raises on purpose
├── InputError          a file, study or option is wrong: exit code 2; carries every `Fault` found
├── Undecided           the evidence cannot be judged, whatever it says: exit code 3
└── Incomplete          a live run could not be completed; nothing is lost: exit code 4

A `Fault` is one thing wrong at one place. Readers collect all faults of a file and raise one `InputError`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

__all__ = [
    "HIDDEN",
    "EvalkitError",
    "Fault",
    "Incomplete",
    "InputError",
    "Undecided",
    "cell",
    "fitted",
    "padded",
    "redact",
    "remember_secret",
    "remembered_secrets",
    "visible",
    "width_of",
]


HIDDEN = "[hidden]"

_SECRET_NAMES = (
    r"authorization|set-cookie|cookie|(?:api|access|secret|private)[_-]?key|(?:client[_-]?)?secret"
    r"|password|passwd|(?:access|auth|refresh|session)[_-]?token"
)
_SECRET_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    # user:password@ in front of a host
    (
        re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,15}://)[^\s/@?#:\"'<>]*:[^\s/@\"'<>]*@"),
        rf"\1{HIDDEN}@",
    ),
    # secrets by their name: `x-api-key: ...`, `"api_key": "..."`, `password=...`, no reference
    (
        re.compile(
            rf"(?i)(?<![a-z0-9])({_SECRET_NAMES})([\"']?\s*[:=]\s*[\"']?)(?:(?:bearer|basic|token)\s+)?"
            r"(?!\[hidden\]|\$|os\.environ|env:|(?:null|none|true|false)\b|holds (?:a secret|what looks))"
            r"[^\s\"',;&)\]}]{4,}"
        ),
        rf"\1\2{HIDDEN}",
    ),
    # names that are secrets only in the query of a URL
    (re.compile(r"(?i)([?&](?:key|token|sig|signature|code)=)[^\s&#\"']+"), rf"\1{HIDDEN}"),
    (
        re.compile(r"(?i)\b(bearer|basic)\s+(?=\S{0,200}[0-9=]|\S{20})[a-z0-9._~+/=-]{8,}"),
        rf"\1 {HIDDEN}",
    ),
    # keys by their shape
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|xai|gsk|glpat|xox[abprs]|pplx|nvapi)[-_][A-Za-z0-9_-]{12,}"
            r"|(?:gh[oprsu]|github_pat|hf)_[A-Za-z0-9_]{16,}"
            r"|AKIA[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{20,}"
            r"|eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
        ),
        HIDDEN,
    ),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        HIDDEN,
    ),
)


_NARROWEST = 20
_REMEMBERED: set[str] = set()
_SHORTEST_SECRET = 8


def remember_secret(value: str) -> None:
    """Hide this very value from now on, whatever it looks like: a key that the study or the environment gave.

    Values shorter than 8 characters are not remembered: they would hide ordinary words.
    """
    if len(value) >= _SHORTEST_SECRET:
        _REMEMBERED.add(value)


def remembered_secrets() -> frozenset[str]:
    """Every value given to `remember_secret` so far."""
    return frozenset(_REMEMBERED)


def redact(text: str) -> str:
    """`text` with everything that looks like a key, password or access token replaced by `[hidden]`, and every
    value given to `remember_secret`.

    Comes before any shortening, so that no half of a key is left. The rest stays readable: host names, model
    names, and counts such as `max_tokens: 256`.
    """
    for secret in sorted(_REMEMBERED, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for shape, kept in _SECRET_SHAPES:
        text = shape.sub(kept, text)
    return text


def visible(value: object, limit: int = 120) -> str:
    """`value` as one line of text that is safe to print.

    Credentials are hidden first (`redact`), so that no half of one is left. Control, format and line-separator
    characters are written as escapes, so that text from a file can neither move the cursor, nor reorder the line,
    nor break it; longer text is cut with a mark and its full length.
    """
    text = str(value)
    full = len(text)
    # What stands far behind the limit is never shown, so it is not searched either.
    text = redact(text[: limit + 4096])
    cut = text[:limit]
    parts = [
        ch if unicodedata.category(ch) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} else _escape(ch)
        for ch in cut
    ]
    shown = "".join(parts)
    return shown if len(text) <= limit and full <= limit + 4096 else f"{shown}… ({full:,} characters)"


def _escape(ch: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(
        ch, f"\\u{ord(ch):04x}" if ord(ch) < 0x10000 else f"\\U{ord(ch):08x}"
    )


def fitted(text: str, stream: IO[str]) -> str:
    """`text` as it is for a file or a pipe; for a terminal long lines are broken at blanks, and no word is cut.

    What follows in a line is indented by two. A word that is longer than the terminal stays whole.
    """
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError, AttributeError):  # closed, or no file at all
        columns = 0
    if columns < _NARROWEST:
        return text
    return "\n".join(part for line in text.split("\n") for part in _broken(line, columns - 1))


def _broken(line: str, columns: int) -> list[str]:
    if width_of(line) <= columns:
        return [line]
    first, *words = line.split(" ")
    parts, part = [], first
    for word in words:
        if part.strip() and width_of(part) + 1 + width_of(word) > columns:
            parts.append(part.rstrip())
            part = f"  {word}"
        else:
            part += f" {word}"
    return [*parts, part]


def padded(text: str, width: int, *, right: bool = False) -> str:
    """`text` with blanks behind it, or in front of it, until it takes `width` columns of a terminal."""
    blanks = " " * (width - width_of(text))
    return blanks + text if right else text + blanks


def cell(text: object, width: int) -> str:
    """`text`, safe to print, in exactly `width` columns of a table, the last of them blank: longer text is cut."""
    shown = visible(text, 8 * width)
    if width_of(shown) >= width:
        while width_of(shown) > width - 2:
            shown = shown[:-1]
        shown += "…"
    return padded(shown, width)


def width_of(text: str) -> int:
    """Columns of a terminal that a text takes: Korean letters, say, take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(ch) in "WF" else not unicodedata.combining(ch) for ch in text)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, where it is, and how to put it right.

    `line` is the physical line, counted from 1, at which the record starts; `row` is the data record, counted
    from 1 without the header. `what` holds the offending value; `fix` says what to do.
    """

    what: str
    fix: str
    file: str | None = None
    line: int | None = None
    row: int | None = None
    id: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = visible(self.file, 400)
            if self.line is not None:
                place += f":{self.line}"
            place += ": "
        where = []
        if self.row is not None:
            where.append(f"row {self.row}" + (f" (id {visible(self.id)})" if self.id is not None else ""))
        elif self.id is not None:
            where.append(f"id {visible(self.id)}")
        if self.field is not None:
            where.append(f"field {visible(self.field)}")
        head = place + (", ".join(where) + ": " if where else "")
        # Each part by itself: a field called `api_key` is no secret, nor is the word behind its colon.
        return f"{head}{redact(self.what).rstrip('.')}. Fix: {redact(self.fix).rstrip('.')}."


class EvalkitError(Exception):
    """Base of all errors that evalkit raises on purpose."""

    exit_code = 2


class InputError(EvalkitError):
    """Input that cannot be used; `faults` holds every fault found, in file order."""

    exit_code = 2

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class Undecided(EvalkitError):
    """What was collected decides nothing: too much of it was not measured."""

    exit_code = 3


class Incomplete(EvalkitError):
    """A live run stopped before its end; what was received is kept and the same command resumes."""

    exit_code = 4
