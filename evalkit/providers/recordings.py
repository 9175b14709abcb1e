"""Append-only recordings of replies: one JSON object a line, on disk before the next call is made.

A recording survives a killed run: the last line may be torn and is then left out, every line before it is whole.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from evalkit.errors import Fault, InputError, visible

__all__ = ["Recording", "append", "latest_replies", "lock", "read_lines", "read_recording"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """The objects of a recording and the line of each (from 1). `notice` tells of a torn last line that was left
    out; `whole_bytes` is the length up to the end of the last whole line, its line end not counted."""

    file: str
    rows: tuple[Row, ...]
    lines: tuple[int, ...]
    notice: str | None
    whole_bytes: int


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _parse(line: bytes) -> tuple[Row | None, str]:
    """The object of one line, or None and why there is none."""
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_constant)
    except UnicodeDecodeError:
        return None, "is not UTF-8"
    except (ValueError, RecursionError):
        return None, "is not JSON"
    return (row, "") if isinstance(row, dict) else (None, "is not a JSON object")


def read_lines(path: Path, *, name: str | None = None) -> Recording:
    """Read a recording (`.gz` is fine). Blank lines are passed over, an empty file is an empty recording.

    A last line that is not whole is left out and named in the notice; one that only lacks its line end is kept.
    Raises `InputError` with every line that is damaged further up, and where the file cannot be read; nothing is
    changed. `name` is what messages call the file.
    """
    name = name or path.name
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise InputError(
            Fault(f"cannot be read: {visible(why)}", "name a file of JSON lines", file=name)
        ) from None
    found: list[tuple[int, Row, int]] = []
    damaged: list[tuple[int, str, int]] = []
    at = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        end = at + len(line)
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if content.strip():
            row, why = _parse(content)
            if row is None:
                damaged.append((number, why, at))
            else:
                found.append((number, row, end))
        at = end + 1
    notice = None
    last_whole = found[-1][0] if found else 0
    if damaged and damaged[-1][0] > last_whole:
        number, _, _ = damaged.pop()
        notice = f"{visible(name)}:{number}: the last line is torn (the writer was stopped) and was left out"
    if damaged:
        fix = "move the line away to go on without it, or restore the file; only the last line may be torn"
        raise InputError(Fault(why, fix, file=name, line=number) for number, why, _ in damaged)
    return Recording(
        name,
        tuple(row for _, row, _ in found),
        tuple(number for number, _, _ in found),
        notice,
        found[-1][2] if found else 0,
    )


def read_recording(path: Path, *, repair: bool = False) -> list[Row]:
    """The objects of a recording that may not exist yet; with `repair` the file is made ready for appending: a
    torn last line is cut off, a missing line end put there.

    Raises `InputError` as `read_lines` does.
    """
    if not path.exists():
        return []
    found = read_lines(path)
    if repair:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if found.notice is not None:
                size = file.truncate(found.whole_bytes)
            if size and found.whole_bytes == size:
                file.seek(size)
                file.write(b"\n")
    return list(found.rows)


def latest_replies(lines: Iterable[Row]) -> dict[str, Row]:
    """The last reply or failure of each key."""
    return {line["key"]: line for line in lines if line["kind"] == "reply"}


def lock(file: BinaryIO) -> None:
    """Hold `file` for this process; raises `InputError` where another run is writing it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fix = "wait for the other run, or end it"
        raise InputError(Fault("another run is recording into it", fix, file=Path(file.name).name)) from None


def append(file: BinaryIO, row: Row) -> None:
    """Append one line and wait until the disk has it."""
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    try:
        line = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as in the arguments of a tool call
        line = json.dumps(row, ensure_ascii=True, allow_nan=False).encode()
    file.write(line + b"\n")
    file.flush()
    os.fsync(file.fileno())
