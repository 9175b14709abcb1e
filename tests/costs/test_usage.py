"""Every provider's token counts come out in one normal form, or are said to be unclear."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import (
    LAYOUTS,
    Cost,
    Layout,
    Price,
    PricePeriod,
    Rates,
    Usage,
    constant_counts,
    cost_usd,
    normal_usage,
)
from evalkit.costs.layouts import ANTHROPIC, OPENAI, XAI


def form(usage: Usage) -> tuple[int | None, ...]:
    assert usage.problem is None, usage.problem
    return (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.output_tokens,
        usage.reasoning_tokens,
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(
            {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "total_tokens": 2306,
                "prompt_tokens_details": {"cached_tokens": 1920},
                "completion_tokens_details": {"reasoning_tokens": 256},
            },
            (2006, 1920, None, 300, 256),
            id="openai",
        ),
        pytest.param(
            {
                "input_tokens": 9080,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 9077},
                "output_tokens": 40,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 9120,
            },
            (9080, 0, 9077, 40, 0),
            id="openai responses",
        ),
        pytest.param(
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 1253,
                "cache_read_input_tokens": 128955,
                "output_tokens": 120,
                "output_tokens_details": {"thinking_tokens": 64},
            },
            (130213, 128955, 1253, 120, 64),
            id="anthropic",
        ),
        pytest.param(
            {
                "input_tokens": 13,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 44,
                "output_tokens_details": {"thinking_tokens": 33},
            },
            (13, 0, 0, 44, 33),
            id="anthropic without cache: its thinking is inside all the same",
        ),
        pytest.param(
            {
                "inputTokens": 22,
                "outputTokens": 13,
                "totalTokens": 2527,
                "cacheReadInputTokens": 0,
                "cacheReadInputTokenCount": 0,
                "cacheWriteInputTokens": 2492,
                "cacheWriteInputTokenCount": 2492,
            },
            (2514, 0, 2492, 13, None),
            id="bedrock",
        ),
        pytest.param(
            {
                "usage": {
                    "billed_units": {"input_tokens": 431, "output_tokens": 661},
                    "tokens": {"input_tokens": 2190},
                }
            },
            (431, None, None, 661, None),
            id="cohere",
        ),
        pytest.param(
            {"promptTokenCount": 15, "thoughtsTokenCount": 2, "totalTokenCount": 17},
            (15, None, None, 2, 2),
            id="gemini leaves out what is 0",
        ),
        pytest.param(
            {
                "prompt_tokens": 130213,
                "completion_tokens": 120,
                "total_tokens": 130333,
                "cache_creation_input_tokens": 1253,
                "cache_read_input_tokens": 128955,
                "prompt_tokens_details": {"cached_tokens": 128955, "cache_creation_tokens": 1253},
            },
            (130213, 128955, 1253, 120, None),
            id="anthropic through litellm",
        ),
        pytest.param(
            {
                "promptTokenCount": 3000,
                "cachedContentTokenCount": 2000,
                "candidatesTokenCount": 100,
                "thoughtsTokenCount": 900,
                "totalTokenCount": 4000,
            },
            (3000, 2000, None, 1000, 900),
            id="gemini",
        ),
        pytest.param(
            {
                "promptTokenCount": 30,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 90,
                "toolUsePromptTokenCount": 7,
            },
            (37, None, None, 100, 90),
            id="gemini without a total, with tool results in the prompt",
        ),
        pytest.param(
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 450,
                "completion_tokens_details": {"reasoning_tokens": 300},
            },
            (100, None, None, 350, 300),
            id="xai",
        ),
        pytest.param(
            {
                "prompt_tokens": 1000,
                "prompt_cache_hit_tokens": 800,
                "prompt_cache_miss_tokens": 200,
                "completion_tokens": 100,
                "total_tokens": 1100,
            },
            (1000, 800, None, 100, None),
            id="deepseek",
        ),
        pytest.param(
            {
                "input": 5,
                "input_cached_tokens": 128955,
                "input_cache_creation": 1253,
                "output": 56,
                "output_reasoning_tokens": 64,
                "total": 130333,
            },
            (130213, 128955, 1253, 120, 64),
            id="langfuse",
        ),
        pytest.param(
            {
                "gen_ai.usage.input_tokens": "2400",
                "gen_ai.usage.cache_read.input_tokens": "1920",
                "gen_ai.usage.cache_creation.input_tokens": "0",
                "gen_ai.usage.output_tokens": "310",
                "gen_ai.usage.reasoning.output_tokens": "256",
            },
            (2400, 1920, 0, 310, 256),
            id="opentelemetry, 64-bit numbers as text",
        ),
        pytest.param(
            {
                "llm.token_count.prompt": 2400,
                "llm.token_count.prompt_details.cache_read": 1920,
                "llm.token_count.completion": 310,
                "llm.token_count.completion_details.reasoning": 256,
                "llm.token_count.total": 2710,
            },
            (2400, 1920, None, 310, 256),
            id="openinference",
        ),
        pytest.param({"prompt_tokens": 10, "completion_tokens": 2}, (10, None, None, 2, None), id="no details"),
    ],
)
def test_layouts_come_out_in_one_form(raw: dict[str, Any], expected: tuple[int | None, ...]) -> None:
    assert form(normal_usage(raw)) == expected


def test_a_response_or_a_record_may_be_given_whole() -> None:
    inner = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    assert form(normal_usage({"id": "x", "usage": inner})) == (10, None, None, 2, None)
    gemini = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1, "totalTokenCount": 4}}
    assert form(normal_usage(gemini)) == (3, None, None, 1, None)


@pytest.mark.parametrize("raw", [None, {}, {"usage": None}, {"usage": {}}, {"id": "x", "choices": []}])
def test_no_usage_is_unknown_not_zero(raw: dict[str, Any] | None) -> None:
    usage = normal_usage(raw)
    assert usage.problem == "no usage was returned"
    assert "include_usage" in str(usage.fix)
    assert usage.input_tokens is None


def test_the_total_decides_and_is_named() -> None:
    counts = {"input_tokens": 300, "output_tokens": 200, "reasoning_tokens": 700, "total_tokens": 1200}
    usage = normal_usage(counts)
    assert form(usage) == (300, None, None, 900, 700)
    assert usage.layout == "undeclared: cache inside input, reasoning beside output; decided by total_tokens"


def test_what_a_source_is_known_for_decides_without_a_total() -> None:
    usage = normal_usage({"promptTokenCount": 300, "candidatesTokenCount": 200, "thoughtsTokenCount": 100})
    assert form(usage) == (300, None, None, 300, 100)
    assert usage.layout.endswith("as gemini is known for")


def test_a_total_speaks_against_what_a_source_is_known_for() -> None:
    raw = {
        "promptTokenCount": 300,
        "candidatesTokenCount": 900,
        "thoughtsTokenCount": 700,
        "totalTokenCount": 1200,
    }
    assert form(normal_usage(raw)) == (300, None, None, 900, 700)


def test_where_nothing_decides_both_readings_are_kept() -> None:
    usage = normal_usage({"input_tokens": 300, "output_tokens": 900, "reasoning_tokens": 700})
    assert usage.problem == (
        "reasoning_tokens 700 may be inside or beside output_tokens 900, and there is no total_tokens to tell"
    )
    assert usage.fix == "declare the layout of this provider"
    assert usage.input_tokens is None
    assert [reading.how for reading in usage.readings] == [
        "reasoning_tokens are inside output_tokens",
        "reasoning_tokens are beside output_tokens",
    ]
    assert [reading.usage.output_tokens for reading in usage.readings] == [900, 1600]
    declared = normal_usage({"input_tokens": 300, "output_tokens": 900, "reasoning_tokens": 700}, XAI)
    assert form(declared) == (300, None, None, 1600, 700)
    assert declared.layout.startswith("declared: xai")


def test_more_reasoning_than_output_can_only_be_beside_it() -> None:
    usage = normal_usage({"input_tokens": 300, "output_tokens": 200, "reasoning_tokens": 700})
    assert form(usage) == (300, None, None, 900, 700)


def test_a_total_that_fits_two_readings_leaves_the_choice_to_what_is_known() -> None:
    # Cached and reasoning tokens are equal, so that counting either beside its count gives the same total.
    counts = {"input_tokens": 100, "output_tokens": 80, "total_tokens": 220}
    raw = counts | {"cache_read_input_tokens": 40, "reasoning_tokens": 40}
    assert form(normal_usage(raw)) == (140, 40, None, 80, 40)  # Anthropic's names: cache beside, reasoning inside
    nested = counts | {
        "input_tokens_details": {"cached_tokens": 40},
        "output_tokens_details": {"reasoning_tokens": 40},
    }
    assert form(normal_usage(nested)) == (100, 40, None, 120, 40)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            {
                "prompt_tokens": 1200,
                "completion_tokens": 100,
                "total_tokens": 1300,
                "prompt_tokens_details": {"cached_tokens": 1500},
            },
            "cached_tokens 1500 are more than prompt_tokens 1200",
        ),
        (
            {"prompt_tokens": 1200, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 1500}},
            "cached_tokens 1500 are more than prompt_tokens 1200",
        ),
        (
            {
                "gen_ai.usage.input_tokens": 5,
                "gen_ai.usage.cache_read_tokens": 90,
                "gen_ai.usage.output_tokens": 1,
            },
            "gen_ai.usage.cache_read_tokens 90 are more than gen_ai.usage.input_tokens 5",
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 17},
            "total_tokens 17 fits no reading of prompt_tokens 10, completion_tokens 5",
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            "reasoning_tokens 7 are more than completion_tokens 5",
        ),
        ({"prompt_tokens": -1, "completion_tokens": 5}, "prompt_tokens is -1, below 0"),
        ({"prompt_tokens": 1.5, "completion_tokens": 5}, "prompt_tokens is 1.5, not a whole number"),
        ({"prompt_tokens": float("nan"), "completion_tokens": 5}, "prompt_tokens is nan, not a whole number"),
        ({"prompt_tokens": True, "completion_tokens": 5}, "prompt_tokens is True, not a whole number"),
        ({"prompt_tokens": "many", "completion_tokens": 5}, "prompt_tokens is 'many', not a whole number"),
        ({"prompt_tokens": 10}, "output_tokens is unknown"),
        ({"completion_tokens": 10}, "input_tokens is unknown"),
        (
            {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            "input_tokens is 0, and every request has a",
        ),
        (
            {"prompt_tokens": 10, "input_tokens": 12, "completion_tokens": 5},
            "two counts of the same tokens differ: prompt_tokens 10, input_tokens 12",
        ),
        (
            {
                "prompt_tokens": 10,
                "prompt_cache_hit_tokens": 4,
                "prompt_cache_miss_tokens": 5,
                "completion_tokens": 1,
            },
            "cache hit 4 and cache miss 5 do not add up to prompt_tokens 10",
        ),
        (
            {
                "input_tokens": 1,
                "output_tokens": 1,
                "cache_creation_input_tokens": 9,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 4},
            },
            "cache writes 4 and 4 do not add up to 9",
        ),
        ({"input": 10, "output": 5, "input_audio": 3}, "has input_audio 3, which a price for text does not cover"),
    ],
)
def test_contradictions_are_marked_never_clamped(raw: dict[str, Any], problem: str) -> None:
    usage = normal_usage(raw)
    assert usage.inconsistent
    assert str(usage.problem).startswith(problem)
    assert usage.fix
    assert usage.input_tokens is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (
            {"prompt_tokens_details": {"audio_tokens": 3}},
            "has audio_tokens 3, which a price for text does not cover",
        ),
        (
            {"server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 1}},
            "has web_search_requests 2, which is billed beside the counted tokens",
        ),
        (
            {"iterations": [{"type": "message"}, {"type": "advisor_message", "model": "demo/other"}]},
            "has a pass of type advisor_message by demo/other, which is billed beside the counted tokens",
        ),
        (
            {"service_tier": "priority"},
            "was served with service_tier priority, and demo/mid has the standard price only",
        ),
    ],
)
def test_what_the_counts_do_not_say_leaves_the_cost_unknown(raw: dict[str, Any], reason: str) -> None:
    usage = normal_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **raw})
    assert form(usage) == (10, None, None, 5, None)  # the counts stay
    base = Price("demo/mid", PricePeriod(Rates(Decimal(2), Decimal(8)), standard_only=True))
    assert cost_usd(usage, base) == Cost(None, reason)
    own = Price("demo/mid", PricePeriod(Rates(Decimal(2), Decimal(8))))
    known = cost_usd(usage, own, tool_usd=Decimal("0.01")).usd
    # Fees are told by the caller, and a card of one's own is for the way one calls.
    assert known == (None if usage.media else Decimal("0.01006"))


@pytest.mark.parametrize("tier", ["standard", "default", "auto", None])
def test_the_standard_way_needs_no_word(tier: str | None) -> None:
    usage = normal_usage({"usage": {"prompt_tokens": 10, "completion_tokens": 5}, "service_tier": tier})
    assert (usage.processing, usage.fees, usage.media) == (None, None, None)


def test_a_batch_is_priced_as_one() -> None:
    usage = normal_usage({"prompt_tokens": 10, "completion_tokens": 5, "service_tier": "batch"})
    price = Price("demo/mid", PricePeriod(Rates(Decimal(2), Decimal(8)), (), Decimal("0.5"), standard_only=True))
    assert cost_usd(usage, price, batch=True).usd == Decimal("0.00003")
    assert cost_usd(usage, price).usd is None


def test_a_declaration_decides_even_against_the_total() -> None:
    raw = {
        "prompt_tokens": 1200,
        "completion_tokens": 100,
        "total_tokens": 1300,
        "prompt_tokens_details": {"cached_tokens": 1500},
    }
    assert form(normal_usage(raw, ANTHROPIC)) == (2700, 1500, None, 100, None)
    custom = Layout("our gateway", cache_inside=False, reasoning_inside=True)
    assert form(normal_usage(raw, custom)) == (2700, 1500, None, 100, None)
    assert normal_usage(raw, OPENAI).problem == "cached_tokens 1500 are more than prompt_tokens 1200"


def test_writes_that_live_an_hour_are_a_part_of_the_writes() -> None:
    raw = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 1253,
        "cache_creation": {"ephemeral_5m_input_tokens": 253, "ephemeral_1h_input_tokens": 1000},
        "cache_read_input_tokens": 128955,
        "output_tokens": 120,
    }
    usage = normal_usage(raw)
    assert (usage.cache_write_tokens, usage.cache_write_1h_tokens, usage.input_tokens) == (1253, 1000, 130213)


def test_what_is_shown_of_reasoning() -> None:
    usage = Usage(input_tokens=500, output_tokens=1200, reasoning_tokens=900)
    assert usage.visible_tokens == 300
    assert usage.reasoning_share == 0.75
    assert Usage(input_tokens=1, output_tokens=1).visible_tokens is None
    assert Usage(input_tokens=1, output_tokens=0, reasoning_tokens=0).reasoning_share is None


counts = st.integers(0, 5000)


@given(
    prompt=st.integers(1, 5000),
    output=counts,
    read=counts,
    written=counts,
    reasoning=counts,
    name=st.sampled_from(sorted(LAYOUTS)),
)
def test_a_total_brings_every_layout_to_the_same_form(
    prompt: int, output: int, read: int, written: int, reasoning: int, name: str
) -> None:
    """A provider of any layout writes down one truth; with its total the truth comes back, or no cost at all."""
    layout = LAYOUTS[name]
    read, written = (
        read % (prompt + 1),
        0 if read % (prompt + 1) == prompt else written % (prompt + 1 - read % (prompt + 1)),
    )
    reasoning %= output + 1
    raw = {
        "input_tokens": prompt if layout.cache_inside else prompt - read - written,
        "output_tokens": output if layout.reasoning_inside else output - reasoning,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + output,
    }
    truth = (prompt, read, written, output, reasoning)
    assert form(normal_usage(raw, layout)) == truth
    usage = normal_usage(raw)
    if usage.problem is None and read + written != reasoning:
        assert form(usage) == truth
    if usage.problem is not None:
        assert usage.input_tokens is None


def test_the_same_counts_everywhere_were_not_counted() -> None:
    same = [Usage(input_tokens=10, output_tokens=20)] * 10
    assert constant_counts(same) == (
        "all 10 requests have the same counts, 10 input and 20 output tokens: they were not counted"
    )
    assert constant_counts(same[:9]) is None
    assert constant_counts([*same[:9], Usage(input_tokens=11, output_tokens=20)]) is None
    assert constant_counts([]) is None
