"""Every recorded format of other tools, with the traps that are known of it: exact numbers."""

from __future__ import annotations

import csv
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs import Price, PricePeriod, Rates, cost_usd
from evalkit.errors import InputError
from evalkit.outcomes.logs.call import LoggedCall
from evalkit.outcomes.logs.read import INSIDE, LoggedCalls, read_logs


def read(shared: Path, name: str) -> LoggedCalls:
    return read_logs([shared / "formats" / name])


def tokens(call: LoggedCall) -> tuple[int | None, ...]:
    """Input, cache read, cache write, output, reasoning."""
    u = call.usage
    return (u.input_tokens, u.cache_read_tokens, u.cache_write_tokens, u.output_tokens, u.reasoning_tokens)


def anchor(shared: Path, name: str) -> dict[str, Any]:
    known = json.loads((shared / "formats" / "cost_anchors.json").read_text("utf-8"), parse_float=Decimal)
    found: dict[str, Any] = next(a for a in known if a["name"] == name)
    return {**found, "expected_usd": Decimal(found["expected_usd"])}


def costs(call: LoggedCall, anchored: dict[str, Any], batch_factor: str = "1") -> Decimal | None:
    usd = {name: Decimal(value) for name, value in anchored["usd_per_mtok"].items()}
    rates = Rates(
        input=usd["input"],
        output=usd["output"],
        cache_read=usd.get("cache_read"),
        cache_write=usd.get("cache_write_5m", usd.get("cache_write")),
        cache_write_1h=usd.get("cache_write_1h"),
    )
    price = Price("m", PricePeriod(rates, batch_factor=Decimal(batch_factor)))
    return cost_usd(call.usage, price, batch=call.batch).usd


def test_litellm_spend_log(shared: Path) -> None:
    found = read(shared, "litellm_spend_logs.jsonl")
    whole, failed, cached = found.calls
    assert tokens(whole) == (12307, 0, 12304, 550, None)
    assert (whole.ttft_s, whole.request_s, whole.group) == (1.2, 9.1, "s1")
    assert whole.names == ("sonnet",)
    known = anchor(shared, "anthropic_write_only")
    assert (
        costs(whole, known) == known["expected_usd"] == Decimal("0.054399") == Decimal(str(whole.logged_cost_usd))
    )
    # A failure is written with 0 tokens, 0 USD and a first token at its end: all three are unknown.
    assert failed.failed
    assert failed.error == "408: Timeout"
    assert tokens(failed) == (None,) * 5
    assert failed.logged_cost_usd is None
    assert failed.ttft_s is None
    assert failed.request_s == 600.0
    # A reply from the proxy's cache took 4 ms and cost nothing: neither is the model's.
    assert cached.cached
    assert cached.request_s is None
    assert cached.ttft_s is None
    assert cached.logged_cost_usd == 0.0
    assert tokens(cached) == (300, None, None, 112, None)
    assert found.unmapped == Counter({"a reply from the proxy's cache, of which the times are not the model's": 1})
    (example,) = found.examples.values()
    assert example.endswith("litellm_spend_logs.jsonl:3")


def test_litellm_standard_payload_is_one_document_over_several_lines(shared: Path) -> None:
    (call,) = read(shared, "litellm_standard_logging_payload.json").calls
    assert tokens(call) == (2400, 1920, None, 310, 256)
    assert (call.ttft_s, call.request_s, call.logged_cost_usd) == (0.412, 1.85, 0.0121)


def test_langfuse_buckets_are_added_and_only_generations_count(shared: Path) -> None:
    found = read(shared, "langfuse_observations.jsonl")
    whole, failed = found.calls
    assert tokens(whole) == (130213, 128955, 1253, 120, 64)
    assert (whole.ttft_s, whole.request_s) == (0.7, 2.4)
    known = anchor(shared, "anthropic_read_write")
    assert costs(whole, known) == known["expected_usd"] == Decimal(str(whole.logged_cost_usd))
    assert (failed.failed, failed.error, failed.request_s) == (True, "Request timed out", 30.0)
    assert failed.logged_cost_usd is None
    assert tokens(failed) == (None,) * 5
    assert found.unmapped == Counter({"an observation that is no generation": 1})


def test_openai_batch(shared: Path) -> None:
    chat, response, limited, expired = read(shared, "openai_batch_output.jsonl").calls
    assert tokens(chat) == (2006, 1920, None, 300, 256)
    assert tokens(response) == (9080, 0, 9077, 40, 0)
    assert (chat.reply, response.reply, chat.batch) == ("4", None, True)
    for call, name in ((chat, "openai_cached"), (response, "openai_gpt56_write")):
        known = anchor(shared, name)
        assert costs(call, known) == known["expected_usd"]
    assert limited.error == "429: rate_limit_exceeded: Rate limit"
    assert expired.error is not None
    assert expired.error.startswith("batch_expired: ")
    assert limited.failed
    assert expired.failed


