from __future__ import annotations

import asyncio
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs import Cost
from evalkit.errors import Incomplete, InputError
from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.key import request_key
from evalkit.replay import Cell, Ledger
from tests.replay.support import BUSY, LOST, ok, plan_for

[CELL] = plan_for(["q1"])
KEY = request_key(CELL.first)


def do(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def put(
    ledger: Ledger,
    result: Reply | Failure | None,
    *,
    cell: Cell = CELL,
    number: int = 1,
    run: str = "r",
    **more: Any,
) -> None:
    key = request_key(cell.first)
    cost = more.pop("cost", Cost(Decimal("0.0028")))
    await ledger.begin(cell, 0, key, cell.first, number=number, run=run, **more)
    if result is not None:
        await ledger.finish(key, number, result, cost, duration_s=0.25)


def test_an_attempt_is_read_back_as_it_was(tmp_path: Path) -> None:
    reply = ok(
        "ja \u2603 \U0001f600",
        reasoning="hm",
        sent={"model": "m", "n": [1, None]},
        tool_calls=({"id": "t"},),
        ttft_s=0.1,
        request_s=0.5,
        notices=("one", "two"),
    )
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, BUSY, cost=Cost(Decimal(0))))
        do(put(ledger, reply, number=2, waited_s=1.5, reserved_usd=Decimal("1E-7"), paid=False))
        first, second = ledger.attempts(KEY)
        assert first.result == BUSY
        assert (first.state, first.kind, first.billed, first.cost_usd) == ("failure", "rate_limit", Billed.NO, 0)
        assert second.result == reply
        assert second.waited_s == 1.5
        assert (second.reserved_usd, second.cost_usd, second.paid) == (Decimal("1E-7"), Decimal("0.0028"), False)
        assert ledger.latest(KEY) == second
        assert ledger.latest("v1-none") is None
    with sqlite3.connect(tmp_path / "l.sqlite") as plain:
        assert plain.execute("SELECT reserved_usd FROM attempts WHERE number = 2").fetchone() == ("0.0000001",)
    plain.close()


@pytest.mark.parametrize(
    ("text", "kept"),
    [("\ud800 half", "\ud800 half"), ("nul \0 bell \a", "nul \0 bell \a"), ("", ""), (None, None)],
)
def test_no_reply_is_refused_for_its_text(tmp_path: Path, text: str | None, kept: str | None) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, Reply(text)))
        [attempt] = ledger.attempts(KEY)
        assert attempt.result == Reply(kept)


def test_no_reply_is_refused_for_its_usage(tmp_path: Path) -> None:
    usage = {"prompt_tokens": math.nan, "extra": {1, 2}, "object": object, "fine": 3}
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, Reply("yes", usage=usage)))
        [attempt] = ledger.attempts(KEY)
        assert isinstance(attempt.result, Reply)
        assert attempt.result.usage is not None
        assert attempt.result.usage["prompt_tokens"] is None
        assert attempt.result.usage["fine"] == 3


def test_one_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger.open(path):
        with pytest.raises(InputError, match=rf"another run is writing it \(process {os.getpid()}\)"):
            Ledger.open(path)
        assert Ledger.read(path).latest(KEY) is None
    Ledger.open(path).close()


def test_a_failed_open_lets_go_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    path.write_text("not a database, but long enough to look like one" * 10, encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="is not a ledger"):
            Ledger.open(path)
    assert path.read_text(encoding="utf-8").startswith("not a database")


def test_another_programs_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE attempts (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="another program's database"):
        Ledger.open(path)
    with pytest.raises(InputError, match="another program's database"):
        Ledger.read(path)
    assert path.read_bytes() == before


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger.open(path).close()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 7")
    later.close()
    with pytest.raises(InputError, match=r"version 7.*knows version 1"):
        Ledger.open(path)


def test_a_damaged_ledger_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger.open(path) as ledger:
        for number in range(200):
            do(put(ledger, ok("x" * 500), cell=next(iter(plan_for([f"q{number}"])))))
    data = bytearray(path.read_bytes())
    data[8192:20000] = os.urandom(20000 - 8192)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"is damaged.*restore the file from a copy"):
        Ledger.open(path)
    assert path.read_bytes() == bytes(data)


