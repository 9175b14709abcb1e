"""Labels from decisions: what agrees, what is settled, and what no command may take for a label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from labelling_files import RISKS, TIERS, header, items_of, jsonl, replies_of

from evalkit.errors import InputError
from evalkit.labelling.decisions import Decision, as_line
from evalkit.labelling.log_file import DecisionFile
from evalkit.labelling.session import Session
from evalkit.labels.ratings import ratings_of_column
from evalkit.labels.read import read_labels
from evalkit.workflows.label_page import LabelOptions, _export_name, _Target, label

ROWS = [
    {"id": f"q{i}", "prompt": f"question {i}", "risk": "low", "weight": 1.5, "metadata": {"k": i}}
    for i in range(4)
]


def log(folder: Path, name: str, said: dict[str, tuple[str, str]], *, settles: bool = False) -> Path:
    items = items_of(folder, 4)
    lines = [as_line(header(name, "tier", adjudicates=("ann", "bo") if settles else ()))]
    for n, (id, (tier, risk)) in enumerate(said.items(), start=1):
        asked = items.asked(items.ids.index(id))
        lines.append(as_line(Decision(n, id, asked, tier, risk, f"{name} on {id}", "2026-01-01T00:00:00Z")))
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def export(folder: Path, *files: Path, out: str = "labels.jsonl", **more: Any) -> list[dict[str, Any]]:
    label(
        LabelOptions(
            str(jsonl(folder / "set.jsonl", ROWS)), tiers=",".join(TIERS), risk_classes=",".join(RISKS),
            export=folder / out, decisions=files, **more,
        )
    )  # fmt: skip
    return [json.loads(line) for line in (folder / out).read_text(encoding="utf-8").splitlines()]


ANN = {"q0": ("cheap", "low"), "q1": ("mid", "low"), "q2": ("top", "low"), "q3": ("unsolvable", "low")}
BO = {"q0": ("cheap", "low"), "q1": ("top", "low"), "q2": ("top", "high"), "q3": ("unsolvable", "low")}


def test_one_annotator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = export(tmp_path, log(tmp_path, "ann", ANN))
    assert [row["required_tier"] for row in rows] == ["cheap", "mid", "top", "unsolvable"]
    assert rows[1] == {
        "id": "q1", "prompt": "question 1", "required_tier": "mid", "risk": "low", "weight": 1.5,
        "labels": {"ann": "mid"}, "metadata": {"k": 1, "label_notes": {"ann": "ann on q1"}},
    }  # fmt: skip
    read = read_labels(tmp_path / "labels.jsonl", tiers=TIERS, risk_classes=RISKS)
    assert read.required.tolist() == [0, 1, 2, 3]
    assert capsys.readouterr().out == f"{tmp_path / 'labels.jsonl'}: 4 items labelled by ann\n"


def test_what_two_dispute_is_no_label_until_it_is_settled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [log(tmp_path, "ann", ANN), log(tmp_path, "bo", BO)]
    rows = export(tmp_path, *files)
    assert [row.get("required_tier") for row in rows] == ["cheap", None, None, "unsolvable"]
    assert rows[1]["labels"] == {"ann": "mid", "bo": "top"}
    said = capsys.readouterr()
    assert "2 items are in dispute (1 of them on the risk class alone)" in said.err
    names = f"--tiers {','.join(TIERS)} --risk-classes {','.join(RISKS)}"
    adjudicate = f"--annotator NAME --adjudicate {files[0]} {files[1]}"
    assert f"settle: evalkit label {tmp_path / 'set.jsonl'} {names} {adjudicate}\n" in said.out
    with pytest.raises(InputError, match="field required_tier: is blank"):
        read_labels(tmp_path / "labels.jsonl", tiers=TIERS, risk_classes=RISKS)
    ratings = ratings_of_column(
        read_labels(tmp_path / "labels.jsonl", tiers=TIERS, risk_classes=RISKS, require_required_tier=False)
    )
    assert (ratings.annotators, ratings.values.tolist()) == (("ann", "bo"), [[0, 0], [1, 2], [2, 2], [3, 3]])

    settled = log(tmp_path, "cy", {"q1": ("cheap", "low"), "q2": ("top", "high")}, settles=True)
    rows = export(tmp_path, settled, *files)  # in any order
    assert "\n2 conflicts settled by cy\n" in capsys.readouterr().out
    assert [(row["required_tier"], row["risk"]) for row in rows] == [
        ("cheap", "low"), ("cheap", "low"), ("top", "high"), ("unsolvable", "low"),
    ]  # fmt: skip
    assert rows[1]["labels"] == {"ann": "mid", "bo": "top"}  # what annotators said is kept for agreement
    assert rows[1]["metadata"]["label_notes"] == {"ann": "ann on q1", "bo": "bo on q1", "cy": "cy on q1"}


def test_settling_changes_nothing_on_which_both_agree(tmp_path: Path) -> None:
    files = [log(tmp_path, "ann", ANN), log(tmp_path, "bo", BO)]
    settled = log(tmp_path, "cy", {"q0": ("top", "high"), "q1": ("mid", "low")}, settles=True)
    rows = export(tmp_path, *files, settled)
    assert [row.get("required_tier") for row in rows] == ["cheap", "mid", None, "unsolvable"]


def test_undecided_items_are_not_left_out_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [log(tmp_path, "ann", {"q0": ANN["q0"]}), log(tmp_path, "bo", {"q1": BO["q1"]})]
    with pytest.raises(InputError, match=r'2 of 4 items are not decided: "q2", "q3"'):
        export(tmp_path, *files)
    assert not (tmp_path / "labels.jsonl").exists()
    rows = export(tmp_path, *files, partial=True)
    assert [(row["id"], row["required_tier"], row["labels"]) for row in rows] == [
        ("q0", "cheap", {"ann": "cheap"}), ("q1", "top", {"bo": "top"}),
    ]  # fmt: skip
    said = capsys.readouterr().err
    assert "2 items that nobody decided are left out" in said
    assert "2 items were decided by one annotator only" in said


def test_the_same_files_give_the_same_bytes_in_every_format(tmp_path: Path) -> None:
    files = [log(tmp_path, "ann", ANN), log(tmp_path, "bo", BO)]
    for out in ("a.jsonl", "a.csv", "a.parquet"):
        jsonl(tmp_path / "set.jsonl", ROWS)
        made = []
        for name in (out, f"again-{out}"):
            label(
                LabelOptions(str(tmp_path / "set.jsonl"), tiers=",".join(TIERS), risk_classes=",".join(RISKS),
                             export=tmp_path / name, decisions=files)
            )  # fmt: skip
            made.append((tmp_path / name).read_bytes())
        assert made[0] == made[1]
        read = read_labels(tmp_path / out, tiers=TIERS, risk_classes=RISKS, require_required_tier=False)
        assert read.required.tolist() == [0, -1, -1, 3]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("ann", "ann"), 'is of "ann", as'),
        (("cy",), "0 files of annotators and 1 that settle conflicts"),
        (("ann", "cy"), 'settles conflicts of "ann", "bo"'),
        (("ann", "bo", "di"), "3 files of annotators"),
        ((), "no file of decisions is named"),
    ],
)
def test_files_that_do_not_go_together_are_refused(tmp_path: Path, names: tuple[str, ...], says: str) -> None:
    files = [log(tmp_path, name, ANN, settles=name == "cy") for name in names]
    with pytest.raises(InputError) as error:
        export(tmp_path, *files)
    assert says in str(error.value)


def test_decisions_on_other_text_are_not_made_labels(tmp_path: Path) -> None:
    path = log(tmp_path, "ann", ANN)
    rows = [row | {"prompt": "changed"} if row["id"] == "q2" else row for row in ROWS]
    with pytest.raises(InputError, match="id q2: asks something else"):
        label(
            LabelOptions(str(jsonl(tmp_path / "set2.jsonl", rows)), tiers=",".join(TIERS),
                         risk_classes=",".join(RISKS), export=tmp_path / "x.jsonl", decisions=[path])
        )  # fmt: skip


def judged(folder: Path, name: str, answer: str) -> Path:
    """Decisions on the replies of all tiers, which begin with `answer`."""
    items = items_of(folder, 4)
    replies = replies_of(folder, items, {tier: f"{answer} of {tier}" for tier in TIERS})
    path = folder / f"{name}.jsonl"
    with DecisionFile.open(path, header(name)) as file:
        session = Session(items, replies, file)
        for k in range(4):
            session.decide({"index": k, "after": k, "good": ["A", "B", "C"], "risk": "low", "note": ""})
    return path


def test_what_was_judged_on_different_replies_is_not_put_together(tmp_path: Path) -> None:
    ann, bo = judged(tmp_path, "ann", "one"), judged(tmp_path, "bo", "one")
    assert [row["required_tier"] for row in export(tmp_path, ann, bo)] == ["cheap"] * 4
    bo.unlink()
    judged(tmp_path, "bo", "another")
    (tmp_path / "labels.jsonl").unlink()
    with pytest.raises(InputError) as error:
        export(tmp_path, ann, bo)
    assert [fault.id for fault in error.value.faults] == ["q0", "q1", "q2", "q3"]
    assert "was judged on other replies than in" in str(error.value)
    assert not (tmp_path / "labels.jsonl").exists()


def test_what_was_drawn_for_an_audit_keeps_the_record_of_its_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = b'{"schema": "evalkit.labels-audit-draw/1"}\n'
    (tmp_path / "set.jsonl.draw.json").write_bytes(record)
    export(tmp_path, log(tmp_path, "ann", ANN), out="judged.jsonl")
    assert (tmp_path / "judged.jsonl.draw.json").read_bytes() == record
    said = capsys.readouterr().out
    assert f"--judged {tmp_path / 'judged.jsonl'}" in said


@pytest.mark.parametrize(
    ("items", "drawn", "wanted"),
    [
        ("set.jsonl", False, "labels.jsonl"),
        ("audit.csv", True, "audit.judged.csv"),
        ("labels.jsonl", False, "labels.labelled.jsonl"),
        ("hf://org/set@0/test", False, "labels.jsonl"),
    ],
)
def test_the_command_that_is_suggested_overwrites_nothing_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, items: str, drawn: bool, wanted: str
) -> None:
    """An audit is drawn beside labels.jsonl: its judgements must not be written over them."""
    monkeypatch.chdir(tmp_path)
    if not items.startswith("hf:"):
        Path(items).write_text("id\n", encoding="utf-8")
    if drawn:
        Path(f"{items}.draw.json").write_text("{}", encoding="utf-8")
    target = _Target("set", items, {}, None, TIERS, RISKS, None, {}, None)
    assert _export_name(target) == wanted
