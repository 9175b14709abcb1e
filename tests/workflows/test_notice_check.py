"""Notices of a run follow from its evidence too: one that was taken out or reworded is found by verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.workflows.notice_check import without_places, wrong_notices
from evalkit.workflows.run_check import check_run
from tests.workflows.studies import evalkit, write_items, write_study


@pytest.fixture
def noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run with notices that name its files, whose names and folder have blanks and marks."""
    folder = tmp_path / "연구 (2)"
    folder.mkdir()
    write_items(folder, 120)
    header, *rows = (folder / "labels.csv").read_text(encoding="utf-8").splitlines()
    spelled = [f"{row},{'Billing' if i % 2 else 'billing'}" for i, row in enumerate(rows)]
    written = "\n".join([f"{header},category", *spelled]) + "\n"
    (folder / "라벨 [v1]; final.csv").write_text(written, encoding="utf-8-sig")
    runs = (folder / "outcomes.csv").read_text(encoding="utf-8").splitlines()
    (folder / "outcomes.csv").write_text("\n".join(runs[:-1]) + "\n", encoding="utf-8")  # one run is missing
    tiers = [{"name": "cheap", "params": {"api_key": "sk-not-1-real-2-key-3"}}, {"name": "frontier"}]
    write_study(folder, labels="라벨 [v1]; final.csv", tiers=tiers, missing_outcomes="unanswered")
    ran = evalkit(capsys, folder)
    assert ran.code in (0, 1, 3), ran.err
    return ran.folder


def _said(run: Path) -> list[str]:
    return [what for file, what in check_run(run).faults if file == "result.json"]


def _rewrite(run: Path, notices: object) -> None:
    result = run / "result.json"
    document = json.loads(result.read_text(encoding="utf-8"))
    document["notices"] = notices
    result.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


def _notices(run: Path) -> list[str]:
    found: list[str] = json.loads((run / "result.json").read_text(encoding="utf-8"))["notices"]
    return found


def test_notices_of_a_run_are_those_of_its_evidence_whatever_its_files_are_called(noticed: Path) -> None:
    notices = _notices(noticed)
    assert any("라벨 [v1]; final.csv" in note for note in notices), notices
    assert len(notices) > 1
    assert _said(noticed) == []


def test_a_notice_that_is_missing_or_reworded_is_found(noticed: Path) -> None:
    notices = _notices(noticed)
    at = next(k for k, note in enumerate(notices) if "final.csv" in note)
    _rewrite(noticed, [*notices[:at], *notices[at + 1 :]])
    assert [one.split(":")[0] for one in _said(noticed)] == ["notices lack what the evidence gives"]
    _rewrite(noticed, [*notices[:at], notices[at] + " This does no harm.", *notices[at + 1 :]])
    assert [one.split(":")[0] for one in _said(noticed)] == ["notices lack what the evidence gives"]
    _rewrite(noticed, None)
    assert _said(noticed) == ["notices are missing"]


def test_only_the_place_of_a_file_may_differ() -> None:
    computed = without_places(
        ["/x/a.csv: 3 rows have no grade", "b.csv is old"], [Path("/x/a.csv"), Path("/y/b.csv")]
    )
    assert list(wrong_notices(["elsewhere/labels.csv: 3 rows have no grade", "b.csv is old"], computed)) == []
    assert list(wrong_notices(["a key was hidden", "a: 3 rows have no grade", "b.csv is old"], computed)) == []
    assert len(list(wrong_notices(["a: 2 rows have no grade", "b.csv is old"], computed))) == 1
    assert len(list(wrong_notices(["b.csv is old", "a: 3 rows have no grade"], computed))) == 1
    assert len(list(wrong_notices([], computed))) == 2
