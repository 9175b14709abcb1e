"""`evalkit import logs` from end to end: what is written, what is refused, and what never leaves the log."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evalkit.cli.import_ import app
from evalkit.errors import EvalkitError, InputError
from evalkit.labels.log import read_log
from evalkit.outcomes.logs.call import elapsed_s, instant, plain_usage
from evalkit.outcomes.logs.read import read_logs
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.status import STATUSES, Status
from evalkit.workflows.import_logs import run_logs

SECRET = "sk-abcdefghij0123456789XYZ"


def spend(own: str, **more: Any) -> dict[str, Any]:
    return {
        "request_id": own,
        "call_type": "acompletion",
        "spend": 0.01,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "startTime": "2026-09-01T10:00:00Z",
        "endTime": "2026-09-01T10:00:02Z",
        "model": "small-1",
        "status": "success",
        **more,
    }


def log(folder: Path, *records: Any, name: str = "log.jsonl") -> Path:
    path = folder / name
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def run(files: list[Path], out: Path | None, requests_out: Path | None = None, **more: Any) -> None:
    options: dict[str, Any] = {"tiers": (), "model": None, "prices": None, "encoding": None, "quiet": False}
    run_logs(files, out=out, requests_out=requests_out, **{**options, **more})


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_command_writes_both_files_and_counts_what_is_left_out(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "Where is my order?"}]
    file = log(
        tmp_path,
        spend("a", messages=asked, session_id="s"),
        spend("b", call_type="aembedding"),
        spend("c", messages={}, status="failure", metadata={"error_information": {"error_class": "Timeout"}}),
        {"something": "else"},
        name="log.jsonl.gz",
    )
    out, requests = tmp_path / "o.jsonl", tmp_path / "r.jsonl"
    done = CliRunner().invoke(app, ["logs", str(file), "--out", str(out), "--requests-out", str(requests)])
    assert done.exit_code == 0, done.output
    assert "4 records read, 2 calls: litellm spend log 2" in done.output
    assert f"a call that is no chat or completion: 1 ({file}:2: aembedding)" in done.output
    assert f"a record of no known format: 1 ({file}:4)" in done.output
    assert f"a request whose text was not logged: 1 ({file}:3)" in done.output
    whole, failed = rows(out)
    assert "status" not in whole
    assert whole["logged_cost_usd"] == 0.01
    assert "cost_usd" not in whole
    assert (failed["status"], failed["error"]) == ("error", "Timeout")
    assert rows(requests) == [{"id": "a", "messages": asked, "group": "s"}]
    assert len(read_log(requests)) == 1  # what `evalkit labels sample` reads


def test_rows_without_a_grade_are_refused_as_outcomes_until_they_have_one(tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    run([log(tmp_path, spend("a"))], out, tiers=["cheap=small-1"])
    with pytest.raises(InputError, match="no column that says whether a reply was right"):
        read_outcomes(out, ids=None, tiers=["cheap"])
    run([log(tmp_path, spend("a"), spend("b", status="failure"))], out, tiers=["cheap=small-1"])
    with pytest.raises(InputError, match=r"id a.*says nothing of the outcome"):
        read_outcomes(out, ids=None, tiers=["cheap"])  # one that failed does not let the others through
    graded = [{**row, "passed": True} for row in rows(out)[:1]]
    read = read_outcomes(log(tmp_path, *graded, name="graded.jsonl"), ids=None, tiers=["cheap"])
    assert [STATUSES[code] for code in read.status.ravel()] == [Status.OK]


def test_a_grade_of_the_log_makes_outcomes(shared: Path, tmp_path: Path) -> None:
    folder, out = shared / "data" / "routerarena_sub10", tmp_path / "o.parquet"
    files = [folder / "gemini-2.0-flash-001.jsonl", folder / "claude-3-haiku-20240307.jsonl"]
    run(files, out, tiers=["cheap=gemini-2.0-flash-001", "frontier=claude-3-haiku-20240307"])
    read = read_outcomes(out, ids=None, tiers=["cheap", "frontier"], missing="unanswered")
    passed = (read.status == STATUSES.index(Status.OK)).sum(axis=(0, 2))
    assert read.status.shape[0] == 809
    assert passed.tolist() == [523, 397]


def test_computed_and_logged_cost_stand_apart(tmp_path: Path) -> None:
    card = tmp_path / "prices.yaml"
    card.write_text(
        "currency: USD\nunit: per 1M tokens\nas_of: '2026-09-01'\nsource: own\nkind: assumed\n"
        "models:\n  small-1: {input: 100, output: 200}\n",
        encoding="utf-8",
    )
    out = tmp_path / "o.jsonl"
    run([log(tmp_path, spend("a"), spend("b", model="other"))], out, prices=card)
    known, unknown = rows(out)
    assert (known["cost_usd"], known["logged_cost_usd"]) == (0.002, 0.01)  # 10 x 100 + 5 x 200 = 2,000 per million
    assert "cost_usd" not in unknown


def test_what_tokens_do_not_cost_is_not_left_out_of_a_computed_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = tmp_path / "prices.yaml"
    card.write_text(
        "currency: USD\nunit: per 1M tokens\nas_of: '2026-09-01'\nsource: own\nkind: assumed\n"
        "models:\n  small-1: {input: 100, output: 200}\n",
        encoding="utf-8",
    )
    payload = {**spend("a"), "id": "a", "response_cost": 0.5, "cost_breakdown": {"tool_usage_cost": 0.4}}
    del payload["spend"], payload["request_id"]
    out = tmp_path / "o.jsonl"
    run([log(tmp_path, payload)], out, prices=card)
    assert "cost_usd" not in rows(out)[0]
    assert rows(out)[0]["logged_cost_usd"] == 0.5
    assert "has tool_usage_cost 0.4, which is billed beside the counted tokens" in capsys.readouterr().err


def test_a_spend_of_zero_is_unknown_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "o.jsonl"
    run([log(tmp_path, spend("a", spend=0.0))], out)
    assert "logged_cost_usd" not in rows(out)[0]
    assert "a spend of 0, which stands where the price was not known: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reason", "content", "status"),
    [
        ("stop", "fine", None),
        ("tool_calls", None, None),
        ("length", "The three", "truncated"),
        ("length", None, "truncated"),
        ("content_filter", None, "provider_refusal"),
    ],
)
def test_only_what_needs_no_grade_has_a_status(
    tmp_path: Path, reason: str, content: str | None, status: str | None
) -> None:
    out = tmp_path / "o.jsonl"
    response = {"choices": [{"finish_reason": reason, "message": {"role": "assistant", "content": content}}]}
    run([log(tmp_path, spend("a", response=response))], out)
    assert rows(out)[0].get("status") == status


def test_no_secret_of_a_record_is_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = spend(
        "a",
        api_key=SECRET,
        user=SECRET,
        model_parameters={"extra_headers": {"Authorization": f"Bearer {SECRET}"}},
        metadata={
            "user_api_key": SECRET,
            "usage_object": {"prompt_tokens": 10, "completion_tokens": 5, "note": SECRET, SECRET * 9: 1},
            "error_information": {"error_message": SECRET},
        },
        proxy_server_request={
            "headers": {"authorization": SECRET},
            "messages": [{"role": "user", "content": "Hello", "name": SECRET, "cache_control": SECRET}],
        },
    )
    failed = {**record, "request_id": "b", "status": "failure", "error_str": f"401 key {SECRET} is wrong"}
    out, requests = tmp_path / "o.jsonl", tmp_path / "r.jsonl"
    run([log(tmp_path, record, failed, {"key": SECRET})], out, requests)
    said = capsys.readouterr()
    for text in (out.read_text("utf-8"), requests.read_text("utf-8"), said.out, said.err):
        assert SECRET not in text
    assert rows(out)[1]["error"].startswith("401 key [hidden]")


def test_all_damaged_lines_of_all_files_are_named_in_one_run(tmp_path: Path) -> None:
    deep = '{"a": ' * 70 + "1" + "}" * 70
    very = "[" * 100_000
    first = log(tmp_path, spend("a"), '{"spend": NaN}', '{"spend": 1, "spend": 2}', deep, very)
    second = log(tmp_path, '{"cut": ', name="second.jsonl")
    third = log(tmp_path, "{", name="third.csv")
    with pytest.raises(InputError) as caught:
        read_logs([first, second, third])
    places = [(Path(f.file or "").name, f.line) for f in caught.value.faults]
    assert places == [("log.jsonl", n) for n in (2, 3, 4, 5)] + [("second.jsonl", 1), ("third.csv", None)]


def test_an_id_that_stands_twice(tmp_path: Path) -> None:
    file = log(tmp_path, spend("a"), spend("a"))
    found = read_logs([file])
    assert len(found.calls) == 1
    assert found.unmapped == {"a record that stands twice with the same content": 1}
    with pytest.raises(InputError, match=r"log\.jsonl:2: id a: the id also stands on .*log\.jsonl:1"):
        read_logs([log(tmp_path, spend("a"), spend("a", completion_tokens=6, total_tokens=16))])


def test_a_batch_that_failed_in_one_file_and_answered_in_another_is_not_two_rows(tmp_path: Path) -> None:
    failed = {"custom_id": "q", "result": {"type": "expired"}}
    usage = {"input_tokens": 3, "output_tokens": 1}
    whole = {"custom_id": "q", "result": {"type": "succeeded", "message": {"model": "m", "usage": usage}}}
    with pytest.raises(InputError, match="id q: two calls of the tier"):
        run([log(tmp_path, failed, whole)], tmp_path / "o.jsonl", model="m")


def test_a_tier_that_no_call_is_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'no call is of "smal-1" .did you mean "small-1"'):
        run([log(tmp_path, spend("a"))], tmp_path / "o.jsonl", tiers=["cheap=smal-1"])


def test_times_need_the_same_footing() -> None:
    kinds: list[str] = []

    def note(kind: str, _: str) -> None:
        kinds.append(kind)

    zoned, bare = instant("2026-09-01T10:00:00+09:00"), instant("2026-09-01 10:00:01.5")
    assert zoned == instant("2026-09-01T01:00:00Z") == instant(1788224400)
    assert elapsed_s(zoned, bare, note) is None
    assert elapsed_s(instant("2026-09-01T10:00:02"), bare, note) is None
    assert elapsed_s(bare, instant("2026-09-01T10:00:02.75"), note) == 1.25
    assert kinds == ["two times of which one has no zone", "a time that ends before it starts"]
    nothing: list[Any] = ["soon", "", True, float("inf"), 10**30, -1, None, []]
    assert [instant(value) for value in nothing] == [None] * 8


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KNOWN: tuple[dict[str, Any], ...] = (
    spend("a", metadata={"usage_object": {"prompt_tokens": 1, "completion_tokens": 1}}, messages=[]),
    {"id": "x", "call_type": "acompletion", "response_cost": 1, "startTime": 1.0, "endTime": 2.0,
     "status": "success"},
    {"id": "x", "traceId": "t", "type": "GENERATION", "startTime": "2026-09-01T10:00:00Z", "usageDetails": {},
     "input": [], "output": "", "level": "DEFAULT"},
    {"custom_id": "q", "response": {"status_code": 200, "body": {"object": "response"}}, "error": None},
    {"custom_id": "q", "result": {"type": "succeeded", "message": {"usage": {}}}},
    {"request_id": "r", "request_created_at": "", "response_status": 200, "prompt_tokens": 1},
    {"global_index": "g", "generated_answer": "", "evaluation_result": {"score": 1}, "token_usage": {}},
    {"context": {"trace_id": "t", "span_id": "s"}, "attributes": {"openinference.span.kind": "LLM"}, "events": []},
    {"context": {"trace_id": "t", "span_id": "s"}, "attributes": {"gen_ai.operation.name": "chat"}},
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}]}]}]},
)  # fmt: skip


@settings(max_examples=150)
@given(st.data())
def test_no_value_in_any_place_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    record = data.draw(st.sampled_from(KNOWN))
    hostile = {**record, data.draw(st.sampled_from(sorted(record))): data.draw(json_values)}
    file = log(tmp_path_factory.mktemp("any"), hostile)
    try:
        run([file], file.with_name("o.parquet"), model="m", quiet=True)
    except EvalkitError:
        return
    (row,) = (
        __import__("pyarrow.parquet", fromlist=["read_table"]).read_table(file.with_name("o.parquet")).to_pylist()
    )
    assert row["status"] in {None, "error", "truncated", "budget_exhausted", "provider_refusal"}
    for name in ("input_tokens", "output_tokens", "logged_cost_usd", "request_s", "ttft_s"):
        assert row.get(name) is None or row[name] >= 0


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_a_plain_usage_holds_nothing_long_or_deep(raw: dict[str, Any]) -> None:
    kept = json.dumps(plain_usage(raw))
    assert kept.count("{") <= 1 + json.dumps(raw).count("{")
    assert len(kept) <= 8 * len(json.dumps(raw)) + 2


def chat_span(trace: str, own: str, parent: str = "", *, text: str = "Where is it?") -> dict[str, Any]:
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small-1",
        "gen_ai.input.messages": said,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
    }
    return {
        "context": {"trace_id": trace, "span_id": own},
        "parent_id": parent or None,
        "name": "chat",
        "attributes": attributes,
        "start_time": "2026-09-01T10:00:00Z",
        "end_time": "2026-09-01T10:00:02Z",
    }


def many_records(bad_count: bool) -> list[Any]:
    """Enough for several processes, with everything in it that depends on records far away."""
    found: list[Any] = []
    for i in range(2_200):
        asked = [{"role": "user", "content": f"question {i}"}]
        total = 15 + (i % 977 == 5)
        usage = {"usage_object": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": total}}
        found += [
            spend(f"r{i}", messages=asked, metadata=usage, model=f"m{i % 3}", spend=0.01 * (i % 50 > 0)),
            "" if i % 90 else "  \r",
        ]
    usage = {"usage_object": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
    again = spend("r7", messages=[{"role": "user", "content": "question 7"}], model="m1", metadata=usage)
    found += [{"other": 1}, "[1]", again]
    outer, inner = chat_span("t", "outer"), chat_span("t", "inner", "between")
    between = {**chat_span("t", "between", "outer"), "attributes": {"kind": "chain"}}
    found = [inner, *found, between, outer, spend("late", metadata={"status": 3}, status="odd")]
    if bad_count:
        found[1_900] = '{"request_id": 1,'
        found[3_901:3_901] = ["{no}"] * 130
    return found


@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.jsonl.gz"])
def test_several_processes_write_what_one_does(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log(tmp_path, *many_records(False), name=name)
    said, written = [], []
    for count in ("1", "2"):
        monkeypatch.setenv("EVALKIT_PROCESSES", count)
        run([path], tmp_path / "o.jsonl", tmp_path / "r.jsonl")
        said.append(capsys.readouterr())
        written.append([(tmp_path / f"{one}.jsonl").read_bytes() for one in "or"])
    assert said[0] == said[1]
    assert written[0] == written[1]
    assert [row["id"] for row in rows(tmp_path / "o.jsonl")] == ["t-inner", *(f"r{i}" for i in range(2_200))]
    for kind, place in [
        ("a call around another call, which is the one that counts: 1", ":4406"),
        ("a record that stands twice with the same content: 1", ":4404"),
        ("a record of no known format: 1", ":4402"),
        ("a record that is no object: 1", ":4403"),
        ("a status that is not known: 1", ":4407"),
        ("a spend of 0, which stands where the price was not known: 44", ":2"),
        ("token counts that cannot be read: 3", ":12"),
    ]:
        assert f"not mapped, {kind} ({path}{place}" in said[1].err.replace("\n", " "), said[1].err


@pytest.mark.parametrize("end", [b"", b'{"a": "\xff"}\n', b'{"a": "\0"}\n'], ids=["text", "bytes", "NUL"])
def test_several_processes_find_the_faults_that_one_does(
    tmp_path: Path, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path, *many_records(True))
    path.write_bytes(path.read_bytes() + b"\n" * 200_000 + end)
    second = log(tmp_path, spend("r1"), "{", name="second.jsonl")
    told = []
    for count in ("1", "2"):
        monkeypatch.setenv("EVALKIT_PROCESSES", count)
        with pytest.raises(InputError) as raised:
            read_logs([path, second])
        told.append(raised.value.faults)
    assert told[0] == told[1]
    assert [(f.line, f.row) for f in told[0] if f.line != 204_538][:2] == [(1901, 952), (3902, 1953)]
    assert len(told[0]) == 100 + bool(end) + 1 + 1  # damaged lines, the end, how many more, the other file
    print([(f.line, f.row) for f in told[0]][:3], told[0][-3:])


def user(text: str, system: str = "Be short.") -> list[dict[str, str]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


LITELLM_CUT = (
    "x" * 700
    + "... (litellm_truncated skipped 9000 chars. Truncation is a DB storage safeguard.) ..."
    + "y" * 1300
)


def test_a_text_that_the_log_cut_is_no_request_and_no_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"choices": [{"finish_reason": "stop", "message": {"content": LITELLM_CUT}}]}
    parts = [{"role": "user", "content": [{"type": "text", "text": "abc... (litellm_truncated 12982 chars)"}]}]
    records = [
        spend("whole", messages=user("Where is my order?")),
        spend("cut", messages=user(LITELLM_CUT)),
        spend("parts", messages=parts),
        spend("system", messages=user("And mine?", system=LITELLM_CUT)),
        spend("reply", messages=user("Why was litellm_truncated in my log?"), response=answer),
        {
            "id": "large", "traceId": "t", "type": "GENERATION", "startTime": "2026-09-01T10:00:00Z",
            "model": "small-1", "input": "<truncated due to size exceeding limit>", "output": "Yes.",
        },
    ]  # fmt: skip
    run([log(tmp_path, *records)], tmp_path / "o.jsonl", tmp_path / "r.jsonl")
    assert [row["id"] for row in rows(tmp_path / "r.jsonl")] == ["whole", "system", "reply"]
    said = capsys.readouterr().err
    assert "a request whose text the log cut, and that is left out" in said
    assert "missing from what is sampled: 3 (" in said
    assert "a system prompt that the log cut, of a request that is kept: 1 (" in said
    assert "a reply that the log cut, and that is left out: 1 (" in said
    replies = {row["id"]: row.get("reply") for row in rows(tmp_path / "o.jsonl")}
    assert replies["reply"] is None
    assert replies["large"] == "Yes."
    assert len(replies) == 6  # a call whose text was cut is a call


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.json", "log.csv"])
def test_a_log_is_not_sampled_as_if_it_were_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    from evalkit.cli.app import main

    record = spend("a", messages=user("Where is my order?"), metadata={"user_api_key_alias": "shop"})
    path = tmp_path / name
    if name == "log.json":
        path.write_text(json.dumps([record], indent=1), encoding="utf-8")
    elif name == "log.csv":
        cells = [
            '"' + (v if isinstance(v, str) else json.dumps(v)).replace('"', '""') + '"' for v in record.values()
        ]
        path.write_text(f"{','.join(record)}\n{','.join(cells)}\n", encoding="utf-8")
    else:
        log(tmp_path, record, name=name)
    out = tmp_path / "sample.jsonl"
    assert main(["labels", "sample", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "is a log (LiteLLM spend logs), not requests" in said
    assert f"evalkit import logs {path} --requests-out requests.jsonl" in said
    assert not out.exists()
    run([path], None, tmp_path / "requests.jsonl")
    assert main(["labels", "sample", str(tmp_path / "requests.jsonl"), "--out", str(out)]) == 0
