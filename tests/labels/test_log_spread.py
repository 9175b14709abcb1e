"""A large log is cleaned by several processes, and comes out as it does from one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.labels.log import Log, read_log

ROWS = 6_000
CARD = "4111 1111 1111 1111"


def written(folder: Path) -> Path:
    rows = []
    for i in range(ROWS):
        text = f"please send {i} to somebody{i}@example.com" if i % 7 == 0 else f"what is {i} plus {i % 13}?"
        group = f"call 010-1234-{i:04} back" if i % 500 == 0 else f"g{i % 40}"
        asked = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]
        extra = {"card": CARD} if i % 1000 == 1 else {"n": i}
        rows.append({"id": f"r{i}", "messages": asked, "group": group, "metadata": extra})
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_any_number_of_processes_gives_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    logs: list[Log] = []
    for count in ("1", "2"):
        monkeypatch.setenv("EVALKIT_PROCESSES", count)
        logs.append(read_log(path))
    one, two = logs
    assert one.columns == two.columns
    assert list(one.columns) == list(two.columns)
    assert list(one.removed.items()) == list(two.removed.items())
    assert (one.touched, one.renamed, one.blank, one.notices) == (two.touched, two.renamed, two.blank, two.notices)
    assert list(one.contexts) == list(two.contexts)
    # 858 of 6,000 rows have an address (every seventh from 0), 6 a card, 12 groups a number.
    assert (one.removed["email"], one.removed["card"], one.renamed["group"]) == (858, 6, 12)
    assert two.columns["messages"][0][1]["content"] == "please send 0 to [email]"
    assert two.columns["messages"][1][1]["content"] == "what is 1 plus 1?"
    assert CARD not in json.dumps(two.columns)
