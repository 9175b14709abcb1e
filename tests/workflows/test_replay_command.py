"""`evalkit replay` from end to end against a server that fails: every item once, nothing paid twice or hidden."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.providers.mock_openai import running_mock
from tests.workflows.replays import (
    KEY,
    PRICES,
    asked,
    evalkit,
    items,
    replay,
    right_answer,
    write_study,
)

NAMES = [f"q{n}" for n in range(24)]


MID = {"openai/cheap": ["demo/mid"], "openai/top": ["demo/mid"]}
OTHER = "served_by_other_model"


def of_both(recording: bytes) -> bytes:
    """A recording of the tier `mid` as one of `cheap` and then of `top`."""
    lines = recording.splitlines(keepends=True)
    return b"".join(
        line.replace(b'"tier": "mid"', tier) for tier in (b'"tier": "cheap"', b'"tier": "top"') for line in lines
    )


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)


def test_a_run_with_every_kind_of_fault_counts_each_item_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [
        {
            "contains": "prompt q1",
            "models": ["cheap"],
            "attempts": 1,
            "fault": "status",
            "status": 429,
            "retry_after": 0.1,
        },
        {"contains": "prompt q20", "attempts": 1, "fault": "status", "status": 500},
        {"contains": "prompt q3", "models": ["top"], "fault": "no_usage"},
        {"contains": "prompt q4", "models": ["top"], "served_model": "other"},
        {"contains": "prompt q5", "models": ["top"], "fault": "content_filter"},
        {"contains": "prompt q6", "models": ["top"], "tokens": 500},
        {"contains": "prompt q7", "models": ["top"], "fault": "cut", "attempts": 1},
        {"contains": "prompt q8", "models": ["top"], "fault": "status", "status": 400},
        {"contains": "prompt q9", "models": ["top"], "reasoning": "so so so", "answer": ""},
    ]
    with running_mock(rules=rules, api_key=KEY, prices=PRICES) as mock:
        write_study(tmp_path, mock, items(NAMES))
        ran = replay(capsys, tmp_path)
        counts = mock.counts()
        again = replay(capsys, tmp_path)
        assert mock.counts()["requests"] == counts["requests"], "a resume called somebody"
    assert ran.code == 0, ran.err
    assert len(ran.rows) == len(ran.status()) == 2 * len(NAMES)
    found = {row["id"]: row for row in ran.rows if row["tier"] == "top"}
    named = {name: found[name]["status"] for name in NAMES}
    assert {name: status for name, status in named.items() if status != "ok"} == {
        "q4": "served_by_other_model",
        "q5": "provider_refusal",
        "q6": "truncated",
        "q8": "error",
        "q9": "budget_exhausted",
    }
    cheap = Counter(row["status"] for row in ran.rows if row["tier"] == "cheap")
    assert cheap == {"wrong": 24}
    assert found["q8"]["error"].startswith("bad_request: ")
    assert found["q8"]["cost_usd"] == 0
    assert found["q3"].get("cost_usd") is None
    assert found["q3"].get("output_tokens") is None
    assert found["q4"]["model"] == "other"
    assert found["q20"]["attempts"] == 2
    assert found["q7"]["attempts"] == 2
    # What the server says it sent whole and priced is what the run says it spent: but for the model without price.
    assert ran.summary["costs"]["spent_low_usd"] == counts["reported"]["usd"]
    assert ran.summary["candidates"]["top"]["other_model"] == {"other": 1}
    assert "without a cost" in ran.out
    assert again.code == 0
    assert "47 of them from the ledger" in again.out  # the other is a call that failed for good
    assert again.rows == ran.rows
    assert again.summary["costs"]["spent_low_usd"] == "0"
    assert again.summary["costs"]["decision_known_usd"] == ran.summary["costs"]["decision_known_usd"]
    assert again.summary["all_runs"]["spent_low_usd"] == ran.summary["costs"]["spent_low_usd"]


def test_a_dry_run_calls_nobody_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_mock() as mock:
        write_study(tmp_path, mock, items(NAMES[:3]), samples=2)
        ran = replay(capsys, tmp_path, "--dry-run")
        assert mock.counts()["requests"] == 0
    assert ran.code == 0, ran.err
    assert "12 calls (0 in the ledger)" in ran.out
    assert not ran.folder.exists()


def test_a_cap_is_never_passed_and_a_higher_one_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_mock(prices=PRICES) as mock:
        write_study(tmp_path, mock, items(NAMES[:12]))
        # A call to top reserves .0022 USD (some 370 bytes of prompt, 20 tokens of output) and costs .00007.
        ran = replay(capsys, tmp_path, "--max-spend", "0.0025")
        spent = Decimal(mock.counts()["reported"]["usd"])
        more = replay(capsys, tmp_path, "--max-spend", "1")
        counts = mock.counts()
    assert ran.code == 4
    assert 0 < spent <= Decimal("0.0025")
    assert ran.summary["runs"][0]["ended"] == "spend cap"
    assert ran.summary["unreached"] > 0
    assert "the same command" in ran.err
    assert more.code == 0, more.err
    assert counts["requests"] == 24
    assert more.summary["all_runs"]["spent_low_usd"] == counts["reported"]["usd"]
    assert {"field": "max_spend_usd", "old": "0.0025", "new": "1"} in more.summary["changed_since_the_first_run"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"prices": False}, "the study names no price card"), ({"params": {"max_tokens": None}}, "no max_tokens")],
)
def test_what_cannot_keep_a_cap_is_refused_before_any_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], why: str
) -> None:
    with running_mock() as mock:
        write_study(tmp_path, mock, items(NAMES[:2]), **changes)
        ran = replay(capsys, tmp_path, "--max-spend", "1")
        assert mock.counts()["requests"] == 0
    assert ran.code == 2
    assert why in ran.err
    assert "cheap cannot run under a spend cap" in ran.err
    assert "top cannot run under a spend cap" in ran.err


def test_samples_are_draws_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Case R03 through the command: 3 repeats, then 5, then 2."""
    with running_mock() as mock:
        write_study(tmp_path, mock, items(["a"]), params={"temperature": 1.0})
        three = replay(capsys, tmp_path, "--samples", "3")
        assert asked(mock, "top", "prompt a") == 3
        five = replay(capsys, tmp_path, "--samples", "5")
        assert asked(mock, "top", "prompt a") == 5
        two = replay(capsys, tmp_path, "--samples", "2")
        assert asked(mock, "top", "prompt a") == 5
    assert sorted(three.status()) == [("a", tier, n) for tier in ("cheap", "top") for n in range(3)]
    assert sorted(five.status()) == [("a", tier, n) for tier in ("cheap", "top") for n in range(5)]
    assert sorted(two.status()) == [("a", tier, n) for tier in ("cheap", "top") for n in range(2)]
    assert two.summary["samples"] == 2
    assert "all 3 samples of every item are byte for byte the same at temperature 1" in three.err
    assert {"field": "samples", "old": 5, "new": 2} in two.summary["changed_since_the_first_run"]


