"""What labels say of themselves: agreement of annotators, and their age."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.workflows.label_facts import label_facts


def labelled(folder: Path, rows: list[dict[str, Any]]) -> LabelSet:
    path = folder / "labels.jsonl"
    whole = [{"id": f"q{i}", "required_tier": "cheap", "risk": "low", **row} for i, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in whole), encoding="utf-8")
    return read_labels(path, tiers=("cheap", "frontier"), risk_classes=("low",))


def both(one: str, other: str) -> dict[str, Any]:
    return {"labels": {"anna": one, "ben": other}}


def test_alpha_is_krippendorffs_by_hand(tmp_path: Path) -> None:
    """8 items cheap by both, 1 frontier by both, 1 split: 20 labels, 17 cheap and 3 frontier, one coincidence of
    unlike labels each way: alpha = 1 - 19 * 1 / (17 * 3). With two categories ordinal and nominal are one."""
    rows = [both("cheap", "cheap")] * 8 + [both("frontier", "frontier"), both("cheap", "frontier")]
    found = label_facts(labelled(tmp_path, [*rows, {"labels": {"anna": "cheap"}}]))["agreement"]
    assert found["alpha"] == pytest.approx(1 - 19 / 51)
    assert (found["level"], found["raw"], found["items"], found["annotators"]) == ("ordinal", 0.9, 10, 2)


def test_three_forms_of_the_column_say_the_same(tmp_path: Path) -> None:
    pairs = [("cheap", "cheap"), ("frontier", "frontier"), ("cheap", "frontier")]
    forms = [
        [{"labels": {"a": one, "b": other}} for one, other in pairs],
        [{"labels": [one, other]} for one, other in pairs],
        [
            {"labels": [{"annotator": "a", "label": one}, {"annotator": "b", "label": other}]}
            for one, other in pairs
        ],
    ]
    found = [label_facts(labelled(tmp_path, rows))["agreement"] for rows in forms]
    assert found[0] == found[1] == found[2]


def test_one_annotator_measures_nothing_and_one_label_has_no_alpha(tmp_path: Path) -> None:
    assert label_facts(labelled(tmp_path, [{"labels": {"anna": "cheap"}}] * 3)) == {}
    assert label_facts(labelled(tmp_path, [{}])) == {}
    same = label_facts(labelled(tmp_path, [both("cheap", "cheap")] * 3))["agreement"]
    assert (same["alpha"], same["alpha_reason"]) == (None, "only one label occurs")


def test_few_items_bound_alpha_little_and_conversations_less(tmp_path: Path) -> None:
    """90 items on which both agree, 10 on which they do not, against resampling by hand; then in tens."""
    import numpy as np

    from evalkit.statistics.agreement import Level, krippendorff_alpha

    kinds = [both("cheap", "cheap")] * 60 + [both("frontier", "frontier")] * 30 + [both("cheap", "frontier")] * 10
    alone = label_facts(labelled(tmp_path, kinds))["agreement"]
    table = np.array([[0, 0]] * 60 + [[1, 1]] * 30 + [[0, 1]] * 10, dtype=float)
    rng = np.random.default_rng(5)
    drawn = [krippendorff_alpha(table[rng.integers(0, 100, 100)], Level.NOMINAL) for _ in range(2000)]
    assert alone["lower"] == pytest.approx(np.quantile(drawn, 0.025), abs=0.02)
    grouped = label_facts(labelled(tmp_path, [{**row, "group": f"g{i // 10}"} for i, row in enumerate(kinds)]))
    assert grouped["agreement"]["alpha"] == alone["alpha"]
    assert grouped["agreement"]["lower"] < alone["lower"] - 0.1  # all that disagree are one conversation


def test_where_no_two_labels_disagree_raw_agreement_says_how_little_is_known(tmp_path: Path) -> None:
    found = label_facts(labelled(tmp_path, [both("cheap", "cheap"), both("frontier", "frontier")]))["agreement"]
    assert (found["alpha"], found["lower"], found["lower_reason"]) == (1.0, None, "no two labels disagree")
    z = 1.959963984540054
    assert found["raw_lower"] == pytest.approx(2 / (2 + z**2))  # Wilson's lower end at 2 of 2


def test_the_oldest_day_counts_and_a_missing_one_leaves_it_unknown(tmp_path: Path) -> None:
    days = [{"metadata": {"labelled_at": day}} for day in ("2026-05-02T09:00:00Z", "2026-03-01", "2026-11-30")]
    found = label_facts(labelled(tmp_path, days))["labelled"]
    assert found == {"oldest": "2026-03-01", "newest": "2026-11-30", "items": 3}
    found = label_facts(labelled(tmp_path, [*days, {"metadata": {"labelled_at": "last week"}}]))["labelled"]
    assert (found["oldest"], found["oldest_reason"]) == (None, "1 item has no day")
