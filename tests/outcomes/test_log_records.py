"""Logs that are read together: whose faults are whose, and what passes from the processes that map the records."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from evalkit.costs.usage import normal_usage
from evalkit.errors import InputError
from evalkit.outcomes.logs.read import read_logs
from evalkit.outcomes.logs.records import map_part, parts_of

SYSTEM = "Answer in the language of the customer."


def spend(own: str, text: str = "When do you open?") -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    return {"request_id": own, "call_type": "acompletion", "spend": 0.5, "model": "m", "messages": asked,
            "startTime": "2026-09-01T10:00:00Z", "endTime": "2026-09-01T10:00:02Z", "session_id": "s",
            "metadata": {"usage_object": usage}}  # fmt: skip


def line(own: str) -> str:
    return json.dumps(spend(own)) + "\n"


def lines(first: str, count: int) -> str:
    return "".join(line(f"{first}{i}") for i in range(count))


@pytest.mark.parametrize("count", ["1", "2"])
def test_every_fault_is_of_the_file_it_stands_in(
    tmp_path: Path, count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", count)
    monkeypatch.chdir(tmp_path)
    Path("one.jsonl").write_text(lines("a", 2_000) + "{\n" + lines("b", 2_000) + "{no}\n", encoding="utf-8")
    # What is no text stands two blocks behind the damaged line, and hides what comes after it.
    Path("two.jsonl").write_bytes(
        b"{\n" + lines("c", 6_000).encode() + b'{"a": "\xff"}\n' + lines("d", 2_000).encode() + b"{\n"
    )
    packed = gzip.compress(b"{\n" + lines("e", 2_000).encode())
    Path("cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    Path("whole.json").write_text("[{}", encoding="utf-8")
    Path("one.csv").write_text("id,id\n1,2\n", encoding="utf-8")
    names = ["one.jsonl", "two.jsonl", "none.jsonl", "cut.jsonl.gz", "whole.json", "one.csv", "one.jsonl"]
    with pytest.raises(InputError) as caught:
        read_logs(names)
    places = [(fault.file, fault.line) for fault in caught.value.faults]
    one = [("one.jsonl", 2_001), ("one.jsonl", 4_002)]
    assert places[:6] == [
        *one,
        ("two.jsonl", 6_002),
        ("two.jsonl", 1),
        ("none.jsonl", None),
        ("cut.jsonl.gz", None),
    ]
    assert [file for file, _ in places[6:8]] == ["whole.json", "one.csv"]
    assert places[8:] == one


@pytest.mark.parametrize("count", ["1", "2"])
def test_calls_of_all_files_come_in_the_order_of_the_files(
    tmp_path: Path, count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALKIT_PROCESSES", count)
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.json", "d.jsonl")]
    for file, size in zip(files, (1_700, 2_300, 1, 700), strict=True):
        file.write_text(lines(file.name[0], size), encoding="utf-8")
    found = read_logs(files)
    assert found.records == 4_701
    assert [call.id for call in found.calls] == [
        f"{name}{i}" for name, size in (("a", 1_700), ("b", 2_300), ("c", 1), ("d", 700)) for i in range(size)
    ]
    assert found.places[1_699:1_701] == [f"{files[0]}:1700", f"{files[1]}:1"]
    assert found.places[4_000:4_002] == [f"{files[2]}, record 1", f"{files[3]}:1"]


def test_a_call_is_the_same_behind_the_way_between_processes() -> None:
    part = next(parts_of(0, "log.jsonl", [line("a"), line("b")]))
    mapped = map_part(part)
    again = pickle.loads(pickle.dumps(mapped))
    assert again == mapped
    first, second = again.found.calls
    assert (first.id, first.model, first.usage.input_tokens, first.request_s) == ("a", "m", 10, 2.0)
    # A text that a log repeats is one text, on both sides.
    assert first.messages[0]["content"] is second.messages[0]["content"]
    assert first.messages[0]["content"] == SYSTEM


@pytest.mark.parametrize(
    "raw",
    [
        {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "service_tier": "flex"},
        {"input_tokens": 300, "output_tokens": 900, "reasoning_tokens": 700},
        {"input_tokens": -1},
        None,
    ],
    ids=["processing", "two readings", "problem", "none"],
)
def test_a_usage_is_the_same_behind_the_way_between_processes(raw: dict[str, Any] | None) -> None:
    usage = normal_usage(raw)
    assert pickle.loads(pickle.dumps(usage)) == usage
