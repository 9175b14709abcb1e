"""Recordings survive a killed run; a wrong weights file is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.providers.local_server import LocalModel, start_server
from evalkit.providers.recordings import append, latest_replies, lock, read_recording


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert read_recording(path) == []
    rows = [{"kind": "run", "run": "r"}, {"kind": "reply", "key": "k", "text": "환불\u2028\n"}]
    with path.open("ab") as file:
        for row in rows:
            append(file, row)
            assert path.read_bytes().endswith(b"\n")  # nothing waits in a buffer
    assert read_recording(path) == rows


def test_the_last_line_of_a_key_counts() -> None:
    rows = [{"kind": "run"}, *({"kind": "reply", "key": key, "n": n} for n, key in enumerate("aba"))]
    assert {key: row["n"] for key, row in latest_replies(rows).items()} == {"a": 2, "b": 1}


def test_a_torn_last_line_is_left_out_and_cut_off_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"kind": "run"}\n{"kind": "re')
    assert read_recording(path) == [{"kind": "run"}]
    assert path.read_bytes().endswith(b"re")
    assert read_recording(path, repair=True) == [{"kind": "run"}]
    assert path.read_bytes() == b'{"kind": "run"}\n'


def test_damage_in_the_middle_is_named_and_nothing_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    content = b'{"kind": "run"}\n{"kind": "re\n{"kind": "run"}\ntorn'
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.jsonl:2: is not JSON"):
        read_recording(path)
    assert path.read_bytes() == content


def test_one_run_holds_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("ab") as first, path.open("ab") as second:
        lock(first)
        with pytest.raises(InputError, match=r"a\.jsonl: another run is recording"):
            lock(second)


def test_missing_and_wrong_weights_are_named(tmp_path: Path) -> None:
    model = LocalModel("local/small", "small.gguf", "0" * 64, "somewhere")
    assert model.served_name == "small"
    for what in ("is not there", "has sha256 "):
        with pytest.raises(InputError, match=what) as raised:
            start_server(model, tmp_path, threads=1, slots=1, context_tokens=256)
        assert model.sha256 in str(raised.value)
        (tmp_path / model.file).write_bytes(b"GGUF")
