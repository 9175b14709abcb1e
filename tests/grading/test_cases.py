"""The cases of grading and contracts, with their exact values, through `grade_cell`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.grading import Graded, Item, grade_cell, judge_requests, read_rubric
from evalkit.grading.quality import judge_errors
from evalkit.providers.call import Failure, FailureKind, Reply
from evalkit.providers.responses import openai_reply


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def values(case: Path) -> Any:
    return json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]


def rubric_of(folder: Path, text: str) -> Any:
    path = folder / "rubric.yaml"
    path.write_text(f"rubric: case\n{text}", encoding="utf-8")
    return read_rubric(path)


def by_status(graded: dict[str, Graded]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, one in graded.items():
        found.setdefault(one.status, []).append(name)
    return found


REASONS = {
    "c02": "fenced",
    "c03": "fenced",
    "c04": "text_before",
    "c05": "text_after",
    "c06": "several_values",
    "c07": "fenced",
    "c08": "empty",
    "c09": "wrong_type",
    "c10": "extra_field",
    "c13": "not_json",
    "c14": "wrong_shape",
    "c15": "text_before",
}


class TestJsonContract:
    @pytest.mark.parametrize("mode", ["strict", "fenced_ok"])
    def test_each_reply_and_its_reason(self, shared: Path, tmp_path: Path, mode: str) -> None:
        case = shared / "cases" / "G01-json-contract"
        (tmp_path / "schema.json").write_bytes((case / "schema.json").read_bytes())
        rubric = rubric_of(tmp_path, f"contract: {{json: {mode}, schema: schema.json}}\n")
        graded = {
            row["query_id"]: grade_cell(rubric, Item(row["query_id"]), "cheap", Reply(row["output"], "stop"))
            for row in lines(case / "outputs.jsonl")
        }
        verdicts = json.loads((case / "expected.json").read_text(encoding="utf-8"))
        assert {name: "pass" if one.passed else "fail" for name, one in graded.items()} == {
            name: verdict[mode] for name, verdict in verdicts.items()
        }
        assert [name for name, one in graded.items() if one.passed] == values(case)[f"{mode}_pass"]
        assert {one.status for one in graded.values()} == {"ok", "contract_fail"}
        reasons = REASONS | ({"c07": "empty"} if mode == "fenced_ok" else {})
        assert {name: one.reason for name, one in graded.items() if not one.passed} == {
            name: reason for name, reason in reasons.items() if not (mode == "fenced_ok" and name == "c02")
        }
        assert f"character {values(case)['c05_extra_text_at']}," in graded["c05"].detail

    def test_backticks_in_a_string_and_a_long_fence(self, shared: Path, tmp_path: Path) -> None:
        case = shared / "cases" / "G01-json-contract"
        schema = json.loads((case / "schema.json").read_text(encoding="utf-8"))
        del schema["additionalProperties"]
        (tmp_path / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
        b1, b2 = (row["output"] for row in lines(case / "backticks.jsonl"))
        for mode in ("strict", "fenced_ok"):
            rubric = rubric_of(tmp_path, f"contract: {{json: {mode}, schema: schema.json}}\n")
            assert grade_cell(rubric, Item("b1"), "cheap", Reply(b1, "stop")).passed is True
            fenced = grade_cell(rubric, Item("b2"), "cheap", Reply(b2, "stop"))
            assert fenced.passed is (mode == "fenced_ok")
            assert rubric.contract.body(b1) == b1


def test_think_tags(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "G03-think-tags"
    config = (case / "config.yaml").read_text(encoding="utf-8")
    rubric = rubric_of(tmp_path, config + "check: {kind: exact}\n")
    expect = values(case)
    for row in lines(case / "outputs.jsonl"):
        name = row["query_id"]
        reply = Reply(row["output"], reasoning=row.get("reasoning_content"))
        graded = grade_cell(rubric, Item(name, reference="low"), "cheap", reply)
        wrong = grade_cell(rubric, Item(name, reference="high"), "cheap", reply)
        if expect[name] is None:
            assert graded.status == wrong.status == "no_final_answer", name
            assert graded.passed is graded.score is None
        else:
            assert (graded.status, wrong.status) == ("ok", "wrong"), name
    tags = {row["query_id"]: row["output"] for row in lines(case / "outputs.jsonl")}
    stripped = {n: grade_cell(rubric, Item(n, reference="low"), "c", Reply(t)).stripped for n, t in tags.items()}
    assert {name for name, was in stripped.items() if was} == {"t1", "t3", "t7"}


JUDGE = """
judge:
  model: demo/judge
  prompt: "Is {{ answer }} right?"
