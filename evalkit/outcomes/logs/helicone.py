"""Helicone: exported requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.outcomes.logs.call import (
    LoggedCall,
    Note,
    error_text,
    identifier,
    instant,
    messages_of,
    nested,
    number,
    plain_usage,
    text,
    usage_or_note,
)

__all__ = ["fits_helicone", "helicone_call"]

_COUNTS = ("prompt_tokens", "prompt_cache_read_tokens", "prompt_cache_write_tokens", "completion_tokens",
           "total_tokens")  # fmt: skip


def fits_helicone(record: Mapping[str, Any]) -> bool:
    """A request with the times and statuses that the proxy keeps."""
    return "request_id" in record and "request_created_at" in record and "response_status" in record


def helicone_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A request; a status other than 200 to 299 (such as -2, no response) is a failure. Delays are in ms."""
    own = identifier(record.get("request_id"))
    if own is None:
        note("no id", str(record.get("request_id")))
        return None
    code = record.get("response_status")
    failed = isinstance(code, bool) or not isinstance(code, int) or not 200 <= code < 300
    counts = plain_usage({name: record.get(name) for name in _COUNTS})
    delay, first = number(record.get("delay_ms"), 1e10), number(record.get("time_to_first_token"), 1e10)
    override = text(record.get("model_override"))
    return LoggedCall(
        id=own,
        source="helicone",
        requested=override or text(record.get("request_model")),
        served=text(record.get("response_model")),
        failed=failed,
        error=error_text(f"status {code}") if failed else None,
        usage=usage_or_note(counts, note, failed=failed),
        raw_usage=counts,
        ttft_s=None if first is None else first / 1000,
        request_s=None if delay is None else delay / 1000,
        started=instant(record.get("request_created_at")),
        group=identifier(nested(record.get("request_properties"), "Helicone-Session-Id")),
        messages=messages_of(record.get("request_body"), note),
    )
