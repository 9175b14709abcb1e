"""A study whose labels are audited, and the commands that do it, for the tests of audits."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main

STUDY = """study: planted
kind: routing
labels: labels.jsonl
outcomes: outcomes.csv
tiers: [{name: cheap}, {name: strong}]
router: {scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, cost_usd: 0, seconds: 0}
risk:
  high: {under_route_loss: 0.02, max_under_route: 0.05}
bootstrap_replicates: 200
seed: 7
"""
N, NEEDS = 900, 300


def write(folder: Path, world: list[dict[str, Any]], *, miss: bool) -> Path:
    """The study, labelled by the annotator who misses needs, or rightly."""
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
        for row in world:
            said = "strong" if row["need"] and not (miss and row["slip"]) else "cheap"
            record = {"id": row["id"], "prompt": f"question {row['id']}", "required_tier": said, "risk": "high"}
            file.write(json.dumps(record) + "\n")
    with (folder / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        at = [row["score"] if miss or not row["slip"] else row["score"] + 0.5 for row in world]
        out.writerows([("id", "score"), *((row["id"], score) for row, score in zip(world, at, strict=True))])
    with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("id", "tier", "status", "cost_usd", "task_s"))
        for row in world:
            out.writerow((row["id"], "cheap", "wrong" if row["need"] else "ok", 0.001, 1))
            out.writerow((row["id"], "strong", "ok", 0.02, 2))
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder / "study.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def sweep(capsys: Any, folder: Path, out: str = "run") -> tuple[int, dict[str, Any]]:
    code, _, err = run(capsys, "route-sweep", folder / "study.yaml", "--out", folder / out, "--quiet")
    assert code in {0, 1, 3}, err
    return code, json.loads((folder / out / "result.json").read_text(encoding="utf-8"))


def judged(folder: Path, world: list[dict[str, Any]]) -> Path:
    """The drawn file, judged by somebody careful."""
    need = {row["id"]: row["need"] for row in world}
    with (folder / "audit.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["required_tier"] = "strong" if need[row["id"]] else "cheap"
    with (folder / "audit.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    return folder / "audit.csv"


def audited(capsys: Any, folder: Path, world: list[dict[str, Any]], *options: object) -> dict[str, Any]:
    """Audit the study, and name the audit in it."""
    study = folder / "study.yaml"
    code, _, err = run(capsys, "labels", "audit", study, "--out", folder / "audit.csv", *options)
    assert code == 0, err
    code, _, err = run(
        capsys, "labels", "audit", study, "--judged", judged(folder, world), "--json", folder / "audit.json"
    )
    assert code == 0, err
    study.write_text(STUDY + "audit: audit.json\n", encoding="utf-8")
    return json.loads((folder / "audit.json").read_text(encoding="utf-8"))
