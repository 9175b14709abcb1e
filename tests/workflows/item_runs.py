"""Run folders written by hand, with just what the pages of items read, so that anything can stand in them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HOSTILE = '</td></tr><script>document.title="owned"</script><img src=x onerror=alert(1)>\u202e\x1b[2J&amp;'
HOSTILE_NAME = '"><base href=//evil.example><b>\u2028'


def item(i: int, **changes: Any) -> dict[str, Any]:
    """An item of a router that went to the cheap tier and passed."""
    row: dict[str, Any] = {
        "id": f"q{i}",
        "category": "billing",
        "group": None,
        "risk": "low",
        "required_tier": "cheap",
        "routed_tier": "cheap",
        "score": 0.25,
        "weight": 1.0,
        "loss_usd": 0.0,
        "cost_usd": 0.001,
        "task_s": 0.5,
        "flags": [],
        "status": "ok",
        "passed": 1.0,
    }
    return row | changes


def write_run(
    folder: Path, rows: Iterable[dict[str, Any]], *, risks: tuple[str, ...] = ("low", "critical"), **changes: Any
) -> Path:
    """The folder with result.json and items.jsonl.gz of a routing run of these rows; `changes` of result.json."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    with gzip.open(folder / "items.jsonl.gz", "wt", encoding="utf-8", compresslevel=1) as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
            count += 1
    document: dict[str, Any] = {
        "schema": "evalkit.route-sweep/1",
        "study": "small",
        "verdict": {"decision": "approve"},
        "counts": {"items": count},
        "gates": [],
        "provenance": {},
        "risk_classes": [{"name": name, "under_route_loss_usd": 10.0**i} for i, name in enumerate(risks)],
        "tiers": [{"name": "cheap"}, {"name": "frontier"}],
    }
    (folder / "result.json").write_text(json.dumps(document | changes), encoding="utf-8")
    return folder


def hostile_run(folder: Path) -> Path:
    """A run in which every text is an attack."""
    rows = [
        item(
            i,
            id=f"{HOSTILE}{i}",
            category=HOSTILE,
            group=HOSTILE_NAME,
            risk=HOSTILE_NAME,
            required_tier=HOSTILE,
            flags=["under_routed", HOSTILE],
            status=HOSTILE,
            loss_usd=1.0,
        )
        for i in range(3)
    ]
    return write_run(folder, rows, risks=(HOSTILE_NAME,), study=HOSTILE)
