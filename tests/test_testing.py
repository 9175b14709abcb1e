"""The scripted provider: attempts in order, time as scripted, calls counted even where they are cancelled."""

from __future__ import annotations

import asyncio
import doctest

import pytest

import evalkit.testing
from evalkit.providers.call import Failure, FailureKind, Provider, Reply, Request
from evalkit.testing import After, ScriptedProvider, last_text


def ask(text: str, **more: object) -> Request:
    return Request("demo/mid", ({"role": "user", "content": text},), **more)  # type: ignore[arg-type]


def test_the_example_holds() -> None:
    assert doctest.testmod(evalkit.testing).failed == 0
    assert isinstance(ScriptedProvider({}), Provider)


def test_attempts_are_counted_for_each_request_and_the_last_step_repeats() -> None:
    provider = ScriptedProvider({"a": ["1", "2"]})

    async def run() -> list[str | None]:
        order = [ask("a"), ask("a", sample=1), ask("a"), ask("a"), ask("a", sample=1)]
        return [reply.text for reply in [await provider.call(one) for one in order] if isinstance(reply, Reply)]

    assert asyncio.run(run()) == ["1", "1", "2", "2", "2"]
    assert provider.finished == len(provider.requests) == 5


def test_a_function_gets_the_whole_request() -> None:
    provider = ScriptedProvider(
        lambda request: f"{request.model} {request.params['temperature']} {request.sample}"
    )
    reply = asyncio.run(provider.call(ask("x", params={"temperature": 0.5}, sample=3)))
    assert reply == Reply("demo/mid 0.5 3", finish_reason="stop", served_model="demo/mid", request_s=0.0)


def test_a_call_that_never_answers_ends_by_cancellation_and_is_counted() -> None:
    provider = ScriptedProvider({"hang": After(None)}, delay_s=0.001)

    async def run() -> None:
        calls = [asyncio.create_task(provider.call(ask("hang", sample=n))) for n in range(3)]
        await asyncio.sleep(0)
        assert provider.in_flight == 3
        for call in calls:
            call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(run())
    assert (provider.in_flight, provider.max_in_flight, provider.finished) == (0, 3, 0)
    assert len(provider.requests) == 3


def test_scripted_time_is_reported_and_own_time_kept() -> None:
    provider = ScriptedProvider({"a": After(0.001, "x"), "b": Reply("y", request_s=7.5)}, delay_s=0.002)
    a, b = (asyncio.run(provider.call(ask(text))) for text in "ab")
    assert a.request_s == pytest.approx(0.003)
    assert b.request_s == 7.5


def test_unknown_requests_and_closed_providers_fail_without_raising() -> None:
    provider = ScriptedProvider({"empty": []})
    for text in ("other", "empty"):
        answer = asyncio.run(provider.call(ask(text)))
        assert isinstance(answer, Failure)
        assert answer.kind is FailureKind.NOT_RECORDED
    asyncio.run(provider.aclose())
    asyncio.run(provider.aclose())
    assert provider.closed
    assert isinstance(asyncio.run(provider.call(ask("empty"))), Failure)
    assert len(provider.requests) == 2


def test_the_last_text_joins_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert last_text(Request("m", ({"role": "user", "content": parts},))) == "ab"
    assert last_text(Request("m", ())) == ""
