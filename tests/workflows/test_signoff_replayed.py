"""A sign-off of a run that called its models: everything that made its outcomes is in the bundle."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from evalkit.cli.app import main
from tests.providers.mock_openai import running_mock
from tests.workflows.replays import KEY, evalkit, items, write_study

NAMES = [f"q{n}" for n in range(30)]
POLICY = """\
policy: judged
risk: {low: {max_under_route: 0.5}}
judge: {min_agreement: 0.8, max_unparseable: 0.05}
"""


def test_a_judged_replay_is_signed_off_and_verified_without_its_study_or_any_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEMO_KEY", KEY)
    study = tmp_path / "study"
    study.mkdir()
    (study / "gates.yaml").write_text(POLICY)
    (study / "judge.txt").write_text("Judge {{ id }} by {{ reference }}: {{ answer }}")
    (study / "system.txt").write_text("Answer in one word.")
    grades = "".join(f"{name},{tier},true\n" for name in NAMES for tier in ("cheap", "top"))
    (study / "people.csv").write_text("id,tier,passed\n" + grades)
    with running_mock(rules=[{"models": ["judge"], "answer": '{"verdict": "pass"}'}]) as mock:
        judge = {
            "model": "openai/judge",
            "params": {"api_base": mock.url, "api_key": "os.environ/DEMO_KEY", "max_tokens": 50},
            "prompt_file": "judge.txt",
            "json_field": "verdict",
            "words": {"pass": "pass", "fail": "fail"},
        }
        rubric = {"rubric": "by-a-judge", "judge": judge, "human": {"path": "people.csv"}}
        write_study(study, mock, items(NAMES), rubric=rubric, policy="gates.yaml", system_prompt="system.txt")
        ran = evalkit(capsys, "route-sweep", study / "study.yaml", "--out", "run", out=Path("run"))
        assert ran.code in {0, 1, 3}, ran.err
    with zipfile.ZipFile("run/evidence.zip") as file:
        names = set(file.namelist())
        index = json.loads(file.read("files.json"))
        assert file.read("human_grades/people.csv") == (study / "people.csv").read_bytes()
        assert KEY.encode() not in b"".join(file.read(name) for name in names)
    assert names == {
        "files.json",
        "looks.json",
        "study.yaml",
        "labels/labels.jsonl",
        "outcomes/outcomes.jsonl",
        "scores/scores.csv",
        "prices/prices.yaml",
        "policy/gates.yaml",
        "replay/replay.json",
        "rubric/rubric.yaml",
        "judge_prompt/judge.txt",
        "human_grades/people.csv",
        "system_prompt/system.txt",
    }
    assert {row["name"] for row in index["files"]} == names - {"files.json"}

    assert main(["sign-off", "--policy", "study/gates.yaml", "run", "--out", "out", "--quiet"]) in {0, 1, 3}
    document = json.loads(Path("out/signoff.json").read_text(encoding="utf-8"))
    gates = {gate["name"]: gate for gate in document["gates"]}
    # 30 items on which judge and people agree: the exact bound at 95 % is 0.05 ** (1 / 30).
    agreement = gates["judge_agreement"]
    assert (agreement["observed"], agreement["n"], agreement["state"]) == (1.0, 30.0, "pass")
    assert agreement["bound"] == pytest.approx(0.05 ** (1 / 30))
    assert (gates["judge_unparseable"]["observed"], gates["judge_unparseable"]["state"]) == (0.0, "pass")
    assert gates["evidence"]["state"] == gates["policy_before_run"]["state"] == "pass"

    shutil.rmtree(study)
    shutil.rmtree("reports")
    shutil.rmtree("run")
    monkeypatch.delenv("DEMO_KEY")
    assert main(["verify", "out"]) == 0
    capsys.readouterr()