def test_a_changed_study_is_refused_by_name_and_free_fields_may_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case R05 through the command: before any call, with both values and both ways out."""
    (tmp_path / "prompt.txt").write_text("Answer: {prompt}", encoding="utf-8")
    with running_mock() as mock:
        labels = [row | {"reference": right_answer("top", f"Answer: {row['prompt']}")} for row in items(NAMES[:2])]
        write_study(tmp_path, mock, labels, prompt="prompt.txt")
        assert replay(capsys, tmp_path).code == 0
        before = mock.counts()["requests"]
        kept = (tmp_path / "run" / "outcomes.jsonl").read_bytes()

        def refused(name: str) -> str:
            ran = replay(capsys, tmp_path)
            assert ran.code == 2
            assert f"field {name}" in ran.err
            assert "restore the" in ran.err
            assert "or start a new run folder with --out" in ran.err
            return ran.err

        (tmp_path / "prompt.txt").write_text("Reply: {prompt}", encoding="utf-8")
        refused("prompt_sha256")
        (tmp_path / "prompt.txt").write_text("Answer: {prompt}", encoding="utf-8")
        write_study(tmp_path, mock, labels, prompt="prompt.txt", params={"temperature": 0})
        said = refused("params.cheap.temperature")
        assert "was not set when this run was made and is 0 now" in said
        write_study(tmp_path, mock, [*labels[:1], labels[1] | {"reference": "x"}], prompt="prompt.txt")
        assert "grading them anew calls no model" in refused("labels_sha256")
        assert mock.counts()["requests"] == before
        assert (tmp_path / "run" / "outcomes.jsonl").read_bytes() == kept

        regraded = replay(capsys, tmp_path, "--regrade")
        assert regraded.code == 0
        assert regraded.status()["q1", "top", 0] == "wrong"

        write_study(tmp_path, mock, labels, prompt="prompt.txt", options={"concurrency": 2})
        ran = replay(capsys, tmp_path)
        assert mock.counts()["requests"] == before
    assert ran.code == 0, ran.err
    assert {"field": "concurrency", "old": 4, "new": 2} in ran.summary["changed_since_the_first_run"]
    assert ran.status()["q1", "top", 0] == "ok"


def test_recorded_attempts_are_taken_whatever_their_age_and_only_the_rest_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: Path
) -> None:
    """Case R10 through the command; the recordings stay as they are."""
    case = shared / "cases" / "R10-empty-retry-log" / "run"
    attempts = tmp_path / "attempts"
    attempts.mkdir()
    for path in case.iterdir():
        (attempts / path.name).write_bytes(of_both(path.read_bytes()))
    kept = {path.name: path.read_bytes() for path in attempts.iterdir()}
    with running_mock() as mock:
        labels = items(["q1", "q2", "q3", "q4"], reference="ok")
        write_study(tmp_path, mock, labels, aliases=MID)
        ran = replay(capsys, tmp_path, "--recorded", attempts)
        assert mock.counts()["contents"] == {"cheap|prompt q4": [1, 1], "top|prompt q4": [1, 1]}
    assert ran.code == 0, ran.err
    assert [ran.status()[name, "top", 0] for name in ("q1", "q2", "q3", "q4")] == ["ok", "ok", "ok", "wrong"]
    assert {path.name: path.read_bytes() for path in attempts.iterdir()} == kept
    assert ran.summary["candidates"]["top"]["latencies_measured_now"] == 1
    assert ran.summary["candidates"]["top"]["latencies_replayed"] == 0  # the recordings have no times


def test_damage_inside_a_recording_stops_before_any_call_and_a_torn_end_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: Path
) -> None:
    """Case R01 through the command."""
    case = shared / "cases" / "R01-torn-last-line"
    for path in case.glob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes().replace(b'"tier": "mid"', b'"tier": "top"'))
    with running_mock() as mock:
        write_study(tmp_path, mock, items(["q1", "q2", "q3"]), aliases=MID)
        glued = replay(capsys, tmp_path, "--recorded", tmp_path / "results_glued.jsonl")
        assert mock.counts()["requests"] == 0
        torn = replay(capsys, tmp_path, "--recorded", tmp_path / "results_torn.jsonl")
        called = sorted(mock.counts()["contents"])
    assert glued.code == 2
    assert "results_glued.jsonl:2" in glued.err
    assert torn.code == 0, torn.err
    assert called == ["cheap|prompt q1", "cheap|prompt q2", "cheap|prompt q3", "top|prompt q3"]
    assert "results_torn.jsonl" in torn.err
    assert "line 3" in torn.err or ":3" in torn.err


def test_an_export_answers_everything_offline_to_the_same_outcomes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case C12 through the command: the cost of the decision stays, nothing is spent, no time is called new."""
    with running_mock(prices=PRICES) as mock:
        write_study(tmp_path, mock, items(NAMES[:4]))
        live = replay(capsys, tmp_path, "--export", tmp_path / "kept.jsonl")
        before = mock.counts()["requests"]
        arguments = ["replay", tmp_path / "study.yaml", "--offline"]
        other = evalkit(
            capsys, *arguments, "--recorded", tmp_path / "kept.jsonl", "--out", tmp_path / "b", out=tmp_path / "b"
        )
        nothing = evalkit(capsys, *arguments, "--out", tmp_path / "c", out=tmp_path / "c")
        assert mock.counts()["requests"] == before, "offline, and somebody was called"
    assert live.code == other.code == 0, other.err
    assert other.rows == live.rows
    costs = other.summary["costs"]
    assert costs["decision_usd"] == live.summary["costs"]["decision_usd"]
    assert Decimal(costs["decision_usd"]) > 0
    assert (costs["spent_low_usd"], costs["spent_high_usd"]) == ("0", "0")
    assert costs["recorded_in"] == [live.summary["runs"][0]["run"]]
    assert other.summary["candidates"]["top"]["latencies_measured_now"] == 0
    assert "no fresh figures" in other.out
    assert nothing.code == 4
    assert {row["status"] for row in nothing.rows} == {"error"}
    assert all(row["error"].startswith("not_recorded: ") for row in nothing.rows)


