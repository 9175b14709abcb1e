"""Whole responses that no sound server sends, through LiteLLM: none is graded that is no answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
import zlib
from typing import Any

import pytest

from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.litellm_provider import LiteLLMProvider
from evalkit.providers.responses import openai_reply


def canned_reply(body: str | bytes, *, stream: bool = False, coding: str | None = None) -> Reply | Failure:
    """What a call comes to whose whole response is `body`, compressed as `coding` says."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            data = body.encode() if isinstance(body, str) else body
            self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
            self.send_header("Content-Length", str(len(data)))
            if coding is not None:
                self.send_header("Content-Encoding", coding)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may have had enough
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    async def ask(port: int) -> Reply | Failure:
        provider = LiteLLMProvider(
            Connection(api_base=f"http://127.0.0.1:{port}/v1", api_key="none"), timeout_s=20
        )
        try:
            return await provider.call(Request("openai/mid", ({"role": "user", "content": "x"},), stream=stream))
        finally:
            await provider.aclose()

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            return asyncio.run(ask(server.server_port))
        finally:
            server.shutdown()
            thread.join()


def one_choice(text: str, end: str | None) -> str:
    """A response in OpenAI's shape."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": end}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "model": "mid", "choices": [choice], "usage": usage}
    )


@pytest.mark.parametrize("end", ["error", "abort", "insufficient_system_resource", "network_error"])
def test_a_reply_that_the_server_broke_off_is_a_failure_that_is_paid(end: str) -> None:
    """LiteLLM calls all of these "stop"."""
    found = canned_reply(one_choice("half an", end))
    assert isinstance(found, Failure)
    assert (found.kind, found.billed, found.retryable) == (FailureKind.SERVER, Billed.YES, True)
    assert found.usage == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    assert end in found.message


def test_a_reply_of_broken_text_can_be_written() -> None:
    found = canned_reply(one_choice("a \ud800 b \ud83d\ude00", "stop"))
    assert isinstance(found, Reply)
    assert found.text == "a \ufffd b \U0001f600"
    assert found.text.encode()


def test_a_reply_nested_too_deep_is_a_failure() -> None:
    found = canned_reply('{"a":' * 100_000 + "1" + "}" * 100_000)
    assert isinstance(found, Failure)
    assert found.billed is Billed.UNKNOWN


class TestNoEnd:
    """LiteLLM calls it "stop" where the provider says nothing of why a reply ended."""

    def test_a_null_end_is_no_answer_and_is_paid(self) -> None:
        found = canned_reply(one_choice("The amount is", None))
        assert isinstance(found, Failure)
        assert (found.kind, found.billed, found.retryable) == (FailureKind.CUT, Billed.YES, True)
        assert found.usage == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        assert (found.text, found.served_model) == ("The amount is", "mid")
        assert "finish_reason is null" in found.message

    def test_so_is_an_end_that_is_left_out(self) -> None:
        body = json.loads(one_choice("The amount is", None))
        del body["choices"][0]["finish_reason"]
        found = canned_reply(json.dumps(body))
        assert isinstance(found, Failure)
        assert found.kind is FailureKind.CUT

    def test_in_a_recording_null_is_no_answer_and_left_out_is_not_known(self) -> None:
        body = json.loads(one_choice("The amount is", None))
        assert isinstance(openai_reply(body, shortened=True), Failure)
        del body["choices"][0]["finish_reason"]
        kept = openai_reply(body, shortened=True)
        assert isinstance(kept, Reply)
        assert kept.finish_reason is None
        assert isinstance(openai_reply(body), Failure)


class TestSize:
    def test_a_body_that_unpacks_to_too_much_is_given_up(self) -> None:
        data = gzip.compress(b" " * 200_000_000 + one_choice("4", "stop").encode(), 1)
        found = canned_reply(data, coding="gzip")
        assert isinstance(found, Failure)
        assert (found.kind, found.billed, found.retryable) == (FailureKind.TOO_LARGE, Billed.UNKNOWN, False)
        assert found.message == "the reply was given up: the body is larger than 64 MB"

    def test_so_is_a_stream(self) -> None:
        chunk = {"id": "x", "object": "chat.completion.chunk", "model": "mid", "created": 1}
        chunk |= {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
        event = b"data: " + json.dumps(chunk).encode() + b"\n\n"
        found = canned_reply(
            gzip.compress(event + b": " + b" " * 100_000_000 + b"\n\n" + event), stream=True, coding="gzip"
        )
        assert isinstance(found, Failure)
        assert (found.kind, found.retryable) == (FailureKind.TOO_LARGE, False)
        assert found.text == "a"

    @pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "bare", "members", "identity"])
    def test_every_coding_that_is_asked_for_is_read(self, coding: str) -> None:
        plain = one_choice("4 " * 5000, "stop").encode()
        bare = zlib.compressobj(wbits=-15)
        data = {
            "deflate": zlib.compress(plain),
            "bare": bare.compress(plain) + bare.flush(),
            "members": gzip.compress(plain[:99]) + gzip.compress(plain[99:]),
            "identity": plain,
        }.get(coding, gzip.compress(plain))
        name = {"bare": "deflate", "members": "gzip", "identity": None}.get(coding, coding)
        found = canned_reply(data, coding=name)
        assert isinstance(found, Reply)
        assert found.text == "4 " * 5000

    @pytest.mark.parametrize(
        ("coding", "data"), [("br", b"\x0b\x02"), ("gzip", b"no gzip"), ("deflate", b"\xff\xff")]
    )
    def test_what_cannot_be_unpacked_is_a_failure(self, coding: str, data: bytes) -> None:
        found = canned_reply(data, coding=coding)
        assert isinstance(found, Failure)
        assert found.kind is FailureKind.CUT
