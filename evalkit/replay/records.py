"""Requests, replies and failures as JSON text and back. Nothing that was received is ever refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from evalkit.providers.call import Failure, Reply, Request
from evalkit.providers.recorded_rows import failure_from, reply_from

__all__ = [
    "failure_from",
    "failure_record",
    "json_text",
    "reply_from",
    "reply_record",
    "request_from",
    "request_record",
]

Record = dict[str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_REPLY = tuple(field.name for field in fields(Reply))
_FAILURE = tuple(field.name for field in fields(Failure))


def json_text(value: Any) -> str:
    """`value` as strict JSON on one line that UTF-8 can hold.

    What JSON cannot say is kept as far as it can be: a number that is not finite becomes null, an unknown object
    its text, half of a surrogate pair its escape.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError):
        text = _ENCODER.encode(_plain(value))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


def request_record(request: Request) -> Record:
    """A request as it stands in the ledger."""
    return {
        "model": request.model,
        "endpoint": request.endpoint,
        "messages": list(request.messages),
        "params": dict(request.params),
        "files": dict(request.files),
        "sample": request.sample,
        "occurrence": request.occurrence,
        "stream": request.stream,
    }


def request_from(record: Mapping[str, Any]) -> Request:
    """The request that `request_record` wrote."""
    return Request(**{**record, "messages": tuple(record["messages"])})


def reply_record(reply: Reply) -> Record:
    """The fields of a reply that have a value."""
    found = {name: getattr(reply, name) for name in _REPLY}
    return {name: value for name, value in found.items() if value is not None and value != ()}


def failure_record(failure: Failure) -> Record:
    """The fields of a failure that have a value."""
    found = {name: getattr(failure, name) for name in _FAILURE}
    found |= {"kind": failure.kind.value, "billed": failure.billed.value}
    return {name: value for name, value in found.items() if value is not None}
