"""Label files as they go wrong in practice, on what reads requests before there are labels.

These are the importer of logs, the sample of a log and the labelling page. The last two read a case as it is, the
importer reads it as the CSV export of a tracer (Langfuse).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.errors import InputError
from evalkit.labelling.items import read_items
from evalkit.labels.log import read_log
from evalkit.outcomes.logs.read import read_logs
from evalkit.workflows.import_logs import request_columns

COLUMNS = {
    "id": "query_id",
    "prompt": "query",
    "risk": "risk_class",
    "weight": "risk_weight",
    "reference": "expected",
}
RISKS = ("low", "medium", "high", "critical")
Asked = list[tuple[str, str]]


def as_log(path: Path, folder: Path) -> Path:
    """The bytes of a case as an export of observations; its classes of risk become the type of each."""
    header = b"query_id,query,risk_class,risk_weight,required_tier,expected"
    data = path.read_bytes()
    assert data.count(header) == 1
    data = data.replace(header, b"id,input,type,startTime,model,traceId")
    out = folder / path.name
    out.write_bytes(re.sub(rb",(?:low|critical|high|High ),", b",GENERATION,", data))
    return out


def imported(path: Path, folder: Path, encoding: str | None = None) -> Asked:
    columns = request_columns(read_logs([as_log(path, folder)], encoding=encoding))
    return list(zip(columns["id"], columns["prompt"], strict=True))


def sampled(path: Path, folder: Path, encoding: str | None = None) -> Asked:
    log = read_log(path, columns=COLUMNS, encoding=encoding)
    return list(zip(log.columns["id"], log.texts, strict=True))


def to_label(path: Path, folder: Path, encoding: str | None = None) -> Asked:
    items = read_items(str(path), risk_classes=RISKS, columns=COLUMNS, encoding=encoding)
    return [(own, str(prompt)) for own, prompt in zip(items.ids, items.prompts, strict=True)]


Reader = Callable[..., Asked]
EVERY = pytest.mark.parametrize("reader", [imported, sampled, to_label])
TABLES = pytest.mark.parametrize("reader", [sampled, to_label])


def faults(reader: Reader, path: Path, folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        reader(path, folder)
    return [str(fault) for fault in caught.value.faults]


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


@EVERY
def test_l01_a_bom_changes_nothing(cases: Path, tmp_path: Path, reader: Reader) -> None:
    folder = cases / "L01-bom-header"
    found = reader(folder / "labels_bom.csv", tmp_path)
    assert [own for own, _ in found] == ["q1", "q2"]
    assert found == reader(folder / "labels_plain.csv", tmp_path)
    if reader is not imported:
        assert reader(folder / "labels_bom.jsonl", tmp_path)[0][1] == "Hi"


@EVERY
def test_l02_ids_are_text_and_damaged_ones_stop(cases: Path, tmp_path: Path, reader: Reader) -> None:
    folder = cases / "L02-excel-mangled-ids"
    assert [own for own, _ in reader(folder / "labels_ok.csv", tmp_path)] == ["00042", "73928e05"]
    said = faults(reader, folder / "labels_mangled.csv", tmp_path)
    assert all(
        "Text" in message and "spreadsheet" in message for message in said
    )  # and nothing else is told of it
    together = " ".join(said)
    assert "labels_mangled.csv:2:" in together
    assert "lines 2, 3" in together or "labels_mangled.csv:3:" in together
    assert reader is sampled or "4.892E+09" in together  # a sample tells no value of a log


@EVERY
def test_l04_only_utf8_unless_another_encoding_is_named(cases: Path, tmp_path: Path, reader: Reader) -> None:
    folder = cases / "L04-legacy-encoding"
    for name, line in (("labels_cp949.csv", 2), ("labels_sjis.csv", 2), ("labels_mixed.csv", 4)):
        (said,) = faults(reader, folder / name, tmp_path)
        assert f"{name}:{line}: " in said
        assert all(token in said for token in ("UTF-8", "offset", "--encoding"))
    korean = reader(folder / "labels_cp949.csv", tmp_path, "cp949")
    assert korean == reader(folder / "labels_utf8.csv", tmp_path)
    assert korean[0][1] == "배송이 언제 오나요?"
    assert len(reader(folder / "labels_sjis.csv", tmp_path, "shift_jis")) == 1


@EVERY
def test_l06_a_huge_query_is_whole_and_a_lost_quote_is_placed(cases: Path, tmp_path: Path, reader: Reader) -> None:
    folder = cases / "L06-huge-field"
    found = reader(folder / "labels_huge.csv", tmp_path)
    assert [len(text) for _, text in found] == [131_600, len("short one")]
    (said,) = faults(reader, folder / "labels_unclosed.csv", tmp_path)
    assert "labels_unclosed.csv:2: " in said
    assert "quote" in said


@TABLES
def test_l07_a_repeated_id_names_both_lines(cases: Path, tmp_path: Path, reader: Reader) -> None:
    (said,) = faults(reader, cases / "L07-duplicate-ids" / "labels_dup.csv", tmp_path)
    assert "labels_dup.csv:4: row 3" in said
    assert "line 2 (row 1)" in said


def test_l07_calls_of_one_request_are_one_request_and_of_two_texts_a_fault(cases: Path, tmp_path: Path) -> None:
    """One id on two models is one item. With other text it is two, and neither the first nor the last may win."""
    path = cases / "L07-duplicate-ids" / "labels_dup.csv"
    assert imported(path, tmp_path) == [("q1", "Reset my PIN"), ("q2", "Wire fraud alert")]
    other = tmp_path / "labels_other.csv"
    first, rest = path.read_bytes().split(b"\n", 2)[:2], path.read_bytes().split(b"\n", 2)[2]
    other.write_bytes(b"\n".join([*first, rest.replace(b"Reset my PIN", b"Close my account")]))
    (said,) = faults(imported, other, tmp_path)
    assert all(token in said for token in ("labels_other.csv:4", "labels_other.csv:2", "q1", "other text"))
    assert "account" not in said


@TABLES
def test_l08_line_and_row_after_multi_line_cells(cases: Path, tmp_path: Path, reader: Reader) -> None:
    (said,) = faults(reader, cases / "L08-multiline-line-number" / "labels_multiline.csv", tmp_path)
    assert "labels_multiline.csv:8: row 3" in said
    assert "risk_weight" in said


def test_l08_a_log_is_read_over_several_lines(cases: Path, tmp_path: Path) -> None:
    found = imported(cases / "L08-multiline-line-number" / "labels_multiline.csv", tmp_path)
    assert found[0] == ("q1", "first line\nsecond line\n\nfourth line")
    assert [own for own, _ in found] == ["q1", "q2", "q3"]


def test_l09_references_stay_as_they_were_typed(cases: Path) -> None:
    folder = cases / "L09-bool-number-labels"
    for name, wanted in (
        ("labels_bool.csv", ["TRUE", "true", "1", "FALSE", "007"]),
        ("labels_allbool.csv", ["TRUE", "FALSE"]),
        ("labels_allnum.csv", ["1", "007", "1.0"]),
    ):
        assert read_log(folder / name, columns=COLUMNS).columns["reference"] == wanted
        items = read_items(str(folder / name), risk_classes=RISKS, columns=COLUMNS)
        assert list(items.kept["reference"]) == wanted


@TABLES
def test_l10_every_wrong_weight_is_told(cases: Path, tmp_path: Path, reader: Reader) -> None:
    said = faults(reader, cases / "L10-weights" / "labels_weights.csv", tmp_path)
    assert [int(message.split(":")[1]) for message in said] == [3, 4, 5, 6]
    assert all("risk_weight" in message for message in said)


def test_l10_nothing_is_drawn_from_no_traffic(cases: Path, tmp_path: Path, capsys: Any) -> None:
    path = cases / "L10-weights" / "labels_all_zero.csv"
    columns = [word for pair in COLUMNS.items() for word in ("--column", "=".join(pair))]
    out = tmp_path / "sample.jsonl"
    assert main(["labels", "sample", str(path), "--out", str(out), *columns]) == 2
    assert "traffic" in capsys.readouterr().err
    assert not out.exists()


def test_l11_an_unknown_class_is_refused_where_the_classes_are_known(
    cases: Path, tmp_path: Path, capsys: Any
) -> None:
    """A log has classes of its own, each shown as a stratum; who labels the sample is told which are none."""
    path = cases / "L11-unknown-risk-class" / "labels_risk.csv"
    said = faults(to_label, path, tmp_path)
    assert ["labels_risk.csv:3:" in said[0], "labels_risk.csv:4:" in said[1], len(said)] == [True, True, 2]
    assert all(message.endswith("Fix: write high.") for message in said)
    columns = [word for pair in COLUMNS.items() for word in ("--column", "=".join(pair))]
    out, summary = tmp_path / "sample.jsonl", tmp_path / "sample.json"
    assert main(["labels", "sample", str(path), "--out", str(out), "--json", str(summary), *columns]) == 0
    strata = [stratum["name"] for stratum in json.loads(summary.read_text(encoding="utf-8"))["strata"]]
    assert {"High ", "hihg"} <= set(strata)
    capsys.readouterr()
    with pytest.raises(InputError) as caught:
        read_items(str(out), risk_classes=RISKS)
    assert len(caught.value.faults) == 2


@EVERY
def test_l13_braces_are_untouched(cases: Path, tmp_path: Path, reader: Reader) -> None:
    found = reader(cases / "L13-braces-in-query" / "labels_braces.csv", tmp_path)
    assert [text for _, text in found] == [
        "Why does {# fail in my template?",
        'Return {"name": "{subject}"} as JSON',
        "Show me {{ 7*7 }} and {{ config.api_key }}",
        "Price is 5} or {0} or %s or $HOME",
        "My id is {query_id}",
    ]


def test_the_name_of_a_log_is_told_whatever_numbers_it_has(tmp_path: Path) -> None:
    path = tmp_path / "log-2026-09-01.csv"
    path.write_text("prompt,4111 1111 1111 1111\nhello,x\n", encoding="utf-8")
    (said,) = read_log(path).notices
    assert said.startswith(f"{path}: ")
    assert "4111" not in said
