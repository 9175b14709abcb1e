"""What a call through LiteLLM was: the text as LiteLLM heard it, everything else by the wire."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from evalkit.errors import visible
from evalkit.providers.body import BodyTooLarge
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.failures import MESSAGE_LIMIT, error_in, status_failure
from evalkit.providers.responses import INTERRUPTED, NO_USAGE, Response, endless, finish_name, read_response
from evalkit.providers.wire import Exchange

__all__ = ["Heard", "failure_of", "hear", "listen", "plain", "reply_of", "served_by"]

_ADVICE = re.compile(r"[\s.,;:]*(?:To drop|`?litellm\.drop_params|If you want)")
_TRACEBACK = re.compile(r"[\s.,:]*Traceback \(most recent call last\)")
"""Where LiteLLM's message begins to tell how to drop parameters, which is never done here."""


@dataclass(slots=True)
class Heard:
    """What LiteLLM has told of a reply, as far as it came."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    model: str | None = None
    response_id: str | None = None
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    ttft_s: float | None = None

    @property
    def text(self) -> str | None:
        """The visible text so far; None where no piece has come, not even an empty one."""
        return "".join(self.texts) if self.texts else None

    @property
    def reasoning(self) -> str | None:
        """What came in a channel of its own."""
        return "".join(self.thoughts) or None


def plain(value: Any) -> Any:
    """Mappings and sequences as fresh dicts and lists: libraries write into what they are given."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def hear(answer: Any, heard: Heard) -> None:
    """A whole response of LiteLLM's."""
    heard.model, heard.response_id = getattr(answer, "model", None), getattr(answer, "id", None)
    usage = getattr(answer, "usage", None)
    if usage is not None:
        heard.usage = usage.model_dump(exclude_none=True)
    choice = answer.choices[0] if answer.choices else None
    if choice is None:
        return
    heard.finish_reason = choice.finish_reason
    message = choice.message
    heard.texts += [message.content] if message.content is not None else []
    heard.thoughts += [getattr(message, "reasoning_content", None) or ""]
    for place, call in enumerate(getattr(message, "tool_calls", None) or ()):
        heard.calls[place] = call.model_dump()


async def listen(stream: Any, heard: Heard, started: float) -> None:
    """A stream of LiteLLM's, to its end."""
    try:
        async for chunk in stream:
            usage = getattr(chunk, "usage", None)
            if usage is not None:
                heard.usage = usage.model_dump(exclude_none=True)
            if not chunk.choices:
                continue
            choice = chunk.choices[0]
            delta = choice.delta
            text = getattr(delta, "content", None)
            thought = getattr(delta, "reasoning_content", None)
            calls = getattr(delta, "tool_calls", None) or ()
            if heard.ttft_s is None and (text or thought or calls):
                heard.ttft_s = time.perf_counter() - started
            if text is not None:
                heard.texts.append(text)
            if thought:
                heard.thoughts.append(thought)
            heard.finish_reason = choice.finish_reason or heard.finish_reason
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()


def reply_of(request: Request, exchange: Exchange, heard: Heard) -> Reply | Failure:
    """What a call that LiteLLM holds for successful was, by the wire."""
    wire: Response | None = None
    if request.stream:
        found = exchange.assembled()
        if found.error is not None:
            return status_failure(None, found.error, began=True)
        if found.response is not None:
            if not found.whole:
                return _cut(exchange)
            wire = read_response(found.response)
    elif exchange.requests:
        body = exchange.json()
        if error_in(body) is not None:
            return status_failure(None, body, exchange.headers, began=True)
        wire = read_response(body) if isinstance(body, Mapping) else None
    if wire is not None and (wire.finish_reason or "").casefold() in INTERRUPTED:
        return _interrupted(wire, exchange)
    if wire is not None and (open_end := endless(wire)) is not None:  # LiteLLM calls no end "stop", too
        return replace(open_end, status_code=exchange.status)
    usage, notices = _usage(wire, exchange, heard)
    sent_messages = exchange.messages
    if sent_messages is not None and sent_messages != [plain(message) for message in request.messages]:
        notices.append("the client changed the messages before it sent them")
    if exchange.requests > 1:
        notices.append(f"{exchange.requests} HTTP requests were made for this call; the last one is recorded")
    finish = finish_name(heard.finish_reason)
    calls: tuple[Mapping[str, Any], ...] = tuple(heard.calls[place] for place in sorted(heard.calls))
    if wire is not None:
        finish = "content_filter" if wire.refused else "length" if wire.finish_reason == "length" else finish
        calls = calls or (wire.tool_calls if finish == "tool_calls" else ())
    return Reply(
        text=heard.text,
        finish_reason=finish,
        reasoning=heard.reasoning,
        served_model=wire.model if wire is not None else heard.model,
        usage=usage,
        tool_calls=calls,
        ttft_s=heard.ttft_s,
        response_id=wire.response_id if wire is not None else heard.response_id,
        mean_logprob=None if wire is None else wire.mean_logprob,
        notices=tuple(notices),
    )


