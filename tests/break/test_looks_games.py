"""Ways to get a second first look at the same labels."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.workflows.looks import Look, looks_path, take_look

NOW = "2026-01-02T03:04:05Z"


def look(labels: Path, study: str, fingerprint: str = "a", declared: int = 1) -> Look:
    parts = {"labels": fingerprint, "study": study}
    return take_look(looks_path(labels), parts, declared=declared, delta=0.05, now=NOW)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("id\n", encoding="utf-8")
    return path


def test_a_copy_of_the_labels_under_another_name_is_no_fresh_sample(labels: Path) -> None:
    assert look(labels, "one").delta == 0.05
    copy = shutil.copy(labels, labels.with_name("copy.csv"))
    second = look(copy, "two")
    assert (second.number, second.delta) == (2, None)
    assert look(copy, "one").delta == 0.05  # the same study again is no look, whatever the file is called


def test_other_labels_in_the_folder_have_looks_of_their_own(labels: Path) -> None:
    assert look(labels, "one").delta == 0.05
    assert look(labels.with_name("other.csv"), "one", fingerprint="b").delta == 0.05


def test_damage_in_the_record_of_other_labels_stops_nothing(labels: Path) -> None:
    (labels.parent / "other.csv.looks.json").write_text("{", encoding="utf-8")
    assert look(labels, "one").delta == 0.05


def test_a_link_to_the_labels_shares_their_record(labels: Path, tmp_path: Path) -> None:
    away = tmp_path / "elsewhere"
    away.mkdir()
    link = away / "mine.csv"
    link.symlink_to(labels)
    assert look(labels, "one").delta == 0.05
    assert look(link, "two").delta is None
    assert list(away.iterdir()) == [link]


def test_of_looks_at_the_same_time_only_one_is_the_first(labels: Path) -> None:
    seen: list[Look] = []
    start = threading.Barrier(8)

    def run(name: str) -> None:
        start.wait()
        seen.append(look(labels, name))

    threads = [threading.Thread(target=run, args=(str(i),)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(s.number for s in seen) == list(range(1, 9))
    assert [s.delta for s in seen if s.delta is not None] == [0.05]
    assert len(json.loads(looks_path(labels).read_text(encoding="utf-8"))["looks"]) == 8


def test_a_name_at_the_system_s_limit_still_has_its_looks_counted(tmp_path: Path) -> None:
    labels = tmp_path / ("가" * 77 + ".csv")  # 235 bytes
    assert look(labels, "one").recorded
    assert look(labels, "two").delta is None


@pytest.mark.parametrize(
    "looks",
    [
        '[{"key": "k", "delta": "0.01"}]',
        '[{"key": "k", "delta": true}]',
        '[{"key": "k", "delta": NaN}]',
        '{"key": "k"}',
        "{}",
        "[" * 100_000,
    ],
    ids=["text", "truth", "nan", "object", "nothing", "deep"],
)
def test_a_record_of_another_shape_is_damaged(labels: Path, looks: str) -> None:
    text = f'{{"schema": "evalkit.looks/1", "looks": {looks}}}'
    looks_path(labels).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="record of looks"):
        look(labels, "one")
    assert looks_path(labels).read_text(encoding="utf-8") == text


def test_a_folder_in_the_place_of_the_record_is_damage(labels: Path) -> None:
    looks_path(labels).mkdir()
    with pytest.raises(InputError, match="record of looks"):
        look(labels, "one")
