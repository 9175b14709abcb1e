"""Calls through LiteLLM to a real server that fails by rule: what comes back is what was on the wire."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Provider, Reply, Request
from evalkit.providers.litellm_provider import LiteLLMProvider
from tests.providers.mock_openai import MockServer, default_answer, running_mock

KEY = "sk-FAKE-demo-0000-not-a-key"
PLAIN_KEY = "correct horse battery"  # of no shape that anybody knows for a key's

RULES: list[dict[str, Any]] = [
    {"contains": "429s", "fault": "status", "status": 429, "retry_after": 2},
    {"contains": "503d", "fault": "status", "status": 503, "retry_after": "date", "retry_after_s": 9},
    {"contains": "500", "fault": "status", "status": 500},
    {"contains": "529", "fault": "status", "status": 529},
    {"contains": "504", "fault": "status", "status": 504},
    {"contains": "400", "fault": "status", "status": 400, "message": "no such parameter"},
    {"contains": "policy", "fault": "status", "status": 400, "code": "content_policy_violation"},
    {"contains": "echo", "fault": "status", "status": 401, "echo": True},
    {"contains": "hang", "fault": "hang"},
    {"contains": "drip", "fault": "drip", "every_s": 0.05},
    {"contains": "cut", "fault": "cut", "pieces": 2},
    {"contains": "reset", "fault": "reset"},
    {"contains": "nousage", "fault": "no_usage"},
    {"contains": "zero", "fault": "zero_usage"},
    {"contains": "nofinish", "fault": "no_finish"},
    {"contains": "notjson", "fault": "not_json"},
    {"contains": "filter", "fault": "content_filter"},
    {"contains": "other", "served_model": "frontier"},
    {"contains": "think", "reasoning": "let me see", "cached_tokens": 2},
    {"contains": "slow", "latency_s": 0.4},
    {"contains": "repeat", "answer": " ".join(["no"] * 150)},
    {"contains": "leak", "answer": f"your key is {KEY}, and {PLAIN_KEY} too"},
]


@pytest.fixture(scope="module")
def mock() -> Iterator[MockServer]:
    with running_mock(rules=RULES, prices={"mid": {"input": "0.15", "output": "0.60"}}) as server:
        yield server


def request(text: str, *, stream: bool = False, model: str = "openai/mid", **params: Any) -> Request:
    return Request(model, ({"role": "user", "content": text},), params, stream=stream)


def run(mock: MockServer, *requests: Request, timeout_s: float = 20.0, **more: Any) -> list[Reply | Failure]:
    """The answers one after the other; nothing may be left running or open."""

    async def go() -> list[Reply | Failure]:
        provider = LiteLLMProvider(
            Connection(**{"api_base": mock.url, "api_key": KEY} | more), timeout_s=timeout_s
        )
        try:
            found = [await provider.call(one) for one in requests]
        finally:
            await provider.aclose()
            await provider.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = asyncio.run(go())
        gc.collect()
    return found


def replies(mock: MockServer, *requests: Request, **more: Any) -> list[Reply]:
    found = run(mock, *requests, **more)
    assert all(isinstance(one, Reply) for one in found), found
    return [one for one in found if isinstance(one, Reply)]


def failures(mock: MockServer, *requests: Request, **more: Any) -> list[Failure]:
    found = run(mock, *requests, **more)
    assert all(isinstance(one, Failure) for one in found), found
    return [one for one in found if isinstance(one, Failure)]


MODELS = ["openai/mid", "hosted_vllm/mid"]
"""One that LiteLLM calls through the OpenAI library, one that it calls itself."""


def test_it_is_a_provider() -> None:
    assert isinstance(LiteLLMProvider(), Provider)


@pytest.mark.parametrize("model", MODELS)
def test_a_reply_says_what_was_sent_served_and_used(mock: MockServer, model: str) -> None:
    whole, streamed = replies(
        mock,
        request("plain", model=model, temperature=0, max_tokens=9, top_p=0.5),
        request("plain", model=model, temperature=0, max_tokens=9, top_p=0.5, stream=True),
    )
    for reply in (whole, streamed):
        assert reply.text == default_answer("mid", "plain")
        assert (reply.finish_reason, reply.served_model, reply.reasoning) == ("stop", "mid", None)
        assert reply.usage == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        assert reply.notices == ()
        assert reply.sent is not None
        asked = {name: reply.sent[name] for name in ("model", "temperature", "max_tokens", "top_p")}
        assert asked == {"model": "mid", "temperature": 0, "max_tokens": 9, "top_p": 0.5}
        assert reply.response_id is not None
    assert whole.sent is not None
    assert streamed.sent is not None
    assert streamed.sent.keys() - whole.sent.keys() == {"stream", "stream_options"}
    assert whole.ttft_s is None
    assert streamed.ttft_s is not None
    assert streamed.request_s is not None
    assert 0 < streamed.ttft_s <= streamed.request_s


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_missing_usage_stays_missing(mock: MockServer, model: str, stream: bool) -> None:
    missing, zero = replies(mock, *(request(text, model=model, stream=stream) for text in ("nousage", "zero")))
    assert missing.usage is None
    assert "include_usage" in missing.notices[0]
    assert zero.usage == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # as it was said


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_served_model_reasoning_and_cache_come_from_the_wire(
    mock: MockServer, model: str, stream: bool
) -> None:
    other, think, filtered = replies(
        mock, *(request(text, model=model, stream=stream) for text in ("other", "think", "filter"))
    )
    assert (other.served_model, other.sent and other.sent["model"]) == ("frontier", "mid")
    assert think.reasoning == "let me see"
    assert think.usage is not None
    assert think.usage["completion_tokens_details"] == {"reasoning_tokens": 3}
    assert think.usage["prompt_tokens_details"] == {"cached_tokens": 2}
    assert (filtered.finish_reason, filtered.text or "") == ("content_filter", "")
    assert filtered.usage is not None
    assert filtered.usage["completion_tokens"] == 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_refused_calls_are_classified_by_status_made_once_and_not_paid(
    mock: MockServer, model: str, stream: bool
) -> None:
    expected = {
        "429s": (FailureKind.RATE_LIMIT, 429),
        "503d": (FailureKind.SERVER, 503),
        "500": (FailureKind.SERVER, 500),
        "529": (FailureKind.SERVER, 529),
        "400": (FailureKind.BAD_REQUEST, 400),
        "policy": (FailureKind.REFUSAL, 400),
    }
    mock.reset()
    found = failures(mock, *(request(text, model=model, stream=stream) for text in expected))
    assert [(one.kind, one.status_code) for one in found] == list(expected.values())
    assert {one.billed for one in found} == {Billed.NO}
    assert found[0].retry_after_s == 2
    assert found[1].retry_after_s == pytest.approx(9, abs=1.01)
    assert "no such parameter" in found[4].message
    assert all(one.sent and one.sent["model"] == "mid" for one in found)
    assert {requests for requests, _ in mock.counts()["contents"].values()} == {1}


@pytest.mark.parametrize("model", MODELS)
def test_calls_that_may_have_to_be_paid(mock: MockServer, model: str) -> None:
    texts = ("cut", "reset", "504", "notjson")
    found = failures(mock, *(request(text, model=model) for text in texts))
    kinds = [FailureKind.CUT, FailureKind.CONNECTION, FailureKind.SERVER, FailureKind.OTHER]
    assert [one.kind for one in found] == kinds
    assert {one.billed for one in found} == {Billed.UNKNOWN}
    assert all(one.retryable for one in found)
    assert {one.usage for one in found} == {None}


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_that_does_not_end_itself_is_cut_and_keeps_its_text(mock: MockServer, model: str) -> None:
    cut, nofinish = failures(mock, *(request(t, model=model, stream=True) for t in ("cut", "nofinish")))
    assert (cut.kind, nofinish.kind) == (FailureKind.CUT, FailureKind.CUT)
    assert (cut.billed, nofinish.billed) == (Billed.UNKNOWN, Billed.UNKNOWN)
    assert (cut.text, cut.served_model) == ("ANSWER:", "mid")
    assert nofinish.text == default_answer("mid", "nofinish")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_whole_call_has_one_limit_whatever_drips(mock: MockServer, model: str, stream: bool) -> None:
    found = failures(
        mock, *(request(text, model=model, stream=stream) for text in ("hang", "drip")), timeout_s=0.3
    )
    for one in found:
        assert (one.kind, one.billed) == (FailureKind.TIMEOUT, Billed.UNKNOWN)
        assert one.request_s is not None
        assert 0.3 <= one.request_s < 5
        assert "timeout" in one.message


def test_no_connection_costs_nothing() -> None:
    with running_mock() as gone:
        pass
    for model in MODELS:
        (found,) = failures(gone, request("x", model=model))
        assert (found.kind, found.billed, found.retryable) == (FailureKind.CONNECTION, Billed.NO, True)


def test_cancelling_a_call_leaves_nothing_behind(mock: MockServer) -> None:
    async def go() -> None:
        provider = LiteLLMProvider(Connection(api_base=mock.url, api_key=KEY))
        await provider.open()
        calls = [
            asyncio.create_task(provider.call(request(text, stream=stream)))
            for text in ("hang", "drip")
            for stream in (False, True)
        ]
        await asyncio.sleep(0.3)
        for call in calls:
            call.cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in found] == [asyncio.CancelledError] * 4
        await provider.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    before = threading.active_count()
    asyncio.run(go())
    gc.collect()
    assert threading.active_count() <= before


def test_two_hundred_calls_at_a_time_and_the_servers_own_count(mock: MockServer) -> None:
    mock.reset()

    async def go() -> list[Reply | Failure]:
        provider = LiteLLMProvider(Connection(api_base=mock.url, api_key=KEY))
        try:
            await provider.open()
            return await asyncio.gather(*(provider.call(request(f"slow item {n}")) for n in range(200)))
        finally:
            await provider.aclose()

    found = [one for one in asyncio.run(go()) if isinstance(one, Reply)]
    assert len(found) == 200
    assert len({one.text for one in found}) == 200
    counts = mock.counts(contents=False)
    assert counts["max_in_flight"] > 50  # no pool of ours is in the way
    assert counts["reported"]["replies"] == 200
    usages = [dict(one.usage or {}) for one in found]
    for name in ("prompt_tokens", "completion_tokens"):
        assert sum(usage[name] for usage in usages) == counts["reported"][name]
    cost = sum(
        (u["prompt_tokens"] * Decimal("0.15") + u["completion_tokens"] * Decimal("0.60")) / 1_000_000
        for u in usages
    )
    assert cost == Decimal(counts["reported"]["usd"])


def test_messages_and_odd_text_arrive_byte_for_byte_and_are_not_written_into() -> None:
    text = "  {x} {{y}} %s $z <|im_start|> \\n \u2028 \ufeff 환불 🙂 e\u0301 \x00 \t\r\n "
    messages = (
        {"role": "system", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"role": "assistant", "content": text},
        {"role": "user", "content": text},
    )
    params = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}
    before = json.dumps([messages, params])
    with running_mock() as mock:
        for model in MODELS:
            for stream in (False, True):
                (reply,) = replies(mock, Request(model, messages, params, stream=stream))
                assert reply.text == default_answer("mid", text)
                assert reply.notices == ()
                assert reply.sent is not None
                assert reply.sent["tools"] == params["tools"]
    assert json.dumps([messages, params]) == before


def test_a_model_may_repeat_itself(mock: MockServer) -> None:
    (reply,) = replies(mock, request("repeat", stream=True))
    assert reply.text == " ".join(["no"] * 150)


def test_a_reply_cut_by_its_cap_says_so(mock: MockServer) -> None:
    for reply in replies(mock, *(request("plain", stream=stream, max_tokens=1) for stream in (False, True))):
        assert (reply.text, reply.finish_reason) == ("ANSWER:", "length")


def test_parameters_are_never_dropped(mock: MockServer) -> None:
    mock.reset()
    (refused,) = failures(mock, request("plain", model="openai/gpt-4o-mini", thinking={"type": "enabled"}))
    assert (refused.kind, refused.billed) == (FailureKind.BAD_REQUEST, Billed.NO)
    assert "extra_body" in refused.message
    assert "drop_params" not in refused.message
    assert mock.counts()["requests"] == 0
    (reply,) = replies(mock, request("plain", extra_body={"thinking": {"type": "enabled"}, "top_k": 5}))
    assert reply.sent is not None
    assert (reply.sent["thinking"], reply.sent["top_k"]) == ({"type": "enabled"}, 5)


def test_what_travels_is_no_parameter(mock: MockServer) -> None:
    travel = {"num_retries": 5, "timeout": 1e-9, "metadata": {"run": "b"}, "max_retries": 3}
    (reply,) = replies(mock, request("plain", **travel))
    assert reply.sent == {"model": "mid"}
    (failed,) = failures(mock, request("500", **travel))
    assert failed.status_code == 500
    assert mock.counts()["contents"]["mid|500"][0] >= 1


def test_an_unknown_provider_is_a_bad_request(mock: MockServer) -> None:
    (found,) = failures(mock, request("x", model="nobody-knows/this"))
    assert (found.kind, found.billed) == (FailureKind.BAD_REQUEST, Billed.NO)


def secrets_in(found: list[Reply | Failure]) -> list[str]:
    return [secret for secret in (KEY, PLAIN_KEY, "not-a-key", "battery") if secret in repr(found)]


@pytest.mark.parametrize("key", [KEY, PLAIN_KEY])
@pytest.mark.parametrize("model", MODELS)
def test_case_h07_no_key_comes_back_from_anywhere(
    mock: MockServer, key: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", KEY)
    base = mock.url.replace("http://", "http://user:correct%20horse%20battery@") + f"?api_key={KEY}"
    headers = {"X-Api-Key": PLAIN_KEY, "X-Team": "routing"}
    texts = ("echo", "leak", "plain", "400", "cut", "reset")
    asked = [
        request(text, model=model, stream=stream, max_tokens=256) for text in texts for stream in (False, True)
    ]
    for address in (mock.url, base):
        found = run(mock, *asked, api_base=address, api_key=key, headers=headers)
        assert secrets_in(found) == []
        assert repr(Connection(api_base=address, api_key=key, headers=headers)) == "Connection()"
    plain = run(mock, *asked, api_key=key, headers=headers)
    echoed = plain[0]
    assert isinstance(echoed, Failure)
    assert echoed.kind is FailureKind.AUTHENTICATION
    assert "127.0.0.1" in echoed.message  # the host stays readable
    assert isinstance(plain[4], Reply)
    assert plain[4].sent is not None
    assert plain[4].sent["max_tokens"] == 256
    leaked = plain[2]
    assert isinstance(leaked, Reply)
    assert any("hidden" in notice for notice in leaked.notices)


def test_a_key_of_the_environment_is_not_sent_to_another_address(
    mock: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with running_mock(api_key=KEY) as strict:
        (refused,) = failures(strict, request("x"), api_key=None)
        assert refused.kind is FailureKind.AUTHENTICATION
        assert replies(strict, request("x"), api_key=KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", strict.url)
        assert replies(strict, request("x"), api_base=None, api_key=None)  # both of the environment


def test_the_environments_key_is_hidden_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLAIN_KEY)
    with running_mock(rules=RULES) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = run(server, request("echo"), api_base=None, api_key=None)
    assert "battery" not in repr(found)


ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "content": [{"type": "text", "text": "four"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 1,
    },
}
ANTHROPIC_EVENTS = [
    {
        "type": "message_start",
        "message": ANTHROPIC
        | {"content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "four"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
GEMINI = {
    "modelVersion": "gemini-2.5-pro",
    "candidates": [{"content": {"parts": [{"text": "four"}], "role": "model"}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 1, "totalTokenCount": 5},
}


def sse(events: list[dict[str, Any]]) -> str:
    return "".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in events)


def test_anthropics_usage_stays_in_anthropics_words() -> None:
    model = "anthropic/claude-sonnet-4-5"
    with running_mock(canned=[{"path": "messages", "body": json.dumps(ANTHROPIC)}]) as mock:
        (reply,) = replies(mock, request("2+2?", model=model, max_tokens=5), api_base=mock.url.removesuffix("/v1"))
        (seen,) = mock.canned()
    assert (reply.text, reply.finish_reason, reply.served_model) == ("four", "stop", "claude-sonnet-4-5-20250929")
    assert reply.usage == ANTHROPIC["usage"]
    assert reply.sent == {"model": "claude-sonnet-4-5", "max_tokens": 5}
    assert seen["headers"]["x-api-key"] == KEY
    for events, cut in ((ANTHROPIC_EVENTS, False), (ANTHROPIC_EVENTS[:3], True)):
        canned = [{"path": "messages", "body": sse(events), "type": "text/event-stream"}]
        with running_mock(canned=canned) as mock:
            asked = request("2+2?", model=model, max_tokens=5, stream=True)
            (found,) = run(mock, asked, api_base=mock.url.removesuffix("/v1"))
        if cut:
            assert isinstance(found, Failure)
            assert (found.kind, found.billed, found.usage) == (FailureKind.CUT, Billed.UNKNOWN, None)
        else:
            assert isinstance(found, Reply)
            assert (found.text, found.usage) == ("four", {"input_tokens": 3, "output_tokens": 2})
            assert found.served_model == "claude-sonnet-4-5-20250929"


def test_geminis_usage_stays_in_geminis_words_and_a_block_is_a_refusal() -> None:
    model = "gemini/gemini-2.5-pro"
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    for body, expected in ((GEMINI, ("four", "stop")), (blocked, ("", "content_filter"))):
        with running_mock(canned=[{"path": "generateContent", "body": json.dumps(body)}]) as mock:
            (found,) = replies(mock, request("2+2?", model=model), api_base=mock.url)
            (seen,) = mock.canned()
        assert (found.text or "", found.finish_reason) == expected
        assert found.usage == body["usageMetadata"]
        assert "contents" not in (found.sent or {})
        assert "2+2?" in seen["body"]
        assert KEY not in repr(found)


def test_a_paid_reply_that_the_client_cannot_read_is_paid() -> None:
    body = ANTHROPIC | {"content": [{"type": "of_a_later_version"}, 5]}
    with running_mock(canned=[{"path": "messages", "body": json.dumps(body)}]) as mock:
        asked = request("x", model="anthropic/claude-sonnet-4-5", max_tokens=5)
        (found,) = failures(mock, asked, api_base=mock.url.removesuffix("/v1"))
    assert (found.kind, found.billed, found.usage) == (FailureKind.OTHER, Billed.YES, body["usage"])


def test_a_closed_provider_fails() -> None:
    async def go() -> Reply | Failure:
        provider = LiteLLMProvider()
        await provider.aclose()
        return await provider.call(request("x"))

    found = asyncio.run(go())
    assert isinstance(found, Failure)
    assert "closed" in found.message
