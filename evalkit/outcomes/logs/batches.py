"""Output files of the batch interfaces of OpenAI and Anthropic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.outcomes.logs.call import (
    LoggedCall,
    Note,
    error_text,
    identifier,
    instant,
    nested,
    plain_usage,
    text,
    usage_or_note,
    word,
)

__all__ = ["anthropic_call", "fits_anthropic", "fits_openai", "openai_call"]


def fits_openai(record: Mapping[str, Any]) -> bool:
    """A line of an output or error file of OpenAI's batches."""
    return "custom_id" in record and "response" in record and "error" in record


def fits_anthropic(record: Mapping[str, Any]) -> bool:
    """A line of Anthropic's batch results."""
    return "custom_id" in record and isinstance(record.get("result"), Mapping)


def openai_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A request by its `custom_id`: a chat completion or a response, an HTTP error, or one that never ran."""
    own = identifier(record.get("custom_id"))
    if own is None:
        note("no id", str(record.get("custom_id")))
        return None
    source = "openai batch"
    body, code = nested(record.get("response"), "body"), nested(record.get("response"), "status_code")
    problem = nested(body, "error") or record.get("error")
    if code != 200 or problem is not None or word(nested(body, "status")) in {"failed", "cancelled"}:
        said = error_text(code, nested(problem, "code"), nested(problem, "message"))
        return LoggedCall(id=own, source=source, failed=True, error=said, batch=True,
                          served=text(nested(body, "model")))  # fmt: skip
    if word(nested(body, "object")) not in {"chat.completion", "response"}:
        note("a reply that is neither a chat completion nor a response", str(nested(body, "object")))
        return None
    counts = plain_usage({**body["usage"], **_tier(body)} if isinstance(body.get("usage"), Mapping) else None)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return LoggedCall(
        id=own,
        source=source,
        served=text(body.get("model")),
        finish_reason=text(nested(choice, "finish_reason")) or text(nested(body, "incomplete_details", "reason")),
        usage=usage_or_note(counts, note),
        raw_usage=counts,
        started=None,  # when the reply was made is no start
        batch=True,
        reply=text(nested(choice, "message", "content")) or _output(body.get("output")),
    )


def _tier(body: Mapping[str, Any]) -> dict[str, str]:
    """The way it was processed, which the batch's own price covers."""
    tier = body.get("service_tier")
    return {"service_tier": tier} if isinstance(tier, str) else {}


def _output(items: Any) -> str | None:
    parts = [
        part["text"]
        for item in (items if isinstance(items, list) else ())
        for part in (nested(item, "content") if isinstance(nested(item, "content"), list) else ())
        if nested(part, "type") == "output_text" and isinstance(nested(part, "text"), str)
    ]
    return "".join(parts) or None


def anthropic_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A request by its `custom_id`: succeeded, errored, expired or canceled."""
    own = identifier(record.get("custom_id"))
    if own is None:
        note("no id", str(record.get("custom_id")))
        return None
    source, result = "anthropic batch", record["result"]
    kind = result.get("type")
    if word(kind) in {"errored", "expired", "canceled"}:
        inner = nested(result, "error", "error")
        said = error_text(kind, nested(inner, "type"), nested(inner, "message"))
        return LoggedCall(id=own, source=source, failed=True, error=said, batch=True)
    message = result.get("message")
    if kind != "succeeded" or not isinstance(message, Mapping):
        note("a result that is not known", str(kind))
        return None
    counts = plain_usage(message.get("usage"))
    content = message.get("content")
    reply = "".join(
        part["text"]
        for part in (content if isinstance(content, list) else ())
        if nested(part, "type") == "text" and isinstance(nested(part, "text"), str)
    )
    return LoggedCall(
        id=own,
        source=source,
        served=text(message.get("model")),
        finish_reason=text(message.get("stop_reason")),
        usage=usage_or_note(counts, note),
        raw_usage=counts,
        started=instant(message.get("created_at")),
        batch=True,
        reply=reply or None,
    )
