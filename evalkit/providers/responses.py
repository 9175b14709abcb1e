"""What providers answer, in their own words: one whole response in OpenAI's (chat or responses), Anthropic's or
Gemini's shape, read into our values. Nothing is invented: what a response does not say is None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.failures import error_in, status_failure
from evalkit.providers.shapes import first, mapping, mappings, text
from evalkit.providers.shapes import usage as usage_in

__all__ = ["INTERRUPTED", "NO_USAGE", "Response", "endless", "finish_name", "openai_reply", "read_response"]

NO_USAGE = (
    "no usage was returned, so its cost is unknown. "
    "Fix: ask for it, in a stream with stream_options: {include_usage: true}"
)
"""The notice of a reply that does not say what it used."""

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "STOP": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "MAX_TOKENS": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
}


INTERRUPTED = frozenset(
    {"error", "abort", "aborted", "cancelled", "canceled", "failed", "timeout", "network_error"}
    | {"insufficient_system_resource"}
)
"""Ends (without case) that the provider or its server made of a reply, which is then no answer of the model's."""


def finish_name(reason: str | None) -> str | None:
    """A provider's reason for the end of a reply, in OpenAI's words: stop, length, content_filter, tool_calls.

    A reason that nobody knows stays as it is.
    """
    return None if reason is None else _FINISH.get(reason, reason)


@dataclass(frozen=True, slots=True)
class Response:
    """What one response says. `refused`: the provider or its model declined through a channel of its own, which is
    no answer; a model that says no in its text answers."""

    text: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    response_id: str | None = None
    refused: bool = False
    mean_logprob: float | None = None


def read_response(raw: Mapping[str, Any]) -> Response | None:
    """One whole response, or None where its shape is none of the known ones."""
    if "choices" in raw:
        return _openai(raw)
    if isinstance(raw.get("output"), list) and raw.get("object", "response") == "response":
        return _openai_responses(raw)
    if "candidates" in raw or "promptFeedback" in raw or "usageMetadata" in raw:
        return _gemini(raw)
    if raw.get("type") == "message" or ("stop_reason" in raw and isinstance(raw.get("content"), list)):
        return _anthropic(raw)
    return None


def endless(found: Response) -> Failure | None:
    """The failure of a response that does not say how its reply ended (null, or nothing at all), None of others.

    It may be half an answer, which a check could pass and must not see: as a stream without a last chunk, it is
    no answer, and paid where the provider counted tokens.
    """
    if found.finish_reason is not None or found.refused:
        return None
    return Failure(
        FailureKind.CUT,
        "the reply does not say how it ended (finish_reason is null or missing), so it may be cut off",
        billed=Billed.YES if found.usage is not None else Billed.UNKNOWN,
        usage=found.usage,
        text=found.text,
        served_model=found.model,
    )


def openai_reply(raw: Mapping[str, Any], *, shortened: bool = False) -> Reply | Failure:
    """A stored response as a reply, or the failure that it tells of.

    `shortened`: whoever stored it may have left out why the reply ended, so that nothing follows from its absence.

    `raw` is the body of a response in OpenAI's, Anthropic's or Gemini's shape, or a body with `error`, beside
    which `http` or `status_code` may hold the status.

    >>> openai_reply({"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}).text
    '4'
    """
    status = next((raw[name] for name in ("http", "status_code") if isinstance(raw.get(name), int)), None)
    if error_in(raw) is not None or (status is not None and status >= 400):
        return status_failure(status, raw)
    found = read_response(raw)
    if found is None:
        return Failure(FailureKind.OTHER, "the response has no shape that is known")
    open_end = endless(found)
    if open_end is not None and not (shortened and _end_left_out(raw)):
        return open_end
    return Reply(
        text=found.text,
        finish_reason="content_filter" if found.refused else found.finish_reason,
        reasoning=found.reasoning,
        served_model=found.model,
        usage=found.usage,
        tool_calls=found.tool_calls,
        response_id=found.response_id,
        mean_logprob=found.mean_logprob,
        notices=() if found.usage is not None else (NO_USAGE,),
    )


def _end_left_out(raw: Mapping[str, Any]) -> bool:
    """No place of `raw` where the reason of an end stands is there, not even as null."""
    names = {*raw, *first(raw.get("choices")), *first(raw.get("candidates"))}
    return names.isdisjoint({"finish_reason", "stop_reason", "finishReason", "status", "incomplete_details"})


def _joined(parts: Sequence[str | None]) -> str | None:
    """Parts put together; None where there is none at all."""
    found = [part for part in parts if part is not None]
    return "".join(found) if found else None


