"""What can go wrong, as values and as exceptions.

EvalkitError            base of all errors that evalkit raises on purpose
├── InputError          a file, study or option is wrong: exit code 2; carries every `Fault` found
└── Incomplete          a live run could not be completed; nothing is lost: exit code 4

A `Fault` is one thing wrong at one place. Readers collect all faults of a file and raise one `InputError`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["EvalkitError", "Fault", "Incomplete", "InputError", "visible"]


def visible(value: object, limit: int = 120) -> str:
    """`value` as one line of text that is safe to print.

    Control, format and line-separator characters are written as escapes, so that text from a file can neither
    move the cursor, nor reorder the line, nor break it; longer text is cut with a mark and its full length.
    """
    text = str(value)
    full = len(text)
    cut = text[:limit]
    parts = [
        ch if unicodedata.category(ch) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} else _escape(ch)
        for ch in cut
    ]
    shown = "".join(parts)
    return shown if full <= limit else f"{shown}… ({full:,} characters)"


def _escape(ch: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(
        ch, f"\\u{ord(ch):04x}" if ord(ch) < 0x10000 else f"\\U{ord(ch):08x}"
    )


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
        return f"{head}{self.what.rstrip('.')}. Fix: {self.fix.rstrip('.')}."


class EvalkitError(Exception):
    """Base of all errors that evalkit raises on purpose."""

    exit_code = 2


class InputError(EvalkitError):
    """Input that cannot be used; `faults` holds every fault found, in file order."""

    exit_code = 2

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class Incomplete(EvalkitError):
    """A live run stopped before its end; what was received is kept and the same command resumes."""

    exit_code = 4
