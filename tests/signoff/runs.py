"""Finished runs as small as they can be, written as the commands write them, for comparisons."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from evalkit.signoff.run_folder import Run, read_run

TIERS = ("cheap", "frontier")


def item(name: str, **changes: Any) -> dict[str, Any]:
    """A row of items.jsonl.gz: an easy item of low risk that stays cheap and passes."""
    row: dict[str, Any] = {
        "id": name,
        "category": None,
        "group": None,
        "risk": "low",
        "required_tier": "cheap",
        "routed_tier": "cheap",
        "score": 0.1,
        "weight": 1.0,
        "loss_usd": 0.0,
        "cost_usd": 0.001,
        "task_s": 1.0,
        "flags": [],
        "status": "ok",
        "passed": 1.0,
    }
    return row | changes


def failing(name: str, **changes: Any) -> dict[str, Any]:
    return item(name, **{"passed": 0.0, "status": "wrong", "flags": ["wrong"], **changes})


def under_routed(name: str, **changes: Any) -> dict[str, Any]:
    return item(name, **{"required_tier": "frontier", "flags": ["under_routed"], "risk": "critical", **changes})


def result(n: int, **changes: Any) -> dict[str, Any]:
    """A result.json with what a comparison reads."""
    document: dict[str, Any] = {
        "schema": "evalkit.route-sweep/1",
        "evalkit_version": "0.1.0",
        "study": "small",
        "verdict": {"decision": "approve", "headline": "Approved"},
        "rule": "score >= t goes up",
        "tiers": [{"name": name} for name in TIERS],
        "risk_classes": [
            {"name": "low", "under_route_loss_usd": 0.05},
            {"name": "critical", "under_route_loss_usd": 40.0},
        ],
        "counts": {"items": n, "groups": None},
        "shown": {"name": "selected", "thresholds": [0.5]},
        "gates": [{"name": "under_route:critical", "label": "Under-routing, critical", "status": "certified"}],
        "provenance": {
            "study_file": "study.yaml",
            "study_hash": "sha256:" + "1" * 64,
            "labels": {"file": "labels.csv", "hash": "sha256:" + "2" * 64},
            "prices": None,
            "seed": 7,
        },
    }
    return document | changes


def write_run(folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(result(len(rows), **changes)), encoding="utf-8")
    with gzip.open(folder / "items.jsonl.gz", "wt", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    return folder


def run_of(folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Run:
    return read_run(write_run(folder, rows, **changes))


def priced(**card: Any) -> dict[str, Any]:
    """The provenance of a run that was priced with a card."""
    return {"provenance": {**result(0)["provenance"], "prices": card}}
