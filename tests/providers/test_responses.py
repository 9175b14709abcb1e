"""Raw responses of each provider as our values; what they do not say stays unknown. Cases B02, C06, C10, G08."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalkit.providers.responses
import evalkit.providers.served
from evalkit.costs.usage import normal_usage
from evalkit.grading.reply_status import reply_status
from evalkit.providers.call import Billed, Failure, FailureKind, Reply
from evalkit.providers.responses import openai_reply
from evalkit.providers.served import same_model
from evalkit.providers.streams import sse_events, stream_reply


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reply(raw: dict[str, Any]) -> Reply:
    found = openai_reply(raw)
    assert isinstance(found, Reply)
    return found


def status_of(found: Reply) -> str | None:
    usage = normal_usage(found.usage)
    return reply_status(
        found.text,
        found.finish_reason,
        reasoning=found.reasoning,
        reasoning_tokens=usage.reasoning_tokens,
        output_tokens=usage.output_tokens,
    ).status


def test_the_examples_hold() -> None:
    for module in (evalkit.providers.responses, evalkit.providers.served):
        results = doctest.testmod(module)
        assert results.attempted > 0
        assert results.failed == 0


def test_case_b02_a_used_up_budget_is_no_answer_and_keeps_its_usage(shared: Path) -> None:
    case = shared / "cases" / "B02-budget-exhausted"
    expected = load(case / "expect.json")["values"]
    found = {}
    for path in case.glob("*.json"):
        if path.name != "expect.json":
            raw = load(path)
            found[path.name] = status_of(reply(raw.get("response", raw)))
    assert {name for name, status in found.items() if status == "budget_exhausted"} == set(
        expected["budget_exhausted"]
    )
    assert [name for name, status in found.items() if status == "truncated"] == expected["truncated"]
    assert [name for name, status in found.items() if status is None] == expected["graded"]
    assert reply(load(case / "empty.json")).usage == load(case / "empty.json")["usage"]


def test_case_c06_usage_on_a_chunk_without_choices_and_no_usage_at_all(shared: Path) -> None:
    case = shared / "cases" / "C06-stream-without-usage"
    last = stream_reply(lines(case / "stream_usage_last.jsonl"))
    assert isinstance(last, Reply)
    assert (last.text, last.finish_reason, last.served_model) == ("Four.", "stop", "demo/mid")
    assert last.usage == {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    assert last.notices == ()
    none = stream_reply(lines(case / "stream_no_usage.jsonl"))
    assert isinstance(none, Reply)
    assert (none.text, none.usage) == ("The answer is 4.", None)
    assert "include_usage" in none.notices[0]


def test_case_c10_the_served_model_is_the_one_that_answered(shared: Path) -> None:
    case = shared / "cases" / "C10-served-by-other-model"
    asked, aliases = load(case / "request.json")["model"], load(case / "aliases.json")
    found = reply(load(case / "response.json"))
    assert found.served_model == "demo/frontier"
    assert not same_model(asked, found.served_model, aliases)
    assert same_model(asked, "demo/cheap-2026-01-15", aliases)
    assert same_model(asked, "demo/cheap", {})


def test_case_g08_refusals_are_their_own_outcome_and_a_no_in_words_is_an_answer(shared: Path) -> None:
    case = shared / "cases" / "G08-provider-refusal"
    expected = load(case / "expect.json")["values"]
    refused, graded = [], []
    for path in sorted(case.glob("*.json")):
        if path.name == "expect.json":
            continue
        found = openai_reply(load(path))
        if isinstance(found, Failure):
            assert (found.kind, found.retryable) == (FailureKind.REFUSAL, False)
            assert (found.status_code, found.billed) == (400, Billed.NO)
            refused.append(path.name)
        elif status_of(found) == "provider_refusal":
            refused.append(path.name)
        else:
            assert status_of(found) is None
            graded.append(path.name)
    assert refused == sorted(expected["provider_refusal"])
    assert graded == expected["graded"]
    blocked = reply(load(case / "gemini_block.json"))
    assert blocked.usage == {"promptTokenCount": 50, "totalTokenCount": 50}
    assert reply(load(case / "refusal_stop.json")).usage == {"input_tokens": 50, "output_tokens": 1}


def test_anthropic_openai_responses_and_gemini_say_the_same_in_their_own_words() -> None:
    anthropic = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "4"},
            {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 7},
    }
    responses = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "4"}]},
            {"type": "function_call", "call_id": "t1", "name": "add", "arguments": '{"a": 2}'},
        ],
        "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
    }
    gemini = {
        "responseId": "g1",
        "modelVersion": "gemini-x",
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "4"},
                        {"functionCall": {"name": "add", "args": {"a": 2}}},
                    ]
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "thoughtsTokenCount": 1},
    }
    for raw, model, usage in (
        (anthropic, "claude-x", anthropic["usage"]),
        (responses, "gpt-x", responses["usage"]),
        (gemini, "gemini-x", gemini["usageMetadata"]),
    ):
        found = reply(raw)
        assert (found.text, found.reasoning, found.finish_reason) == ("4", "hm", "tool_calls")
        assert (found.served_model, found.usage) == (model, usage)
        assert len(found.tool_calls) == 1
        function = found.tool_calls[0]["function"]
        assert (function["name"], json.loads(function["arguments"])) == ("add", {"a": 2})


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_reasons_to_end_in_one_vocabulary(reason: str, finish: str) -> None:
    raw = {"type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": reason}
    assert reply(raw).finish_reason == finish


def test_a_refusal_field_refuses_only_where_there_is_no_text() -> None:
    for content, expected in ((None, "content_filter"), ("4", "stop")):
        message = {"content": content, "refusal": "I cannot"}
        raw = {"choices": [{"message": message, "finish_reason": "stop"}]}
        assert reply(raw).finish_reason == expected


def test_an_incomplete_response_was_cut() -> None:
    raw = {
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [],
    }
    found = reply(raw)
    assert (found.text, found.finish_reason, found.usage) == (None, "length", None)


def test_an_unknown_shape_is_a_failure_and_no_empty_reply() -> None:
    found = openai_reply({"foo": 1})
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.OTHER


def sse(events: list[dict[str, Any]]) -> bytes:
    return b": hello\n\n" + b"".join(
        b"event: x\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events
    )


ANTHROPIC_STREAM: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {"id": "m", "model": "claude-x", "usage": {"input_tokens": 9, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "fo"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ur"}},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "name": "f", "id": "t"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


def test_an_anthropic_stream_is_put_together_with_its_final_counts() -> None:
    found = stream_reply(sse_events(sse(ANTHROPIC_STREAM)))
    assert isinstance(found, Reply)
    assert (found.text, found.reasoning, found.finish_reason) == ("four", "hm", "stop")
    assert found.usage == {"input_tokens": 9, "output_tokens": 5}
    assert found.tool_calls[0]["function"] == {"name": "f", "arguments": '{"a":1}'}


def test_openai_responses_and_gemini_streams() -> None:
    final = {
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "4"}]}],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }
    responses = [
        {"type": "response.created", "response": {"object": "response", "output": []}},
        {"type": "response.output_text.delta", "delta": "4"},
        {"type": "response.completed", "response": final},
    ]
    gemini = [
        {"candidates": [{"content": {"parts": [{"text": "fo"}]}}], "modelVersion": "gemini-x"},
        {
            "candidates": [{"content": {"parts": [{"text": "ur"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 5},
        },
    ]
    one, two = stream_reply(responses), stream_reply(gemini)
    assert isinstance(one, Reply)
    assert isinstance(two, Reply)
    assert (one.text, one.usage) == ("4", final["usage"])
    assert (two.text, two.served_model) == ("four", "gemini-x")
    assert two.usage == {"promptTokenCount": 4, "totalTokenCount": 5}
    for cut in (responses[:-1], gemini[:-1]):
        assert getattr(stream_reply(cut), "kind", None) is FailureKind.CUT


def test_tool_calls_of_a_stream_are_joined_by_their_index() -> None:
    def chunk(*calls: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}, "finish_reason": finish}]}

    found = stream_reply(
        [
            chunk({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x'}}),
            chunk({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}),
            chunk({"index": 0, "function": {"arguments": '": 1}'}}, finish="tool_calls"),
        ]
    )
    assert isinstance(found, Reply)
    assert [(call["id"], call["function"]["arguments"]) for call in found.tool_calls] == [
        ("a", '{"x": 1}'),
        ("b", "{}"),
    ]


def test_an_error_in_the_middle_of_a_stream_may_have_to_be_paid() -> None:
    broken = [*ANTHROPIC_STREAM[:5], {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}]
    found = stream_reply(broken)
    assert isinstance(found, Failure)
    assert (found.kind, found.billed, found.text) == (FailureKind.SERVER, Billed.UNKNOWN, "fo")
    assert found.retryable


@given(st.integers(0, len(ANTHROPIC_STREAM)), st.integers(0, 40))
def test_a_stream_cut_anywhere_is_never_taken_for_a_whole_one(events: int, torn: int) -> None:
    data = sse(ANTHROPIC_STREAM[:events])
    if events < len(ANTHROPIC_STREAM):
        data += (b"data: " + json.dumps(ANTHROPIC_STREAM[events]).encode())[:torn]
    found = stream_reply(sse_events(data))
    if events >= 10:
        assert isinstance(found, Reply)
    else:
        assert isinstance(found, Failure)
        assert (found.billed, found.usage) == (Billed.UNKNOWN, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = ("choices", "output", "candidates", "promptFeedback", "usageMetadata", "type", "content", "usage", "error")


@given(
    st.dictionaries(st.sampled_from([*KEYS, "stop_reason", "message", "http", "model", "id"]), JSON, max_size=5)
)
def test_whatever_a_response_holds_it_is_read_without_an_exception(raw: dict[str, Any]) -> None:
    assert isinstance(openai_reply(raw), Reply | Failure)
    assert isinstance(stream_reply([raw, raw]), Reply | Failure)


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("openai/gpt-5", "gpt-5", True),
        ("openai/gpt-5", "gpt-5-2025-08-07", True),
        ("anthropic/claude-opus-5", "claude-opus-5-20260101", True),
        ("anthropic/claude-opus-latest", "claude-opus-20260101", True),
        ("openrouter/anthropic/claude-x", "anthropic/claude-x", True),
        ("gemini/gemini-2.5-pro", "gemini-2.5-pro-002", True),
        ("ollama/llama3", "llama3:latest", True),
        ("openai/GPT-5", "gpt-5", True),
        ("openai/gpt-5", None, True),
        ("openai/gpt-5", "", True),
        ("openai/gpt-5", "gpt-5-mini", False),
        ("openai/gpt-5", "gpt-5-mini-2025-08-07", False),
        ("openai/gpt-5-2025-08-07", "gpt-5-2026-01-01", False),
        ("openai/gpt-5-2025-08-07", "gpt-5", False),
        ("openai/model", "model-002", False),
        ("openai/gpt-5", "gpt-5-20", False),
        ("a/model", "b/model", False),
        ("demo/cheap", "demo/frontier", False),
    ],
)
def test_which_names_are_one_model(asked: str, served: str | None, same: bool) -> None:
    assert same_model(asked, served) is same


def test_an_alias_is_for_the_model_it_is_listed_under() -> None:
    aliases = {"azure/my-deployment": ["gpt-5"]}
    assert same_model("azure/my-deployment", "gpt-5-2025-08-07", aliases)
    assert not same_model("azure/other", "gpt-5", aliases)


def with_logprobs(*values: Any) -> dict[str, Any]:
    tokens = [{"token": "t", "logprob": value} for value in values]
    message = {"role": "assistant", "content": "4"}
    return {"choices": [{"message": message, "finish_reason": "stop", "logprobs": {"content": tokens}}]}


class TestLogProbabilities:
    def test_the_mean_is_kept(self) -> None:
        assert reply(with_logprobs(-0.5, -1.5)).mean_logprob == -1.0
        assert reply(with_logprobs(0)).mean_logprob == 0.0
        output = [{"type": "message", "content": [{"text": "4", "logprobs": [{"logprob": -0.25}]}]}]
        assert reply({"object": "response", "status": "completed", "output": output}).mean_logprob == -0.25
        candidate = {"content": {"parts": [{"text": "4"}]}, "finishReason": "STOP", "avgLogprobs": -0.125}
        assert reply({"candidates": [candidate]}).mean_logprob == -0.125

    @pytest.mark.parametrize(
        "values", [(), (None,), (-1, None), ("-1",), (True,), (0.5,), (float("nan"),), (-float("inf"),), (-1e30,)]
    )
    def test_what_is_no_log_probability_makes_it_unknown(self, values: tuple[Any, ...]) -> None:
        assert reply(with_logprobs(*values)).mean_logprob is None

    def test_where_none_were_asked_for_there_are_none(self) -> None:
        found = reply({"choices": [{"message": {"content": "4"}, "finish_reason": "stop", "logprobs": None}]})
        assert found.mean_logprob is None

    def test_a_stream_has_them_piece_by_piece(self) -> None:
        def piece(content: str, *values: float, finish: str | None = None) -> dict[str, Any]:
            logprobs = {"content": [{"token": "t", "logprob": value} for value in values]} if values else None
            return {"choices": [{"delta": {"content": content}, "logprobs": logprobs, "finish_reason": finish}]}

        found = stream_reply([piece("for", -0.5), piece("ty", -1.0, -1.5), piece("", finish="stop")])
        assert isinstance(found, Reply)
        assert (found.text, found.mean_logprob) == ("forty", -1.0)
