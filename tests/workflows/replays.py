"""Studies that call the mock server, and the command line run on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalkit.providers.call import Reply
from evalkit.replay import Ledger, cells_of
from evalkit.workflows.replay_setup import read_any_study, read_replay
from tests.providers.mock_openai import MockServer, content_name, default_answer

KEY = "sk-FAKE-demo-0000-not-a-key"
PRICES = {"cheap": {"input": "0.10", "output": "0.40"}, "top": {"input": "5", "output": "20"}}
MODELS = {"cheap": "openai/cheap", "top": "openai/top"}
FAST = {"concurrency": 4, "max_attempts": 3, "request_timeout_s": 2}


@dataclass(frozen=True)
class Ran:
    """What a run of the command line said, and what it wrote into `folder`, as it was then."""

    code: int
    out: str
    err: str
    folder: Path
    summary: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    def status(self) -> dict[tuple[str, str, int], str]:
        """Status by item, candidate and sample."""
        return {(row["id"], row.get("tier", row.get("arm")), row["sample"]): row["status"] for row in self.rows}


def evalkit(capsys: pytest.CaptureFixture[str], *arguments: str | Path, out: Path) -> Ran:
    """Run `evalkit` with these arguments in this process."""
    from evalkit.cli.app import main

    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    summary, rows = out / "replay.json", out / "outcomes.jsonl"
    return Ran(
        code,
        captured.out,
        captured.err,
        out,
        json.loads(summary.read_text(encoding="utf-8")) if summary.is_file() else {},
        [json.loads(line) for line in rows.read_text(encoding="utf-8").split("\n") if line]
        if rows.is_file()
        else [],
    )


def replay(capsys: pytest.CaptureFixture[str], folder: Path, *more: str | Path) -> Ran:
    """`evalkit replay` on `folder`/study.yaml, into `folder`/run."""
    return evalkit(capsys, "replay", folder / "study.yaml", "--out", folder / "run", *more, out=folder / "run")


def write_yaml(path: Path, value: dict[str, Any]) -> None:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe")
    yaml.width = 4096
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(value, file)


def write_jsonl(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def right_answer(model: str, prompt: str) -> str:
    """What the mock server answers where no rule says otherwise."""
    return default_answer(model, prompt)


def items(names: Sequence[str], **more: Any) -> list[dict[str, Any]]:
    """Labels whose reference is what the model `top` answers; `cheap` answers something else."""
    return [
        {
            "id": name,
            "prompt": f"prompt {name}",
            "required_tier": "top",
            "risk": "low",
            "reference": right_answer("top", f"prompt {name}"),
            **more,
        }
        for name in names
    ]


def write_study(
    folder: Path,
    mock: MockServer | None,
    labels: Sequence[dict[str, Any]],
    *,
    tiers: Sequence[str] = ("cheap", "top"),
    params: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    rubric: dict[str, Any] | None = None,
    prices: bool = True,
    changes: dict[str, Any] | None = None,
    **more: Any,
) -> Path:
    """study.yaml, labels.jsonl, rubric.yaml and prices.yaml of a routing study that calls the mock server.

    `more` and `changes` go to the top of the study; None leaves a key out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "labels.jsonl", labels)
    write_yaml(folder / "rubric.yaml", rubric or {"rubric": "same-text", "check": {"kind": "exact"}})
    write_prices(folder)
    if not (folder / "scores.csv").is_file():
        rows = [f"{row['id']},{0.1 if n % 2 else 0.9}\n" for n, row in enumerate(labels)]
        (folder / "scores.csv").write_text("id,score\n" + "".join(rows), encoding="utf-8")
    base = {} if mock is None else {"api_base": mock.url, "api_key": "os.environ/DEMO_KEY"}
    study: dict[str, Any] = {
        "study": "small",
        "kind": "routing",
        "labels": "labels.jsonl",
        "rubric": "rubric.yaml",
        "tiers": [
            {"name": name, "model": MODELS[name], "params": {"max_tokens": 20, **base, **(params or {})}}
            for name in tiers
        ],
        "replay": FAST | (options or {}),
        "router": {
            "scores": "scores.csv",
            "higher_means": "needs_stronger",
            "trained_on": "other_items",
            "cost_usd": 0.0001,
        },
        "risk": {"low": {"under_route_loss": 0.05, "max_under_route": 0.5}},
        **({"prices": "prices.yaml"} if prices else {}),
    }
    for tier in study["tiers"]:
        tier["params"] = {key: value for key, value in tier["params"].items() if value is not None}
    study |= more | (changes or {})
    write_yaml(folder / "study.yaml", {key: value for key, value in study.items() if value is not None})
    return folder / "study.yaml"


def write_ladder(
    folder: Path,
    mock: MockServer,
    labels: Sequence[dict[str, Any]],
    arms: Sequence[dict[str, Any]],
    **more: Any,
) -> Path:
    """A reasoning-budget study whose arms all call the model `top` of the mock server."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [{key: value for key, value in row.items() if key != "required_tier"} for row in labels]
    write_jsonl(folder / "labels.jsonl", tasks)
    write_yaml(folder / "rubric.yaml", {"rubric": "same-text", "check": {"kind": "exact"}})
    write_prices(folder)
    base = {"api_base": mock.url, "api_key": "os.environ/DEMO_KEY", "max_tokens": 20}
    study: dict[str, Any] = {
        "study": "ladder",
        "kind": "reasoning-budget",
        "labels": "labels.jsonl",
        "rubric": "rubric.yaml",
        "prices": "prices.yaml",
        "arms": [
            {"model": MODELS["top"], **arm, "params": {**base, **arm.get("params", {})}}
            if "of" not in arm
            else arm
            for arm in arms
        ],
        "replay": FAST,
        "limits": {"min_pass_rate": 0.5},
    }
    study |= more
    write_yaml(folder / "study.yaml", study)
    return folder / "study.yaml"


def write_prices(folder: Path, factor: int = 1) -> None:
    models = {
        name: {
            "input": float(Decimal(PRICES[tier]["input"]) * factor),
            "output": float(Decimal(PRICES[tier]["output"]) * factor),
            "batch_factor": 0.5,
        }
        for tier, name in MODELS.items()
    }
    card = {"currency": "USD", "unit": "per_1m_tokens", "as_of": "2026-01-15", "models": models}
    write_yaml(folder / "prices.yaml", card)


def asked(mock: MockServer, model: str, prompt: str) -> int:
    """How often the server was asked this."""
    return int(mock.counts()["contents"].get(content_name(model, prompt), [0, 0])[0])


def replied(study: Path, folder: Path) -> list[str]:
    """The items that have a reply on disk at this moment."""
    if not (folder / "ledger.sqlite").exists():
        return []
    plan = read_replay(read_any_study(study)).plan
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        return [record.cell.item for record in cells_of(ledger, plan) if isinstance(record.result, Reply)]


class Child:
    """`evalkit` in a process of its own, for signals and times."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "evalkit", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )

    def signal(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def end(self, timeout_s: float = 60) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) once it has ended."""
        out, err = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, out, err


def until(what: Callable[[], bool], timeout_s: float = 30) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)
