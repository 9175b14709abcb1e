"""Judged items that a router was trained on: named, or left out for all routers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.router_studies import KEYWORDS, VENDOR, looks, verified, write_routers
from tests.workflows.studies import evalkit

TRAINED = VENDOR | {"train": "train.jsonl"}


def _train(folder: Path, *rows: tuple[str, str]) -> None:
    lines = [
        json.dumps({"id": i, "prompt": prompt, "required_tier": "cheap", "risk": "low"}) for i, prompt in rows
    ]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_leaks_are_an_error_that_names_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED)
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "something else altogether, of no judged item"))
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "field routers[1].train: vendor: " in ran.err
    assert "q3 is in training as t1 (exact)" in ran.err
    assert "leaks: drop" in ran.err
    assert ran.wrote_nothing()
    assert not (tmp_path / "labels.csv.looks.json").exists()


def test_dropped_leaks_are_judged_by_no_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"})
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "Question 8 about a CONTRACT!"))
    ran = evalkit(capsys, tmp_path)
    result = ran.result
    assert ran.code == 0, ran.err
    left = result["left_out"]["ids"]
    assert {"q3", "q8"} <= set(left)
    assert result["left_out"]["items"] == len(left) < 60
    assert result["counts"]["items"] == 600 - len(left)
    rows = {row["name"]: row for row in result["routers"]}
    assert {leak["id"] for leak in rows["vendor"]["leaks"]} == set(left)
    assert {"q3": "t1", "q8": "t2"}.items() <= {x["id"]: x["training_id"] for x in rows["vendor"]["leaks"]}.items()
    assert rows["vendor"]["leaks_checked"] is True
    assert rows["keywords"]["leaks"] == []
    assert any(
        f"{len(left)} labelled items were left out for all routers, being in the training labels of vendor" in said
        for said in result["evidence_limits"]
    )
    import gzip

    judged = [
        json.loads(line)["id"]
        for line in gzip.decompress((ran.folder / "items.jsonl.gz").read_bytes()).splitlines()
    ]
    assert set(judged) == {f"q{i}" for i in range(600)} - set(left)
    (look,) = looks(tmp_path)
    assert "left_out" in look
    assert verified(capsys, ran.folder)[0] == 0


def test_to_leave_out_others_is_another_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"})
    _train(tmp_path, ("t1", "question 3 about a greeting"))
    evalkit(capsys, tmp_path)
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "question 8 about a contract"))
    second = evalkit(capsys, tmp_path)
    assert second.result["looks"]["delta"] is None
    assert second.code == 3


def test_where_every_item_leaked_nothing_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"}, n=20)
    import csv

    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    _train(tmp_path, *((f"t{i}", row["prompt"]) for i, row in enumerate(rows)))
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "every judged item stands in the training labels of a router" in ran.err


def test_with_one_turn_its_whole_conversation_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The training labels name no conversation, so that only the turn itself is found there."""
    import csv

    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"})
    file = tmp_path / "labels.csv"
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    for i, row in enumerate(rows):
        row["group"] = f"talk {i // 4}"
        row["prompt"] += " " + " ".join(f"w{i * 7919 % 997}x{k}{i}" for k in range(9))
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    _train(tmp_path, ("t1", rows[9]["prompt"]))
    result = evalkit(capsys, tmp_path).result
    assert result["left_out"]["ids"] == ["q8", "q9", "q10", "q11"]
    (vendor,) = (row for row in result["routers"] if row["name"] == "vendor")
    assert [leak["id"] for leak in vendor["leaks"]] == ["q9"]
    assert any("or in one conversation with such an item" in said for said in result["evidence_limits"])
    assert verified(capsys, tmp_path / "run")[0] == 0


def test_rows_of_training_items_in_the_same_files_are_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels that were set together and then split: outcomes and scores hold both parts."""
    for name in ("alone", "both"):
        (tmp_path / name).mkdir()
        write_routers(tmp_path / name, KEYWORDS, TRAINED)
        _train(tmp_path / name, ("t1", "something else altogether, of no judged item"))
    alone = evalkit(capsys, tmp_path / "alone")
    assert alone.code == 0, alone.err
    folder = tmp_path / "both"
    with (folder / "outcomes.csv").open("a", encoding="utf-8") as file:
        file.write("t1,cheap,demo/cheap,wrong,5,9\nt1,frontier,demo/frontier,wrong,5,9\n")
    with (folder / "scores.csv").open("a", encoding="utf-8") as file:
        file.write("t1,0.5\n")
    both = evalkit(capsys, folder)
    assert both.code == 0, both.err
    assert "outcomes.csv: 2 rows not used: their items are left out, or a router was trained on them" in both.err
    assert "scores.csv: 1 row not used" in both.err
    for key in ("gates", "selected", "baselines", "counts", "routers"):
        assert both.result[key] == alone.result[key], key
    assert verified(capsys, both.folder)[0] == 0
    with (folder / "outcomes.csv").open("a", encoding="utf-8") as file:
        file.write("t2,cheap,demo/cheap,wrong,5,9\n")
    stray = evalkit(capsys, folder)
    assert stray.code == 2
    assert '"t2" is not among the 600 labelled ids' in stray.err
    assert '"t1"' not in stray.err
