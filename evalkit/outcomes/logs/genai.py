"""OpenTelemetry's GenAI spans, in the generations of their attribute names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    word,
)
from evalkit.outcomes.logs.spans import Span

__all__ = ["fits_genai", "genai_call"]

_CALLS = frozenset({"chat", "generate_content", "text_completion"})
_OTHER = frozenset({"anthropic", "aws.bedrock", "aws_bedrock"})
_UNCOUNTED = "input tokens of which an old convention may leave out the cached ones"


def fits_genai(span: Span) -> bool:
    """A span with attributes of the GenAI conventions."""
    return any(name.startswith("gen_ai.") for name in span.attributes)


def genai_call(span: Span, note: Note) -> LoggedCall | None:
    """A call to a model. Spans of agents, tools and embeddings are left out: agents repeat the usage of their
    calls.

    Until version 1.36 Anthropic's input tokens were passed on without the cached ones, and nothing beside them
    says so: their count is unknown.
    """
    found = span.attributes
    operation = found.get("gen_ai.operation.name")
    if operation is None and word(found.get("llm.request.type")) in {"chat", "completion"}:
        operation = "chat"
    if word(operation) not in _CALLS:
        said = f"operation {operation}" if isinstance(operation, str) else "a name of no operation"
        note("a span that is no call to a chat model", said)
        return None
    counts = plain_usage({k: v for k, v in found.items() if k.startswith("gen_ai.usage.") and k != _COST})
    if (tier := text(found.get("openai.response.service_tier"))) is not None:
        counts["service_tier"] = tier  # it may have a price of its own
    failed = span.failed or text(found.get("error.type")) is not None
    usage = usage_or_note(counts, note, failed=failed)
    if _may_leave_out_cached(found, counts) and usage.input_tokens is not None:
        note(_UNCOUNTED, str(usage.input_tokens))
        usage = replace(
            usage, input_tokens=None, problem=_UNCOUNTED, fix="record with conventions of version 1.37 or newer"
        )
    reasons = found.get("gen_ai.response.finish_reasons")
    first = found.get("gen_ai.response.time_to_first_chunk", found.get("gen_ai.server.time_to_first_token"))
    return LoggedCall(
        id=span.id,
        source="opentelemetry genai",
        requested=text(found.get("gen_ai.request.model")),
        served=text(found.get("gen_ai.response.model")),
        failed=failed,
        error=error_text(found.get("error.type"), span.message) if failed else None,
        finish_reason=text(reasons[0]) if isinstance(reasons, list) and reasons else None,
        usage=usage,
        raw_usage=counts,
        logged_cost_usd=number(found.get(_COST), 1e6),
        ttft_s=number(first, 1e6),
        request_s=elapsed_s(span.start, span.end, note),
        started=span.start,
        group=identifier(found.get("gen_ai.conversation.id")) or span.trace,
        messages=_messages(found, note),
        span=(span.trace, span.own),
        parent=(span.trace, span.parent) if span.parent else None,
    )


_COST = "gen_ai.usage.cost"


def _may_leave_out_cached(found: Mapping[str, Any], counts: Mapping[str, Any]) -> bool:
    old = "gen_ai.system" in found and "gen_ai.provider.name" not in found
    return old and word(found["gen_ai.system"]) in _OTHER and not any("cache" in name for name in counts)


def _messages(found: Mapping[str, Any], note: Note) -> tuple[Mapping[str, str], ...] | None:
    system = messages_of([{"role": "system", "content": p} for p in _parts(found)], note) or ()
    told = messages_of(found.get("gen_ai.input.messages"), note)
    if told is None:
        numbered: list[Any] = []
        while (role := found.get(f"gen_ai.prompt.{len(numbered)}.role")) is not None:
            content = found.get(f"gen_ai.prompt.{len(numbered)}.content")
            numbered.append({"role": role, "content": content})
        told = messages_of(numbered, note)
    return (*system, *told) if told else None


def _parts(found: Mapping[str, Any]) -> list[Any]:
    from evalkit.tabular.strict_json import StrictJSONError, parse_json

    raw = found.get("gen_ai.system_instructions")
    if isinstance(raw, str):
        try:
            raw = parse_json(raw)
        except StrictJSONError:
            return []
    return [[part] for part in raw] if isinstance(raw, list) else []