def _call(name: Any, arguments: Any, identity: Any = None) -> Mapping[str, Any]:
    """A tool call in OpenAI's layout; arguments are JSON text."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _openai(raw: Mapping[str, Any]) -> Response:
    choice = first(raw.get("choices"))
    message = mapping(choice.get("message"))
    content = message.get("content")
    if isinstance(content, list):
        content = _joined([text(part.get("text")) for part in mappings(content)])
    answer = text(content)
    finish = finish_name(text(choice.get("finish_reason")))
    refusal = text(message.get("refusal"))
    return Response(
        text=answer,
        reasoning=text(message.get("reasoning_content")) or text(message.get("reasoning")),
        finish_reason=finish,
        model=text(raw.get("model")),
        usage=usage_in(raw.get("usage")),
        tool_calls=tuple(mappings(message.get("tool_calls"))),
        response_id=text(raw.get("id")),
        refused=finish == "content_filter" or (bool(refusal) and not answer),
        mean_logprob=_mean_logprob(mapping(choice.get("logprobs")).get("content")),
    )


def _openai_responses(raw: Mapping[str, Any]) -> Response:
    texts: list[str | None] = []
    thoughts: list[str | None] = []
    calls = []
    tokens: list[Mapping[str, Any]] = []
    refusal = False
    for part in mappings(raw["output"]):
        pieces = mappings(part.get("content"))
        if part.get("type") == "message":
            texts += [text(piece.get("text")) for piece in pieces]
            tokens += [token for piece in pieces for token in mappings(piece.get("logprobs"))]
            refusal = refusal or any(piece.get("type") == "refusal" for piece in pieces)
        elif part.get("type") == "reasoning":
            thoughts += [text(piece.get("text")) for piece in [*mappings(part.get("summary")), *pieces]]
        elif part.get("type") == "function_call":
            calls.append(_call(part.get("name"), part.get("arguments"), part.get("call_id")))
    answer = _joined(texts)
    reason = text(mapping(raw.get("incomplete_details")).get("reason")) or text(raw.get("status"))
    finish = finish_name(reason)
    return Response(
        text=answer,
        reasoning=_joined(thoughts),
        finish_reason="tool_calls" if finish == "stop" and calls else finish,
        model=text(raw.get("model")),
        usage=usage_in(raw.get("usage")),
        tool_calls=tuple(calls),
        response_id=text(raw.get("id")),
        refused=finish == "content_filter" or (refusal and not answer),
        mean_logprob=_mean_logprob(tokens),
    )


def _anthropic(raw: Mapping[str, Any]) -> Response:
    blocks = mappings(raw.get("content"))
    finish = finish_name(text(raw.get("stop_reason")))
    return Response(
        text=_joined([text(block.get("text")) for block in blocks if block.get("type") == "text"]),
        reasoning=_joined([text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]),
        finish_reason=finish,
        model=text(raw.get("model")),
        usage=usage_in(raw.get("usage")),
        tool_calls=tuple(
            _call(block.get("name"), block.get("input"), block.get("id"))
            for block in blocks
            if block.get("type") == "tool_use"
        ),
        response_id=text(raw.get("id")),
        refused=finish == "content_filter",
    )


def _gemini(raw: Mapping[str, Any]) -> Response:
    candidate = first(raw.get("candidates"))
    parts = mappings(mapping(candidate.get("content")).get("parts"))
    finish = finish_name(text(candidate.get("finishReason")))
    calls = tuple(
        _call(mapping(part["functionCall"]).get("name"), mapping(part["functionCall"]).get("args"))
        for part in parts
        if "functionCall" in part
    )
    blocked = not candidate and bool(mapping(raw.get("promptFeedback")).get("blockReason"))
    return Response(
        text=_joined([text(part.get("text")) for part in parts if not part.get("thought")]),
        reasoning=_joined([text(part.get("text")) for part in parts if part.get("thought")]),
        finish_reason="content_filter" if blocked else "tool_calls" if finish == "stop" and calls else finish,
        model=text(raw.get("modelVersion")),
        usage=usage_in(raw.get("usageMetadata")),
        tool_calls=calls,
        response_id=text(raw.get("responseId")),
        refused=blocked or finish == "content_filter",
        mean_logprob=_logprob(candidate.get("avgLogprobs")),
    )


def _logprob(value: Any) -> float | None:
    """A log-probability: a finite number, at most 0."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and -1e9 < value <= 0 else None


def _mean_logprob(tokens: Any) -> float | None:
    """The mean over tokens `{"logprob": ...}`; None where there is none, or one of them says nothing."""
    found = [_logprob(token.get("logprob")) for token in mappings(tokens)]
    known = [value for value in found if value is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None
