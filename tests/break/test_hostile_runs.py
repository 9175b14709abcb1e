"""Studies that must not be approved, and runs that must not destroy what they read."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main

NEEDS = {"chat": 60, "refund": 100}


def write(folder: Path, **changes: Any) -> Path:
    """A two-tier study that is approved as it stands; `changes`: cheap (a row of the cheap tier, by need),
    weight (of an item, by risk and need), score (by need), study (text to replace by text)."""
    rng = random.Random(7)
    labels, outcomes, scores = ["id,risk,required_tier,weight"], ["id,tier,status,cost_usd"], ["id,score"]
    cheap = changes.get("cheap", lambda need: ("wrong" if need else "ok", 0.0004))
    weight = changes.get("weight", lambda risk, need, i: 1)
    score = changes.get("score", lambda need: round(rng.gauss(0.7 if need else 0.3, 0.05), 4))
    number = 0
    for risk, needs in NEEDS.items():
        for i in range(2 * needs):
            need = i < needs
            name, number = f"q{number}", number + 1
            labels.append(f"{name},{risk},{'strong' if need else 'cheap'},{weight(risk, need, i)}")
            status, cost = cheap(need)
            outcomes += [f"{name},cheap,{status},{cost}", f"{name},strong,ok,0.012"]
            scores.append(f"{name},{score(need)!r}")
    study = """study: hostile
kind: routing
labels: labels.csv
outcomes: outcomes.csv
tiers: [{name: cheap}, {name: strong}]
router: {scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, cost_usd: 0.0001}
risk:
  chat: {under_route_loss: 0.01, max_under_route: 0.10}
  refund: {under_route_loss: 0.50, max_under_route: 0.05}
