"""Builds `labels.jsonl` (certifies) and `train.jsonl` (trains the router) from `source/*.jsonl`.

The required tier comes from the written rule alone, which sees the features of an item and never a model's
output. The same sources give the same bytes. Run: `python labelsets/helpdesk/build.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError
from evalkit.grading import parse_check

HERE = Path(__file__).resolve().parent
SPLIT_SEED = 20261130
TRAIN_SHARE = 3  # one group in three trains the router
LANGUAGES = ("en", "ko")
CATEGORIES = ("classification", "extraction", "policy", "arithmetic", "code", "safety")
# Assumed shares of a help desk's traffic by risk class; nobody measured them.
TRAFFIC_SHARES = {"low": 0.62, "medium": 0.25, "high": 0.10, "critical": 0.03}
FEATURES = {"steps": int, "verbatim": bool, "options": int, "fields": int, "exception": bool}
LABEL_SOURCE = "author label by the written rule of README.md"

Row = dict[str, Any]


def required_tier(features: Mapping[str, Any]) -> str:
    """The least tier that should be good enough, by the written rule: cheap, mid or top."""
    if features["steps"] >= 2 or features["exception"] or features["fields"] >= 4:
        return "top"
    if features["verbatim"] and features["options"] <= 3 and features["fields"] <= 2:
        return "cheap"
    return "mid"


def token_room(check: Mapping[str, Any], reference: str) -> int:
    """Tokens that surely hold the longest allowed answer and its end mark.

    A byte-level tokenizer spends at most one token on a byte. The smallest of the recorded models does spend
    three on a Korean syllable, so a cap set for English would cut right answers; ASCII text costs it at most a
    token for two characters.
    """
    answers = check.get("options") or [reference]
    return max(
        math.ceil(sum(0.5 if ch.isascii() else len(ch.encode()) for ch in answer)) + 2 for answer in answers
    )


def read_source(folder: Path) -> list[Row]:
    """All authored items in order of file and line; raises `InputError` with every fault found."""
    faults: list[Fault] = []
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line, text in enumerate(path.read_text(encoding="utf-8").rstrip("\n").split("\n"), start=1):
            try:
                row = json.loads(text)
            except ValueError as problem:
                fix = "write one JSON object a line"
                faults.append(Fault(f"is not JSON: {problem}", fix, file=path.name, line=line, row=line))
                continue
            found = list(_row_faults(row))
            item_id = str(row.get("id"))
            if item_id in seen:
                found.append(Fault(f"is also at {seen[item_id]}", "give each item its own id", field="id"))
            seen.setdefault(item_id, f"{path.name}:{line}")
            faults += [replace(fault, file=path.name, line=line, row=line, id=item_id) for fault in found]
            rows.append(row)
    if faults:
        raise InputError(faults)
    return rows


def _row_faults(row: Row) -> Iterable[Fault]:
    for name in ("id", "prompt", "reference"):
        text = row.get(name)
        if not isinstance(text, str) or not text.strip():
            yield Fault(f"is {text!r}", "write a text", field=name)
        elif unicodedata.normalize("NFC", text) != text:
            yield Fault("is not NFC", "normalise the text to NFC", field=name)
    for name, allowed in (("language", LANGUAGES), ("category", CATEGORIES), ("risk", tuple(TRAFFIC_SHARES))):
        if row.get(name) not in allowed:
            yield Fault(f"is {row.get(name)!r}", f"use one of {', '.join(allowed)}", field=name)
    for name, kind in FEATURES.items():
        if type(row.get(name)) is not kind:
            yield Fault(f"is {row.get(name)!r}", f"write one of type {kind.__name__}", field=name)
    if type(row.get("max_tokens")) is not int or row["max_tokens"] < 1:
        yield Fault(f"is {row.get('max_tokens')!r}", "write a whole number above 0", field="max_tokens")
    try:
        check = parse_check(row.get("check"))
        problem = check.reference_fault(str(row.get("reference")))
        if problem is not None:
            yield replace(problem, field="reference")
    except InputError as error:
        yield from error.faults


def training_groups(rows: Iterable[Row]) -> frozenset[str]:
    """The groups that train the router: a third of each stratum of language and category, by seeded hash."""
    members: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        members[_group(row)].append(row)
    strata: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group, items in members.items():
        languages = "+".join(sorted({item["language"] for item in items}))
        categories = "+".join(sorted({item["category"] for item in items}))
        strata[languages, categories].append(group)
    chosen: set[str] = set()
    for groups in strata.values():
        groups.sort(key=lambda group: hashlib.sha256(f"{SPLIT_SEED}:{group}".encode()).hexdigest())
        nearest = (2 * len(groups) + TRAIN_SHARE) // (2 * TRAIN_SHARE)
        chosen.update(groups[:nearest])
    return frozenset(chosen)


def _group(row: Row) -> str:
    return str(row.get("group") or row["id"])


def build(rows: list[Row]) -> dict[str, list[Row]]:
    """Label rows by file name; each row's weight is its class's traffic share over its share of that file."""
    train = training_groups(rows)
    return {
        "labels.jsonl": _label_rows([row for row in rows if _group(row) not in train], "certify"),
        "train.jsonl": _label_rows([row for row in rows if _group(row) in train], "train"),
    }


def _label_rows(rows: list[Row], split: str) -> list[Row]:
    sizes = Counter(row["risk"] for row in rows)
    return [
        {
            "id": row["id"],
            "prompt": row["prompt"],
            "required_tier": required_tier(row),
            "risk": row["risk"],
            "category": row["category"],
            "weight": round(TRAFFIC_SHARES[row["risk"]] * len(rows) / sizes[row["risk"]], 6),
            "group": _group(row),
            "reference": row["reference"],
            "metadata": {
                "language": row["language"],
                "split": split,
                "label_source": LABEL_SOURCE,
                "check": row["check"],
                "max_tokens": max(row["max_tokens"], token_room(row["check"], row["reference"])),
                "features": {name: row[name] for name in FEATURES},
            },
        }
        for row in rows
    ]


def as_jsonl(rows: Iterable[Row]) -> str:
    """One JSON object a line, keys in the order given, text as it is."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def main() -> int:
    """Write both label files; print how many items each holds by required tier."""
    try:
        built = build(read_source(HERE / "source"))
    except InputError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for name, rows in built.items():
        (HERE / name).write_text(as_jsonl(rows), encoding="utf-8", newline="\n")
        print(name, len(rows), dict(sorted(Counter(row["required_tier"] for row in rows).items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