def test_anthropic_batch(shared: Path) -> None:
    whole, *rest = read(shared, "anthropic_batch_results.jsonl").calls
    assert tokens(whole) == (130213, 128955, 1253, 120, 64)
    assert whole.usage.cache_write_1h_tokens == 1000
    known = anchor(shared, "anthropic_ttl_split")
    # The same counts through the batch interface: half.
    assert costs(whole, known, "0.5") == known["expected_usd"] / 2
    assert [call.failed for call in rest] == [True, True, True]
    assert [call.error for call in rest] == ["errored: invalid_request_error: max_tokens", "expired", "canceled"]


def test_otlp_counts_calls_only(shared: Path) -> None:
    """The agent around the call repeats its 2,400 tokens; numbers of 64 bits come as text."""
    found = read(shared, "otel_genai_otlp_v1.41.json")
    (call,) = found.calls
    assert tokens(call) == (2400, 1920, 0, 310, 256)
    assert (call.requested, call.served) == ("gpt-5.4", "gpt-5.4-2026-03-05")
    assert (call.ttft_s, call.request_s, call.group) == (0.412, 1.85, "5b8efff798038103d269b633813fc60c")
    assert call.finish_reason == "tool_calls"
    assert call.raw_usage is not None
    assert call.raw_usage["service_tier"] == "default"
    assert call.usage.processing is None
    assert found.unmapped == Counter({"a span that is no call to a chat model": 2})


def test_openinference(shared: Path) -> None:
    (call,) = read(shared, "openinference_span.json").calls
    assert tokens(call) == (2400, 1920, 0, 310, 256)
    assert (call.ttft_s, call.request_s, call.logged_cost_usd, call.group) == (0.412, 1.85, 0.00633, "s1")


def test_helicone(shared: Path) -> None:
    whole, failed = read(shared, "helicone_request.jsonl").calls
    assert tokens(whole) == (2400, 1920, 0, 310, None)
    assert (whole.ttft_s, whole.request_s, whole.group) == (0.412, 1.85, "s1")
    assert (failed.failed, failed.error, failed.request_s) == (True, "status -2", None)


def span(attributes: dict[str, Any], own: str = "s", parent: str | None = None) -> dict[str, Any]:
    return {
        "name": "chat",
        "context": {"trace_id": "t", "span_id": own},
        "parent_id": parent,
        "start_time": "2026-09-01T10:00:00+00:00",
        "end_time": "2026-09-01T10:00:01.5+00:00",
        "attributes": attributes,
    }


