"""The one thread that writes a ledger. What waits while a commit is on its way to the disk goes with the next."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Statement", "Writer"]

Statement = tuple[str, Sequence[Any]]

_MOST_AT_ONCE = 512
_LINGER_S = 0.002


@dataclass(slots=True)
class _Job:
    statements: Sequence[Statement]
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[None] | None = None
    event: threading.Event | None = None


class Writer:
    """Runs statements in order, many jobs in one transaction. A job is done when the disk has it.

    `connect` opens the connection inside the thread. After an error nothing more is written: every job that waits
    and every later one gets that error.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self.error: sqlite3.Error | OSError | None = None
        self.commits = 0
        self._thread = threading.Thread(target=self._work, name="evalkit-ledger", daemon=True)
        self._thread.start()

    def submit(self, statements: Sequence[Statement]) -> None:
        """Write without waiting; `flush` or a later job that is waited for tells that it is on disk."""
        self._jobs.put(_Job(statements))

    def write(self, statements: Sequence[Statement]) -> asyncio.Future[None]:
        """Write; the future is done when it is on disk. A caller that is cancelled takes nothing back."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._jobs.put(_Job(statements, loop, future))
        return future

    def flush(self) -> None:
        """Wait until everything before is on disk; raises what stopped the writer."""
        event = threading.Event()
        self._jobs.put(_Job((), event=event))
        event.wait()
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        """Write what waits, close the connection and end the thread."""
        if self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join()

    def _work(self) -> None:
        connection = self._connect()
        try:
            more = True
            while more:
                jobs, more = self._next()
                if self.error is None:
                    try:
                        self._commit(connection, jobs)
                    except (sqlite3.Error, OSError) as error:
                        self.error = error
                _done(jobs, self.error)
        finally:
            connection.close()

    def _next(self) -> tuple[list[_Job], bool]:
        """Everything that waits, at least one job, and whether more may come."""
        job = self._jobs.get()
        if job is not None and job.future is not None:
            time.sleep(_LINGER_S)
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == _MOST_AT_ONCE:
                return jobs, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True
        return jobs, False

    def _commit(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
        if not any(job.statements for job in jobs):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in jobs:
                for sql, values in job.statements:
                    connection.execute(sql, values)
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.commits += 1


def _done(jobs: Sequence[_Job], error: Exception | None) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for job in jobs:
        if job.event is not None:
            job.event.set()
        if job.loop is not None and job.future is not None:
            by_loop.setdefault(job.loop, []).append(job.future)
    for loop, futures in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, futures, error)


def _settle(futures: Sequence[asyncio.Future[None]], error: Exception | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
