"""Studies without outcomes call their models first; what that cost, and who answered, stands in their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.workflows.run_check import check_run
from tests.providers.mock_openai import running_mock
from tests.workflows.replays import (
    KEY,
    PRICES,
    Ran,
    asked,
    evalkit,
    items,
    right_answer,
    write_ladder,
    write_study,
)

NAMES = [f"q{n}" for n in range(40)]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEMO_KEY", KEY)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return found


def sweep(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> Ran:
    return evalkit(capsys, "route-sweep", folder / "study.yaml", "--out", "report", *more, out=Path("report"))


def test_route_sweep_calls_the_models_of_a_study_without_outcomes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [
        {"contains": "prompt q7", "models": ["top"], "served_model": "cheap"},
        {"contains": "prompt q8", "attempts": 1, "fault": "status", "status": 500},
    ]
    with running_mock(rules=rules, prices=PRICES) as mock:
        write_study(tmp_path, mock, items(NAMES))
        first = sweep(capsys, tmp_path)
        counts = mock.counts()
        second = sweep(capsys, tmp_path)
        assert mock.counts()["requests"] == counts["requests"]
    assert first.code in {0, 1, 3}, first.err
    replay_folder = Path("reports/small/replay")
    summary = json.loads((replay_folder / "replay.json").read_text(encoding="utf-8"))
    found = result(Path("report"))["provenance"]
    carried = found["replay"]
    assert carried["all_runs"]["spent_low_usd"] == counts["reported"]["usd"]
    assert carried["costs"]["decision_usd"] == counts["reported"]["usd"]
    assert carried["all_runs"]["runs"] == 2
    assert carried["candidates"]["top"]["requested_model"] == "openai/top"
    assert carried["candidates"]["top"]["sent"]["model"] == "top"
    assert carried["candidates"]["top"]["sent"]["max_tokens"] == 20
    assert carried["candidates"]["top"]["other_model"] == {"cheap": 1}
    assert carried["costs"] == summary["costs"]
    page = (Path("report") / "report.html").read_text(encoding="utf-8")
    assert f"cost of the decision {counts['reported']['usd']} USD" in page
    assert f"spent {counts['reported']['usd']} USD in 2 runs" in page
    assert "top: 1 reply of another model, not credited" in page
    # What the replay had to say is said by the study, too, and its progress is no result.
    assert "q7" in "".join(result(Path("report"))["notices"])
    assert "to do:" in first.err
    assert "to do:" not in first.out
    assert second.code == first.code

    # The run can be judged again from its evidence, with what the replay said.
    assert check_run(Path("report")).faults == ()

    # The same outcomes, named by the study: the summary beside them is carried, and only while it is of them.
    text = (tmp_path / "study.yaml").read_text(encoding="utf-8")
    (tmp_path / "study.yaml").write_text(f"{text}outcomes: {replay_folder}/outcomes.jsonl\n", encoding="utf-8")
    named = sweep(capsys, tmp_path)
    assert result(Path("report"))["provenance"]["replay"] == carried
    assert named.code == first.code
    outcomes = replay_folder / "outcomes.jsonl"
    outcomes.write_text(outcomes.read_text(encoding="utf-8").replace('"wrong"', '"ok"', 1), encoding="utf-8")
    changed = sweep(capsys, tmp_path)
    assert "replay" not in result(Path("report"))["provenance"]
    assert "is of other outcomes, or they were changed since" in changed.err


def test_a_run_that_is_not_complete_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = [{"contains": "prompt q3", "fault": "status", "status": 503}]
    with running_mock(rules=rules) as mock:
        write_study(tmp_path, mock, items(NAMES[:8]), options={"max_attempts": 1})
        ran = sweep(capsys, tmp_path)
        capped = sweep(capsys, tmp_path, "--max-spend", "0")
    assert ran.code == capped.code == 4
    assert "2 calls failed that may work later" in ran.err
    assert "spend cap" in capped.err
    assert not (Path("report") / "report.html").exists()
    assert not (tmp_path / "labels.jsonl.looks.json").exists(), "a look was booked for nothing"


def test_arms_that_send_one_body_are_one_arm_after_the_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case B04: what was asked for is not what was sent, and the body that went out decides."""
    arms = [
        {"name": "low", "params": {"max_tokens": 20}},
        {"name": "same", "params": {"max_tokens": 20}},
        {"name": "effort", "effort": "high", "params": {"allowed_openai_params": ["reasoning_effort"]}},
    ]
    with running_mock() as mock:
        write_ladder(tmp_path, mock, items(NAMES[:6]), arms)
        ran = evalkit(capsys, "reasoning-budget", "study.yaml", "--out", "report", out=Path("report"))
        assert {name: asked(mock, "top", f"prompt {name}") for name in NAMES[:6]} == dict.fromkeys(NAMES[:6], 2)
    assert ran.code in {0, 1, 3}, ran.err
    found = result(Path("report"))
    assert "low" in "".join(found["notices"])
    assert "same" in "".join(found["notices"])
    sent = {arm["name"]: arm["sent"] for arm in found["arms"]}
    assert sent["effort"]["reasoning_effort"] == "high"
    assert "same" not in sent or sent["same"] == sent["low"]
    assert found["provenance"]["replay"]["candidates"]["effort"]["requested_model"] == "openai/top"

    # The same, from the outcomes that the replay wrote.
    text = (tmp_path / "study.yaml").read_text(encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        f"{text}outcomes: reports/ladder/replay/outcomes.jsonl\n", encoding="utf-8"
    )
    again = evalkit(capsys, "reasoning-budget", "study.yaml", "--out", "again", out=Path("again"))
    assert again.code in {0, 1, 3}, again.err
    later = result(Path("again"))["arms"]  # a second look: bounds are wider, what was sent is the same
    assert [(arm["name"], arm["sent"], arm["pass_rate"]) for arm in later] == [
        (arm["name"], arm["sent"], arm["pass_rate"]) for arm in found["arms"]
    ]


def test_an_arm_of_several_steps_sends_each_after_the_reply_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [
        {"name": "plain"},
        {"name": "steps", "steps": [{"plan": "Make a plan."}, {"solve": "Now solve it."}]},
    ]
    rules: list[dict[str, Any]] = [
        {"contains": "Now solve it.", "attempts": 1, "fault": "status", "status": 500},
        {"contains": "Now solve it.", "answer": right_answer("top", "prompt q0")},
    ]
    with running_mock(rules=rules, prices=PRICES) as mock:
        write_ladder(tmp_path, mock, items(["q0"]), arms)
        options = ["replay", "study.yaml", "--out", "run", "--debug"]
        text = (tmp_path / "study.yaml").read_text(encoding="utf-8")
        (tmp_path / "study.yaml").write_text(text.replace("max_attempts: 3", "max_attempts: 1"), encoding="utf-8")
        broken = evalkit(capsys, *options, out=Path("run"))
        assert broken.code == 4
        whole = evalkit(capsys, *options, out=Path("run"))
        counts = mock.counts()
        # The plan, made by the first run, was not asked for again by the second.
        assert asked(mock, "top", "prompt q0\n\nMake a plan.") == 1
        assert asked(mock, "top", "Now solve it.") == 2
    assert whole.code == 0, whole.err
    rows = {row["arm"]: row for row in whole.rows}
    assert rows["steps"]["status"] == "ok"
    assert rows["steps"]["attempts"] == 3
    assert rows["steps"]["cost_usd"] > rows["plain"]["cost_usd"]
    assert rows["steps"]["cost_usd"] + rows["plain"]["cost_usd"] == pytest.approx(float(counts["reported"]["usd"]))