def written(folder: Path, *records: Any, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_three_generations_of_attribute_names_in_one_file(shared: Path, tmp_path: Path) -> None:
    told = json.loads((shared / "formats" / "otel_genai_span_attrs_by_version.json").read_text("utf-8"))
    old, released, unreleased, wild = (v for k, v in told.items() if k != "_note")
    older = {**{k: v for k, v in old.items() if "usage" not in k and k != "_older_still"}, **old["_older_still"]}
    old = {k: v for k, v in old.items() if k != "_older_still"}
    wild = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-4-5", **wild}
    generations = (old, older, released, unreleased, wild)
    found = read_logs([written(tmp_path, *(span(a, own=f"s{i}") for i, a in enumerate(generations)))])
    # 5 of 130,213: the old convention passed on Anthropic's count, which leaves the cached tokens out.
    for call in found.calls[:2]:
        assert tokens(call) == (None, None, None, 120, None)
        assert call.usage.problem is not None
        assert cost_usd(call.usage, Price("m", PricePeriod(Rates(Decimal(3), Decimal(15))))).usd is None
    for call in found.calls[2:4]:
        assert tokens(call) == (130213, 128955, 1253, 120, 64)
        assert call.request_s == 1.5
    assert found.calls[2].ttft_s == 0.9
    # Cached and reasoning tokens without the totals they are parts of: no count, and the cost only as logged.
    assert tokens(found.calls[4]) == (None,) * 5
    assert found.calls[4].logged_cost_usd == 0.05


def test_the_old_convention_holds_for_providers_that_count_the_cached_tokens(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.system": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    (call,) = read_logs([written(tmp_path, span(attributes))]).calls
    assert tokens(call) == (7, None, None, 3, None)


def test_a_service_tier_is_kept_with_the_counts_that_it_prices(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.provider.name": "openai",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "openai.response.service_tier": "priority",
    }
    (call,) = read_logs([written(tmp_path, span(attributes))]).calls
    assert tokens(call) == (7, None, None, 3, None)
    assert call.usage.processing == "service_tier priority"


def test_a_call_recorded_by_two_instruments_counts_once(tmp_path: Path) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    between = {"gen_ai.operation.name": "execute_tool"}
    lines = (span(attributes, "outer"), span(between, "mid", "outer"), span(attributes, "inner", "mid"))
    found = read_logs([written(tmp_path, *lines)])
    assert [call.id for call in found.calls] == ["t-inner"]
    assert found.unmapped[INSIDE] == 1


def test_routerarena_with_its_grades(shared: Path) -> None:
    folder = shared / "data" / "routerarena_sub10"
    found = read_logs([folder / "claude-3-haiku-20240307.jsonl", folder / "gemini-2.0-flash-001.jsonl"])
    by_model = Counter(call.requested for call in found.calls)
    assert by_model == Counter({"claude-3-haiku-20240307": 808, "gemini-2.0-flash-001": 809})
    right = Counter(call.requested for call in found.calls if call.score == 1)
    assert right == Counter({"claude-3-haiku-20240307": 397, "gemini-2.0-flash-001": 523})
    # One score is below 0; 374 totals are one above the sum of their parts.
    assert found.unmapped["a score that is not from 0 to 1"] == 1
    odd = 0
    for line in (folder / "gemini-2.0-flash-001.jsonl").read_text("utf-8").splitlines():
        u = json.loads(line)["token_usage"]
        odd += u["total_tokens"] != u["input_tokens"] + u["output_tokens"]
    assert found.unmapped["token counts that cannot be read"] == odd


@pytest.mark.parametrize("name", ["aiperf_profile_export.jsonl", "vllm_bench_result.json", "cost_anchors.json"])
def test_what_is_no_log_of_calls_is_said_to_be_none(shared: Path, name: str) -> None:
    from evalkit.errors import InputError

    with pytest.raises(InputError, match="holds no call of a known format: a record of no known format"):
        read(shared, name)


def as_csv(path: Path, records: list[dict[str, Any]]) -> Path:
    """The records as a tool's CSV export writes them: JSON in cells, null as an empty one."""
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(names)
        for record in records:
            cells = [record.get(name) for name in names]
            out.writerow(
                [
                    "" if c is None else c if isinstance(c, str) else json.dumps(c, ensure_ascii=False)
                    for c in cells
                ]
            )
    return path


@pytest.mark.parametrize(
    "name", ["litellm_spend_logs.jsonl", "langfuse_observations.jsonl", "helicone_request.jsonl"]
)
def test_an_export_as_csv_gives_the_same_calls(shared: Path, tmp_path: Path, name: str) -> None:
    source = shared / "formats" / name
    records = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    found, expected = read_logs([as_csv(tmp_path / "log.csv", records)]), read_logs([source])
    assert found.calls == expected.calls
    assert found.unmapped == expected.unmapped
    assert found.records == expected.records


def test_a_conversation_in_a_cell_is_read_and_other_text_is_what_was_asked(tmp_path: Path) -> None:
    row = {"id": "a", "traceId": "t", "type": "GENERATION", "startTime": "2026-09-01T10:00:00Z", "model": "m"}
    asked = [{"role": "user", "content": '두 줄\n입니다, "인용"'}]
    given = [
        row | {"input": asked, "output": {"role": "assistant", "content": "네"}},
        row | {"id": "b", "input": "[urgent] 1,5?", "output": "yes"},
        row | {"id": "c", "input": '{"question": 7}', "output": None},
    ]
    one, two, three = read_logs([as_csv(tmp_path / "log.csv", given)]).calls
    assert (one.messages, one.reply) == (tuple(asked), "네")
    assert (two.messages, two.prompt, two.reply) == (None, "[urgent] 1,5?", "yes")
    assert (three.prompt, three.reply) == ('{"question": 7}', None)


def test_faults_of_a_csv_log_are_named_all_at_once(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    head = "request_id,call_type,spend,prompt_tokens,completion_tokens,model\n"
    file.write_text(
        head + 'a,completion,"0,5",10,5,m\nb,completion,0.5,ten,5,m\nc,completion,1\n', encoding="utf-8"
    )
    with pytest.raises(InputError) as caught:
        read_logs([file])
    said = [(fault.line, fault.field) for fault in caught.value.faults]
    assert sorted(said) == [(2, "spend"), (3, "prompt_tokens"), (4, "prompt_tokens")]
