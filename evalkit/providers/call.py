"""One call to a model as values: what was asked, what went out, what came back; and the provider that makes it.

Requested, sent and served are kept apart: `Request` is what the study asks, `Reply.sent` the body that went out,
`Reply.served_model` the model that says it answered. Nothing here knows a retry, a limit, a price or a file: those
are wrapped around any provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

__all__ = ["Billed", "Connection", "Failure", "FailureKind", "Provider", "Reply", "Request", "well_formed"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One call as the study asks for it. It holds no secret.

    `model` is the name in the study. `messages` go out as they are, byte for byte. `params` are the parameters of
    the request (temperature, max_tokens, reasoning_effort, thinking, tools, response_format, headers, ...).
    `endpoint` is the public part of the address the call goes to, None for the provider's own. `files` maps the
    name of each file that the messages refer to to the SHA-256 of its content. `sample` numbers repeats of one
    request, `occurrence` items with equal content: each of them is a draw of its own. `stream` asks for pieces,
    which changes the timing and never the answer.
    """

    model: str
    messages: tuple[Json, ...]
    params: Json = field(default_factory=dict)
    endpoint: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    sample: int = 0
    occurrence: int = 0
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a model: what must never be written anywhere, and what has no influence on the answer.

    `api_base` is the whole address and may hold credentials; `headers` are all headers with their values. Neither
    is shown by `repr`. None: what the provider's own environment variables say.
    """

    api_base: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Billed(StrEnum):
    """Whether a call that gave no reply has to be paid."""

    NO = "no"
    """Refused before anything was generated (a rate limit, an error status, no connection)."""
    YES = "yes"
    """The provider counted tokens for it: see its `usage`."""
    UNKNOWN = "unknown"
    """It may have been generated and charged (a timeout, a cut stream, a process that was killed)."""


class FailureKind(StrEnum):
    """Why a call gave no reply."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    SERVER = "server_error"
    CONNECTION = "connection"
    CUT = "cut_stream"
    AUTHENTICATION = "authentication"
    BAD_REQUEST = "bad_request"
    REFUSAL = "refusal"
    NOT_RECORDED = "not_recorded"
    BATCH = "batch"
    TOO_LARGE = "too_large"
    OTHER = "other"

    @property
    def retryable(self) -> bool:
        """The same request may get a reply a moment later."""
        return self in {
            FailureKind.TIMEOUT,
            FailureKind.RATE_LIMIT,
            FailureKind.SERVER,
            FailureKind.CONNECTION,
            FailureKind.CUT,
            FailureKind.OTHER,
        }


def well_formed(text: str) -> str:
    """`text` as UTF-8 can hold it: the halves of a surrogate pair (a stream may cut one) put together, and a half
    that stands alone as U+FFFD.

    >>> well_formed("\\ud83d" + "\\ude00") == "\\U0001f600"
    True
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    `text` is the visible answer, `reasoning` what came in a channel of its own. `usage` is as the provider gave
    it, None where it gave none: never invented. `sent` is the body that went out, without the messages and without
    secrets. `ttft_s` is the time to the first piece that was not empty, known of streams only; `request_s` that of
    the whole call. `notices` say what to know of the reply. `mean_logprob` is the mean log-probability of the
    answer's tokens, where the request asked for them and the provider gave them. `recorded_in` names the run that
    measured all this, where a recording answered and says so. Texts are made well-formed (`well_formed`): they are
    sent on, graded and written.
    """

    text: str | None
    finish_reason: str | None = None
    reasoning: str | None = None
    served_model: str | None = None
    usage: Json | None = None
    sent: Json | None = None
    tool_calls: tuple[Json, ...] = ()
    ttft_s: float | None = None
    request_s: float | None = None
    response_id: str | None = None
    notices: tuple[str, ...] = ()
    mean_logprob: float | None = None
    recorded_in: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("text", "finish_reason", "reasoning", "served_model", "response_id"):
            value = getattr(self, name)
            if value is not None and not value.isascii():
                object.__setattr__(self, name, well_formed(value))


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a reply: why, and whether it has to be paid. Never a wrong answer.

    `message` is one line, with credentials hidden before it was shortened. `retry_after_s` is what the provider
    asked to wait. `text` is what had come of a cut stream.
    """

    kind: FailureKind
    message: str
    status_code: int | None = None
    retry_after_s: float | None = None
    billed: Billed = Billed.NO
    usage: Json | None = None
    sent: Json | None = None
    text: str | None = None
    served_model: str | None = None
    request_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("message", "text", "served_model"):
            value = getattr(self, name)
            if value is not None and not value.isascii():
                object.__setattr__(self, name, well_formed(value))

    @property
    def retryable(self) -> bool:
        """The same request may get a reply a moment later."""
        return self.kind.retryable


@runtime_checkable
class Provider(Protocol):
    """Makes calls. `call` never raises but for cancellation: whatever goes wrong is a `Failure`."""

    async def call(self, request: Request) -> Reply | Failure:
        """One attempt, no retry."""
        ...

    async def aclose(self) -> None:
        """Let go of connections, processes and files; may be called twice."""
        ...
