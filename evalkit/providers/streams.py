"""Streams put together: server-sent events, or stored chunks, into one whole response of their shape."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.failures import error_in, status_failure
from evalkit.providers.responses import openai_reply, read_response
from evalkit.providers.shapes import first, mapping, mappings

__all__ = ["Assembled", "assemble", "sse_events", "stream_reply"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Assembled:
    """A stream's events as one response. `whole`: it said itself that it was over. `error` is an event that told
    of a failure. `response` is None where no event had a known shape."""

    response: dict[str, Any] | None
    whole: bool
    error: Json | None = None


def sse_events(data: bytes) -> Iterator[Json]:
    """The JSON objects in the data lines of server-sent events, or of one JSON object a line.

    Everything else (comments, `[DONE]`, a torn last line) is passed over.
    """
    for line in data.splitlines():
        text = line.removeprefix(b"data:").strip()
        if not text.startswith(b"{"):
            continue
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def assemble(events: Iterable[Json]) -> Assembled:
    """Put the events of one stream together; the first choice counts.

    Usage may stand on any event, also on one without choices; the last of each count holds.
    """
    builder: _Builder | None = None
    error: Json | None = None
    for event in events:
        if builder is None:
            builder = _builder_for(event)
        if error is None and error_in(event) is not None:
            error = event
        elif builder is not None:
            builder.add(event)
    if builder is None:
        return Assembled(None, False, error)
    return Assembled(_joined(builder.response), builder.whole, error)


def stream_reply(chunks: Iterable[Json]) -> Reply | Failure:
    """The stored chunks of one stream as a reply, or as the failure of a stream that was cut or broke off."""
    found = assemble(chunks)
    if found.error is not None:
        return replace(status_failure(None, found.error, began=True), text=_text_so_far(found))
    if found.response is None:
        return Failure(
            FailureKind.OTHER, "the stream has no chunk of a shape that is known", billed=Billed.UNKNOWN
        )
    if not found.whole:
        message = "the stream ended before its last chunk"
        return Failure(FailureKind.CUT, message, billed=Billed.UNKNOWN, text=_text_so_far(found))
    return openai_reply(found.response)


def _text_so_far(found: Assembled) -> str | None:
    response = read_response(found.response) if found.response is not None else None
    return response.text if response is not None else None


class _Builder(ABC):
    """Collects the events of one shape."""

    def __init__(self) -> None:
        self.response: dict[str, Any] = {}
        self.whole = False

    @abstractmethod
    def add(self, event: Json) -> None:
        """Take in one more event."""


def _builder_for(event: Json) -> _Builder | None:
    if "choices" in event:
        return _OpenAI()
    kind = str(event.get("type", ""))
    if kind in {"message_start", "content_block_start"}:
        return _Anthropic()
    if kind.startswith("response."):
        return _Responses()
    if "candidates" in event or "usageMetadata" in event or "promptFeedback" in event:
        return _Gemini()
    return None


def _place(event: Json, default: int = 0) -> int:
    """The index that an event is about."""
    place = event.get("index", default)
    return place if isinstance(place, int) else default


class _Pieces(list[str]):
    """Text that is still coming; joined once, at the end."""


def _extend(target: dict[str, Any], key: str, value: Any) -> None:
    if isinstance(value, str):
        kept = target.get(key)
        if not isinstance(kept, _Pieces):
            kept = target[key] = _Pieces([kept] if isinstance(kept, str) else [])
        kept.append(value)


def _joined(value: Any) -> Any:
    if isinstance(value, _Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _joined(item) for key, item in value.items()}
    return [_joined(item) for item in value] if isinstance(value, list) else value


class _OpenAI(_Builder):
    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Any] = {"content": None}
        self._choice: dict[str, Any] = {"index": 0, "message": self._message, "finish_reason": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._tokens: list[dict[str, Any]] = []
        self.response = {"choices": [self._choice]}

    def add(self, event: Json) -> None:
        for key in ("id", "model"):
            if event.get(key):
                self.response[key] = event[key]
        if isinstance(event.get("usage"), Mapping):
            self.response["usage"] = event["usage"]
        for choice in mappings(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            delta = mapping(choice.get("delta"))
            for key in ("content", "reasoning_content", "reasoning", "refusal"):
                _extend(self._message, key, delta.get(key))
            for call in mappings(delta.get("tool_calls")):
                self._add_call(call)
            for token in mappings(mapping(choice.get("logprobs")).get("content")):
                self._tokens.append({"logprob": token.get("logprob")})
                self._choice["logprobs"] = {"content": self._tokens}
            if isinstance(choice.get("usage"), Mapping):
                self.response["usage"] = choice["usage"]
            if choice.get("finish_reason"):
                self._choice["finish_reason"] = choice["finish_reason"]
                self.whole = True

    def _add_call(self, call: Json) -> None:
        place = _place(call, len(self._calls))
        kept = self._calls.setdefault(place, {"id": None, "type": "function", "function": {"arguments": ""}})
        if call.get("id"):
            kept["id"] = call["id"]
        function = mapping(call.get("function"))
        if function.get("name"):
            kept["function"]["name"] = function["name"]
        _extend(kept["function"], "arguments", function.get("arguments"))
        self._message["tool_calls"] = [self._calls[n] for n in sorted(self._calls)]


class _Anthropic(_Builder):
    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}
        self.response = {"type": "message", "content": []}

    def add(self, event: Json) -> None:
        kind = event.get("type")
        if kind == "message_start" and isinstance(event.get("message"), Mapping):
            message = event["message"]
            self.response |= {key: message[key] for key in ("id", "model") if key in message}
            self._add_usage(message)
        elif kind == "content_block_start":
            self._blocks[_place(event)] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            block, delta = self._blocks.setdefault(_place(event), {}), mapping(event.get("delta"))
            _extend(block, "text", delta.get("text"))
            _extend(block, "thinking", delta.get("thinking"))
            _extend(block, "_json", delta.get("partial_json"))
        elif kind == "message_delta":
            reason = mapping(event.get("delta")).get("stop_reason")
            if reason:
                self.response["stop_reason"] = reason
                self.whole = True
            self._add_usage(event)
        self.response["content"] = [self._block(n) for n in sorted(self._blocks)]

    def _block(self, place: int) -> dict[str, Any]:
        block = dict(self._blocks[place])
        if "_json" in block:
            block["input"] = block.pop("_json")
        return block

    def _add_usage(self, event: Json) -> None:
        if isinstance(event.get("usage"), Mapping):
            self.response["usage"] = {**self.response.get("usage", {}), **event["usage"]}


class _Responses(_Builder):
    def add(self, event: Json) -> None:
        if isinstance(event.get("response"), Mapping):
            self.response = dict(event["response"])
        if event.get("type") in ("response.completed", "response.incomplete"):
            self.whole = True


class _Gemini(_Builder):
    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Any] = []
        self._candidate: dict[str, Any] = {}

    def add(self, event: Json) -> None:
        for key in ("modelVersion", "responseId", "usageMetadata", "promptFeedback"):
            if event.get(key):
                self.response[key] = event[key]
        candidate = first(event.get("candidates"))
        if candidate:
            self._parts += mappings(mapping(candidate.get("content")).get("parts"))
            if candidate.get("finishReason"):
                self._candidate["finishReason"] = candidate["finishReason"]
                self.whole = True
            self.response["candidates"] = [self._candidate | {"content": {"parts": self._parts}}]
        elif mapping(self.response.get("promptFeedback")).get("blockReason"):
            self.whole = True
