"""How far a run is, on stderr: a live line on a terminal, a plain line now and then elsewhere, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol, TextIO

from evalkit.costs.decimals import plain_decimal
from evalkit.errors import visible
from evalkit.replay.summary import Tally

__all__ = ["Lines", "Live", "Progress", "Silent", "progress_line", "progress_on"]

_LINE_EVERY_S = 10.0
_LIVE_EVERY_S = 0.1


class Progress(Protocol):
    """Hears of a run. It is called often and must be quick."""

    def start(self, tally: Tally) -> None:
        """The run begins."""
        ...

    def update(self, tally: Tally) -> None:
        """A cell is settled."""
        ...

    def notice(self, text: str) -> None:
        """Something that is worth a line; one line, safe to print."""
        ...

    def close(self, tally: Tally) -> None:
        """The run is over."""
        ...


class Silent:
    """Says nothing."""

    def start(self, tally: Tally) -> None:
        """Nothing."""

    def update(self, tally: Tally) -> None:
        """Nothing."""

    def notice(self, text: str) -> None:
        """Nothing."""

    def close(self, tally: Tally) -> None:
        """Nothing."""


def progress_line(tally: Tally, elapsed_s: float) -> str:
    """Where a run is, as one line: `120 of 3,000 (4 %), 2 failed, 16 in flight, 0.0123 USD, about 12 min left`."""
    done = tally.settled
    parts = [
        f"{done:,}" if tally.cells is None else f"{done:,} of {tally.cells:,} ({_percent(done, tally.cells)} %)"
    ]
    failed = sum(tally.failed.values())
    if failed:
        parts.append(f"{failed:,} failed")
    if tally.from_ledger:
        parts.append(f"{tally.from_ledger:,} from the ledger")
    retried = tally.attempts - tally.calls
    if retried > 0:
        parts.append(f"{retried:,} retried")
    parts.append(f"{tally.in_flight:,} in flight")
    parts.append(_money(tally))
    left = _left_s(tally, elapsed_s)
    if left is not None:
        parts.append(f"about {_duration(left)} left")
    return ", ".join(parts)


def _percent(done: int, cells: int) -> int:
    return 100 if done >= cells else done * 100 // cells


def _money(tally: Tally) -> str:
    low, high = tally.spent_low_usd, tally.spent_high_usd
    if high is None:
        return f"at least {_usd(low)} USD"
    return f"{_usd(low)} USD" if high == low else f"{_usd(low)} to {_usd(high)} USD"


def _usd(amount: Decimal) -> str:
    return plain_decimal(round(amount, 4 if amount < 100 else 2))


def _left_s(tally: Tally, elapsed_s: float) -> float | None:
    """Seconds at the pace so far of what was not in the ledger; None while there is too little to tell."""
    fresh = tally.settled - tally.from_ledger
    if tally.cells is None or fresh < 10 or elapsed_s < 1:
        return None
    left = tally.cells - tally.settled
    return elapsed_s / fresh * left if left else None


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Lines:
    """A plain line every ten seconds, for logs and pipes."""

    def __init__(
        self, stream: TextIO, *, every_s: float = _LINE_EVERY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._every_s, self._clock = stream, every_s, clock
        self._began = self._said = clock()

    def start(self, tally: Tally) -> None:
        """Start the clock."""
        self._began = self._said = self._clock()

    def update(self, tally: Tally) -> None:
        """A line, where the last is long enough ago."""
        now = self._clock()
        if now - self._said >= self._every_s:
            self._said = now
            self.notice(progress_line(tally, now - self._began))

    def notice(self, text: str) -> None:
        """The text on a line of its own."""
        self._stream.write(visible(text, 2000) + "\n")
        self._stream.flush()

    def close(self, tally: Tally) -> None:
        """A last line."""
        self.notice(progress_line(tally, self._clock() - self._began))


class Live:
    """One line that is kept up to date, with notices above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, stderr=stream.fileno() == 2 if hasattr(stream, "fileno") else False)
        self._live: Any = None
        self._began = self._drawn = time.monotonic()

    def start(self, tally: Tally) -> None:
        """Draw the line."""
        from rich.live import Live as RichLive

        self._began = time.monotonic()
        self._live = RichLive(self._text(tally), console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def _text(self, tally: Tally) -> Any:
        from rich.text import Text

        return Text(progress_line(tally, time.monotonic() - self._began), no_wrap=True, overflow="ellipsis")

    def update(self, tally: Tally) -> None:
        """Draw it anew, ten times a second at most."""
        now = time.monotonic()
        if self._live is not None and now - self._drawn >= _LIVE_EVERY_S:
            self._drawn = now
            self._live.update(self._text(tally), refresh=True)

    def notice(self, text: str) -> None:
        """The text above the line."""
        from rich.text import Text

        self._console.print(Text(visible(text, 2000)), soft_wrap=True, highlight=False)

    def close(self, tally: Tally) -> None:
        """Leave the last state as plain text."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        self.notice(progress_line(tally, time.monotonic() - self._began))


def progress_on(stream: TextIO, *, quiet: bool = False) -> Progress:
    """What fits `stream`: live on a terminal, lines elsewhere, nothing when `quiet`."""
    if quiet:
        return Silent()
    return Live(stream) if stream.isatty() else Lines(stream)