limits: {max_escalation: 0.8, max_cost_per_request: 0.01}
bootstrap_replicates: 100
"""
    for old, new in changes.get("study", {}).items():
        assert old in study
        study = study.replace(old, new)
    for file, lines in (("labels.csv", labels), ("outcomes.csv", outcomes), ("scores.csv", scores)):
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "study.yaml").write_text(study, encoding="utf-8")
    return folder / "study.yaml"


def sweep(folder: Path, *arguments: str) -> int:
    return main(["route-sweep", str(folder / "study.yaml"), "--out", str(folder / "run"), "--quiet", *arguments])


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_study_is_approved_as_it_stands(tmp_path: Path) -> None:
    write(tmp_path)
    assert sweep(tmp_path) == 0


def test_a_tier_that_never_answered_is_not_approved(tmp_path: Path) -> None:
    write(tmp_path, cheap=lambda need: ("error", 0.0004))
    assert sweep(tmp_path) == 3
    verdict = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))["verdict"]
    assert "No request to cheap was answered" in verdict["reasons"][0]


def test_what_the_strong_model_answered_in_the_place_of_the_cheap_one_is_not_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = "[{name: cheap, model: demo/cheap}, {name: strong, model: demo/strong}]"
    write(tmp_path, study={"[{name: cheap}, {name: strong}]": models})
    header, *rows = (tmp_path / "outcomes.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{header},model", *(f"{row},demo/strong" for row in rows)]
    (tmp_path / "outcomes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert sweep(tmp_path) == 3
    assert "cheap: 320 of its outcomes are of demo/strong and not of demo/cheap" in capsys.readouterr().err


@pytest.mark.parametrize(("attempts", "code"), [(1, 0), (4, 3)])
def test_the_time_of_the_last_of_several_attempts_certifies_no_time_limit(
    tmp_path: Path, attempts: int, code: int
) -> None:
    limits = "limits: {max_escalation: 0.8, max_cost_per_request: 0.01}"
    timed = limits.replace("}", ", p95_task_seconds: 5}")
    write(tmp_path, study={limits: timed, "cost_usd: 0.0001}": "cost_usd: 0.0001, seconds: 0}"})
    header, *rows = (tmp_path / "outcomes.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{header},request_s,attempts", *(f"{row},2,{attempts}" for row in rows)]
    (tmp_path / "outcomes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert sweep(tmp_path) == code


@pytest.mark.parametrize("cost", ["1e18", "1e308", "1000001"])
def test_a_cost_beside_which_all_others_are_lost_in_a_sum_is_a_fault(tmp_path: Path, cost: str) -> None:
    write(tmp_path, cheap=lambda need: ("wrong" if need else "ok", cost if need else 0.0004))
    before = files(tmp_path)
    assert sweep(tmp_path) == 2
    assert files(tmp_path) == before


@pytest.mark.parametrize("value", [sys.float_info.max, -sys.float_info.max, 1e301])
def test_a_score_beyond_which_no_threshold_fits_is_a_fault(tmp_path: Path, value: float) -> None:
    write(tmp_path, score=lambda need: value if need else 0.0)
    before = files(tmp_path)
    assert sweep(tmp_path) == 2
    assert files(tmp_path) == before


@pytest.mark.parametrize("value", [1e300, 5e-324, -5e-324, -1e300])
def test_scores_at_the_ends_of_what_a_number_holds_are_judged(tmp_path: Path, value: float) -> None:
    write(tmp_path, score=lambda need: value if need == (value > 0) else 0.0)
    assert sweep(tmp_path) == 0


def test_no_class_is_judged_on_an_estimate_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = {"max_under_route: 0.10}": "max_under_route: 0, gate_on: estimate}"}
    write(tmp_path, study=estimate)
    assert sweep(tmp_path) == 2
    assert "risk.chat.gate_on: a limit of 0" in capsys.readouterr().err


def test_needs_without_traffic_are_no_evidence_for_an_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = {"max_under_route: 0.10}": "max_under_route: 0.10, gate_on: estimate}"}
    write(tmp_path, study=estimate, weight=lambda risk, need, i: 0 if risk == "chat" and need and i else 1)
    assert sweep(tmp_path) == 2
    assert "the labels have 1 of class chat" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--junit", "--markdown"])
@pytest.mark.parametrize(
    "name", ["labels.csv", "outcomes.csv", "scores.csv", "study.yaml", "labels.csv.looks.json", "run/report.html"]
)
def test_a_run_overwrites_nothing_that_it_reads_and_nothing_twice(tmp_path: Path, option: str, name: str) -> None:
    write(tmp_path)
    before = files(tmp_path)
    assert sweep(tmp_path, option, str(tmp_path / "run" / ".." / name)) == 2
    assert files(tmp_path) == before


def test_where_one_file_cannot_be_written_all_stay_as_they_were(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "run" / "items.jsonl.gz").mkdir(parents=True)
    (tmp_path / "run" / "report.html").write_text("old", encoding="utf-8")
    assert sweep(tmp_path) == 2
    assert (tmp_path / "run" / "report.html").read_text(encoding="utf-8") == "old"
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["items.jsonl.gz", "report.html"]


def test_a_long_name_of_many_bytes_still_names_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, study={"study: hostile": f"study: {'가' * 100}"})
    assert main(["route-sweep", "study.yaml", "--quiet"]) == 0
    assert len(list((tmp_path / "reports").iterdir())) == 1


def test_labels_and_outcomes_are_not_written_over_their_source(tmp_path: Path) -> None:
    write(tmp_path)
    before = files(tmp_path)
    outcomes, scores = str(tmp_path / "outcomes.csv"), str(tmp_path / "scores.csv")
    derive = ["labels", "derive", outcomes, "--tiers", "cheap,strong", "--risk", "chat", "--out"]
    assert main([*derive, outcomes]) == 2
    assert main(["import", "wide", scores, "--id", "id", "--tier", "cheap=score", "--out", scores]) == 2
    assert files(tmp_path) == before


def run(folder: Path, shell: str) -> subprocess.CompletedProcess[str]:
    text = shell.replace("EVALKIT", f'"{sys.executable}" -m evalkit')
    root = str(Path(__file__).resolve().parents[2])
    where = {**os.environ, "PYTHONPATH": root}
    return subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, env=where, check=False)


def test_a_reader_that_goes_away_is_no_verdict(tmp_path: Path) -> None:
    write(tmp_path)
    done = run(tmp_path, "EVALKIT route-sweep study.yaml | true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_input_error_that_cannot_be_printed_is_no_verdict(tmp_path: Path) -> None:
    assert run(tmp_path, "EVALKIT route-sweep nope.yaml 2>/dev/full").returncode == 2


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
def test_a_study_without_an_end_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["route-sweep", "/dev/zero"]) == 2
    assert "at most 4,000,000 are read" in capsys.readouterr().err


def test_more_risk_classes_than_anybody_could_certify_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = "".join(f"  c{i}: {{under_route_loss: 0.001}}\n" for i in range(99))
    write(tmp_path, study={"limits:": f"{many}limits:"})
    before = files(tmp_path)
    assert sweep(tmp_path) == 2
    assert "field risk: has 101 classes" in capsys.readouterr().err
    assert files(tmp_path) == before
