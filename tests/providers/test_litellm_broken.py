"""Whole responses that no sound server sends, through LiteLLM: none is graded that is no answer."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.litellm_provider import LiteLLMProvider


def canned_reply(body: str) -> Reply | Failure:
    """What a call comes to whose whole response is `body`."""
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    async def ask(port: int) -> Reply | Failure:
        provider = LiteLLMProvider(
            Connection(api_base=f"http://127.0.0.1:{port}/v1", api_key="none"), timeout_s=20
        )
        try:
            return await provider.call(Request("openai/mid", ({"role": "user", "content": "x"},)))
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


def one_choice(text: str, end: str) -> str:
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