def _usage(wire: Response | None, exchange: Exchange, heard: Heard) -> tuple[Mapping[str, Any] | None, list[str]]:
    """The usage that the provider gave, and what is to be said of it. LiteLLM's account is taken only of responses
    whose shape is not known here, and only where its counts stand in the response itself."""
    if wire is not None:
        return (wire.usage, []) if wire.usage is not None else (None, [NO_USAGE])
    said = heard.usage or {}
    counts = [said.get("prompt_tokens"), said.get("completion_tokens")]
    known = [count for count in counts if isinstance(count, int) and count > 0]
    if len(known) == len(counts) and exchange.holds_counts(*known):
        return said, ["the usage is LiteLLM's reading of a response in the provider's own shape"]
    why = "was not seen" if not exchange.requests else "has no shape that is known here"
    return None, [f"the provider's response {why}: its usage and cost are unknown"]


def _interrupted(wire: Response, exchange: Exchange) -> Failure:
    """LiteLLM calls an end that it does not know "stop", and half an answer would be graded as a whole one."""
    return Failure(
        FailureKind.SERVER,
        f"the provider ended the reply: finish_reason {visible(wire.finish_reason or '', 60)}",
        exchange.status,
        billed=Billed.YES if wire.usage is not None else Billed.UNKNOWN,
        usage=wire.usage,
    )


def _cut(exchange: Exchange, why: str = "it ended before its last chunk") -> Failure:
    return Failure(FailureKind.CUT, f"cut stream: {why}", exchange.status, billed=Billed.UNKNOWN)


def failure_of(exchange: Exchange, problem: Exception) -> Failure:
    """Why a call that raised failed: by the wire, and by the exception only where nothing went over it."""
    code = getattr(problem, "status_code", None)
    error, status = exchange.error, exchange.status
    # LiteLLM quotes its own traceback in some messages, with the paths of this machine.
    said = visible(_TRACEBACK.split(str(error if error is not None else problem))[0].strip(), MESSAGE_LIMIT)
    if exchange.requests == 0:
        # 500 is what LiteLLM says of anything that it did not expect.
        text = _TRACEBACK.split(str(problem))[0].strip()
        failure = status_failure(code if isinstance(code, int) and code != 500 else None, text)
        if type(problem).__name__ == "UnsupportedParamsError":
            fix = "Fix: leave the parameter out, or put it under extra_body to send it as it is"
            said = _ADVICE.split(str(problem))[0]
            return replace(failure, message=f"{visible(said, 300)}. {fix}")
        return failure
    if isinstance(error, BodyTooLarge):
        return Failure(FailureKind.TOO_LARGE, f"the reply was given up: {error}", status, billed=Billed.UNKNOWN)
    if status is not None and status >= 300:
        return status_failure(status, exchange.json() or said, exchange.headers)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return Failure(FailureKind.CONNECTION, f"no connection: {said}", billed=Billed.NO)
    if isinstance(error, httpx.TimeoutException):
        return Failure(FailureKind.TIMEOUT, f"timeout: {said}", status, billed=Billed.UNKNOWN)
    if status is None:
        message = f"the connection was closed before an answer: {said}"
        return Failure(FailureKind.CONNECTION, message, billed=Billed.UNKNOWN)
    return _began(exchange, said)


def _began(exchange: Exchange, said: str) -> Failure:
    """The failure of an answer that had begun with a status of success."""
    if "event-stream" in exchange.headers.get("content-type", ""):
        found = exchange.assembled()
        if found.error is not None:
            return status_failure(None, found.error, began=True)
        if not found.whole:
            return _cut(exchange) if exchange.error is None else _cut(exchange, said)
        wire = read_response(found.response or {})
    else:
        if exchange.error is not None:
            return _cut(exchange, said)
        body = exchange.json()
        if error_in(body) is not None:
            return status_failure(None, body, exchange.headers, began=True)
        wire = read_response(body) if isinstance(body, Mapping) else None
    usage = wire.usage if wire is not None else None
    billed = Billed.YES if usage is not None else Billed.UNKNOWN
    return Failure(
        FailureKind.OTHER, f"the answer cannot be read: {said}", exchange.status, billed=billed, usage=usage
    )


def served_by(exchange: Exchange) -> str | None:
    """The model that a failed call says it was answered by."""
    if exchange.status != 200 or not exchange.body:
        return None
    found = exchange.assembled().response
    wire = read_response(found) if found is not None else None
    return wire.model if wire is not None else None
