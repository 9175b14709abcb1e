"""Langfuse: exported observations, of which generations are the calls to models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.outcomes.logs.call import (
    LoggedCall,
    Note,
    elapsed_s,
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

__all__ = ["fits_langfuse", "langfuse_call"]


def fits_langfuse(record: Mapping[str, Any]) -> bool:
    """An observation."""
    return "traceId" in record and "type" in record and "startTime" in record


def langfuse_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A generation. Its `usageDetails` are disjoint buckets, which are added; a total decides, if any."""
    if record.get("type") != "GENERATION":
        note("an observation that is no generation", f"type {record.get('type')}")
        return None
    own, trace = identifier(record.get("id")), identifier(record.get("traceId"))
    if own is None:
        note("no id", str(record.get("id")))
        return None
    failed = record.get("level") == "ERROR"
    counts = plain_usage(record.get("usageDetails"))
    start, end, first = (instant(record.get(f"{at}Time")) for at in ("start", "end", "completionStart"))
    given = record.get("input")
    messages = messages_of(given, note)
    return LoggedCall(
        id=own,
        source="langfuse",
        requested=text(record.get("model")),
        failed=failed,
        error=error_text(record.get("statusMessage")) if failed else None,
        usage=usage_or_note(counts, note, failed=failed),
        raw_usage=counts,
        logged_cost_usd=number(nested(record.get("costDetails"), "total"), 1e6),
        ttft_s=elapsed_s(start, first, note),
        request_s=elapsed_s(start, end, note),
        started=start,
        group=identifier(record.get("sessionId")) or trace,
        messages=messages,
        prompt=text(given) if messages is None else None,
        reply=text(record.get("output")) or text(nested(record.get("output"), "content")),
        span=(trace, own) if trace else None,
        parent=(trace, parent) if trace and (parent := identifier(record.get("parentObservationId"))) else None,
    )