def test_a_missing_ledger_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ledger"):
        Ledger.read(tmp_path / "none" / "l.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        Ledger.open(tmp_path / "file" / "l.sqlite")


def test_a_ledger_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with Ledger.open(folder / "l.sqlite") as ledger:
        do(put(ledger, ok()))
    (folder / "l.sqlite.lock").unlink()
    for path in (folder / "l.sqlite", folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with Ledger.read(folder / "l.sqlite") as ledger:
            assert ledger.latest(KEY) is not None
        assert [path.name for path in folder.iterdir()] == ["l.sqlite"] or os.getuid() == 0
    finally:
        folder.chmod(0o755)


def test_what_was_in_flight_is_abandoned_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger.open(path) as ledger:
        do(put(ledger, None, reserved_usd=Decimal(1)))
        shutil.copytree(tmp_path, tmp_path.with_name("killed"))  # as it is at this moment, log included
    killed = tmp_path.with_name("killed") / "l.sqlite"
    with Ledger.open(killed) as ledger:
        assert ledger.abandoned_at_open == 1
        [attempt] = ledger.attempts(KEY)
        assert (attempt.state, attempt.billed, attempt.cost_usd) == ("abandoned", Billed.UNKNOWN, None)
        assert attempt.charged_usd == 1
        assert ledger.abandoned(KEY)
    with Ledger.open(killed) as ledger:
        assert ledger.abandoned_at_open == 0


def test_what_was_not_sent_leaves_no_trace(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, None))
        ledger.withdraw(KEY, 1)
        ledger.flush()
        assert ledger.attempts(KEY) == []


def test_a_reply_is_never_written_over(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, ok("first")))
        do(ledger.finish(KEY, 1, ok("second"), Cost(None), duration_s=1.0))
        ledger.abandon(KEY, 1)
        ledger.withdraw(KEY, 1)
        ledger.flush()
        [attempt] = ledger.attempts(KEY)
        assert attempt.result == ok("first")


def test_a_run_that_ends_leaves_nothing_in_flight(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        run = ledger.start_run({"study": "s"})
        other = ledger.start_run({})
        assert run != other
        do(put(ledger, None, run=run))
        ledger.end_run(run, "interrupted")
        [attempt] = ledger.attempts(KEY)
        assert attempt.state == "abandoned"
        assert [(row.ended, dict(row.about)) for row in ledger.runs()] == [
            ("interrupted", {"study": "s"}),
            (None, {}),
        ]


@pytest.mark.parametrize(
    ("result", "cost", "charged"),
    [
        (ok(), Cost(Decimal(2)), Decimal(2)),
        (ok(), Cost(None, "no price"), Decimal(5)),
        (BUSY, Cost(Decimal(0)), Decimal(0)),
        (LOST, Cost(None, "cut"), Decimal(5)),
        (Failure(FailureKind.CUT, "cut", billed=Billed.YES, usage={"a": 1}), Cost(Decimal(1)), Decimal(1)),
    ],
)
def test_what_an_attempt_counts_for_under_a_cap(
    tmp_path: Path, result: Reply | Failure, cost: Cost, charged: Decimal
) -> None:
    with Ledger.open(tmp_path / "l.sqlite") as ledger:
        do(put(ledger, result, cost=cost, reserved_usd=Decimal(5)))
        assert ledger.attempts(KEY)[0].charged_usd == charged


def test_many_replies_share_a_commit(tmp_path: Path) -> None:
    cells = list(plan_for([f"q{n}" for n in range(200)]))

    async def main() -> int:
        with Ledger.open(tmp_path / "l.sqlite") as ledger:
            await asyncio.gather(*(put(ledger, ok(cell.item), cell=cell) for cell in cells))
            assert all(ledger.latest(request_key(cell.first)) is not None for cell in cells)
            assert ledger._writer is not None
            return ledger._writer.commits

    assert do(main()) < 200  # for 400 writes, each waited for


def test_a_full_disk_ends_in_a_message_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"

    async def main() -> None:
        with Ledger.open(path) as ledger:
            await put(ledger, ok("kept"))
            with sqlite3.connect(path, isolation_level=None) as other:  # somebody who holds the file for too long
                ledger.submit([("PRAGMA busy_timeout = 1", ())])
                ledger.flush()
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(Incomplete, match=r"l\.sqlite: cannot be written.*run the same command again"):
                    await put(ledger, ok("lost"), number=2)
                other.execute("ROLLBACK")
            other.close()
            with pytest.raises(Incomplete):  # nothing more is written, so nothing is written out of order
                await put(ledger, ok("later"), number=3)

    do(main())
    with Ledger.read(path) as ledger:
        assert [a.result for a in ledger.attempts(KEY)] == [ok("kept")]


def test_no_thread_outlives_a_ledger(tmp_path: Path) -> None:
    code = """
import sys, threading
from evalkit.replay import Ledger
ledger = Ledger.open(sys.argv[1])
assert threading.active_count() == 2
ledger.close()
ledger.close()
assert threading.active_count() == 1
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path / "l.sqlite")], check=True, timeout=60)
