"""What really went over the wire: a transport that notes the request and the response of one call as they pass.

Client libraries fill in what a response lacks (usage above all). The bytes do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

from evalkit.errors import HIDDEN, redact
from evalkit.providers.body import ACCEPTED, MOST_BYTES, plain_pieces
from evalkit.providers.streams import Assembled, assemble, sse_events
from evalkit.study.secrets import is_secret_name

__all__ = ["EXCHANGE", "Exchange", "RecordingTransport"]

_CONTENT_FIELDS = ("messages", "contents", "input", "prompt", "system", "systemInstruction", "system_instruction")
"""Where bodies hold the conversation, which the request holds already."""

_COUNT = re.compile(rb'"[^"]{0,60}(?:oken|ount)[^"]{0,40}"\s*:\s*(\d{1,12})(?:\.0)?(?=[,}\s\]])')


@dataclass(slots=True)
class Exchange:
    """The HTTP request and response of one call; of several, the last. `error` is what the transport raised.
    `body` is decompressed, and at most `most_bytes` are read of it."""

    request_body: bytes = b""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    error: Exception | None = None
    requests: int = 0
    most_bytes: int = MOST_BYTES
    _body: dict[str, Any] | None = None

    def begin(self, body: bytes) -> None:
        """A request goes out; what was noted of one before it is forgotten."""
        self.request_body, self.status, self.headers, self.error = body, None, {}, None
        self.body, self._body = bytearray(), None
        self.requests += 1

    @property
    def sent(self) -> dict[str, Any] | None:
        """The body that went out, without the conversation, credentials hidden; None where it is no JSON."""
        body = self._request()
        kept = {key: _clean(value, key) for key, value in body.items() if key not in _CONTENT_FIELDS}
        return kept if body else None

    @property
    def messages(self) -> list[Any] | None:
        """The messages that went out, where the body has them."""
        found = self._request().get("messages")
        return found if isinstance(found, list) else None

    def _request(self) -> dict[str, Any]:
        """The request's body, read once; empty where it is no JSON object."""
        if self._body is None:
            try:
                body = json.loads(self.request_body)
            except (ValueError, RecursionError):
                body = None
            self._body = body if isinstance(body, dict) else {}
        return self._body

    def content(self) -> bytes:
        """The response's body, as far as it came."""
        return bytes(self.body)

    def json(self) -> Any:
        """The response's body as JSON; its text where it is none."""
        data = self.content()
        try:
            return json.loads(data)
        except (ValueError, RecursionError):  # nested too deep
            return data.decode("utf-8", "replace")

    def assembled(self) -> Assembled:
        """The response's events put together."""
        return assemble(sse_events(self.content()))

    def holds_counts(self, *counts: int) -> bool:
        """Every one of `counts` stands in the response as some count of its own, so that nobody invented it."""
        found = {int(number) for number in _COUNT.findall(self.content())}
        return set(counts) <= found


EXCHANGE: ContextVar[Exchange | None] = ContextVar("evalkit_exchange", default=None)
"""The exchange of the call that is being made in this context."""


def _clean(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return HIDDEN if is_secret_name(name) else redact(value)
    if isinstance(value, dict):
        return {key: _clean(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, name) for item in value]
    return value


class _RecordedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange, body = self._exchange, self._exchange.body
        try:
            async for piece in plain_pieces(aiter(self._stream), exchange.headers, exchange.most_bytes):
                body += piece
                yield piece
        except Exception as error:
            exchange.error = error
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


class RecordingTransport(httpx.AsyncBaseTransport):
    """Passes everything on to `inner`, and notes it in the context's exchange, where there is one."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request, noted."""
        exchange = EXCHANGE.get()
        if exchange is None:
            return await self._inner.handle_async_request(request)
        try:
            body = request.content
        except httpx.RequestNotRead:
            body = b""
        exchange.begin(body)
        request.headers["accept-encoding"] = ACCEPTED
        try:
            response = await self._inner.handle_async_request(request)
        except Exception as error:
            exchange.error = error
            raise
        exchange.status = response.status_code
        exchange.headers = {name.lower(): value for name, value in response.headers.items()}
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _RecordedStream(response.stream, exchange)
            for name in ("content-encoding", "content-length"):  # what is handed on is decompressed
                response.headers.pop(name, None)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
