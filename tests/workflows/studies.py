"""Small studies on disk for the end-to-end tests, and the command line run on them in this process."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TIERS = ("cheap", "frontier")
CASE_COLUMNS = {"id": "query_id", "prompt": "query", "risk": "risk_class", "reference": "expected"}


@dataclass(frozen=True)
class Ran:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"), parse_constant=_refuse)

    @property
    def html(self) -> str:
        return (self.folder / "report.html").read_text(encoding="utf-8")

    def wrote_nothing(self) -> bool:
        return not self.folder.exists() or not any(self.folder.iterdir())


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def evalkit(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> Ran:
    """Run `evalkit route-sweep` on `folder`/study.yaml, writing into `folder`/run."""
    from evalkit.cli.app import main

    out = folder / "run"
    capsys.readouterr()
    code = main(["route-sweep", str(folder / "study.yaml"), "--out", str(out), *arguments])
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err, out)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_study(folder: Path, **changes: Any) -> None:
    """study.yaml of a two-tier study on labels.csv, outcomes.csv and scores.csv; `changes` replace top keys, and
    None removes one."""
    from ruamel.yaml import YAML

    study: dict[str, Any] = {
        "study": "small",
        "kind": "routing",
        "labels": "labels.csv",
        "outcomes": "outcomes.csv",
        "tiers": [{"name": name, "model": f"demo/{name}"} for name in TIERS],
        "router": {
            "scores": "scores.csv",
            "higher_means": "needs_stronger",
            "trained_on": "other_items",
            "cost_usd": 0.0001,
            "seconds": 0.01,
        },
        "risk": {
            "low": {"under_route_loss": 0.05, "max_under_route": 0.1},
            "critical": {"under_route_loss": 0.5, "max_under_route": 0.05},
        },
    }
    for key, value in changes.items():
        if value is None:
            study.pop(key, None)
        else:
            study[key] = value
    with (folder / "study.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(study, file)


def write_items(folder: Path, n: int = 600, hard_every: int = 2, critical_every: int = 2) -> None:
    """n items whose score says what they need: the hard ones score .9 and pass at the frontier tier only."""
    labels, outcomes, scores = [], [], []
    for i in range(n):
        hard = i % hard_every == 0
        critical = (i // 2) % critical_every == 0
        labels.append(
            {
                "id": f"q{i}",
                "prompt": f"question {i}",
                "required_tier": "frontier" if hard else "cheap",
                "risk": "critical" if critical else "low",
            }
        )
        scores.append({"id": f"q{i}", "score": 0.9 if hard else round(0.1 + 0.0001 * i, 4)})
        for tier, usd in (("cheap", 0.001), ("frontier", 0.02)):
            passed = tier == "frontier" or not hard
            outcomes.append(
                {
                    "id": f"q{i}",
                    "tier": tier,
                    "model": f"demo/{tier}",
                    "status": "ok" if passed else "wrong",
                    "cost_usd": usd,
                    "task_s": 0.5 if tier == "cheap" else 1.5,
                }
            )
    write_csv(folder / "labels.csv", labels)
    write_csv(folder / "outcomes.csv", outcomes)
    write_csv(folder / "scores.csv", scores)
