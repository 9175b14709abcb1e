"""The provider batches of a run folder: kept before they are sent, and let go with their replies on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from evalkit.costs import Cost
from evalkit.providers.batch_job import BatchJob
from evalkit.providers.call import Failure, Reply, Request
from evalkit.replay.ledger import Ledger, money_text, result_values, utc_text
from evalkit.replay.records import json_text, request_record
from evalkit.replay.writer import Statement

__all__ = ["Answer", "OpenBatch", "drop_batch", "keep_answers", "keep_batch", "open_batches"]


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch whose results are not in the ledger yet. `reserved_usd` is the most that all of it can cost, None
    where that has no bound."""

    run: str
    candidate: str
    job: BatchJob
    reserved_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request of a batch; `number` is that of the attempt."""

    key: str
    number: int
    result: Reply | Failure
    cost: Cost
    reserved_usd: Decimal | None


def open_batches(ledger: Ledger) -> list[OpenBatch]:
    """Every batch that was kept and not let go, also where its process died before or while it was sent."""
    rows = ledger.rows("SELECT run, candidate, job, reserved_usd FROM batches WHERE open = 1 ORDER BY run, token")
    return [
        OpenBatch(run, name, BatchJob.from_record(json.loads(job)), None if usd is None else Decimal(usd))
        for run, name, job, usd in rows
    ]


def keep_batch(ledger: Ledger, batch: OpenBatch, requests: Mapping[str, Request] | None = None) -> None:
    """Note a batch as it stands, with what it asks; on disk when this returns."""
    statements: list[Statement] = [
        ("INSERT OR IGNORE INTO requests (key, content) VALUES (?, ?)", (key, json_text(request_record(request))))
        for key, request in (requests or {}).items()
    ]
    sql = (
        "INSERT OR REPLACE INTO batches (token, run, candidate, job, reserved_usd, open) VALUES (?, ?, ?, ?, ?, 1)"
    )
    job = json_text(batch.job.record())
    values = (batch.job.token, batch.run, batch.candidate, job, money_text(batch.reserved_usd))
    ledger.submit([*statements, (sql, values)])
    ledger.flush()


def drop_batch(ledger: Ledger, token: str) -> None:
    """Forget a batch that the provider never made."""
    ledger.submit([("DELETE FROM batches WHERE token = ?", (token,))])
    ledger.flush()


def keep_answers(ledger: Ledger, batch: OpenBatch, answers: Sequence[Answer], run: str) -> None:
    """Note what came of a batch, all of it at once, and that it is no longer open; on disk when this returns.

    `run` is the one that collects it. How long a request of a batch took, nobody knows.
    """
    sql = (
        "INSERT INTO attempts (key, number, run, candidate, state, kind, started_at, ended_at, waited_s, result, "
        "usage, billed, cost_usd, cost_reason, reserved_usd, paid) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, 1)"
    )
    now = utc_text()
    statements: list[Statement] = []
    for one in answers:
        state, kind, *rest = result_values(one.result, one.cost)
        begun = (one.key, one.number, run, batch.candidate, state, kind, now, now)
        statements.append((sql, (*begun, *rest, money_text(one.reserved_usd))))
    done = json_text(batch.job.record())
    statements.append(("UPDATE batches SET open = 0, job = ? WHERE token = ?", (done, batch.job.token)))
    ledger.submit(statements)
    ledger.flush()