"""


def judged(rubric: Any, rows: list[dict[str, Any]]) -> dict[str, Graded]:
    out = {}
    for row in rows:
        item, reply = Item(row["query_id"]), Reply("an answer", "stop")
        assert len(judge_requests(rubric, item, "an answer")) == 1
        said = Failure(FailureKind.SERVER, "HTTP 500", 500) if "error" in row else Reply(row["reply"], "stop")
        out[item.id] = grade_cell(rubric, item, "cheap", reply, (said,))
    return out


def test_judge_without_a_verdict(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "G04-judge-unparseable"
    rubric = rubric_of(
        tmp_path, f"{JUDGE}  words: {{pass: pass, fail: fail}}\n  json_field: verdict\n  max_error_share: 0.2\n"
    )
    rows, expect = lines(case / "judge_replies.jsonl"), values(case)
    graded = judged(rubric, rows)
    assert by_status(graded) == {
        "ok": expect["pass"],
        "wrong": expect["fail"],
        "judge_error": expect["judge_error"],
    }
    assert all(one.passed is None and one.score is None for one in graded.values() if one.status == "judge_error")
    for row in rows:  # each judge_error keeps the raw reply
        if row["query_id"] in expect["judge_error"]:
            assert graded[row["query_id"]].detail == row.get("reply", "server_error: HTTP 500")
    errors = judge_errors((one.passed for one in graded.values()), rubric.judge.max_error_share)
    assert (errors.lower, errors.upper, errors.share) == (expect["lower"], expect["upper"], 0.625)
    assert errors.sentence == "2 of 3 judged pass; 5 of 8 not judged, 25.0 % to 87.5 %"
    assert errors.exceeded
    assert "5 of 8" in (errors.message or "")
    assert "0.2" in (errors.message or "")
    assert "not decided" in (errors.message or "")


def test_verdict_words(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "G05-verdict-words"
    rubric = rubric_of(tmp_path, f"{JUDGE}  words: {{CORRECT: pass, INCORRECT: fail}}\n  json_field: match\n")
    graded, expect = judged(rubric, lines(case / "judge_replies.jsonl")), values(case)
    assert {name for name, one in graded.items() if one.status == "ok"} == set(expect["pass"])
    assert {name for name, one in graded.items() if one.status == "wrong"} == set(expect["fail"])
    assert {name for name, one in graded.items() if one.status == "judge_error"} == set(expect["judge_error"])


def test_provider_refusal(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "G08-provider-refusal"
    rubric = rubric_of(tmp_path, "check: {kind: exact}\n")
    replies = {
        path.name: openai_reply(json.loads(path.read_text(encoding="utf-8")))
        for path in case.glob("*.json")
        if path.name != "expect.json"
    }
    item = Item("a", reference="42")
    graded = {name: grade_cell(rubric, item, "mid", reply) for name, reply in replies.items()}
    refused = {name for name, one in graded.items() if one.status == "provider_refusal"}
    assert refused == set(values(case)["provider_refusal"])
    assert {name for name, one in graded.items() if one.status == "wrong"} == set(values(case)["graded"])


def test_budget_exhausted(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "B02-budget-exhausted"
    rubric = rubric_of(tmp_path, "check: {kind: exact}\n")
    graded = {}
    for path in sorted(case.glob("*.json")):
        if path.name == "expect.json":
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        body = document.get("response", document)
        graded[path.name] = grade_cell(
            rubric,
            Item("a", reference="ANSWER: C"),
            "reasoning",
            openai_reply(body),
            max_tokens=document.get("request", {}).get("max_completion_tokens"),
            output_tokens=body["usage"]["completion_tokens"],
            reasoning_tokens=body["usage"]["completion_tokens_details"]["reasoning_tokens"],
        )
    statuses = by_status(graded)
    expect = values(case)
    assert set(statuses.pop("budget_exhausted")) == set(expect["budget_exhausted"])
    assert statuses.pop("truncated") == expect["truncated"]
    assert statuses == {"ok": expect["graded"]}
    assert "max_tokens" in (graded["empty.json"].notice or "")
    assert {"459", "16:"} <= set((graded["cap_ignored.json"].notice or "").split())
    assert all(graded[name].passed is None for name in expect["budget_exhausted"])


def test_braces_in_an_answer_reach_the_judge(shared: Path, tmp_path: Path) -> None:
    import csv

    case = shared / "cases" / "L13-braces-in-query"
    rubric = rubric_of(
        tmp_path,
        "judge:\n  model: demo/judge\n  prompt: 'Q: {{ prompt }} A: {{ answer }}'\n"
        "  words: {CORRECT: pass, INCORRECT: fail}\n",
    )
    with (case / "labels_braces.csv").open(encoding="utf-8", newline="") as file:
        queries = {row["query_id"]: row["query"] for row in csv.DictReader(file)}
    for name, query in queries.items():
        for answer in queries.values():
            (request,) = judge_requests(rubric, Item(name, prompt=query), answer)
            assert request.messages[-1]["content"] == f"Q: {query} A: {answer}"
    expect = values(case)
    assert queries["q3"].endswith(expect["q3_tail"])
