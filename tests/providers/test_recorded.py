"""Recordings replayed: torn tails, damage, repeats, retries that died. Cases R01, R03 and R10 (recorded part)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key
from evalkit.providers.recorded import CellId, RecordedProvider, recording_files
from evalkit.testing import ScriptedProvider


def ask(item: str, sample: int = 0) -> Request:
    return Request("demo/mid", ({"role": "user", "content": f"text of {item}"},), sample=sample)


def mid(request: Request) -> CellId:
    return CellId(request.messages[0]["content"].removeprefix("text of "), "mid", request.sample)


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answers(provider: RecordedProvider, *requests: Request) -> list[str | None]:
    found = [asyncio.run(provider.call(request)) for request in requests]
    return [one.text if isinstance(one, Reply) else one.kind.value for one in found]


@pytest.fixture
def case(shared: Path) -> Callable[[str], Path]:
    return lambda name: next((shared / "cases").glob(f"{name}-*"))


@pytest.mark.parametrize("name", ["results_torn.jsonl", "results_torn_blank.jsonl"])
def test_case_r01_a_torn_last_line_costs_one_sample(case: Callable[[str], Path], name: str) -> None:
    path = case("R01") / name
    before = path.read_bytes()
    live = ScriptedProvider(lambda request: "live")
    provider = RecordedProvider([path], identity=mid, otherwise=live)
    assert answers(provider, ask("q1"), ask("q2"), ask("q3")) == ["answer 1", "answer 2", "live"]
    assert [mid(request).item for request in live.requests] == ["q3"]
    assert len(provider.notices) == 1
    assert f"{name}:3" in provider.notices[0]
    assert path.read_bytes() == before


def test_case_r01_a_last_line_without_its_end_is_whole(case: Callable[[str], Path]) -> None:
    provider = RecordedProvider([case("R01") / "results_noeol.jsonl"], identity=mid)
    assert answers(provider, ask("q1"), ask("q2")) == ["answer 1", "answer 2"]
    assert provider.notices == ()


def test_case_r01_damage_in_the_middle_stops_and_says_how_to_go_on(case: Callable[[str], Path]) -> None:
    path = case("R01") / "results_glued.jsonl"
    with pytest.raises(InputError, match=r"results_glued\.jsonl:2: is not JSON.*move the line away"):
        RecordedProvider([path], identity=mid)


def test_case_r03_repeats_are_told_apart_and_only_new_ones_are_called(case: Callable[[str], Path]) -> None:
    live = ScriptedProvider(lambda request: f"live {request.sample}")
    provider = RecordedProvider([case("R03") / "recorded.jsonl"], identity=mid, otherwise=live)
    assert answers(provider, *(ask("q1", n) for n in range(3))) == ["yes", "no", "yes"]
    assert live.requests == []
    assert answers(provider, *(ask("q1", n) for n in range(5))) == ["yes", "no", "yes", "live 3", "live 4"]
    assert [request.sample for request in live.requests] == [3, 4]
    reply = asyncio.run(provider.call(ask("q1")))
    assert isinstance(reply, Reply)
    assert (reply.served_model, reply.usage) == ("demo/mid", None)


def test_case_r10_an_empty_later_file_hides_nothing(case: Callable[[str], Path]) -> None:
    folder = case("R10") / "run"
    live = ScriptedProvider(lambda request: "live")
    for files in (recording_files([folder]), tuple(reversed(recording_files([folder])))):
        assert len(files) == 2
        provider = RecordedProvider(files, identity=mid, otherwise=live)
        assert answers(provider, *(ask(f"q{n}") for n in range(1, 5))) == ["ok", "ok", "ok", "live"]
    assert [mid(request).item for request in live.requests] == ["q4", "q4"]
    assert sorted(path.name for path in folder.iterdir()) == ["attempt-1.jsonl", "attempt-2.jsonl"]


def test_a_reply_beats_every_failure_and_the_first_reply_every_later_one(tmp_path: Path) -> None:
    key = request_key(ask("a"))
    failed = {"key": key, "failure": {"kind": "timeout", "message": "late", "billed": "unknown"}}
    one = write(tmp_path / "1.jsonl", failed, {"key": key, "reply": {"text": "first"}}, failed)
    two = write(tmp_path / "2.jsonl", failed, {"key": key, "reply": {"text": "second"}})
    three = write(tmp_path / "3.jsonl", failed)
    assert answers(RecordedProvider([one, two]), ask("a")) == ["first"]
    assert answers(RecordedProvider([three, two, one]), ask("a")) == ["second"]
    alone = asyncio.run(RecordedProvider([three]).call(ask("a")))
    assert alone == Failure(FailureKind.TIMEOUT, "late", billed=Billed.UNKNOWN)


def test_a_failure_that_may_pass_is_tried_anew_and_a_refusal_is_not(tmp_path: Path) -> None:
    rows = [
        {"key": request_key(ask(kind)), "failure": {"kind": kind, "message": "x"}}
        for kind in ("server_error", "refusal", "of_a_later_version")
    ]
    live = ScriptedProvider(lambda request: "live")
    provider = RecordedProvider([write(tmp_path / "a.jsonl", *rows)], otherwise=live)
    found = answers(provider, ask("server_error"), ask("refusal"), ask("of_a_later_version"))
    assert found == ["live", "refusal", "live"]
    asyncio.run(provider.aclose())
    assert live.closed


def test_a_reply_comes_back_with_all_it_had(tmp_path: Path) -> None:
    reply = {
        "text": "환불 {x}\u2028",
        "finish_reason": "stop",
        "reasoning": "hm",
        "served_model": "demo/mid-2026-01-01",
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        "sent": {"model": "mid"},
        "tool_calls": [{"id": "a"}],
        "ttft_s": 0.25,
        "request_s": 1,
        "response_id": "r",
        "notices": ["n"],
        "of_a_later_version": 1,
    }
    for row in ({"key": request_key(ask("a")), "reply": reply}, {"key": request_key(ask("a")), **reply}):
        found = asyncio.run(RecordedProvider([write(tmp_path / "a.jsonl", row)]).call(ask("a")))
        known = {name: value for name, value in reply.items() if name != "of_a_later_version"}
        known |= {"tool_calls": ({"id": "a"},), "notices": ("n",), "request_s": 1.0}
        assert found == Reply(**known)  # type: ignore[arg-type]


def test_what_is_not_recorded_fails_and_says_what(tmp_path: Path) -> None:
    provider = RecordedProvider([write(tmp_path / "a.jsonl")], identity=mid)
    found = asyncio.run(provider.call(ask("q7", 2)))
    assert isinstance(found, Failure)
    assert (found.kind, found.billed, found.retryable) == (FailureKind.NOT_RECORDED, Billed.NO, False)
    assert "item q7, candidate mid, sample 2" in found.message


def test_rows_of_other_tools(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        {"record": "start", "config_sha": "x"},
        {"id": "a", "arm": "mid", "trial": 1, "completion": "one", "usage": {"prompt_tokens": 1}},
        {"query_id": "b", "tier": "mid", "status": "error", "error": "Timed out after 9 s"},
        {"query_id": "c", "tier": "mid", "status": "ok", "output": None, "usage": {"prompt_tokens": 1}},
        {"query_id": "d", "tier": "mid", "status": "provider_refusal"},
        {
            "query_id": "e",
            "tier": "mid",
            "response": {"choices": [{"message": {"content": "raw"}}], "model": "m"},
        },
    )
    provider = RecordedProvider([path], identity=mid)
    found = answers(provider, ask("a", 1), ask("b"), ask("c"), ask("d"), ask("e"))
    assert found == ["one", "timeout", None, "refusal", "raw"]
    assert len(provider) == 5


def test_every_faulty_line_of_every_file_is_named(tmp_path: Path) -> None:
    one = write(
        tmp_path / "one.jsonl",
        {"query_id": "a", "tier": "mid", "output": 5},
        {"output": "whose?"},
        {"query_id": "a", "tier": "mid", "output": "x", "repeat": -1},
        {"query_id": "b", "tier": "mid"},
    )
    two = tmp_path / "two.jsonl"
    two.write_bytes(b'[1]\n{"a": NaN}\n\xff\n{"record": "end"}\n')
    with pytest.raises(InputError) as raised:
        RecordedProvider([one, two])
    text = str(raised.value)
    for part in (
        "one.jsonl:1: id a, field output: is 5, not text",
        "one.jsonl:2: field item: is missing",
        "one.jsonl:3: id a, field repeat: is -1",
        "one.jsonl:4: id b, field output: is missing, and no error",
        "two.jsonl:1: is not a JSON object",
        "two.jsonl:2: is not JSON",
        "two.jsonl:3: is not UTF-8",
    ):
        assert part in text
    assert len(raised.value.faults) == 7


def test_files_and_folders_are_found(tmp_path: Path) -> None:
    row = {"query_id": "a", "tier": "mid", "output": "x"}
    with gzip.open(tmp_path / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "notes.txt").touch()
    found = recording_files([tmp_path])
    assert [path.name for path in found] == ["a.jsonl", "b.jsonl.gz"]
    assert answers(RecordedProvider(found, identity=mid), ask("a")) == ["x"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as raised:
        recording_files([tmp_path / "empty", tmp_path / "none.jsonl"])
    assert len(raised.value.faults) == 2
