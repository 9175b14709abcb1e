"""A study that compares several routers on the same items, on disk."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.studies import write_csv, write_items, write_study

KEYWORDS: dict[str, Any] = {
    "name": "keywords",
    "kind": "rules",
    "rules": "rules.yaml",
    "cost_usd": 0,
    "seconds": 0,
}
VENDOR: dict[str, Any] = {
    "name": "vendor",
    "scores": "scores.csv",
    "higher_means": "needs_stronger",
    "trained_on": "other_items",
    "cost_usd": 0.001,
    "seconds": 0.01,
    "probability": True,
}
NOISE: dict[str, Any] = {
    "name": "noise",
    "scores": "noise.csv",
    "higher_means": "needs_stronger",
    "trained_on": "untrained",
    "cost_usd": 0,
    "seconds": 0,
}
RULES = """\
rules:
  - {name: legal, patterns: ['contract'], score: 0.9}
otherwise: 0.1
"""


def write_routers(folder: Path, *routers: dict[str, Any], n: int = 600, **changes: Any) -> None:
    """n items of which every second is hard: the vendor and the rules (but for every 40th) know which, and another
    score is random."""
    import csv

    write_items(folder, n)
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        labels = list(csv.DictReader(file))
    for i, row in enumerate(labels):
        said = row["required_tier"] == "frontier" or i % 40 == 1
        row["prompt"] = f"question {i} about a {'contract' if said else 'greeting'}"
    write_csv(folder / "labels.csv", labels)
    draw = random.Random(5)
    write_csv(folder / "noise.csv", [{"id": row["id"], "score": draw.random()} for row in labels])
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    chosen = routers or (KEYWORDS, VENDOR, NOISE)
    write_study(folder, router=None, routers=[dict(router) for router in chosen], **changes)


def looks(folder: Path) -> list[dict[str, Any]]:
    """The looks that were booked at the labels of a study."""
    found: list[dict[str, Any]] = json.loads((folder / "labels.csv.looks.json").read_text("utf-8"))["looks"]
    return found


def verified(capsys: pytest.CaptureFixture[str], folder: Path) -> tuple[int, str]:
    """What `evalkit verify` says of a run: its exit code and all that it prints."""
    from evalkit.cli.app import main

    capsys.readouterr()
    code = main(["verify", str(folder)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err
