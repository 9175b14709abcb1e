"""The file of a ledger: its lock, its connections, and what is refused before anything is written."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from pathlib import Path
from typing import BinaryIO

from evalkit.errors import Fault, InputError, visible
from evalkit.replay import schema

__all__ = ["Lock", "check", "connect", "damaged", "lock", "prepare"]

_MAGIC = b"SQLite format 3\0"
_PATIENCE_S = 10.0


class Lock:
    """Holds a ledger for this process; the system lets go of it when the process dies, however it dies."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def release(self) -> None:
        """Let go; may be called twice."""
        self._file.close()


def lock(path: Path) -> Lock:
    """Hold the ledger at `path`; its folder is made. Raises `InputError` where another process holds it."""
    beside = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = beside.open("ab+")
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise InputError(Fault(what, "name a folder that can be written", file=str(beside))) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        who = visible(file.read(20).decode("ascii", "replace").strip())
        file.close()
        what = f"another run is writing it (process {who or 'unknown'})"
        fix = "wait for that run or end it, or use another run folder"
        raise InputError(Fault(what, fix, file=str(path))) from None
    except OSError as error:
        file.close()
        what = f"cannot be locked: {error.strerror or error}"
        raise InputError(Fault(what, "use a run folder on a local disk", file=str(path))) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return Lock(file)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection without transactions of its own."""
    if not read_only:
        connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection
    address = path.absolute().as_uri() + "?mode=ro"
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE_S, isolation_level=None)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:
        # A folder that cannot be written has no room for the index of a log; without a log none is needed.
        if path.with_name(path.name + "-wal").exists():
            raise
        connection.close()
        connection = sqlite3.connect(address + "&immutable=1", uri=True, isolation_level=None)
    return connection


def damaged(path: Path, error: sqlite3.Error) -> InputError:
    """What to say of a ledger that cannot be read. Nothing of it is skipped."""
    what = f"is damaged: {visible(error)}"
    fix = "restore the file from a copy, or start a new run folder; nothing was changed"
    return InputError(Fault(what, fix, file=str(path)))


def check(path: Path) -> None:
    """Raises `InputError` where the file at `path` is no ledger, is damaged, or is of a later version."""
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head != _MAGIC:
        fix = "name a file of its own for the ledger; this one is left as it is"
        raise InputError(Fault("is not a ledger", fix, file=str(path)))
    try:
        with contextlib.closing(connect(path, read_only=True)) as connection:
            marks = [
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
            ]
            empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if empty and marks == [0, 0]:
                return
            if marks[0] != schema.APPLICATION_ID:
                fix = "name a file of its own for the ledger; this one is left as it is"
                raise InputError(Fault("is another program's database, not a ledger", fix, file=str(path)))
            if marks[1] != schema.USER_VERSION:
                what = f"has version {marks[1]}, and this evalkit knows version {schema.USER_VERSION}"
                raise InputError(Fault(what, "use the evalkit that made it, or a later one", file=str(path)))
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
    if found != "ok":
        raise damaged(path, sqlite3.DatabaseError(found.replace("\n", " ")))


def prepare(path: Path) -> int:
    """Make the ledger at `path` ready to be written; how many attempts of a killed process it abandoned.

    The caller holds the lock, so nothing that is in flight can have a process.
    """
    if path.exists() and path.stat().st_size:
        check(path)
    try:
        with contextlib.closing(connect(path)) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                schema.create(connection)
            done = connection.execute(
                "UPDATE attempts SET state = 'abandoned', billed = 'unknown' WHERE state = 'in_flight'"
            )
            return done.rowcount
    except sqlite3.DatabaseError as error:
        raise damaged(path, error) from None
