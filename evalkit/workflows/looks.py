"""How often a label set was looked at, and what each look may spend of the error rate.

A look is a new combination of labels, outcomes, scores and study; running the same again is none. One undeclared
look spends everything, so that a study cannot be tuned on its labels until it passes. The record lies beside the
labels and grows only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError

__all__ = ["Look", "looks_path", "take_look"]

_SCHEMA = "evalkit.looks/1"


@dataclass(frozen=True)
class Look:
    """number: 1 for the first look at these labels. delta: what it may spend on each side, None for nothing.
    recorded: the record could be written."""

    number: int
    declared: int
    delta: float | None
    recorded: bool


def looks_path(labels: Path) -> Path:
    """Where the looks at a label file are recorded."""
    return labels.with_name(labels.name + ".looks.json")


def take_look(record: Path, parts: Mapping[str, str], *, declared: int, delta: float, now: str) -> Look:
    """Number this look and book what it spends in the file `record`.

    parts: fingerprints of labels, outcomes, scores and study. With one look declared the first spends `delta`;
    with J declared, look j spends delta / 2**j. A look beyond those declared, or one for which too little is
    left, spends nothing and certifies nothing. `now` is UTC text. Raises InputError where the record is damaged.
    """
    key = hashlib.sha256(json.dumps(dict(sorted(parts.items()))).encode()).hexdigest()
    looks = _read(record)
    for number, entry in enumerate(looks, start=1):
        if entry["key"] == key:
            return Look(number, declared, entry["delta"], recorded=True)
    number = len(looks) + 1
    spent = sum(entry["delta"] or 0.0 for entry in looks)
    share = delta if declared == 1 else delta / 2**number
    allowed = number <= declared and spent + share <= delta * (1 + 1e-9)
    granted = share if allowed else None
    look = {"key": key, "delta": granted, "first_at": now, **dict(sorted(parts.items()))}
    text = json.dumps({"schema": _SCHEMA, "looks": [*looks, look]}, indent=1, ensure_ascii=False) + "\n"
    return Look(number, declared, granted, recorded=_write(record, text))


def _read(record: Path) -> list[dict[str, Any]]:
    try:
        text = record.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(_damaged(record, f"cannot be read ({error.__class__.__name__})")) from None
    try:
        document = json.loads(text)
        looks = document["looks"]
        sound = document["schema"] == _SCHEMA and all(
            isinstance(e["key"], str) and (e["delta"] is None or 0 <= float(e["delta"]) <= 1) for e in looks
        )
    except (ValueError, TypeError, KeyError):
        sound = False
    if not sound:
        raise InputError(_damaged(record, "is not a record of looks"))
    return list(looks)


def _damaged(record: Path, what: str) -> Fault:
    return Fault(
        f"the record of looks at these labels {what}",
        "restore it from a copy; without it, label a fresh sample: how often these labels were used is not known",
        file=str(record),
    )


def _write(record: Path, text: str) -> bool:
    from evalkit.tabular.write import write_atomic

    try:
        write_atomic(record, text)
    except (OSError, InputError):
        return False
    return True
