"""LiteLLM: rows of the spend log, and standard logging payloads."""

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
    instant,
    messages_of,
    nested,
    number,
    plain_usage,
    text,
    usage_or_note,
    word,
)

__all__ = ["fits_spend", "fits_standard", "spend_call", "standard_call"]

_CHAT = frozenset({"completion", "acompletion", "responses", "aresponses", "anthropic_messages", "text_completion",
                   "atext_completion", "generate_content", "agenerate_content"})  # fmt: skip
_TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")


def fits_spend(record: Mapping[str, Any]) -> bool:
    """A row of the table of spend."""
    return "request_id" in record and "call_type" in record and "spend" in record


def fits_standard(record: Mapping[str, Any]) -> bool:
    """A standard logging payload."""
    return "id" in record and "call_type" in record and "response_cost" in record


def spend_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A row of the spend log. A spend of 0 is only believed of a reply from the proxy's cache."""
    return _call(record, note, "litellm spend log", record.get("request_id"), record.get("spend"))


def standard_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A standard logging payload, of which keys, users and headers are not read."""
    return _call(record, note, "litellm standard payload", record.get("id"), record.get("response_cost"))


def _call(record: Mapping[str, Any], note: Note, source: str, own: Any, spend: Any) -> LoggedCall | None:
    kind = record.get("call_type")
    if word(kind) not in _CHAT:
        note("a call that is no chat or completion", str(kind))
        return None
    name = identifier(own)
    if name is None:
        note("no id", str(own))
        return None
    metadata = record.get("metadata")
    status = record.get("status")
    failed = status == "failure"
    if status is not None and word(status) not in {"success", "failure"}:
        note("a status that is not known", str(status))
        return None
    counts = plain_usage(nested(metadata, "usage_object")) or {
        key: record[key] for key in _TOKENS if isinstance(record.get(key), (int, float))
    }
    breakdown = record.get("cost_breakdown")
    if counts and (tier := text(nested(breakdown, "service_tier"))) is not None:
        counts["service_tier"] = tier  # it may have a price of its own
    usage = usage_or_note(counts, note, failed=failed)
    if fee := number(nested(breakdown, "tool_usage_cost")):
        usage = replace(usage, fees=", ".join(filter(None, (usage.fees, f"tool_usage_cost {fee:g}"))))
    cached = str(record.get("cache_hit")).lower() == "true"
    cost = number(spend, 1e6)
    if cost == 0 and not cached:
        cost = None
        if not failed:
            note("a spend of 0, which stands where the price was not known", "")
    start, end = instant(record.get("startTime")), instant(record.get("endTime"))
    first = instant(record.get("completionStartTime"))
    request_s = elapsed_s(start, end, note)
    if cached:
        request_s = None
        note("a reply from the proxy's cache, of which the times are not the model's", "")
    # Without a stream the first token's time is written as the end.
    streamed = first is not None and first != end and not failed and not cached
    retries = nested(metadata, "attempted_retries")
    whole = isinstance(retries, int) and not isinstance(retries, bool) and retries >= 0
    problem = record.get("error_information") or nested(metadata, "error_information")
    messages = messages_of(record.get("messages"), note) or messages_of(record.get("proxy_server_request"), note)
    group = text(record.get("model_group"))
    choices = nested(record.get("response"), "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return LoggedCall(
        id=name,
        source=source,
        requested=text(record.get("model")),
        names=() if group is None else (group,),
        failed=failed,
        error=error_text(nested(problem, "error_code"), nested(problem, "error_class"), record.get("error_str"))
        if failed
        else None,
        finish_reason=text(nested(choice, "finish_reason")),
        usage=usage,
        raw_usage=counts,
        logged_cost_usd=cost,
        ttft_s=elapsed_s(start, first, note) if streamed else None,
        request_s=request_s,
        started=start,
        attempts=retries + 1 if whole else None,
        group=identifier(record.get("session_id")) or identifier(record.get("trace_id")),
        cached=cached,
        messages=messages,
        reply=text(nested(choice, "message", "content")),
    )
