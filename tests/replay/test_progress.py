from __future__ import annotations

import io
import os
import pty
from decimal import Decimal

from evalkit.providers.call import FailureKind
from evalkit.replay import Silent, Tally, progress_on
from evalkit.replay.progress import Lines, Live, progress_line


def tally(**fields: object) -> Tally:
    found = Tally(cells=3000)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def test_a_line_says_where_a_run_is() -> None:
    found = tally(
        replied=120, from_ledger=20, calls=100, attempts=103, in_flight=16, spent_low_usd=Decimal("0.01234")
    )
    found.failed[FailureKind.TIMEOUT] += 2
    assert progress_line(found, 10.0) == (
        "122 of 3,000 (4 %), 2 failed, 20 from the ledger, 3 retried, 16 in flight, 0.0123 USD, about 5 min left"
    )


def test_what_is_not_known_is_not_said() -> None:
    assert progress_line(Tally(), 0.0) == "0, 0 in flight, 0 USD"
    assert "left" not in progress_line(tally(replied=3000), 100.0)
    assert progress_line(tally(replied=2999), 1.0).startswith("2,999 of 3,000 (99 %)")
    ranged = tally(spent_low_usd=Decimal(1), possible_usd=Decimal("0.5"))
    assert "1 to 1.5 USD" in progress_line(ranged, 1.0)
    ranged.unbounded = 1
    assert "at least 1 USD" in progress_line(ranged, 1.0)


def test_lines_come_now_and_then_and_plain() -> None:
    now = 0.0
    stream = io.StringIO()
    lines = Lines(stream, every_s=10, clock=lambda: now)
    lines.start(tally())
    for second in range(35):
        now = float(second)
        lines.update(tally(replied=second))
    lines.notice("id q1\x1b[2J\nq2: timeout")
    lines.close(tally(replied=35))
    said = stream.getvalue().splitlines()
    assert [line.split(" ")[0] for line in said] == ["10", "20", "30", "id", "35"]
    assert "\x1b" not in stream.getvalue()


def test_a_pipe_gets_lines_and_quiet_gets_nothing() -> None:
    stream = io.StringIO()
    assert isinstance(progress_on(stream), Lines)
    quiet = progress_on(stream, quiet=True)
    assert isinstance(quiet, Silent)
    for say in (quiet.start, quiet.update, quiet.close):
        say(tally())
    quiet.notice("x")
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_live_line() -> None:
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            live = progress_on(stream)
            assert isinstance(live, Live)
            live.start(tally())
            live.update(tally(replied=1))
            live.notice("id q1\x1b]0;title\x07: timeout")
            live.close(tally(replied=7))
            live.close(tally(replied=7))
            said = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
    assert "7 of 3,000" in said
    assert "\x1b]0;" not in said
    assert "\\u001b]0;title" in said
