"""Small sets of items, replies and decisions for the tests of labelling."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalkit.labelling.decisions import Header
from evalkit.labelling.items import Items, Replies, read_items, read_replies
from evalkit.labelling.log_file import DecisionFile
from evalkit.labelling.session import Session

TIERS = ("cheap", "mid", "top")
RISKS = ("low", "high")
OPENED: list[DecisionFile] = []
"""Files that a test opened; closed behind it."""


def opened(path: Path, wanted: Header) -> DecisionFile:
    """A file of decisions that is closed when the test ends."""
    file = DecisionFile.open(path, wanted)
    OPENED.append(file)
    return file


def jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def header(annotator: str = "ann", by: Any = "replies", **more: Any) -> Header:
    return Header(annotator, more.pop("seed", 0), TIERS, RISKS, by, **more)


def items_of(folder: Path, count: int = 4, **columns: Any) -> Items:
    rows = [{"id": f"q{i}", "prompt": f"question {i}", **columns} for i in range(count)]
    return read_items(jsonl(folder / "items.jsonl", rows), risk_classes=RISKS)


def replies_of(folder: Path, items: Items, texts: Mapping[str, str] | None = None) -> Replies:
    """Replies that name their tier, or `texts`; a blank text is no reply."""
    rows = [
        {"id": name, "tier": tier, "reply": f"{tier} says {name}" if texts is None else texts[tier]}
        for name in items.ids
        for tier in TIERS
    ]
    return read_replies(jsonl(folder / "replies.jsonl", rows), items=items, tiers=TIERS)


def session_of(folder: Path, *, by: str = "replies", annotator: str = "ann", count: int = 4) -> Session:
    items = items_of(folder, count)
    replies = replies_of(folder, items) if by == "replies" else None
    file = opened(folder / f"{annotator}.jsonl", header(annotator, by))
    return Session(items, replies, file)


def letters_of(session: Session, k: int, tiers: Iterable[str]) -> list[str]:
    """The letters behind which the replies of `tiers` are shown; the texts name their tier."""
    shown = session.item(k)["replies"]
    return [reply["letter"] for reply in shown if reply["text"].split(" ")[0] in set(tiers)]