def test_a_recorded_hit_costs_the_decision_and_not_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: Path
) -> None:
    """Case C12 with its own files: the price stays, the time is that of the run that was recorded."""
    case = shared / "cases" / "C12-replay-cost-latency"
    values = json.loads((case / "expect.json").read_text(encoding="utf-8"))["values"]
    hit = json.loads((case / "hit.json").read_text(encoding="utf-8"))
    (tmp_path / "hit.jsonl").write_text(json.dumps(hit) + "\n", encoding="utf-8")
    (tmp_path / "prices.json").write_bytes((case / "prices.json").read_bytes())
    tiers = [{"name": name, "model": "demo/mid", "params": {"max_tokens": 9}} for name in ("mid", "top")]
    changes = {"tiers": tiers, "prices": "prices.json"}
    write_study(tmp_path, None, items(["q1"]), changes=changes)
    ran = replay(capsys, tmp_path, "--recorded", tmp_path / "hit.jsonl", "--offline")
    costs, mid = ran.summary["costs"], ran.summary["candidates"]["mid"]
    assert costs["decision_usd"] == values["decision_cost_usd"]
    assert costs["spent_low_usd"] == costs["spent_high_usd"] == values["run_spend_usd"]
    assert mid["latencies_measured_now"] == values["measured_latencies"]
    assert mid["latencies_replayed"] == values["replayed_latencies"]
    assert costs["recorded_in"] == [hit["recorded_run"]]
    assert f"recorded in {hit['recorded_run']}" in ran.out
    assert [row["task_s"] for row in ran.rows if row["tier"] == "mid"] == [hit["latency_s"]]


