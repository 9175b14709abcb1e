"""What the end-to-end tests of the cases share: a case's files copied, and a study that maps their names."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

from tests.workflows.studies import CASE_COLUMNS, write_study

TIERS = ("cheap", "mid", "frontier", "reasoning")
RISK = {
    "low": {"under_route_loss": 1, "max_under_route": 0.1, "weight": 1},
    "medium": {"under_route_loss": 3, "max_under_route": 0.1, "weight": 3},
    "high": {"under_route_loss": 10, "max_under_route": 0.05, "weight": 10},
    "critical": {"under_route_loss": 25, "max_under_route": 0, "weight": 25},
}


def case(shared: Path, name: str, folder: Path) -> dict[str, Any]:
    """Copy a case's inputs into `folder`; its expect.json."""
    for file in (shared / "cases" / name).iterdir():
        if file.suffix != ".md":
            shutil.copyfile(file, folder / file.name)
    return json.loads((folder / "expect.json").read_text(encoding="utf-8"))


def study(folder: Path, router: dict[str, Any], **changes: Any) -> None:
    settings: dict[str, Any] = {
        "labels": {"path": "labels.csv", "columns": CASE_COLUMNS},
        "outcomes": None,
        "tiers": [{"name": tier} for tier in TIERS],
        "router": {"cost_usd": 0, **router},
        "risk": RISK,
    }
    write_study(folder, **(settings | changes))


def decided(file: str) -> dict[str, Any]:
    return {"decisions": {"path": file, "columns": {"id": "query_id"}}}


def scored(file: str, **more: Any) -> dict[str, Any]:
    return {
        "scores": {"path": file, "columns": {"id": "query_id"}},
        "higher_means": "needs_stronger",
        "trained_on": "untrained",
        **more,
    }


def assumed_costs(folder: Path, ids: list[str], passes: dict[str, int]) -> None:
    """Outcomes for two tiers at made-up costs: an item passes from its required tier on."""
    with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "tier", "passed", "cost_usd"])
        for item in ids:
            for j, tier in enumerate(("cheap", "frontier")):
                writer.writerow([item, tier, "true" if j >= passes[item] else "false", (0.001, 0.02)[j]])


def labelled(folder: Path) -> tuple[list[str], dict[str, int]]:
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [r["query_id"] for r in rows], {r["query_id"]: int(r["required_tier"] != "cheap") for r in rows}


TWO_TIERS = {"outcomes": "outcomes.csv", "tiers": [{"name": "cheap"}, {"name": "frontier"}]}


def mentions(text: str, tokens: list[str]) -> bool:
    """One line holds all tokens."""
    return any(all(token in line for token in tokens) for line in text.splitlines())
