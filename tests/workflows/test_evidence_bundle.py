"""evidence.zip: the same bytes for the same files, nothing of where they were, nothing that it does not name."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.signoff.strict import BrokenFileError
from evalkit.study import read_study
from evalkit.workflows.evidence_bundle import evidence_zip
from evalkit.workflows.evidence_format import RunOptions
from evalkit.workflows.evidence_open import open_evidence
from evalkit.workflows.run_check import check_run
from tests.workflows.studies import write_items, write_study

LOOKS = '{"schema": "evalkit.looks/1", "looks": []}\n'


def bundle_of(folder: Path, options: RunOptions | None = None) -> Path:
    study = read_study(folder / "study.yaml")
    path = folder / "evidence.zip"
    path.write_bytes(evidence_zip(study, options or RunOptions(), LOOKS, declared_outcomes=True))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    folder.mkdir()
    write_items(folder, 60)
    write_study(folder)
    return folder


def test_a_bundle_holds_every_file_byte_for_byte_and_the_same_files_give_the_same_bytes(small: Path) -> None:
    path = bundle_of(small, RunOptions(("0.5",), 9))
    first = path.read_bytes()
    assert bundle_of(small, RunOptions(("0.5",), 9)).read_bytes() == first
    bundle = open_evidence(path, small.parent / "out")
    assert (bundle.options, bundle.absent) == (RunOptions(("0.5",), 9), ())
    assert bundle.written["labels"] == "labels.csv"
    for role in ("labels", "outcomes", "scores"):
        assert bundle.paths[role].read_bytes() == (small / f"{role}.csv").read_bytes()
    assert bundle.study.read_bytes() == (small / "study.yaml").read_bytes()


def test_a_path_outside_of_the_studys_folder_is_never_reproduced(small: Path, tmp_path: Path) -> None:
    secret_place = tmp_path / "home-of-somebody"
    secret_place.mkdir()
    (small / "labels.csv").rename(secret_place / "labels.csv")
    (small / "scores.csv").rename(tmp_path / "scores.csv")
    router = {
        "scores": "../scores.csv",
        "higher_means": "needs_stronger",
        "trained_on": "other_items",
        "cost_usd": 0,
    }
    write_study(small, labels=str(secret_place / "labels.csv"), router=router)
    assert main(["route-sweep", str(small / "study.yaml"), "--out", str(small / "run"), "--quiet"]) in {0, 1, 3}
    with zipfile.ZipFile(small / "run/evidence.zip") as file:
        names = file.namelist()
    assert sorted(names) == sorted(
        [
            "files.json",
            "labels/labels.csv",
            "looks.json",
            "outcomes/outcomes.csv",
            "scores/scores.csv",
            "study.yaml",
        ]
    )
    (secret_place / "labels.csv").unlink()
    (tmp_path / "scores.csv").unlink()
    checked = check_run(small / "run")  # elsewhere, without the files
    assert (checked.evidence, checked.faults) == ("recomputed", ())


def test_options_of_the_command_line_are_part_of_the_evidence(small: Path) -> None:
    command = ["route-sweep", str(small / "study.yaml"), "--threshold", "0.5", "--seed", "11"]
    assert main([*command, "--out", str(small / "run"), "--quiet"]) in {0, 1, 3}
    assert check_run(small / "run").faults == ()


@pytest.mark.parametrize("written", ["KEY", '"KEY"', "'KEY'"])
def test_a_secret_of_the_study_is_hidden_in_its_copy_and_nothing_else_changes(small: Path, written: str) -> None:
    key = "sk-proj-abcdefgh12345678"
    tiers = [
        {"name": "cheap", "model": "demo/m", "params": {"api_key": "PLACE"}},
        {"name": "frontier", "model": "demo/n"},
    ]
    write_study(small, tiers=tiers)
    path = small / "study.yaml"
    text = path.read_text(encoding="utf-8").replace("PLACE", written.replace("KEY", key))
    path.write_text(f"# the old key was {key}9\n{text}", encoding="utf-8")
    bundle = open_evidence(bundle_of(small), small.parent / "out")
    copied = bundle.study.read_text(encoding="utf-8")
    assert key[:12] not in copied
    assert copied.count("[hidden]") == 2
    again = read_study(bundle.study, files_exist=False)
    assert again.fingerprint == read_study(path).fingerprint


def test_a_run_is_checked_where_a_key_stands_in_an_id(small: Path) -> None:
    """Its copies sort otherwise, and the look has to be the same one."""
    for name in ("labels.csv", "outcomes.csv", "scores.csv"):
        path = small / name
        text = path.read_text(encoding="utf-8").replace("\nq3,", "\nsk-proj-abcdefgh12345678,")
        path.write_text(text, encoding="utf-8")
    assert main(["route-sweep", str(small / "study.yaml"), "--out", str(small / "run"), "--quiet"]) in {0, 1, 3}
    assert b"sk-proj" not in gzip.decompress((small / "run/items.jsonl.gz").read_bytes())
    checked = check_run(small / "run")
    assert checked.evidence == "recomputed"
    assert checked.faults == ()


def rewritten(path: Path, change: Any) -> Path:
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def index(parts: Mapping[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(parts["files.json"])
    return found


def smuggle(parts: dict[str, bytes]) -> None:
    parts["../../outside.txt"] = b"x"


def climb(parts: dict[str, bytes]) -> None:
    listing = index(parts)
    row = {"role": "prompt", "written": "p", "name": "../../../outside.txt", "bytes": 1}
    listing["files"].append({**row, "sha256": hashlib.sha256(b"x").hexdigest()})
    parts["../../../outside.txt"] = b"x"
    parts["files.json"] = json.dumps(listing).encode()


def foreign_role(parts: dict[str, bytes]) -> None:
    listing = index(parts)
    listing["files"][0]["role"] = "../up"
    parts["files.json"] = json.dumps(listing).encode()


def drop(parts: dict[str, bytes]) -> None:
    del parts["labels/labels.csv"]


def spoil(parts: dict[str, bytes]) -> None:
    parts["labels/labels.csv"] += b"\n"


def no_index(parts: dict[str, bytes]) -> None:
    del parts["files.json"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (smuggle, "is not named in files.json"),
        (foreign_role, "does not hold what it should"),
        (drop, "labels/labels.csv is missing"),
        (spoil, "labels/labels.csv is not as files.json says"),
        (no_index, "holds no files.json"),
    ],
)
def test_a_bundle_that_is_not_as_it_was_written_is_refused_by_name(small: Path, change: Any, what: str) -> None:
    path = rewritten(bundle_of(small), change)
    with pytest.raises(BrokenFileError, match=what):
        open_evidence(path, small.parent / "out")


def test_no_name_of_the_zip_leads_out_of_the_folder(small: Path, tmp_path: Path) -> None:
    path = rewritten(bundle_of(small), climb)
    out = tmp_path / "deep/er/out"
    bundle = open_evidence(path, out)
    assert bundle.paths["prompt"] == out / "prompt/outside.txt"
    assert not list(tmp_path.glob("*.txt"))
    assert not list((tmp_path / "deep").glob("*.txt"))


def test_what_is_no_zip_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "evidence.zip"
    path.write_bytes(b"PK\x03\x04 not one")
    with pytest.raises(BrokenFileError, match="no zip"):
        open_evidence(path, tmp_path / "out")


def test_a_dataset_of_the_hub_is_named_as_absent(small: Path) -> None:
    study = read_study(small / "study.yaml")
    labels = replace(study.labels, written="hf://o/n@" + "a" * 40 + "/test", path=None, hf="hf://o/n")
    path = small / "evidence.zip"
    path.write_bytes(evidence_zip(replace(study, labels=labels), RunOptions(), LOOKS, declared_outcomes=True))
    assert open_evidence(path, small.parent / "out").absent == (f"labels: {labels.written}",)


def test_a_key_in_a_reply_reaches_no_bundle_and_the_figures_can_still_be_computed(tmp_path: Path) -> None:
    from tests.workflows.studies import write_csv

    key = "sk-proj-abcdefgh12345678"
    write_items(tmp_path, 60)
    write_study(tmp_path)
    import csv

    with (tmp_path / "outcomes.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            {**row, "reply": f'use "{key}", please' if row["id"] == "q3" else "fine"}
            for row in csv.DictReader(file)
        ]
    write_csv(tmp_path / "outcomes.csv", rows)
    assert main(["route-sweep", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run"), "--quiet"]) in {
        0,
        1,
        3,
    }
    with zipfile.ZipFile(tmp_path / "run/evidence.zip") as file:
        content = b"".join(file.read(name) for name in file.namelist())
        listing = json.loads(file.read("files.json"))
    assert key[:10].encode() not in content
    assert b"[hidden]" in content
    assert list(listing["hidden"]) == ["outcomes"]
    checked = check_run(tmp_path / "run")
    assert (checked.evidence, checked.faults) == ("recomputed", ())
