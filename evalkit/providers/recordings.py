"""Append-only recordings of replies: one JSON object a line, on disk before the next call is made.

A recording survives a killed run: the last line may be torn and is then cut off, every line before it is whole.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from evalkit.errors import Fault, InputError

__all__ = ["append", "latest_replies", "lock", "read_recording"]

Row = dict[str, Any]


def read_recording(path: Path, *, repair: bool = False) -> list[Row]:
    """The lines of a recording. A torn last line (a killed run) is left out, and with `repair` cut off the file.

    Raises `InputError` where a line in the middle is damaged.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if repair and len(whole) < len(data):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    lines, faults = [], []
    for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
        try:
            lines.append(json.loads(line))
        except ValueError:
            fix = "restore the file from version control; only the last line of a killed run may be cut"
            faults.append(Fault("is not JSON", fix, file=path.name, line=number))
    if faults:
        raise InputError(faults)
    return lines


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
    file.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())
