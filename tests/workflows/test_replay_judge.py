"""A judge through the command: what it did not decide is neither right nor wrong, and asked alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.providers.mock_openai import MockServer, content_name, running_mock
from tests.workflows.replays import KEY, evalkit, items, replay, write_jsonl, write_study

NAMES = [f"q{n}" for n in range(1, 9)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)


def judge(mock: MockServer, **more: Any) -> dict[str, Any]:
    return {
        "rubric": "by-a-judge",
        "judge": {
            "model": "openai/judge",
            "params": {"api_base": mock.url, "api_key": "os.environ/DEMO_KEY", "max_tokens": 50},
            "prompt": "Judge {{ id }} by {{ reference }}: {{ answer }}",
            "json_field": "verdict",
            "words": {"pass": "pass", "fail": "fail"},
            **more,
        },
    }


def judged_rules(case: Path) -> list[dict[str, Any]]:
    """The judge's replies of case G04, as rules: q7 is an error of the server."""
    rules: list[dict[str, Any]] = []
    for line in (case / "judge_replies.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rule: dict[str, Any] = {"models": ["judge"], "contains": f"Judge {row['query_id']} "}
        rules.append(rule | ({"answer": row["reply"]} if "reply" in row else {"fault": "status", "status": 500}))
    return rules


def of_judge(mock: MockServer) -> dict[str, int]:
    """How often the judge was asked about each item."""
    found: Counter[str] = Counter()
    for content, (requests, _) in mock.counts()["contents"].items():
        if content.startswith(content_name("judge", "Judge ")):
            found[content.split()[1]] += requests
    return dict(found)


def test_what_the_judge_did_not_decide_is_a_third_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: Path
) -> None:
    """Case G04: exit code not 0, answers kept, and only what is missing asked again."""
    case = shared / "cases" / "G04-judge-unparseable"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    rules = [rule if "fault" not in rule else rule | {"attempts": 2} for rule in judged_rules(case)]
    with running_mock(rules=rules) as mock:
        rubric = judge(mock, max_error_share=0.2)
        write_study(tmp_path, mock, items(NAMES), rubric=rubric, options={"max_attempts": 1})
        ran = replay(capsys, tmp_path)
        candidates = sum(n for name, n in mock.counts()["requests_by_model"].items() if name != "judge")
        first = of_judge(mock)
        assert ran.code == 4  # a call to the judge failed, and may work later
        assert "5 of 8" not in ran.out  # the two tiers give sixteen replies
        assert "10 of 16 replies, a share of 0.625, and judge.max_error_share is 0.2" in ran.err
        found = {name: {"ok": "pass", "wrong": "fail"}.get(s, s) for (name, tier, _), s in ran.status().items()}
        for verdict in ("pass", "fail", "judge_error"):
            assert [name for name in NAMES if found[name] == verdict] == values[verdict]
        assert "4 of 6 judged pass; 10 of 16 not judged, 25.0 % to 87.5 %" in ran.out
        assert (values["lower"], values["upper"]) == (0.25, 0.875)
        assert ran.summary["judge"]["unparseable_share"] == 0.625

        again = replay(capsys, tmp_path)  # asks once more for the calls that failed, and for nothing else
        second = of_judge(mock)
        assert {name: second[name] - first[name] for name in NAMES if second[name] != first[name]} == {"q7": 2}
        assert again.code == 4

        last = replay(capsys, tmp_path, "--retry-failed")
        third = of_judge(mock)
        # Now also where the judge answered without a verdict; what it decided stands.
        assert {name for name in NAMES if third[name] != second[name]} == {"q3", "q4", "q5", "q6", "q7"}
        assert sum(n for name, n in mock.counts()["requests_by_model"].items() if name != "judge") == candidates
    rows = {(row["id"], row["tier"]): row for row in last.rows}
    assert last.code == 3  # q7 is answered, with no verdict
    assert rows["q1", "top"]["reply"].startswith("ANSWER")
    assert rows["q4", "top"]["status"] == "judge_error"


def test_a_judgement_asked_once_more_counts_and_the_ledger_keeps_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [
        {"models": ["judge"], "attempts": 1, "answer": "well, hard to say"},
        {"models": ["judge"], "answer": "pass"},
    ]
    with running_mock(rules=rules) as mock:
        write_study(tmp_path, mock, items(["a"]), rubric=judge(mock))
        first = replay(capsys, tmp_path)
        second = replay(capsys, tmp_path, "--retry-failed")
        asked = of_judge(mock)
        third = replay(capsys, tmp_path, "--retry-failed")
        assert of_judge(mock) == asked == {"a": 4}
        regraded = replay(capsys, tmp_path, "--regrade")
    assert (first.code, second.code, third.code, regraded.code) == (3, 0, 0, 0)
    assert set(first.status().values()) == {"judge_error"}
    assert set(second.status().values()) == {"ok"}
    assert regraded.rows == third.rows == second.rows


