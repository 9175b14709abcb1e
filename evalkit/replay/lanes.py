"""One endpoint at work: its cells, the calls that may be in flight to it, and its limits per minute."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Iterator

from evalkit.errors import visible
from evalkit.providers.call import Failure, FailureKind, Reply
from evalkit.replay.adaptive import Concurrency
from evalkit.replay.limits import TokenBucket
from evalkit.replay.plan import Cell
from evalkit.replay.settings import RunSettings
from evalkit.replay.summary import EndpointSummary

__all__ = ["Lane"]

_WRONG_KEYS = 3
_DEAD_CELLS = 10


class Lane:
    """What is shared by all calls to `endpoint`. An endpoint that is slow or dead holds up its own lane only."""

    def __init__(self, endpoint: str, cells: Iterator[Cell], settings: RunSettings) -> None:
        self.endpoint = endpoint
        self.workers = settings.concurrency
        self.concurrency = Concurrency(settings.concurrency)
        self.stopped: dict[str, str] = {}
        self._told: set[str] = set()
        self._cells = cells
        self._dead_cells = max(_DEAD_CELLS, 2 * settings.concurrency)
        now = time.monotonic()
        per_minute = settings.requests_per_minute
        self._requests = None if per_minute is None else TokenBucket(per_minute, now=now)
        per_minute = settings.tokens_per_minute
        self._tokens = None if per_minute is None else TokenBucket(per_minute, burst_s=10.0, now=now)
        self._in_flight = 0
        self._held = self._held_up = 0
        self._peak = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._quiet_until: dict[str, float] = {}
        self._longest_s = settings.longest_wait_s
        self._wrong_keys: Counter[str] = Counter()
        self._failed_cells: Counter[str] = Counter()

    def next_cell(self) -> Cell | None:
        """The next cell to do; None where all are taken. Cells of a stopped candidate are left for a later run."""
        return next((cell for cell in self._cells if cell.candidate not in self.stopped), None)

    async def quiet(self, candidate: str) -> None:
        """Wait as long as the endpoint asked to leave this candidate alone. Nobody uses up attempts meanwhile."""
        while (left := self._quiet_until.get(candidate, 0.0) - time.monotonic()) > 0:
            await asyncio.sleep(left)

    # Calls in flight

    async def acquire(self) -> None:
        """Wait for a place among the calls that may be in flight."""
        if self._held < self.concurrency.allowed and not self._waiting:
            self._held += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a place back."""
        self._held -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._held < self.concurrency.allowed:
            future = self._waiting.popleft()
            if not future.done():
                self._held += 1
                future.set_result(None)

    async def pass_limits(self, tokens: int) -> None:
        """Wait until the limits per minute let a request with about so many tokens pass."""
        now = time.monotonic()
        wait = max(
            0.0 if self._requests is None else self._requests.take(1, now),
            0.0 if self._tokens is None else self._tokens.take(tokens, now),
        )
        if wait > 0:
            with self.held_up():
                await asyncio.sleep(wait)

    @contextlib.contextmanager
    def held_up(self) -> Iterator[None]:
        """A place is taken by a call that waits for something else than the endpoint: no reason for more."""
        self._held_up += 1
        try:
            yield
        finally:
            self._held_up -= 1

    @property
    def counts_tokens(self) -> bool:
        """There is a limit of tokens per minute."""
        return self._tokens is not None

    def used_tokens(self, expected: int, used: int) -> None:
        """Settle what `pass_limits` took for a call whose tokens are known now."""
        if self._tokens is not None:
            self._tokens.give_back(expected - used, time.monotonic())

    def begin(self) -> int:
        """A call goes out; its mark, for `end`."""
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        return self.concurrency.mark

    def end(self, mark: int, candidate: str, result: Reply | Failure | None) -> None:
        """A call came back, or was given up (None). Learn from it."""
        if isinstance(result, Reply):
            self.concurrency.succeeded(self._held - self._held_up)
            self._wrong_keys[candidate] = 0
        elif result is not None and result.kind is FailureKind.RATE_LIMIT:
            self.concurrency.rate_limited(mark)
            if result.retry_after_s is not None and result.retry_after_s <= self._longest_s:
                until = time.monotonic() + result.retry_after_s
                self._quiet_until[candidate] = max(until, self._quiet_until.get(candidate, 0.0))
        elif result is not None and result.kind is FailureKind.AUTHENTICATION:
            self._wrong_keys[candidate] += 1
            if self._wrong_keys[candidate] == _WRONG_KEYS:
                what = f"{self.endpoint} refused its key {_WRONG_KEYS} times"
                self._stop(candidate, f"{what}: {result.message}. Fix: check the key with evalkit doctor")
        self._in_flight -= 1
        self._wake()

    def cell_ended(self, candidate: str, failure: Failure | None) -> None:
        """A cell got its reply (None), or failed after all its attempts."""
        if failure is None:
            self._failed_cells[candidate] = 0
        elif failure.retryable:
            self._failed_cells[candidate] += 1
            if self._failed_cells[candidate] == self._dead_cells:
                what = f"{self._dead_cells} requests in a row got no reply from {self.endpoint}"
                self._stop(candidate, f"{what}: {failure.message}. Fix: run the same command when it is back")

    def _stop(self, candidate: str, why: str) -> None:
        self.stopped.setdefault(candidate, f"{visible(candidate)} is called no more: {visible(why, 400)}")

    def newly_stopped(self, candidate: str) -> str | None:
        """Why a candidate is called no more, the first time it is asked for."""
        if candidate not in self.stopped or candidate in self._told:
            return None
        self._told.add(candidate)
        return self.stopped[candidate]

    def summary(self) -> EndpointSummary:
        """What the lane came to."""
        found = self.concurrency
        return EndpointSummary(self._peak, found.lowest, found.highest, found.allowed, found.cuts)
