"""docs/replay.md: its study is complete, and runs as it is written but for the address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalkit.study.calls_section import CALL_KEYS
from tests.providers.mock_openai import running_mock
from tests.workflows.replays import KEY, evalkit

PAGE = Path(__file__).resolve().parent.parent / "docs" / "replay.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_study_of_the_page_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    study, rubric, prices, options = blocks("yaml")
    rules = [
        {"contains": "2 + 2", "answer": "4"},
        {"models": ["large"], "answer": "The result is 391."},
        {"models": ["small"], "answer": "401"},
    ]
    with running_mock(rules=rules, api_key=KEY) as mock:
        study = study.replace("http://127.0.0.1:8000/v1", mock.url)
        for name, text in (("study.yaml", study + options), ("rubric.yaml", rubric), ("prices.yaml", prices)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / "labels.jsonl").write_text(blocks("json")[0], encoding="utf-8")
        (tmp_path / "scores.csv").write_text("id,score\nq1,0.1\nq2,0.9\n", encoding="utf-8")
        out = tmp_path / "reports" / "first-replay" / "replay"
        commands = [line.partition("#")[0].split() for line in blocks("text")[0].splitlines()]
        found = [evalkit(capsys, *command[1:], out=out) for command in commands]
        assert mock.counts()["requests"] == 12
    assert [ran.code for ran in found] == [0, 0, 0], [ran.err for ran in found]
    status = {(row["id"], row["tier"]): row["status"] for row in found[-1].rows}
    assert status == {
        ("q1", "cheap"): "ok",
        ("q1", "strong"): "ok",
        ("q2", "cheap"): "wrong",
        ("q2", "strong"): "ok",
    }


def test_every_key_about_calls_is_on_a_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [key for key in CALL_KEYS if f"{key}:" not in text] == []
