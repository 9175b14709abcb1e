"""A ledger as JSONL: one line for each step of each cell, to be read by people, other programs, and `recorded`.

A line has `format` (evalkit.replay/1), `key`, `item`, `candidate`, `sample`, `step` and `purpose`; `request` as it
was asked; `state` (reply, failure, or none) with the `reply` or the last `failure`; of the attempt that decided,
`run`, `recorded_at`, `duration_s`, `cost_usd` (decimal text) with `cost_reason`; and all `attempts` without their
text. Unknown values are left out. Without text a line has `text_left_out: true` and cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalkit.costs.decimals import plain_decimal
from evalkit.providers.call import Reply
from evalkit.replay.ledger import Attempt, Ledger, Step
from evalkit.replay.records import failure_record, json_text, reply_record

__all__ = ["EXPORT_FORMAT", "export_jsonl", "exported"]

EXPORT_FORMAT = "evalkit.replay/1"

_TEXT = ("text", "reasoning", "tool_calls", "message")


def export_jsonl(ledger: Ledger, file: str | Path, *, text: bool = True) -> int:
    """Write every step that was sent, by purpose, candidate, item, sample and step; the number of lines.

    The file is put in place whole or not at all, and equal ledgers give equal bytes. `text` False leaves out what
    was asked and answered. Raises `InputError` where the file cannot be written.
    """
    from evalkit.tabular.write import atomic_path

    lines = 0
    with atomic_path(file) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        for line in exported(ledger, text=text):
            out.write(json_text(line) + "\n")
            lines += 1
    return lines


def exported(ledger: Ledger, *, text: bool = True) -> Iterator[dict[str, Any]]:
    """The lines of an export as values."""
    for step in ledger.steps():
        attempts = [attempt for attempt in ledger.attempts(step.key) if attempt.state != "in_flight"]
        if attempts:
            yield _line(ledger, step, attempts, text)


def _line(ledger: Ledger, step: Step, attempts: list[Attempt], text: bool) -> dict[str, Any]:
    decided = next((attempt for attempt in reversed(attempts) if attempt.result is not None), None)
    request = dict(ledger.request(step.key) or {})
    result: dict[str, Any] = {}
    state = "none"
    if decided is not None and decided.result is not None:
        state = decided.state
        found = decided.result
        result = reply_record(found) if isinstance(found, Reply) else failure_record(found)
        if state == "reply":
            result.setdefault("text", None)
    line: dict[str, Any] = {
        "format": EXPORT_FORMAT,
        "key": step.key,
        "item": step.item,
        "candidate": step.candidate,
        "sample": step.sample,
        "step": step.step,
        "purpose": step.purpose,
        "state": state,
    }
    if decided is None:
        line["record"] = "meta"  # nothing that could be replayed
    if not text:
        line["text_left_out"] = True
        request.pop("messages", None)
        result = {name: value for name, value in result.items() if name not in _TEXT}
    line["request"] = request
    if decided is not None:
        line[state] = result
        line |= _known(
            run=decided.run,
            recorded_at=decided.ended_at,
            duration_s=decided.duration_s,
            cost_usd=None if decided.cost_usd is None else plain_decimal(decided.cost_usd),
            cost_reason=decided.cost_reason,
        )
    line["attempts"] = [_attempt(attempt) for attempt in attempts]
    return line


def _attempt(attempt: Attempt) -> dict[str, Any]:
    result = attempt.result
    return _known(
        number=attempt.number,
        run=attempt.run,
        state=attempt.state,
        kind=attempt.kind,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        waited_s=attempt.waited_s,
        duration_s=attempt.duration_s,
        usage=None if result is None else result.usage,
        served_model=None if result is None else result.served_model,
        billed=None if attempt.billed is None else attempt.billed.value,
        cost_usd=None if attempt.cost_usd is None else plain_decimal(attempt.cost_usd),
        cost_reason=attempt.cost_reason,
        reserved_usd=None if attempt.reserved_usd is None else plain_decimal(attempt.reserved_usd),
        paid=attempt.paid,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