def test_a_study_whose_judge_decided_too_little_is_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with running_mock(rules=[{"models": ["judge"], "answer": "perhaps"}]) as mock:
        write_study(tmp_path, mock, items(NAMES[:4]), rubric=judge(mock))
        ran = evalkit(capsys, "route-sweep", tmp_path / "study.yaml", out=tmp_path / "reports" / "small")
    assert ran.code == 3
    assert "not decided: the judge gave no verdict on 8 of 8 replies" in ran.err
    assert not (ran.folder / "report.html").exists()
    assert (ran.folder / "replay" / "outcomes.jsonl").is_file()


def test_a_pairwise_judge_is_asked_in_both_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    better, worse = "ANSWER: 1", "RIGHT: 0"
    rules: list[dict[str, Any]] = [
        # Item a: the answer wins in both places. Item b: whatever stands first wins, which is no verdict.
        {"models": ["judge"], "contains": f"a first {better}", "answer": "A"},
        {"models": ["judge"], "contains": f"a first {worse}", "answer": "B"},
        {"models": ["judge"], "contains": "b first", "answer": "A"},
        {"models": ["cheap", "top"], "answer": better},
    ]
    with running_mock(rules=rules) as mock:
        rubric = judge(mock, pairwise=True, words={"A": "first", "B": "second", "TIE": "tie"}) | {"pass_at": 0.5}
        rubric["judge"] |= {"prompt": "Judge {{ id }} first {{ first }} second {{ second }}", "json_field": None}
        rubric["judge"] = {key: value for key, value in rubric["judge"].items() if value is not None}
        write_study(tmp_path, mock, items(["a", "b"], reference=worse), rubric=rubric)
        ran = replay(capsys, tmp_path)
        # Both tiers answer the same, and one call serves both.
        assert of_judge(mock) == {"a": 2, "b": 2}
    status = {name: s for (name, _, _), s in ran.status().items()}
    assert status == {"a": "ok", "b": "judge_error"}
    assert ran.code == 3


def test_a_judge_is_measured_by_grades_of_people_and_that_is_carried_to_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = [{"models": ["judge"], "contains": f"Judge q{n} ", "answer": "fail"} for n in (1, 2)]
    names = [f"q{n}" for n in range(10, 30)] + ["q1", "q2"]
    people = [{"id": name, "tier": "top", "passed": name != "q1"} for name in names]
    write_jsonl(tmp_path / "grades.jsonl", people)
    with running_mock(rules=[*rules, {"models": ["judge"], "answer": "pass"}]) as mock:
        write_study(tmp_path, mock, items(names), rubric=judge(mock) | {"human": {"path": "grades.jsonl"}})
        ran = replay(capsys, tmp_path)
        study = (tmp_path / "study.yaml").read_text(encoding="utf-8")
        (tmp_path / "study.yaml").write_text(study + "outcomes: run/outcomes.jsonl\n", encoding="utf-8")
        swept = evalkit(capsys, "route-sweep", tmp_path / "study.yaml", "--out", "r", out=tmp_path / "r")
    assert ran.code == 0, ran.err
    assert "agreed with people on 21 of 22 that both graded" in ran.out
    assert "A judge is no gate by itself." in ran.out
    assert ran.summary["judge"]["agreement"] == 21 / 22
    assert ran.summary["judge"]["quality"]["confusion"] == [[20, 1, 0], [0, 1, 0]]
    assert swept.code in {0, 1, 3}, swept.err
    result = json.loads((tmp_path / "r" / "result.json").read_text(encoding="utf-8"))
    carried = result["provenance"]["judge"]
    assert carried["agreement"] == pytest.approx(21 / 22)
    assert carried["quality"]["confusion"] == [[20, 1, 0], [0, 1, 0]]
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "openai/judge" in page


def test_a_judge_without_a_price_is_refused_under_a_cap_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_mock() as mock:
        write_study(tmp_path, mock, items(NAMES[:2]), rubric=judge(mock))
        ran = replay(capsys, tmp_path, "--max-spend", "5")
        assert mock.counts()["requests"] == 0
        dry = replay(capsys, tmp_path, "--dry-run")
    assert ran.code == 2
    assert "the judge cannot run under a spend cap" in ran.err
    assert "at most 4 calls to the judge" in dry.out
