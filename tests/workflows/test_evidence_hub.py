"""Labels of the hub and checks in Python in a bundle: what was read and what graded, neither asked again."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.cli.app import main
from evalkit.labels.read import read_labels
from evalkit.workflows.evidence_labels import labels_jsonl
from evalkit.workflows.evidence_rubric import rubric_files
from evalkit.workflows.run_check import check_run
from tests.workflows.ladders import write_ladder, write_runs
from tests.workflows.studies import write_items, write_study

REVISION = "0123456789abcdef0123456789abcdef01234567"
ADDRESS = f"hf://org/labels@{REVISION}/train"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that `datasets` takes for the dataset of ADDRESS; without it there is no dataset of any name."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    import datasets
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    real = datasets.load_dataset_builder
    folder = tmp_path / "hub"
    folder.mkdir()

    def local(name: str, config: str | None = None, *, revision: str) -> Any:
        assert (name, config, revision) == ("org/labels", None, REVISION)
        return real(str(folder), cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset_builder", local)
    datasets.disable_progress_bars()
    return folder


def without_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("evalkit.labels.hub.read_hub", refused)


def move_labels(study: Path, hub: Path, name: str, renamed: dict[str, str]) -> dict[str, Any]:
    """The labels of a study go to the hub, under other names of columns; what the study says of them."""
    lines = (study / name).read_text(encoding="utf-8").split("\n")
    head = [renamed.get(column, column) for column in lines[0].split(",")]
    (hub / "train.csv").write_text("\n".join([",".join(head), *lines[1:]]), encoding="utf-8")
    (study / name).unlink()
    return {"path": ADDRESS, "columns": renamed}


def ran(command: str, study: Path) -> Path:
    assert main([command, str(study / "study.yaml"), "--out", str(study / "run"), "--quiet"]) in {0, 1, 3}
    return study / "run"


def routing(study: Path, hub: Path) -> Path:
    write_items(study, 60)
    write_study(study, labels=move_labels(study, hub, "labels.csv", {"id": "question", "prompt": "asked"}))
    return ran("route-sweep", study)


def ladder(study: Path, hub: Path) -> Path:
    write_runs(study, 40)
    write_ladder(study, labels=move_labels(study, hub, "tasks.csv", {"id": "task", "reference": "answer"}))
    return ran("reasoning-budget", study)


@pytest.mark.parametrize("make", [routing, ladder])
def test_a_run_on_labels_of_the_hub_is_verified_without_the_hub(
    tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path, Path], Path]
) -> None:
    study = tmp_path / "study"
    study.mkdir()
    run = make(study, hub)
    with zipfile.ZipFile(run / "evidence.zip") as file:
        index = json.loads(file.read("files.json"))
        held = file.read("labels/labels.jsonl").decode().splitlines()
    row = next(row for row in index["files"] if row["role"] == "labels")
    assert row["written"] == ADDRESS
    assert index["absent"] == []
    asked = (hub / "train.csv").read_text().splitlines()[1:]
    key = "question" if make is routing else "task"
    assert [json.loads(line)[key] for line in held] == [line.split(",")[0] for line in asked]
    without_hub(monkeypatch)
    checked = check_run(run)
    assert (checked.evidence, checked.faults) == ("recomputed", ())
    assert main(["verify", str(run)]) == 0


def test_a_changed_record_of_labels_of_the_hub_is_found(
    tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study"
    study.mkdir()
    run = routing(study, hub)
    with zipfile.ZipFile(run / "evidence.zip") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    name = "labels/labels.jsonl"
    parts[name] = parts[name].replace(b'"required_tier": "frontier"', b'"required_tier": "cheap"', 1)
    index = json.loads(parts["files.json"])
    row = next(row for row in index["files"] if row["role"] == "labels")
    row |= {"sha256": hashlib.sha256(parts[name]).hexdigest(), "bytes": len(parts[name])}
    parts["files.json"] = json.dumps(index).encode()
    with zipfile.ZipFile(run / "evidence.zip", "w") as file:
        for key, content in parts.items():
            file.writestr(key, content)
    without_hub(monkeypatch)
    faults = check_run(run).faults
    assert any(file == "evidence.zip" and "its bytes were changed" in what for file, what in faults)
    assert any(file == "result.json" and what.startswith("provenance.labels.hash is ") for file, what in faults)


FIELDS = st.fixed_dictionaries(
    {
        "required_tier": st.sampled_from(["cheap", "frontier", "unsolvable"]),
        "risk": st.sampled_from(["low", "critical"]),
        "weight": st.sampled_from([0, 1, 0.1, 1e-300, 2.5, 12345678901234567]),
    },
    optional={
        "prompt": st.text(max_size=20),
        "category": st.text(max_size=6),
        "group": st.sampled_from(["a", "b", "007", ""]),
        "reference": st.one_of(
            st.text(max_size=9),
            st.integers(-9, 9),
            st.sampled_from([1.50, 0.1, True, None, [1, "x", 2.50], {"b": [1.0], "a": None}]),
        ),
        "metadata": st.dictionaries(
            st.text(max_size=4), st.floats(allow_nan=False, allow_infinity=False), max_size=2
        ),
        "labels": st.one_of(st.none(), st.lists(st.sampled_from(["cheap", "frontier"]), max_size=2)),
        "messages": st.just([{"role": "user", "content": "hello"}]),
    },
)


@given(st.lists(FIELDS, min_size=1, max_size=6))
def test_records_read_back_are_the_same_labels(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    rows[0]["weight"] = 1
    path = tmp_path_factory.mktemp("labels") / "labels.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"{i}"} | row) + "\n" for i, row in enumerate(rows)), encoding="utf-8"
    )
    about: dict[str, Any] = {"tiers": ("cheap", "frontier"), "risk_classes": ("low", "critical")}
    labels = read_labels(path, **about)
    content = labels_jsonl(labels, {})
    assert content is not None
    path.write_bytes(content)
    again = read_labels(path, **about)
    assert again.fingerprint == labels.fingerprint
    assert again.weight.tolist() == labels.weight.tolist()
    blank = (None,) * len(rows)
    assert (again.group or blank, again.required.tolist()) == (labels.group or blank, labels.required.tolist())
    assert labels_jsonl(replace(labels, fingerprint="0" * 64), {}) is None


def test_the_source_of_checks_in_python_is_in_the_bundle_and_never_run(tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    ran_at = tmp_path / "ran"
    source = f"open({str(ran_at)!r}, 'w').close()\n\ndef is_right(answer, item):\n    return True\n"
    (study / "checks.py").write_text(source)
    (study / "rubric.yaml").write_text('rubric: own\ncheck: {kind: python, function: "checks:is_right"}\n')
    write_items(study, 60)
    write_study(study, rubric="rubric.yaml")
    run = ran("route-sweep", study)
    with zipfile.ZipFile(run / "evidence.zip") as file:
        assert file.read("check.checks/checks.py").decode() == source
        index = json.loads(file.read("files.json"))
    row = next(row for row in index["files"] if row["role"] == "check.checks")
    assert row["sha256"] == hashlib.sha256(source.encode()).hexdigest()
    checked = check_run(run)
    assert (checked.evidence, checked.faults) == ("recomputed", ())
    assert not ran_at.exists()


def test_checks_are_found_wherever_they_stand_and_installed_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "rubric.yaml").write_text(
        'rubric: x\ncheck: {kind: all, of: [{kind: python, function: "a:f"},\n'
        '  {kind: python, function: "json:loads"}]}\n'
        'other: {kind: python, function: "../../etc/passwd:f"}\n'
    )
    assert rubric_files(tmp_path / "rubric.yaml") == [
        ("check.a", "a.py", tmp_path / "a.py"),
        ("check.json", "json.py", None),
    ]
