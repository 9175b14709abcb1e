"""How looks at a label set are counted and what each may spend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.workflows.looks import looks_path, take_audit, take_look

NOW = "2026-01-02T03:04:05Z"


def look(record: Path, name: str, declared: int = 1):  # type: ignore[no-untyped-def]
    return take_look(record, {"labels": "a", "scores": name}, declared=declared, delta=0.05, now=NOW)


def test_the_first_look_spends_everything_and_a_second_certifies_nothing(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert (look(record, "x").number, look(record, "x").delta) == (1, 0.05)
    second = look(record, "y")
    assert (second.number, second.delta) == (2, None)
    assert look(record, "x").delta == 0.05  # running the first again is no look
    assert look(record, "y").delta is None


def test_declared_looks_spend_half_of_what_is_left(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    spent = [look(record, name, declared=3).delta for name in "abcd"]
    assert spent == [0.025, 0.0125, 0.00625, None]
    assert sum(s or 0 for s in spent) <= 0.05


def test_declaring_more_looks_afterwards_does_not_bring_spent_error_back(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert look(record, "a", declared=1).delta == 0.05
    assert look(record, "b", declared=9).delta is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "x", "looks": []}',
        '{"schema": "evalkit.looks/1"}',
        '{"schema": "evalkit.looks/1", "looks": [{"key": 1, "delta": 0.1}]}',
    ],
)
def test_a_damaged_record_stops_and_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    record = looks_path(tmp_path / "labels.csv")
    record.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="record of looks"):
        look(record, "a")
    assert record.read_text(encoding="utf-8") == text


def test_the_record_is_strict_json_and_holds_when_a_look_was_first(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    look(record, "a")
    document = json.loads(record.read_text(encoding="utf-8"))
    assert document["looks"][0]["first_at"] == NOW


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files from anybody")
def test_a_record_that_cannot_be_written_is_said() -> None:
    assert look(Path("/proc/labels.csv.looks.json"), "a").recorded is False


def parts_of(**more: str) -> dict[str, str]:
    return {"labels": "a", "study": "s", **more}


def taken(record: Path, declared: int = 1, **more: str) -> tuple[int, float | None]:
    found = take_look(record, parts_of(**more), declared=declared, delta=0.05, now=NOW)
    return found.number, found.delta


def test_the_first_outcomes_and_then_the_first_costs_complete_a_look(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert taken(record) == (1, 0.05)
    assert taken(record, outcomes="o") == (1, 0.05)
    assert taken(record, outcomes="o", costs="c") == (1, 0.05)
    assert taken(record, outcomes="o") == (1, 0.05)  # running one again is no look
    assert taken(record, outcomes="o", costs="other") == (2, None)
    assert taken(record, outcomes="other") == (3, None)


def test_a_look_is_completed_once(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert taken(record) == (1, 0.05)
    assert taken(record, outcomes="o", costs="c") == (1, 0.05)
    assert taken(record, outcomes="o") == (2, None)
    assert taken(record, outcomes="p", costs="c") == (3, None)


def test_what_completes_a_look_changes_nothing_else_of_it(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert taken(record) == (1, 0.05)
    found = take_look(
        record, {"labels": "a", "study": "lower limits", "outcomes": "o"}, declared=1, delta=0.05, now=NOW
    )
    assert (found.number, found.delta) == (2, None)
    assert taken(record, policy="p") == (3, None)  # another question is no completion


def test_completed_looks_of_several_declared_spend_no_more(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert taken(record, declared=2) == (1, 0.025)
    assert taken(record, declared=2, outcomes="o") == (1, 0.025)
    assert taken(record, declared=2, scores="z", outcomes="o") == (2, 0.0125)
    assert taken(record, declared=2, scores="y", outcomes="o") == (3, None)


def read_back(record: Path, declared: int = 1, **more: str) -> tuple[int, float | None]:
    found = take_audit(record, parts_of(**more), declared=declared, delta=0.05, now=NOW)
    return found.number, found.delta


def test_an_audit_read_back_is_one_look_with_the_first_that_names_it(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert read_back(record, scores="x", audit="a") == (1, 0.05)
    assert read_back(record, scores="x", audit="a") == (1, 0.05)
    assert taken(record, scores="y", outcomes="o", audit="a") == (1, 0.05)  # it speaks of no router
    assert taken(record, scores="z", outcomes="o", audit="a") == (2, None)
    assert read_back(record, scores="x", audit="b") == (3, None)


def test_an_audit_completes_the_look_that_it_was_made_at(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    assert taken(record, declared=2, scores="x") == (1, 0.025)
    assert read_back(record, declared=2, scores="x", audit="a") == (1, 0.025)
    assert taken(record, declared=2, scores="x", audit="a") == (1, 0.025)
    assert read_back(record, declared=2, scores="x", audit="b") == (2, 0.0125)
    assert read_back(record, declared=2, labels="put right", scores="x", audit="c") == (3, None)


def test_audited_labels_certify_nothing_without_an_audit(tmp_path: Path) -> None:
    record = looks_path(tmp_path / "labels.csv")
    about = {"declared": 3, "delta": 0.05, "now": NOW}
    assert take_look(record, parts_of(), by_tiers=True, **about).delta == 0.025  # type: ignore[arg-type]
    read_back(record, declared=3, audit="a")
    again = take_look(record, parts_of(), by_tiers=True, **about)  # type: ignore[arg-type]
    assert (again.number, again.delta, again.audit_left_out) == (2, None, True)
    assert take_look(record, parts_of(), **about).delta == 0.025  # type: ignore[arg-type]
    grown = take_look(record, parts_of(labels="grown"), by_tiers=True, **about)  # type: ignore[arg-type]
    assert (grown.number, grown.delta, grown.audit_left_out) == (2, 0.0125, False)
