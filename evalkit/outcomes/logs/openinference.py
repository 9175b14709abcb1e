"""OpenInference spans: `llm.*` attributes, and the first token as an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.outcomes.logs.call import (
    LoggedCall,
    Note,
    elapsed_s,
    error_text,
    identifier,
    messages_of,
    number,
    plain_usage,
    text,
    usage_or_note,
)
from evalkit.outcomes.logs.spans import Span

__all__ = ["fits_openinference", "openinference_call"]

_FIRST = "First Token Stream Event"


def fits_openinference(span: Span) -> bool:
    """A span that says its kind in OpenInference's words."""
    return "openinference.span.kind" in span.attributes


def openinference_call(span: Span, note: Note) -> LoggedCall | None:
    """A span of the kind LLM; chains, tools, retrievers and embeddings are left out."""
    found = span.attributes
    if found["openinference.span.kind"] != "LLM":
        note("a span that is no call to a chat model", f"kind {found['openinference.span.kind']}")
        return None
    counts = plain_usage({k: v for k, v in found.items() if k.startswith("llm.token_count.")})
    first = next((at for name, at in span.events if name == _FIRST), None)
    messages = _messages(found, note)
    plain = found.get("input.mime_type", "text/plain") == "text/plain"
    return LoggedCall(
        id=span.id,
        source="openinference",
        requested=text(found.get("llm.model_name")),
        failed=span.failed,
        error=error_text(found.get("exception.type"), span.message) if span.failed else None,
        finish_reason=text(found.get("llm.finish_reason")),
        usage=usage_or_note(counts, note, failed=span.failed),
        raw_usage=counts,
        logged_cost_usd=number(found.get("llm.cost.total"), 1e6),
        ttft_s=elapsed_s(span.start, first, note),
        request_s=elapsed_s(span.start, span.end, note),
        started=span.start,
        group=identifier(found.get("session.id")) or span.trace,
        messages=messages,
        prompt=text(found.get("input.value")) if messages is None and plain else None,
        reply=text(found.get("llm.output_messages.0.message.content")),
        span=(span.trace, span.own),
        parent=(span.trace, span.parent) if span.parent else None,
    )


def _messages(found: Mapping[str, Any], note: Note) -> tuple[Mapping[str, str], ...] | None:
    told: list[Any] = []
    while (role := found.get(f"llm.input_messages.{len(told)}.message.role")) is not None:
        told.append({"role": role, "content": found.get(f"llm.input_messages.{len(told)}.message.content")})
    return messages_of(told, note)
