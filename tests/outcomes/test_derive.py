"""Required tiers derived from outcomes, and the commands around labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalkit.cli.import_ import app as import_app
from evalkit.cli.labels import app as labels_app
from evalkit.errors import InputError
from evalkit.labels.base import read_base
from evalkit.labels.read import read_labels
from evalkit.outcomes.derive import derived_columns, required_tiers
from evalkit.outcomes.read import read_outcomes

TIERS = ("cheap", "mid", "top")

OUTCOMES = (
    "id,tier,status\n"
    "a,cheap,ok\na,mid,wrong\na,top,ok\n"
    "b,cheap,error\nb,mid,ok\nb,top,wrong\n"
    "c,cheap,wrong\nc,mid,contract_fail\nc,top,ok\n"
    "d,cheap,wrong\nd,mid,truncated\nd,top,error\n"
)


def write(tmp_path: Path, text: str, name: str = "o.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def run(app: Any, *arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def faults(app: Any, *arguments: object) -> list[str]:
    result = run(app, *arguments)
    assert isinstance(result.exception, InputError), result.output
    return [str(f) for f in result.exception.faults]


def test_the_least_tier_that_passed(tmp_path: Path) -> None:
    outcomes = read_outcomes(write(tmp_path, OUTCOMES), ids=None, tiers=TIERS)
    assert required_tiers(outcomes).tolist() == [0, 1, 2, 3]


def test_every_sample_must_pass(tmp_path: Path) -> None:
    text = "id,tier,sample,passed\na,cheap,0,1\na,cheap,1,0\na,mid,0,1\na,mid,1,1\na,top,0,1\na,top,1,1\n"
    outcomes = read_outcomes(write(tmp_path, text), ids=None, tiers=TIERS)
    assert required_tiers(outcomes).tolist() == [1]


def test_items_keep_their_fields_and_their_order(tmp_path: Path) -> None:
    base = read_base(
        write(
            tmp_path,
            '{"id": "d", "prompt": "pd", "risk": "high", "metadata": {"k": 1}, "weight": 2}\n'
            '{"id": "a", "prompt": "pa", "risk": "low", "group": "g"}\n',
            "base.jsonl",
        )
    )
    outcomes = read_outcomes(write(tmp_path, OUTCOMES), ids=base.ids, tiers=TIERS, unknown="notice")
    assert derived_columns(outcomes, base) == {
        "id": ["d", "a"],
        "prompt": ["pd", "pa"],
        "required_tier": ["unsolvable", "cheap"],
        "risk": ["high", "low"],
        "weight": [2, None],
        "group": [None, "g"],
        "metadata": [{"k": 1, "labels_kind": "derived"}, {"labels_kind": "derived"}],
    }


def test_the_risk_comes_from_one_place(tmp_path: Path) -> None:
    outcomes = read_outcomes(write(tmp_path, OUTCOMES), ids=None, tiers=TIERS)
    with pytest.raises(InputError, match="nothing says the risk class"):
        derived_columns(outcomes)
    base = read_base(write(tmp_path, "id,risk\na,low\nb,low\nc,low\nd,low\n", "b.csv"))
    with pytest.raises(InputError, match="risk class of their own"):
        derived_columns(outcomes, base, "low")


def test_human_labels_are_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has required tiers already"):
        read_base(write(tmp_path, "id,risk,required_tier\na,low,cheap\n", "b.csv"))


def test_the_derive_command(tmp_path: Path) -> None:
    path, out = write(tmp_path, OUTCOMES), tmp_path / "labels.csv"
    result = run(labels_app, "derive", path, "--tiers", "cheap,mid,top", "--risk", "low", "--out", out)
    assert result.exit_code == 0, result.output
    assert "4 items; required tiers are derived, not judged by people" in result.stdout
    labels = read_labels(out, tiers=TIERS, risk_classes=("low",))
    assert labels.required.tolist() == [0, 1, 2, 3]
    assert labels.metadata == [{"labels_kind": "derived"}] * 4
    two = tmp_path / "two.jsonl"
    result = run(labels_app, "derive", path, "--tiers", "cheap,top", "--risk", "low", "--out", two)
    assert result.exit_code == 0
    assert "4 rows not used, their tier is not in the study" in result.stderr
    assert read_labels(two, tiers=("cheap", "top"), risk_classes=("low",)).required.tolist() == [0, 2, 1, 2]


def test_missing_outcomes_stop_unless_said(tmp_path: Path) -> None:
    path = write(tmp_path, "id,tier,passed\na,cheap,1\na,top,1\nb,top,1\n")
    call = ("derive", path, "--tiers", "cheap,top", "--risk", "low", "--out", tmp_path / "l.jsonl")
    assert "b (cheap)" in faults(labels_app, *call)[0]
    assert not (tmp_path / "l.jsonl").exists()
    assert run(labels_app, *call, "--missing", "unanswered").exit_code == 0
    assert read_labels(tmp_path / "l.jsonl", tiers=("cheap", "top"), risk_classes=("low",)).required.tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tiers", "cheap"], "is not a list of names"),
        (["--tiers", "cheap,cheap"], "twice"),
        (["--tiers", "cheap,"], "is not a list of names"),
        (["--tiers", "cheap,top", "--pass-at", "nan"], "--pass-at"),
        (["--tiers", "cheap,top", "--missing", "maybe"], "neither error nor unanswered"),
        (["--tiers", "cheap,top", "--column", "x"], "not of the form NAME=VALUE"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, arguments: list[str], words: str) -> None:
    said = faults(
        labels_app, "derive", write(tmp_path, OUTCOMES), "--risk", "l", "--out", tmp_path / "l.csv", *arguments
    )
    assert any(words in m for m in said)


def test_an_unknown_suffix_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    said = faults(labels_app, "derive", tmp_path / "none.csv", "--tiers", "a,b", "--out", tmp_path / "l.xlsx")
    assert "no format that can be written" in said[0]


def test_the_check_command(tmp_path: Path) -> None:
    path = write(tmp_path, "qid,required_tier,risk,weight\na,cheap,low,0\nb,top,high,1\n", "l.csv")
    call = ("check", path, "--tiers", "cheap,top", "--risk-classes", "low,high", "--column", "id=qid")
    result = run(labels_app, *call, "--json", tmp_path / "s.json")
    assert result.exit_code == 0, result.output
    assert "2 items" in result.stdout
    assert "1 query has weight 0" in result.stderr
    summary = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert summary["by_required_tier"]["top"] == {"low": 0, "high": 1}
    assert run(labels_app, *call, "--quiet").stdout == ""
    assert "give --study" in faults(labels_app, "check", path)[0]
    broken = write(tmp_path, "id,required_tier,risk\na,cheap,low\na,x,hihg\n", "b.csv")
    assert len(faults(labels_app, "check", broken, "--tiers", "cheap,top", "--risk-classes", "low,high")) == 3


def test_the_check_command_with_a_study(repo: Path) -> None:
    folder = repo / "labelsets" / "helpdesk"
    if not (folder / "study.yaml").exists():
        pytest.skip("needs the bundled study, which is not there yet")
    result = run(labels_app, "check", folder / "labels.jsonl", "--study", folder / "study.yaml")
    assert result.exit_code == 0, result.output
    assert "critical" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--id", "id", "--id-from-row"], "is said twice or not at all"),
        ([], "is said twice or not at all"),
        (["--id", "id", "--cost", "chaep=c"], 'did you mean "cheap"'),
        (["--id", "id", "--latency-s", "cheap=c", "--latency-ms", "cheap=c"], "given in two units"),
        (["--id", "id", "--keep", "prompt=p"], "belong together"),
        (["--id", "id", "--keep", "promt=p", "--labels-out", "l.csv"], 'did you mean "prompt"'),
        (["--id", "id", "--exclude", "x.csv"], "give all three"),
    ],
)
def test_import_options_that_cannot_be(tmp_path: Path, arguments: list[str], words: str) -> None:
    path = write(tmp_path, "id,m,c,p\na,1,1,x\n", "w.csv")
    said = faults(import_app, "wide", path, "--tier", "cheap=m", "--out", tmp_path / "o.csv", *arguments)
    assert any(words in m for m in said)
    assert not (tmp_path / "o.csv").exists()


def test_the_import_command_lists_what_it_could_not_map(tmp_path: Path) -> None:
    path = write(tmp_path, "id,m\na,1\nb,maybe\n", "w.csv")
    result = run(import_app, "wide", path, "--id", "id", "--tier", "cheap=m", "--out", tmp_path / "o.jsonl")
    assert result.exit_code == 0, result.output
    assert "1 row, 1 item, 1 tier" in result.stdout
    assert "not mapped, a mark that is no true, false, 1 or 0: 1 (" in result.stderr
    assert "line 3 (row 2), m" in result.stderr
