"""The ledger of a run folder: every attempt at every request, on disk before it is counted.

SQLite with a write-ahead log and `synchronous=FULL`: a commit is on disk when it returns, and a kill at any moment
leaves every commit before it. One process writes; others may read. What a killed process had in flight becomes
`abandoned` when the ledger is opened again: it may have been answered and charged, and nobody will know.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from evalkit.costs import Cost
from evalkit.costs.decimals import plain_decimal
from evalkit.errors import Fault, Incomplete, InputError, visible
from evalkit.providers.call import Billed, Failure, Reply, Request
from evalkit.replay import files
from evalkit.replay.plan import Cell
from evalkit.replay.records import (
    failure_from,
    failure_record,
    json_text,
    reply_from,
    reply_record,
    request_record,
)
from evalkit.replay.writer import Statement, Writer

__all__ = ["Attempt", "Ledger", "RunRow", "Step", "money_text", "result_values", "utc_text"]

State = Literal["in_flight", "reply", "failure", "abandoned"]

_COLUMNS = (
    "key, number, run, candidate, state, kind, started_at, ended_at, waited_s, duration_s, result, billed, "
    "cost_usd, cost_reason, reserved_usd, paid"
)


def utc_text(at: datetime | None = None) -> str:
    """A time (now, where none is given) as UTC to the millisecond: 2026-01-31T09:00:00.000Z."""
    at = datetime.now(UTC) if at is None else at.astimezone(UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


@dataclass(frozen=True)
class Attempt:
    """One attempt as it stands in the ledger.

    `waited_s` is the backoff before it, `duration_s` how long it took (None: not known, as of an abandoned one).
    `cost_usd` is None where it is unknown, with `cost_reason`; `reserved_usd` is the most it can have cost, None
    where that has no bound. `paid` is False where a recording answered.
    """

    key: str
    number: int
    run: str
    candidate: str
    state: State
    kind: str | None
    started_at: str
    ended_at: str | None
    waited_s: float
    duration_s: float | None
    record: str | None
    billed: Billed | None
    cost_usd: Decimal | None
    cost_reason: str | None
    reserved_usd: Decimal | None
    paid: bool

    @cached_property
    def result(self) -> Reply | Failure | None:
        """What came of it; None while it is in flight, and of an abandoned one."""
        if self.record is None:
            return None
        found = json.loads(self.record)
        return reply_from(found) if self.state == "reply" else failure_from(found)

    @property
    def charged_usd(self) -> Decimal | None:
        """What it counts for under a spend cap: its cost, else what was reserved for it; None without a bound."""
        return _charged(self.billed, self.cost_usd, self.reserved_usd)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a cell and the key of its request; `step` counts from 0."""

    item: str
    candidate: str
    sample: int
    purpose: str
    step: int
    key: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run: `ended` says how it ended, None where its process was killed or is at work."""

    run: str
    started_at: str
    ended_at: str | None
    ended: str | None
    about: Mapping[str, Any]


class Ledger:
    """An open ledger. Use it as a context manager, or close it."""

    def __init__(
        self,
        path: Path,
        reader: sqlite3.Connection,
        writer: Writer | None,
        lock: files.Lock | None,
        abandoned: int,
    ) -> None:
        self.path = path
        self.abandoned_at_open = abandoned
        self._reader, self._writer, self._lock = reader, writer, lock

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open the ledger at `path` to write, making it where it is missing.

        Raises `InputError` where another process writes it, or the file is damaged, no ledger, or of a later
        version; the file is then as it was.
        """
        path = Path(path)
        lock = files.lock(path)
        try:
            abandoned = files.prepare(path)
            writer = Writer(lambda: files.connect(path))
            return cls(path, files.connect(path, read_only=True), writer, lock, abandoned)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def read(cls, path: str | Path) -> Ledger:
        """Open the ledger at `path` to read only; another process may be writing it meanwhile.

        Raises `InputError` where it is missing, damaged, no ledger, or of a later version.
        """
        path = Path(path)
        if not path.is_file():
            raise InputError(Fault("there is no ledger", "name the folder of a run", file=str(path)))
        files.check(path)
        return cls(path, files.connect(path, read_only=True), None, None, 0)

    def close(self) -> None:
        """Write what waits, and let go of the file; may be called twice."""
        self._reader.close()
        if self._writer is not None:
            self._writer.close()  # the last to go: it puts the log back into the file
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def attempts(self, key: str) -> list[Attempt]:
        """Every attempt at a request, first to last."""
        return [
            _attempt(row)
            for row in self.rows(f"SELECT {_COLUMNS} FROM attempts WHERE key = ? ORDER BY number", key)
        ]

    def latest(self, key: str) -> Attempt | None:
        """The last attempt at a request. Where any attempt got a reply, it is the last."""
        sql = f"SELECT {_COLUMNS} FROM attempts WHERE key = ? ORDER BY number DESC LIMIT 1"
        return next((_attempt(row) for row in self.rows(sql, key)), None)

    def abandoned(self, key: str) -> bool:
        """A process was killed while this request was in flight, and it got no reply since."""
        sql = "SELECT 1 FROM attempts WHERE key = ? AND state = 'abandoned' LIMIT 1"
        return any(True for _ in self.rows(sql, key))

    def keys(self) -> Iterator[str]:
        """The keys of all requests that were ever sent."""
        return (key for (key,) in self.rows("SELECT DISTINCT key FROM attempts"))

    def every_attempt(self) -> Iterator[Attempt]:
        """All attempts in the order in which they began."""
        return map(_attempt, self.rows(f"SELECT {_COLUMNS} FROM attempts ORDER BY rowid"))

    def charges(self) -> Iterator[tuple[Decimal | None, str, int]]:
        """What each paid attempt counts for under a cap (`Attempt.charged_usd`), with its key and number."""
        sql = "SELECT billed, cost_usd, reserved_usd, key, number FROM attempts WHERE paid = 1 ORDER BY rowid"
        for billed, cost, reserved, key, number in self.rows(sql):
            yield _charged(billed, _decimal(cost), _decimal(reserved)), key, number

    def steps(self) -> Iterator[Step]:
        """All steps of all cells that were begun, by candidate, item, sample and step."""
        sql = (
            "SELECT item, candidate, sample, purpose, step, key FROM steps "
            "ORDER BY purpose, candidate, item, sample, step"
        )
        return (Step(*row) for row in self.rows(sql))

    def has_step(self, cell: Cell, step: int, key: str) -> bool:
        """This step of the cell stands in the ledger with this key."""
        sql = (
            "SELECT 1 FROM steps WHERE item = ? AND candidate = ? AND sample = ? AND purpose = ? AND step = ? "
            "AND key = ?"
        )
        found = self.rows(sql, cell.item, cell.candidate, cell.sample, cell.purpose, step, key)
        return any(True for _ in found)

    def request(self, key: str) -> Mapping[str, Any] | None:
        """The content of a request as JSON values; None where it was never sent."""
        found = self.rows("SELECT content FROM requests WHERE key = ?", key)
        return next((json.loads(row[0]) for row in found), None)

    def runs(self) -> list[RunRow]:
        """All runs, first to last."""
        sql = "SELECT run, started_at, ended_at, ended, about FROM runs ORDER BY started_at, run"
        rows = self.rows(sql)
        return [RunRow(run, start, end, ended, json.loads(about)) for run, start, end, ended, about in rows]

    def manifest(self) -> dict[str, Any]:
        """What the folder was made with: the last value of each field."""
        found = self.rows("SELECT field, value FROM manifest ORDER BY number")
        return {field: json.loads(value) for field, value in found}

    def manifest_history(self) -> list[tuple[str, str, Any]]:
        """Every value that a field had: (recorded at, field, value), first to last."""
        found = self.rows("SELECT recorded_at, field, value FROM manifest ORDER BY number")
        return [(at, field, json.loads(value)) for at, field, value in found]

    # Writing

    def start_run(self, about: Mapping[str, Any], at: datetime | None = None) -> str:
        """Note that a run starts, and give it its id (`run-2026-01-31T09:00:00.000Z`)."""
        started = utc_text(at)
        taken = {row.run for row in self.runs()}
        run = f"run-{started}"
        number = 1
        while run in taken:
            number += 1
            run = f"run-{started}-{number}"
        self._now("INSERT INTO runs (run, started_at, about) VALUES (?, ?, ?)", run, started, json_text(about))
        return run

    def end_run(self, run: str, ended: str) -> None:
        """Note how a run ended; what it still had in flight is abandoned."""
        self._now(
            "UPDATE attempts SET state = 'abandoned', billed = 'unknown', ended_at = ? "
            "WHERE state = 'in_flight' AND run = ?",
            utc_text(),
            run,
        )
        self._now("UPDATE runs SET ended_at = ?, ended = ? WHERE run = ?", utc_text(), ended, run)

    def set_manifest(self, values: Mapping[str, Any]) -> None:
        """Note the values of fields, all or none; earlier values stay in the history."""
        at, sql = utc_text(), "INSERT INTO manifest (field, value, recorded_at) VALUES (?, ?, ?)"
        self.submit([(sql, (field, json_text(value), at)) for field, value in values.items()])
        self.flush()

    def note_step(self, cell: Cell, step: int, key: str) -> None:
        """Note which request a step of a cell is; it is on disk with the next thing that is waited for."""
        self.submit([_step(cell, step, key)])

    def begin(
        self,
        cell: Cell,
        step: int,
        key: str,
        request: Request,
        *,
        number: int,
        run: str,
        waited_s: float = 0.0,
        reserved_usd: Decimal | None = None,
        paid: bool = True,
    ) -> Awaitable[None]:
        """Note an attempt before it is sent. When this is done, a kill can no longer hide it."""
        statements: list[Statement] = [
            (
                "INSERT INTO attempts (key, number, run, candidate, state, started_at, waited_s, reserved_usd, "
                "paid) VALUES (?, ?, ?, ?, 'in_flight', ?, ?, ?, ?)",
                (key, number, run, cell.candidate, utc_text(), waited_s, money_text(reserved_usd), int(paid)),
            )
        ]
        if number == 1:
            content = json_text(request_record(request))
            statements.append(("INSERT OR IGNORE INTO requests (key, content) VALUES (?, ?)", (key, content)))
        statements.append(_step(cell, step, key))
        return self._write(statements)

    def finish(
        self, key: str, number: int, result: Reply | Failure, cost: Cost, *, duration_s: float | None
    ) -> Awaitable[None]:
        """Note what came of an attempt. When this is done, it is on disk, and only then may it be counted."""
        state, kind, *rest = result_values(result, cost)
        values = (state, kind, utc_text(), duration_s, *rest, key, number)
        sql = (
            "UPDATE attempts SET state = ?, kind = ?, ended_at = ?, duration_s = ?, result = ?, usage = ?, "
            "billed = ?, cost_usd = ?, cost_reason = ? WHERE key = ? AND number = ? AND state = 'in_flight'"
        )
        return self._write([(sql, values)])

    def withdraw(self, key: str, number: int) -> None:
        """Take back an attempt that was noted and never sent."""
        self.submit([("DELETE FROM attempts WHERE key = ? AND number = ? AND state = 'in_flight'", (key, number))])

    def abandon(self, key: str, number: int) -> None:
        """Note that an attempt was given up after it was sent: it may have been answered and charged."""
        sql = (
            "UPDATE attempts SET state = 'abandoned', billed = 'unknown', ended_at = ? "
            "WHERE key = ? AND number = ? AND state = 'in_flight'"
        )
        self.submit([(sql, (utc_text(), key, number))])

    def flush(self) -> None:
        """Wait until everything before is on disk."""
        with self._trouble():
            self._writable().flush()

    # Inside

    def _writable(self) -> Writer:
        if self._writer is None:
            raise RuntimeError("this ledger was opened to read")
        return self._writer

    def _now(self, sql: str, *values: Any) -> None:
        self.submit([(sql, values)])
        self.flush()

    def submit(self, statements: Sequence[Statement]) -> None:
        """Write all of `statements` or none; on disk after the next `flush`."""
        self._writable().submit(statements)

    async def _write(self, statements: list[Statement]) -> None:
        with self._trouble():
            await self._writable().write(statements)

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            what = f"cannot be written: {visible(error)}"
            fix = "check the disk and the space left on it, then run the same command again"
            raise Incomplete(str(Fault(what, fix, file=str(self.path)))) from None

    def rows(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """What a query gives. Raises `InputError` where the file is damaged."""
        try:
            yield from self._reader.execute(sql, values)
        except sqlite3.DatabaseError as error:
            raise files.damaged(self.path, error) from None


def result_values(result: Reply | Failure, cost: Cost) -> tuple[Any, ...]:
    """The columns state, kind, result, usage, billed, cost_usd and cost_reason of an attempt that has ended."""
    if isinstance(result, Reply):
        state, kind, billed, record = "reply", None, Billed.YES, reply_record(result)
    else:
        state, kind, billed, record = "failure", result.kind.value, result.billed, failure_record(result)
    usage = None if result.usage is None else json_text(result.usage)
    return state, kind, json_text(record), usage, billed.value, money_text(cost.usd), cost.reason


def _charged(billed: str | None, cost_usd: Decimal | None, reserved_usd: Decimal | None) -> Decimal | None:
    if cost_usd is not None:
        return cost_usd
    return Decimal(0) if billed == Billed.NO else reserved_usd


def _step(cell: Cell, step: int, key: str) -> Statement:
    sql = "INSERT OR REPLACE INTO steps (item, candidate, sample, purpose, step, key) VALUES (?, ?, ?, ?, ?, ?)"
    return sql, (cell.item, cell.candidate, cell.sample, cell.purpose, step, key)


def money_text(amount: Decimal | None) -> str | None:
    """An amount as the ledger keeps it."""
    return None if amount is None else plain_decimal(amount)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def _attempt(row: tuple[Any, ...]) -> Attempt:
    (key, number, run, candidate, state, kind, started, ended, waited, duration, record, billed, *money, paid) = (
        row
    )
    cost, reason, reserved = money
    return Attempt(
        key,
        number,
        run,
        candidate,
        state,
        kind,
        started,
        ended,
        waited,
        duration,
        record,
        None if billed is None else Billed(billed),
        _decimal(cost),
        reason,
        _decimal(reserved),
        bool(paid),
    )
