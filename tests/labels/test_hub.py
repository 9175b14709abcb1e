"""`hf://` through the real `datasets`, on data folders of this machine; no network."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.labels.hub import parse_address, read_hub, table_from_builder
from evalkit.labels.read import read_labels
from evalkit.tabular.faults import Faults
from evalkit.tabular.table import Table

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    import datasets
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()

    def builder_table(split: str = "train", faults: Faults | None = None) -> Table:
        if faults is None:
            faults = Faults("hf://here")
        builder = datasets.load_dataset_builder(str(tmp_path / "data"), cache_dir=str(tmp_path / "cache"))
        return table_from_builder(builder, split, "hf://here", faults, "id")

    (tmp_path / "data").mkdir()
    return builder_table


def test_csv_text_stays_text(load: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "train.csv").write_text(
        "id,risk,when\n007,NA,2026-01-01\n1e5,null,1.0\n", encoding="utf-8"
    )
    table = load()
    assert table.values("id") == ["007", "1e5"]
    assert table.values("risk") == ["NA", "null"]
    assert table.values("when") == ["2026-01-01", "1.0"]
    assert [table.line(i) for i in range(2)] == [2, 3]


def test_jsonl_and_json_lists(load: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "train.jsonl").write_text('{"id": "007"}\n{"id": "8"}\n', encoding="utf-8")
    assert load().values("id") == ["007", "8"]


def test_a_json_file_that_is_a_list(load: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "train.json").write_text(json.dumps([{"id": "007"}, {"id": "8"}]), encoding="utf-8")
    assert load().values("id") == ["007", "8"]


def test_parquet_keeps_its_types(load: Any, tmp_path: Path) -> None:
    from datasets import Dataset

    Dataset.from_dict({"id": ["007", "1e5"], "n": [1, 2]}).to_parquet(str(tmp_path / "data" / "train.parquet"))
    table = load()
    assert table.values("id") == ["007", "1e5"]
    assert table.lines is None


def test_several_files_of_a_split_are_one_table(load: Any, tmp_path: Path) -> None:
    for k in range(2):
        (tmp_path / "data" / f"train-0000{k}-of-00002.csv").write_text(f"id,x\nr{k},{k}\n", encoding="utf-8")
    table = load()
    assert sorted(table.values("id")) == ["r0", "r1"]
    assert [table.row(i) for i in range(2)] == [1, 2]


def test_another_split(load: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "train.csv").write_text("id\na\n", encoding="utf-8")
    (tmp_path / "data" / "test.csv").write_text("id\nb\n", encoding="utf-8")
    assert load("test").values("id") == ["b"]
    with pytest.raises(InputError, match='has no split "tset" \\(did you mean "test"'):
        load("tset")


def test_faults_inside_are_named(load: Any, tmp_path: Path) -> None:
    (tmp_path / "data" / "train.csv").write_text("id,x\na,1,2\n", encoding="utf-8")
    faults = Faults("hf://here")
    load(faults=faults)
    assert [str(f).split(": ")[0] for f in faults] == ["hf://here:2"]


def test_an_address_names_a_commit() -> None:
    address = parse_address(f"hf://org/name@{REVISION}/train")
    assert (address.name, address.revision, address.config, address.split) == ("org/name", REVISION, None, "train")
    assert parse_address(f"hf://org/name@{REVISION}/easy/test").config == "easy"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("hf://org/name/train", "names no revision"),
        ("hf://org/name@main/train", 'the revision "main", which can move'),
        (f"hf://org/name@{REVISION[:-1]}/train", "which can move"),
        (f"hf://org/name@{REVISION.upper()}/train", "which can move"),
        (f"hf://org/name@{REVISION}", "is not an address"),
        ("hf://", "is not an address"),
    ],
)
def test_addresses_that_are_refused(address: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", "\\(")):
        parse_address(address)


def test_offline_is_obeyed_and_said(load: Any) -> None:
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    with pytest.raises(InputError, match="the dataset cannot be loaded"):
        read_hub(f"hf://org/none@{REVISION}/train", Faults("x"))
    with pytest.raises(InputError, match="the dataset cannot be loaded"):
        read_labels(f"hf://org/none@{REVISION}/train", tiers=["a", "b"], risk_classes=["low"])
