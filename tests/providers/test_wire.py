"""What is noted of an exchange: the last request, the decompressed response, and no credential."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from evalkit.providers.wire import EXCHANGE, Exchange, RecordingTransport


def sent(body: object) -> dict[str, object] | None:
    exchange = Exchange()
    exchange.begin(json.dumps(body).encode())
    return exchange.sent


def test_what_was_sent_is_kept_without_the_conversation_and_credentials() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "system": "y",
        "max_tokens": 256,
        "api_key": "short",
        "tools": [{"headers": {"Authorization": "Bearer abcdefgh12345678"}, "name": "f"}],
        "stop": ["api_key=0123456789abcdef"],
        "top_p": 0.5,
    }
    found = sent(body)
    assert found is not None
    assert found.keys() == {"model", "max_tokens", "api_key", "tools", "stop", "top_p"}
    assert (found["model"], found["max_tokens"], found["top_p"]) == ("m", 256, 0.5)
    for secret in ("short", "abcdefgh12345678", "0123456789abcdef"):
        assert secret not in json.dumps(found)
    assert sent([1]) is None
    assert sent({}) is None


def test_counts_are_believed_only_where_they_stand_in_the_response() -> None:
    exchange = Exchange()
    exchange.begin(b"{}")
    exchange.body += (
        b'\x00\x01{"usage": {"inputTokens": 12, "outputTokens":7}, "prompt_eval_count": 30.0, "index": 99}'
    )
    assert exchange.holds_counts(12, 7)
    assert exchange.holds_counts(30)
    assert not exchange.holds_counts(12, 8)
    assert not exchange.holds_counts(99)  # a number, and no count


class _Server(httpx.AsyncBaseTransport):
    """Answers with what it is given, in pieces; of a broken one the last piece never comes."""

    def __init__(self, pieces: list[bytes], headers: dict[str, str], broken: bool = False) -> None:
        self.pieces, self.headers, self.broken = pieces, headers, broken

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        pieces, broken = self.pieces, self.broken

        class Stream(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in pieces:
                    yield piece
                if broken:
                    raise httpx.ReadError("gone")

        return httpx.Response(200, headers=self.headers, stream=Stream(), request=request)


async def _post(server: _Server, exchange: Exchange | None) -> bytes:
    token = EXCHANGE.set(exchange)
    try:
        async with httpx.AsyncClient(transport=RecordingTransport(server)) as client:
            return (await client.post("http://127.0.0.1/", json={"model": "m"})).content
    finally:
        EXCHANGE.reset(token)


def test_a_compressed_response_is_read_as_the_client_reads_it() -> None:
    plain = json.dumps({"usage": {"prompt_tokens": 3}}).encode()
    packed = gzip.compress(plain)
    server = _Server([packed[:9], packed[9:]], {"content-encoding": "gzip"})
    exchange = Exchange()
    assert asyncio.run(_post(server, exchange)) == plain
    assert exchange.json() == {"usage": {"prompt_tokens": 3}}
    assert (exchange.status, exchange.requests, exchange.sent) == (200, 1, {"model": "m"})
    assert asyncio.run(_post(server, None)) == plain  # and nothing is noted where nobody asks


def test_a_response_that_breaks_off_keeps_what_came_and_why() -> None:
    exchange = Exchange()
    with pytest.raises(httpx.ReadError):
        asyncio.run(_post(_Server([b"data: {"], {}, broken=True), exchange))
    assert bytes(exchange.body) == b"data: {"
    assert isinstance(exchange.error, httpx.ReadError)
    exchange.begin(b"{}")
    assert (exchange.status, bytes(exchange.body), exchange.error, exchange.requests) == (None, b"", None, 2)
