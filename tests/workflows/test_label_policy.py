"""The label commands and a study that names a gate policy: they go by the limits that it will be judged by."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main

STUDY = """study: held
kind: routing
policy: gates.yaml
labels: labels.jsonl
tiers: [{name: cheap}, {name: strong}]
router: {scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, thresholds: [0.5], cost_usd: 0}
risk:
  low: {under_route_loss: 0.05, max_under_route: 0.3, gate_on: estimate}
  high: {under_route_loss: 4.0, max_under_route: 0.2}
"""
POLICY = """policy: release
risk: {high: {max_under_route: 0.05}}
release: {rollout: [all], rollback_when: it fails, rollback_how: undo, owner: team}
signers: [{role: approver}]
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """200 items of each class, half of them needs; the scores tell them apart."""
    with (tmp_path / "labels.jsonl").open("w", encoding="utf-8") as file:
        for risk in ("low", "high"):
            for i in range(200):
                tier = "strong" if i % 2 else "cheap"
                file.write(
                    json.dumps({"id": f"{risk}{i}", "prompt": f"{i}?", "risk": risk, "required_tier": tier})
                )
                file.write("\n")
    with (tmp_path / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(f"{risk}{i}", 0.9 if i % 2 else 0.1) for risk in ("low", "high") for i in range(200)]
        csv.writer(file).writerows([("id", "score"), *rows])
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "gates.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "study.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def document(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def test_the_plan_is_for_the_stricter_limit(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = study.parent / "plan.json"
    code, shown, notices = run(capsys, "labels", "plan", study, "--json", out)
    assert code == 0
    high = document(out)["classes"][1]
    assert (high["limit"], high["rows"][0]["needs"]) == (0.05, 59)  # .95^59 <= .05 < .95^58
    assert "gates.yaml: risk.high.max_under_route is 0.05 (study: 0.2)" in notices
    assert "5 %" in shown


def test_a_policy_that_is_not_there_yet_is_said(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (study.parent / "gates.yaml").unlink()
    out = study.parent / "plan.json"
    code, _, notices = run(capsys, "labels", "plan", study, "--json", out)
    assert code == 0
    assert document(out)["classes"][1]["limit"] == 0.2
    assert "there is no such policy yet" in notices


def test_next_labels_go_by_the_stricter_limit(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = study.parent / "pool.csv"
    pool.write_text("id,risk\n" + "".join(f"p{i},high\n" for i in range(50)), encoding="utf-8")
    out = study.parent / "next.json"
    code, _, notices = run(capsys, "labels", "next", study, "--unlabelled", pool, "--json", out)
    assert code == 0
    assert [row["limit"] for row in document(out)["classes"]] == [0.05]
    assert "gates.yaml" in notices


def test_an_audit_is_read_against_the_stricter_limit(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = study.parent
    drawn = folder / "audit.csv"
    code, shown, _ = run(capsys, "labels", "audit", study, "--out", drawn, "--per-class", 40)
    assert code == 0
    assert [row.split()[3] for row in shown.splitlines()[2:4]] == ["30", "5"]
    names = "--tiers cheap,strong --risk-classes low,high"
    assert f"\npage: evalkit label {drawn} {names} --annotator NAME --out NAME.jsonl\n" in shown
    back = f"evalkit labels audit {study} --judged {drawn} --json audit.json"
    assert f"\nread back: {back}\n" in shown
    with drawn.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with drawn.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([{**row, "required_tier": "cheap"} for row in rows])
    out = folder / "audit.json"
    code, shown, _ = run(capsys, "labels", "audit", study, "--judged", drawn, "--json", out)
    assert code == 0
    low, high = document(out)["classes"]
    assert (high["limit"], high["within_limit"]) == (
        0.05,
        False,
    )  # 100 needs alone certify 3.6 % with half of delta
    assert (low["limit"], low["within_limit"]) == (0.3, None)
    assert "Nothing is kept of this" not in shown
    assert "Nothing is kept of this" in run(capsys, "labels", "audit", study, "--judged", drawn)[1]
    assert "NOT KEPT" in next(line for line in shown.splitlines() if line.startswith("high"))
    assert "estimate" in next(line for line in shown.splitlines() if line.startswith("low"))
