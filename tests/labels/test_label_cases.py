"""Cases from practice: what label files look like in the wild, and the exact right behaviour."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels

COLUMNS = {
    "id": "query_id",
    "prompt": "query",
    "risk": "risk_class",
    "weight": "risk_weight",
    "reference": "expected",
}
TIERS = ("cheap", "mid", "frontier", "reasoning")
RISKS = ("low", "medium", "high", "critical")


def load(path: Path, **kw: object) -> LabelSet:
    return read_labels(path, tiers=TIERS, risk_classes=RISKS, columns=COLUMNS, **kw)  # type: ignore[arg-type]


def messages(path: Path, **kw: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(path, **kw)
    return [str(fault) for fault in caught.value.faults]


def holds(said: list[str], groups: list[list[str]], file: str) -> None:
    """Each group of `expect.json` that is about `file` stands in one message."""
    for group in groups:
        if file in group:
            assert any(all(token in message for token in group) for message in said), (group, said)


def expected(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture
def cases(shared: Path) -> Path:
    return shared / "cases"


def test_l01_a_bom_changes_nothing(cases: Path) -> None:
    folder = cases / "L01-bom-header"
    bom, plain = load(folder / "labels_bom.csv"), load(folder / "labels_plain.csv")
    assert bom.ids == plain.ids == ("q1", "q2")
    assert bom.fingerprint == plain.fingerprint
    assert len(load(folder / "labels_bom.jsonl")) == 1
    assert bom.notices == plain.notices == ()


def test_l02_ids_are_text_and_damaged_ones_stop(cases: Path) -> None:
    folder = cases / "L02-excel-mangled-ids"
    assert load(folder / "labels_ok.csv").ids == ("00042", "73928e05")
    said = messages(folder / "labels_mangled.csv")
    holds(said, expected(folder)["message_must_contain"], "labels_mangled.csv")  # type: ignore[arg-type]
    assert len(said) == 1
    assert "lines 2, 3" in said[0]


def test_l04_only_utf8_unless_another_encoding_is_named(cases: Path) -> None:
    folder = cases / "L04-legacy-encoding"
    good = load(folder / "labels_utf8.csv")
    for name in ("labels_cp949.csv", "labels_sjis.csv", "labels_mixed.csv"):
        said = messages(folder / name)
        holds(said, expected(folder)["message_must_contain"], name)  # type: ignore[arg-type]
        assert len(said) == 1
        assert "offset" in said[0]
    assert "labels_sjis.csv:2:" in messages(folder / "labels_sjis.csv")[0]
    korean = load(folder / "labels_cp949.csv", encoding="cp949")
    assert list(korean.prompts) == list(good.prompts)
    assert korean.fingerprint == good.fingerprint
    assert len(load(folder / "labels_sjis.csv", encoding="shift_jis")) == 1


def test_l04_the_locale_does_not_matter(cases: Path) -> None:
    script = (
        "import sys\n"
        "from evalkit.labels.read import read_labels\n"
        "s = read_labels(sys.argv[1], tiers=['cheap', 'frontier'], risk_classes=['low', 'critical'],\n"
        "    columns={'id': 'query_id', 'prompt': 'query', 'risk': 'risk_class', 'weight': 'risk_weight',\n"
        "    'reference': 'expected'})\n"
        "print(s.fingerprint)\n"
    )
    path = cases / "L04-legacy-encoding" / "labels_utf8.csv"
    found = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env={**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == load(path).fingerprint


def test_l06_a_huge_query_is_whole_and_a_lost_quote_is_placed(cases: Path) -> None:
    folder = cases / "L06-huge-field"
    labels = load(folder / "labels_huge.csv")
    assert len(labels) == 2
    assert len(labels.prompts[0] or "") == 131_600
    holds(
        messages(folder / "labels_unclosed.csv"), expected(folder)["message_must_contain"], "labels_unclosed.csv"
    )  # type: ignore[arg-type]


def test_l07_a_repeated_id_names_both_lines_and_what_differs(cases: Path) -> None:
    folder = cases / "L07-duplicate-ids"
    for drop in (False, True):
        said = messages(folder / "labels_dup.csv", drop_identical=drop)
        holds(said, expected(folder)["message_must_contain"], "labels_dup.csv")  # type: ignore[arg-type]
        assert len(said) == 1
        assert "risk_class, risk_weight, required_tier, expected differ" in said[0]


def test_l08_line_and_row_after_multi_line_cells(cases: Path) -> None:
    folder = cases / "L08-multiline-line-number"
    said = messages(folder / "labels_multiline.csv")
    holds(said, expected(folder)["message_must_contain"], "labels_multiline.csv")  # type: ignore[arg-type]
    assert len(said) == 1
    assert "labels_multiline.csv:8: row 3 (id q3), field risk_weight:" in said[0]


def test_l09_labels_stay_as_they_were_typed(cases: Path) -> None:
    folder = cases / "L09-bool-number-labels"
    mixed = load(folder / "labels_bool.csv")
    assert mixed.reference == ("TRUE", "true", "1", "FALSE", "007")
    holds(list(mixed.notices), expected(folder)["message_must_contain"][:1], "labels_bool.csv")  # type: ignore[index]
    assert len(mixed.notices) == 1
    assert load(folder / "labels_allbool.csv").reference == ("TRUE", "FALSE")
    assert load(folder / "labels_allbool.csv").notices == ()
    assert load(folder / "labels_allnum.csv").reference == ("1", "007", "1.0")


def test_l10_weights(cases: Path, tmp_path: Path) -> None:
    folder = cases / "L10-weights"
    said = messages(folder / "labels_weights.csv")
    holds(said, expected(folder)["message_must_contain"], "labels_weights.csv")  # type: ignore[arg-type]
    assert len(said) == 4
    holds(
        messages(folder / "labels_all_zero.csv"), expected(folder)["message_must_contain"], "labels_all_zero.csv"
    )  # type: ignore[arg-type]
    rows = (folder / "labels_weights.csv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "legal.csv"
    path.write_text("\n".join([rows[0], rows[1], rows[6]]) + "\n", encoding="utf-8")
    legal = load(path)
    assert legal.weight.tolist() == [1.0, 0.0]
    assert [n.split(": ", 1)[1] for n in legal.notices] == [
        "1 query has weight 0 and does not affect weighted figures"
    ]


def test_l11_unknown_classes_are_listed_together_with_suggestions(cases: Path) -> None:
    folder = cases / "L11-unknown-risk-class"
    said = messages(folder / "labels_risk.csv")
    holds(said, expected(folder)["message_must_contain"], "labels_risk.csv")  # type: ignore[arg-type]
    assert len(said) == 3
    assert "labels_risk.csv:3:" in said[0]
    assert '"High "' in said[0]
    assert said[0].endswith("Fix: write high.")
    assert "blank" in said[2]
    assert sum("low, medium, high, critical" in message for message in said) == 1


def test_l13_braces_reach_the_labels_untouched(cases: Path) -> None:
    prompts = list(load(cases / "L13-braces-in-query" / "labels_braces.csv").prompts)
    assert prompts == [
        "Why does {# fail in my template?",
        'Return {"name": "{subject}"} as JSON',
        "Show me {{ 7*7 }} and {{ config.api_key }}",
        "Price is 5} or {0} or %s or $HOME",
        "My id is {query_id}",
    ]
