"""Reasoning-budget studies on disk for the end-to-end tests, and the command line run on them in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.studies import Ran, write_csv

ARMS = ("plain", "think-1k", "think-4k")
Outcome = Callable[[int, str, int], dict[str, Any]]


def reasoning_budget(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> Ran:
    """Run `evalkit reasoning-budget` on `folder`/study.yaml, writing into `folder`/run."""
    from evalkit.cli.app import main

    out = folder / "run"
    capsys.readouterr()
    code = main(["reasoning-budget", str(folder / "study.yaml"), "--out", str(out), *arguments])
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err, out)


def write_ladder(folder: Path, **changes: Any) -> None:
    """study.yaml of a ladder of three arms on tasks.csv and runs.csv; `changes` replace top keys, None removes."""
    from ruamel.yaml import YAML

    study: dict[str, Any] = {
        "study": "ladder",
        "kind": "reasoning-budget",
        "labels": "tasks.csv",
        "outcomes": "runs.csv",
        "arms": [
            {"name": "plain", "model": "demo/m"},
            {"name": "think-1k", "model": "demo/m", "budget_tokens": 1024},
            {"name": "think-4k", "model": "demo/m", "budget_tokens": 4096},
        ],
        "risk": {"high": {"max_failure": 0.05}, "low": {}},
        "value_per_point_usd": 0.002,
        "smallest_worthwhile_gain": 5.0,
        "limits": {"min_pass_rate": 0.9, "p95_task_seconds": 60},
    }
    for key, value in changes.items():
        if value is None:
            study.pop(key, None)
        else:
            study[key] = value
    with (folder / "study.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(study, file)


def passing(i: int, arm: str, sample: int) -> dict[str, Any]:
    """Plain fails every fourth task, thinking fails none; more thinking costs and takes more."""
    place = ARMS.index(arm) if arm in ARMS else 0
    ok = place > 0 or i % 4 != 1
    return {
        "status": "ok" if ok else "wrong",
        "reply": str(i if ok else i + 1),
        "cost_usd": (0.001, 0.004, 0.02)[place],
        "input_tokens": 50,
        "output_tokens": (20, 400, 2000)[place],
        "reasoning_tokens": (0, 380, 1900)[place],
        "task_s": (0.5, 4.0, 20.0)[place],
        "attempts": 1,
    }


def write_runs(
    folder: Path, tasks: int = 400, *, arms: tuple[str, ...] = ARMS, samples: int = 1, outcome: Outcome = passing
) -> None:
    """Half of the tasks are of high risk."""
    write_csv(
        folder / "tasks.csv",
        [
            {"id": f"t{i}", "prompt": f"task {i}", "risk": "high" if i % 2 else "low", "reference": str(i)}
            for i in range(tasks)
        ],
    )
    rows = [
        {"id": f"t{i}", "arm": arm, "model": "demo/m", "sample": s, **outcome(i, arm, s)}
        for i in range(tasks)
        for arm in arms
        for s in range(samples)
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    write_csv(folder / "runs.csv", [{name: row.get(name, "") for name in names} for row in rows])
