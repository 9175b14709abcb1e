"""Scores and routed decisions: every item once, no other, and nothing that is no number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.errors import InputError
from evalkit.labels.read import read_labels
from evalkit.outcomes.decisions import read_decisions
from evalkit.outcomes.scores import Scores, read_scores

TIERS = ("cheap", "mid", "frontier", "reasoning")
LABEL_COLUMNS = {
    "id": "query_id",
    "prompt": "query",
    "risk": "risk_class",
    "weight": "risk_weight",
    "reference": "expected",
}


def write(tmp_path: Path, text: str, name: str = "scores.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def load(path: Path, ids: list[str], **kw: Any) -> Scores:
    return read_scores(path, ids=ids, **{"tiers": TIERS, "cascade": False, **kw})


def messages(path: Path, ids: list[str], **kw: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(path, ids, **kw)
    return [str(f) for f in caught.value.faults]


def case(shared: Path, name: str) -> tuple[Path, dict[str, Any], list[list[str]]]:
    """Folder of a case, what `read_scores` is called with, and the message groups."""
    folder = shared / "cases" / name
    labels = read_labels(
        folder / "labels.csv",
        tiers=TIERS,
        risk_classes=("low", "medium", "high", "critical"),
        columns=LABEL_COLUMNS,
    )
    call = {
        "ids": list(labels.ids),
        "columns": {"id": "query_id"},
        "risk": labels.risk_names,
        "weight": labels.weight,
    }
    groups = json.loads((folder / "expect.json").read_text(encoding="utf-8"))["message_must_contain"]
    return folder, call, groups


def test_m05_every_score_that_is_no_number_in_one_run(shared: Path) -> None:
    folder, call, groups = case(shared, "M05-nan-scores")
    said = messages(folder / "scores.csv", probability=True, **call)
    for group in groups:
        if "scores.csv" in group:
            assert any(all(token in message for token in group) for message in said), group
    assert [m.split("scores.csv:")[1].split(":")[0] for m in said] == ["3", "4", "5", "6", "7"]
    assert "reads as a decimal comma" in said[4]
    plain = messages(folder / "scores.csv", **call)
    assert [m.split("scores.csv:")[1].split(":")[0] for m in plain] == ["3", "4", "5", "7"]


def test_m07_missing_unknown_and_repeated_ids_in_one_run(shared: Path) -> None:
    folder, call, groups = case(shared, "M07-missing-scores")
    said = messages(folder / "scores.csv", **call)
    assert len(said) == 3
    for group in groups:
        assert any(all(token in message for token in group) for message in said), group
    assert "1 of 5 labelled items has no score: q4 (critical, weight 25)" in said[0]
    assert '"0.2" and "0.8"' in said[1]


@pytest.mark.parametrize(("how", "words"), [("escalate", "escalated"), ("cheapest", "sent to the cheapest tier")])
def test_missing_scores_are_treated_as_declared(tmp_path: Path, how: str, words: str) -> None:
    path = write(tmp_path, "id,score\na,0.1\nb,\nc,NaN\n")
    scores = load(path, ["a", "b", "c", "d"], missing=how)
    assert scores.missing_ids == ("b", "c", "d")
    assert scores.score is not None
    assert np.array_equal(scores.score, [0.1, np.nan, np.nan, np.nan], equal_nan=True)
    assert scores.notices == (f"{path}: 3 queries without score, treated as {words}: b, c, d",)


def test_one_missing_score_reads_as_one(tmp_path: Path) -> None:
    scores = load(write(tmp_path, "id,score\na,0.1\nb,0.2\n"), ["a", "b", "q4"], missing="escalate")
    assert "1 query without score, treated as escalated: q4" in scores.notices[0]


def test_infinite_scores_are_refused_whatever_is_declared(tmp_path: Path) -> None:
    assert "inf" in messages(write(tmp_path, "id,score\na,0.1\nb,-inf\n"), ["a", "b"], missing="escalate")[0]


def test_repeated_and_unknown_ids_are_refused_whatever_is_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "id,score\na,0.1\na,0.1\nz,1\n")
    assert len(messages(path, ["a", "b"], missing="cheapest")) == 2


def test_no_scores_at_all_stop(tmp_path: Path) -> None:
    assert "no item has a score" in messages(write(tmp_path, "id,score\na,\n"), ["a"], missing="escalate")[0]


def test_m04_constant_scores_carry_no_information(shared: Path) -> None:
    folder, call, _ = case(shared, "M04-ties-at-threshold")
    call = {k: v for k, v in call.items() if k not in {"risk", "weight"}}
    constant = load(folder / "scores_constant.csv", **call)
    assert constant.notices[0].endswith(
        "scores_constant.csv: all 10 scores equal 0.5: the score carries no information"
    )
    assert load(folder / "scores_tied.csv", **call).notices == ()


def test_l02_digits_are_not_matched_to_ids_with_zeros(shared: Path) -> None:
    path = shared / "cases" / "L02-excel-mangled-ids" / "scores_original.csv"
    said = messages(path, ["42"], columns={"id": "query_id"})
    assert any("no score: 42" in m for m in said)
    assert any('"00042" is not among the 1 labelled ids (did you mean "42"?)' in m for m in said)


def test_scores_align_and_keep_every_digit(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{"id": "b", "score": 0.1000000000000000055}\n{"id": "a", "score": "-3.5"}\n', "s.jsonl"
    )
    scores = load(path, ["a", "b"])
    assert scores.score is not None
    assert scores.score.tolist() == [-3.5, 0.1]
    csv = load(write(tmp_path, "score,id\n-3.5,a\n0.1,b\n"), ["a", "b"])
    assert csv.fingerprint == scores.fingerprint
    assert load(write(tmp_path, "score,id\n-3.5,a\n0.2,b\n"), ["a", "b"]).fingerprint != scores.fingerprint


CASCADE = (
    "id,score_cheap,score_mid,score_frontier,verifier_usd_cheap,verifier_usd_mid\n"
    "a,0.1,0.2,0.3,0.01,\nb,0.4,0.5,0.6,0.02,0.03\n"
)


def test_a_cascade_has_a_score_by_tier(tmp_path: Path) -> None:
    scores = load(write(tmp_path, CASCADE), ["b", "a"], cascade=True)
    assert scores.score is None
    assert {t: v.tolist() for t, v in scores.by_tier.items()} == {
        "cheap": [0.4, 0.1],
        "mid": [0.5, 0.2],
        "frontier": [0.6, 0.3],
    }
    assert np.array_equal(scores.verifier_usd["mid"], [0.03, np.nan], equal_nan=True)
    assert list(scores.verifier_usd) == ["cheap", "mid"]


def test_a_direct_policy_needs_one_score(tmp_path: Path) -> None:
    said = messages(write(tmp_path, CASCADE), ["a", "b"])
    assert 'no column "score"' in said[0]


def test_a_cascade_may_use_one_score(tmp_path: Path) -> None:
    scores = load(write(tmp_path, "id,score\na,1\nb,2\n"), ["a", "b"], cascade=True)
    assert scores.by_tier == {}
    assert scores.score is not None


def test_a_cascade_lacks_no_tier(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,score_cheap\na,1\n"), ["a"], cascade=True)
    assert '"score_mid", "score_frontier"' in said[0]


def test_a_score_of_a_tier_that_is_none(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,score,score_chaep\na,1,2\n"), ["a"], cascade=True)
    assert any('"chaep" is not a tier' in m and 'did you mean "cheap"' in m for m in said)


def test_negative_verifier_costs_stop(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,score,verifier_usd_cheap\na,1,-1\n"), ["a"], cascade=True)
    assert "field verifier_usd_cheap" in said[0]


def decisions(path: Path, ids: list[str], **kw: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_decisions(path, ids=ids, tiers=TIERS, **kw)
    return [str(f) for f in caught.value.faults]


def test_decisions_align(tmp_path: Path) -> None:
    found = read_decisions(write(tmp_path, "id,routed_tier\nb,frontier\na,cheap\n"), ids=["a", "b"], tiers=TIERS)
    assert found.routed.tolist() == [0, 2]
    assert found.routed.dtype == np.int8
    again = read_decisions(write(tmp_path, "routed_tier,id\ncheap,a\nfrontier,b\n"), ids=["b", "a"], tiers=TIERS)
    assert again.fingerprint == found.fingerprint


def test_decisions_faults_in_one_run(tmp_path: Path) -> None:
    path = write(tmp_path, "id,routed_tier\na,cheap\na,mid\nz,mid\nb,chaep\nc,\n")
    said = decisions(path, ["a", "b", "c", "d"])
    assert len(said) == 5
    assert "1 of 4 labelled items has no decision: d" in said[0]
    assert '"cheap" and "mid"' in said[1]


def test_public_cases_of_routed_files_load(shared: Path) -> None:
    folder = shared / "cases" / "M02-matrix-orientation"
    files = sorted(folder.glob("*rout*.csv"))
    assert files
    for path in files:
        ids = [line.split(",")[0] for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        assert len(read_decisions(path, ids=ids, tiers=TIERS, columns={"id": "query_id"}).routed) == len(ids)
