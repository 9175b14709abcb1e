"""Work on many rows spread over the processors: the same results in the same order, however many there are."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from itertools import chain, islice
from typing import TypeVar

__all__ = ["processors", "spread"]

Part = TypeVar("Part")
Made = TypeVar("Made")

_MOST_PROCESSES = 8
_AHEAD = 2  # parts a process that wait for it or for being taken, so that little is held at a time
_SETTING = "EVALKIT_PROCESSES"


def processors() -> int:
    """The processes to spread work over: as many as this process may use, at most 8, or `EVALKIT_PROCESSES`."""
    asked = os.environ.get(_SETTING, "")
    if asked.isdecimal() and int(asked) > 0:
        return min(int(asked), _MOST_PROCESSES)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, _MOST_PROCESSES)


def spread(work: Callable[[Part], Made], parts: Iterable[Part], *, least: int = 4) -> Iterator[Made]:
    """`work` of each part, in the order of `parts`, which are taken as they are needed.

    `work` is a function of a module, and what it takes and gives can be pickled. Up to `least` parts, or with one
    processor, it is called here. What it raises, for the first part that fails, is raised here.
    """
    waiting = iter(parts)
    first = list(islice(waiting, least + 1))
    count = processors()
    if count < 2 or len(first) <= least:
        yield from map(work, first)
        yield from map(work, waiting)
        return
    pool = _pool(count)
    parts = chain(first, waiting)
    if pool is None:
        yield from map(work, parts)
        return
    held: deque[Part] = deque()  # what is not done yet, and where it is being done
    due: deque[Future[Made]] = deque()
    try:
        for part in parts:
            held.append(part)
            due.append(_submitted(pool, work, part))
            if len(due) >= count * _AHEAD:
                yield _taken(held, due)
        while due:
            yield _taken(held, due)
    except BrokenExecutor:  # a process could not be started or was killed: what is left is done here
        yield from map(work, held)
        yield from map(work, parts)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(count: int) -> ProcessPoolExecutor | None:
    """A pool of that many processes, started as work comes; None where the system has no room for its queues."""
    import multiprocessing

    # Spawned, not forked: a library's threads may hold locks that a forked process would wait for without end.
    try:
        return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_prepare)
    except OSError:
        return None


def _submitted(pool: ProcessPoolExecutor, work: Callable[[Part], Made], part: Part) -> Future[Made]:
    try:
        return pool.submit(work, part)
    except OSError as error:  # no room for one more process: those that are there would wait for work without end
        import multiprocessing

        for child in multiprocessing.active_children():
            child.terminate()
        raise BrokenExecutor("a process could not be started") from error


def _taken(held: deque[Part], due: deque[Future[Made]]) -> Made:
    made = due[0].result()
    due.popleft()
    held.popleft()
    return made


def _prepare() -> None:
    """An interruption is told once, by the process that was asked; rows make no cycles worth looking for often."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000, 50, 50)
