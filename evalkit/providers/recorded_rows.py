"""One line of a recording: which run of which item it is of, and the reply or failure it holds.

The ledger's own export, and the names that other tools give the same things.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from evalkit.errors import visible
from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.responses import openai_reply

__all__ = ["CellId", "RowError", "Seen", "failure_from", "reply_from", "seen_in"]

Row = Mapping[str, Any]

_ITEM = ("item", "id", "query_id", "question_id", "sample_id")
_CANDIDATE = ("candidate", "tier", "arm")
_SAMPLE = ("sample", "repeat", "trial", "epoch")
_STEP = ("step",)
_RUN = ("run", "recorded_run")
_SECONDS = ("duration_s", "latency_s")
_TEXT = ("text", "output", "completion", "answer")
_MARKS = {"start", "end", "run", "header", "manifest", "meta", "plan"}
_REPLY = tuple(field.name for field in fields(Reply))
_FAILURE = tuple(field.name for field in fields(Failure))
_FINAL = {"provider_refusal": FailureKind.REFUSAL, "refusal": FailureKind.REFUSAL}


class RowError(ValueError):
    """A line that is neither a reply nor a failure nor a mark of the writer's own."""

    def __init__(self, field: str, what: str, fix: str) -> None:
        self.field, self.what, self.fix = field, what, fix
        super().__init__(what)


@dataclass(frozen=True, slots=True)
class CellId:
    """Which call a line is of: an item, a candidate, a sample, and the step of an arm that takes several."""

    item: str
    candidate: str
    sample: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one line holds. `key` is that of the request, None in recordings of other tools."""

    key: str | None
    cell: CellId | None
    answer: Reply | Failure


def seen_in(row: Row) -> Seen | None:
    """The reply or failure of one line; None for a mark of the writer's own (a start, an end, a header).

    Raises `RowError` where the line says neither which call it is of nor what came of it.
    """
    mark = row.get("record", row.get("kind"))
    if isinstance(mark, str) and mark in _MARKS:
        return None
    answer = _answer(row)
    if isinstance(answer, Reply):
        answer = _measured_then(answer, row)
    key = row.get("key")
    cell = _cell(row)
    if not isinstance(key, str) and cell is None:
        fix = "give each line an item (or id, query_id) and a candidate (or tier, arm)"
        raise RowError("item", "is missing, so nobody can tell which call the line is of", fix)
    return Seen(key if isinstance(key, str) else None, cell, answer)


def _measured_then(reply: Reply, row: Row) -> Reply:
    """The reply with the time that the line gives beside it, and the run that measured it."""
    _, run = _value(row, _RUN)
    _, seconds = _value(row, _SECONDS)
    if reply.recorded_in is None and isinstance(run, str):
        reply = replace(reply, recorded_in=run)
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < float("inf")
    return replace(reply, request_s=float(seconds)) if reply.request_s is None and known else reply


def _value(row: Row, names: tuple[str, ...]) -> tuple[str, Any]:
    for name in names:
        if row.get(name) is not None:
            return name, row[name]
    return names[0], None


def _cell(row: Row) -> CellId | None:
    _, item = _value(row, _ITEM)
    _, candidate = _value(row, _CANDIDATE)
    if not isinstance(item, str) or not isinstance(candidate, str):
        return None
    numbers = []
    for names in (_SAMPLE, _STEP):
        name, number = _value(row, names)
        number = 0 if number is None else number
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise RowError(name, f"is {visible(number)}, not a whole number from 0", "number repeats from 0")
        numbers.append(number)
    return CellId(item, candidate, numbers[0], numbers[1])


def _answer(row: Row) -> Reply | Failure:
    if isinstance(row.get("reply"), Mapping):
        return reply_from(row["reply"])
    if isinstance(row.get("failure"), Mapping):
        return failure_from(row["failure"])
    if isinstance(row.get("response"), Mapping):
        return openai_reply(row["response"], shortened=True)
    if isinstance(row.get("kind"), str) and "message" in row:
        return failure_from(row)
    name, text = _value(row, _TEXT)
    status, error = row.get("status"), row.get("error")
    if isinstance(text, str):
        return reply_from({"served_model": row.get("model"), **row, "text": text})
    if text is not None:
        raise RowError(name, f"is {visible(text)}, not text", "write the model's answer as text")
    if error is not None or status in {"error", "timeout", *_FINAL}:
        return _foreign_failure(str(status or "error"), error)
    if isinstance(row.get("usage"), Mapping) or status in {"ok", "wrong"}:
        return reply_from({"served_model": row.get("model"), **row})  # an empty reply that was paid
    raise RowError("output", "is missing, and no error is given", "write the model's answer, or the error")


def _foreign_failure(status: str, error: Any) -> Failure:
    message = visible(error if error is not None else status, 400)
    kind = _FINAL.get(status)
    if kind is None:
        words = f"{status} {message}".lower()
        kind = FailureKind.TIMEOUT if "timeout" in words or "timed out" in words else FailureKind.OTHER
    return Failure(kind, message, billed=Billed.UNKNOWN)


def reply_from(record: Row) -> Reply:
    """The reply whose fields `record` holds; a value of the wrong type counts as not known."""
    texts = ("finish_reason", "reasoning", "served_model", "response_id", "recorded_in")
    known: dict[str, Any] = {name: record[name] for name in texts if isinstance(record.get(name), str)}
    for name in ("usage", "sent"):
        if isinstance(record.get(name), Mapping):
            known[name] = record[name]
    for name in ("ttft_s", "request_s"):
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            known[name] = float(value)
    mean = record.get("mean_logprob")
    if isinstance(mean, int | float) and not isinstance(mean, bool) and mean <= 0:
        known["mean_logprob"] = float(mean)
    for name in ("tool_calls", "notices"):
        if isinstance(record.get(name), list | tuple):
            known[name] = tuple(record[name])
    text = record.get("text")
    return Reply(text=text if isinstance(text, str) else None, **known)


def failure_from(record: Row) -> Failure:
    """The failure whose fields `record` holds; a kind of a later version is `other`."""
    known = {name: record[name] for name in _FAILURE if record.get(name) is not None}
    kinds = {kind.value for kind in FailureKind}
    kind = str(known.get("kind"))
    billed = {choice.value for choice in Billed}
    known["kind"] = FailureKind(kind) if kind in kinds else FailureKind.OTHER
    known["billed"] = Billed(known["billed"]) if known.get("billed") in billed else Billed.UNKNOWN
    known["message"] = str(known.get("message", ""))
    return Failure(**known)