def test_two_gradings_of_one_ledger_are_equal_to_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_mock() as mock:
        write_study(tmp_path, mock, items(NAMES[:6]), samples=2, outcomes="old.jsonl")
        (tmp_path / "old.jsonl").write_text("{}", encoding="utf-8")  # recorded outcomes are not what is replayed
        first = replay(capsys, tmp_path)
        written = (first.folder / "outcomes.jsonl").read_bytes()
        assert replay(capsys, tmp_path).code == 0
        assert (first.folder / "outcomes.jsonl").read_bytes() == written
        assert replay(capsys, tmp_path, "--regrade").code == 0
        assert (first.folder / "outcomes.jsonl").read_bytes() == written
        assert mock.counts()["requests"] == 24
    assert first.code == 0, first.err
    assert len(first.rows) == 24


def test_what_a_server_sends_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u2028"
    rules = [
        {"contains": "prompt b", "fault": "status", "status": 400, "message": f"no {evil}"},
        {"contains": "prompt", "answer": evil, "served_model": f"top{evil}"},
    ]
    name = "a\u202e\u0007"
    with running_mock(rules=rules) as mock:
        write_study(tmp_path, mock, [*items(["b"]), items(["a"])[0] | {"id": name}])
        ran = replay(capsys, tmp_path)
    assert ran.code == 0, ran.err
    tiers = ("cheap", "top")
    wanted = {("b", tier, 0): "error" for tier in tiers} | {(name, tier, 0): OTHER for tier in tiers}
    assert ran.status() == wanted
    for text in (ran.out, ran.err):
        assert not set(text) & set("\x1b\x07\u202e\u2028")


def test_a_tier_may_have_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`judge` is what the judge is called inside: a tier of that name is still asked itself."""
    with running_mock() as mock:
        tiers = [
            {"name": name, "model": "openai/top", "params": {"api_base": mock.url, "api_key": KEY}}
            for name in ("judge", "judge:top")
        ]
        write_study(tmp_path, mock, items(["a"]), changes={"tiers": tiers})
        text = (tmp_path / "labels.jsonl").read_text(encoding="utf-8").replace('"top"', '"judge"')
        (tmp_path / "labels.jsonl").write_text(text, encoding="utf-8")
        ran = replay(capsys, tmp_path)
    assert ran.code == 0, ran.err
    assert set(ran.status().values()) == {"ok"}
