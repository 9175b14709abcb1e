"""`read_outcomes`: the rules of a row, alignment with the labels, and everything that must stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.rules import CONTRADICTION, SILENT, decide
from evalkit.outcomes.status import ABSENT, ANSWERED, STATUSES, Status, status_code
from evalkit.outcomes.table import Outcomes
from evalkit.tabular.write import write_table

TIERS = ("cheap", "frontier")


def write(tmp_path: Path, text: str, name: str = "outcomes.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def load(path: Path, ids: list[str] | None = None, **kw: Any) -> Outcomes:
    return read_outcomes(path, ids=ids, **{"tiers": TIERS, **kw})


def messages(path: Path, ids: list[str] | None = None, **kw: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(path, ids, **kw)
    return [str(f) for f in caught.value.faults]


def one(tmp_path: Path, header: str, row: str, **kw: Any) -> Status:
    """The status that one row gets."""
    path = write(tmp_path, f"id,tier,{header}\na,cheap,{row}\n")
    return STATUSES[load(path, ["a"], tiers=("cheap",), **kw).status[0, 0, 0]]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ("ok,,", Status.OK),
        ("ok,true,", Status.OK),
        ("ok,false,", Status.WRONG),
        ("ok,,1", Status.OK),
        ("ok,,0.99", Status.WRONG),
        ("ok,true,0", Status.OK),
        (",true,", Status.OK),
        (",false,", Status.WRONG),
        (",0,1", Status.WRONG),
        (",,1.0", Status.OK),
        (",,0", Status.WRONG),
        ("wrong,,", Status.WRONG),
        ("wrong,false,0.5", Status.WRONG),
        ("contract_fail,,", Status.CONTRACT_FAIL),
        ("contract_fail,false,0", Status.CONTRACT_FAIL),
        ("error,,", Status.ERROR),
        ("error,false,0", Status.ERROR),
        ("truncated,,", Status.TRUNCATED),
        ("judge_error,,", Status.JUDGE_ERROR),
    ],
)
def test_what_a_row_says(tmp_path: Path, row: str, status: Status) -> None:
    assert one(tmp_path, "status,passed,score", row) == status


def test_the_score_that_passes_can_be_set(tmp_path: Path) -> None:
    assert one(tmp_path, "score", "0.7", pass_at=0.7) == Status.OK
    assert one(tmp_path, "score", "0.69", pass_at=0.7) == Status.WRONG


@pytest.mark.parametrize(
    "row",
    [
        "wrong,true,",
        "contract_fail,1,",
        "wrong,,1",
        "contract_fail,,1.0",
        "error,true,",
        "truncated,,1",
        "judge_error,1,",
    ],
)
def test_a_pass_on_a_failure_is_a_contradiction(tmp_path: Path, row: str) -> None:
    said = messages(write(tmp_path, f"id,tier,status,passed,score\na,cheap,{row}\n"), ["a"], tiers=("cheap",))
    assert len(said) == 1
    assert "outcomes.csv:2: row 1 (id a), field status: " in said[0]
    assert "that cannot both be" in said[0]
    assert row.split(",")[0] in said[0]


def test_a_row_that_says_nothing_stops(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,tier,status,passed\na,cheap,,\n"), ["a"], tiers=("cheap",))
    assert "says nothing of the outcome (status, passed blank)" in said[0]


def test_a_failed_request_without_a_status_is_not_a_wrong_answer(tmp_path: Path) -> None:
    assert one(tmp_path, "passed,error", "false,timeout") == Status.ERROR
    assert one(tmp_path, "passed,error", ",timeout") == Status.ERROR
    assert one(tmp_path, "passed,error", "true,answered after a retry") == Status.OK
    assert one(tmp_path, "status,passed,error", "wrong,false,x") == Status.WRONG


codes = st.integers(-1, len(STATUSES) - 1)


@given(st.lists(st.tuples(codes, st.integers(-1, 1), st.one_of(st.just(np.nan), st.floats(0, 1))), min_size=1))
def test_the_rules_hold_for_any_row(rows: list[tuple[int, int, float]]) -> None:
    given_, passed, score = (np.array(x) for x in zip(*rows, strict=True))
    out, wrong = decide(given_, passed.astype(np.int8), score.astype(float), 1.0)
    for g, p, s, o, w in zip(given_, passed, score, out, wrong, strict=True):
        passes = p == 1 or (p == -1 and s >= 1)
        says = p >= 0 or not np.isnan(s)
        if g == ABSENT and not says:
            assert w == SILENT
        elif g >= 0 and STATUSES[g] != Status.OK and says and passes:
            assert w == CONTRADICTION
        else:
            assert w == 0
            if STATUSES[o] == Status.OK:
                assert passes or (g == status_code(Status.OK) and not says)
            if g >= 0 and STATUSES[g] not in {Status.OK}:
                assert o == g


def test_arrays_align_with_ids_and_tiers_whatever_the_row_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "tier,id,passed,cost_usd,task_s,model,reply,output_tokens\n"
        "frontier,b,true,0.5,2,big,yes,7\ncheap,a,false,,,small,no,\n"
        "frontier,a,true,0.25,1,big-2,,3\ncheap,b,true,0.1,0.5,small,ok,1\n",
    )
    o = load(path, ["a", "b"])
    assert o.status.shape == (2, 2, 1)
    assert o.passed[:, :, 0].tolist() == [[False, True], [True, True]]
    assert o.answered.all()
    assert np.array_equal(o.cost_usd[:, :, 0], [[np.nan, 0.25], [0.1, 0.5]], equal_nan=True)
    assert np.array_equal(o.output_tokens[:, :, 0], [[np.nan, 3], [1, 7]], equal_nan=True)
    assert o.model == (("small",), ("big", "big-2"))
    assert o.reply is not None
    assert [[o.reply.get(i, k) for k in range(2)] for i in range(2)] == [["no", None], ["ok", "yes"]]
    assert np.isnan(o.score).all()
    assert np.isnan(o.reasoning_tokens).all()
    assert o.reasoning_tokens.shape == (2, 2, 1)
    assert o.samples.tolist() == [[1, 1], [1, 1]]
    assert o.present.all()
    assert o.notices == ()


def test_arm_is_another_name_for_tier(tmp_path: Path) -> None:
    o = load(write(tmp_path, "id,arm,passed\na,cheap,1\na,frontier,0\n"), ["a"])
    assert o.passed[0, :, 0].tolist() == [True, False]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_every_format_and_row_order_has_one_fingerprint(tmp_path: Path, suffix: str) -> None:
    columns: dict[str, list[Any]] = {
        "id": ["a", "a", "b", "b"],
        "tier": ["cheap", "frontier", "cheap", "frontier"],
        "status": ["ok", "wrong", "error", "ok"],
        "score": [1.0, 0.25, None, 1.0],
        "cost_usd": [0.001, 0.02, None, 0.03],
        "error": [None, None, "HTTP 500", None],
        "reply": ["x\ny", None, None, "=1"],
    }
    path = tmp_path / f"o{suffix}"
    write_table(path, columns)
    write_table(tmp_path / "other.jsonl", {k: v[::-1] for k, v in reversed(columns.items())})
    o, other = load(path, ["a", "b"]), load(tmp_path / "other.jsonl", ["b", "a"], tiers=TIERS[::-1])
    assert o.fingerprint == other.fingerprint
    assert np.array_equal(o.cost_usd, other.cost_usd[::-1, ::-1], equal_nan=True)
    assert o.errors[0].first == "HTTP 500"
    changed = dict(columns, cost_usd=[0.001, 0.02, None, 0.031])
    write_table(path, changed)
    assert load(path, ["a", "b"]).fingerprint != o.fingerprint


def test_samples_pair_by_number_across_tiers(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "id,tier,sample,passed\n"
        "a,cheap,7,1\na,cheap,3,0\na,frontier,7,1\na,frontier,3,1\n"
        "b,cheap,0,1\nb,frontier,0,0\n",
    )
    o = load(path, ["a", "b"])
    assert o.status.shape == (2, 2, 2)
    assert o.passed[0].tolist() == [[False, True], [True, True]]
    assert o.samples.tolist() == [[2, 2], [1, 1]]
    assert o.status[1, :, 1].tolist() == [ABSENT, ABSENT]
    assert "2 of 4 pairs of item and tier have fewer than 2 samples" in o.notices[0]


def test_a_sample_that_one_tier_lacks_leaves_a_gap(tmp_path: Path) -> None:
    o = load(write(tmp_path, "id,tier,sample,passed\na,cheap,1,1\na,cheap,2,0\na,frontier,2,1\n"), ["a"])
    assert o.present[0].tolist() == [[True, True], [False, True]]


def test_sample_numbers_that_run_on_over_the_items_stay_compact(tmp_path: Path) -> None:
    rows = "".join(f"i{i},{t},{3 * i + s},1\n" for i in range(50) for t in TIERS for s in range(3))
    o = load(write(tmp_path, "id,tier,sample,passed\n" + rows))
    assert o.status.shape == (50, 2, 3)
    assert o.present.all()


@pytest.mark.parametrize("sample", ["-1", "1.5", "x", ""])
def test_samples_are_whole_numbers(tmp_path: Path, sample: str) -> None:
    said = messages(write(tmp_path, f"id,tier,sample,passed\na,cheap,{sample},1\n"), ["a"], tiers=("cheap",))
    assert len(said) == 1
    assert "field sample" in said[0]


def test_missing_rows_are_listed_by_id_and_tier(tmp_path: Path) -> None:
    path = write(tmp_path, "id,tier,passed\na,cheap,1\nb,cheap,1\nb,frontier,1\nc,frontier,1\n")
    said = messages(path, ["a", "b", "c", "d"])
    assert len(said) == 1
    assert "4 of 8 pairs of item and tier have no row: a (frontier), c (cheap), d (cheap, frontier)" in said[0]
    assert "missing_outcomes: unanswered" in said[0]
    o = load(path, ["a", "b", "c", "d"], missing="unanswered")
    assert o.present[:, :, 0].tolist() == [[True, False], [True, True], [False, True], [False, False]]
    assert not o.answered[3].any()
    assert "they count as unanswered" in o.notices[0]


def test_a_tier_without_any_row_stops_in_every_case(tmp_path: Path) -> None:
    path = write(tmp_path, "id,tier,passed\na,cheap,1\nb,cheap,1\n")
    for missing in ("error", "unanswered"):
        said = messages(path, ["a", "b"], missing=missing)
        assert len(said) == 1
        assert 'the tier "frontier" has no row of a labelled item' in said[0]


def test_unknown_ids_and_tiers_are_named_once_each(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "id,tier,passed\n0042,cheap,1\n0042,frontier,1\n42,cheap,1\n42,frontier,1\n0042,cheep,1\nzz,cheap,1\n",
    )
    said = messages(path, ["0042"])
    assert len(said) == 3
    assert (
        'outcomes.csv:4: row 3 (id 42), field id: "42" is not among the 1 labelled ids (did you mean "0042"?)'
        in said[0]
    )
    assert "2 rows have it" in said[0]
    assert '"cheep" is not a tier of the study (cheap, frontier) (did you mean "cheap"?)' in said[1]
    assert '"zz"' in said[2]


def test_unknown_rows_can_be_left_out_with_a_notice(tmp_path: Path) -> None:
    path = write(tmp_path, "id,tier,passed\na,cheap,1\na,frontier,1\nb,cheap,1\na,oracle,1\n")
    o = load(path, ["a"], unknown="notice")
    assert o.status.shape == (1, 2, 1)
    assert len(o.notices) == 2
    assert '1 row not used, their id is not in the study: "b"' in o.notices[0]


def test_ids_are_never_joined_by_number(tmp_path: Path) -> None:
    path = write(tmp_path, '{"id": 42, "tier": "cheap", "passed": true}\n', "o.jsonl")
    assert any('"42" is not among' in m for m in messages(path, ["00042"], tiers=("cheap",)))


def test_a_repeated_row_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "id,tier,passed\na,cheap,1\na,frontier,1\na,cheap,0\n")
    said = messages(path, ["a"])
    assert len(said) == 1
    assert 'outcomes.csv:4: row 3 (id a), field id: "a", tier "cheap" also stands on line 2 (row 1)' in said[0]
    path = write(tmp_path, "id,tier,sample,passed\na,cheap,1,1\na,cheap,2,1\na,cheap,1,1\n")
    assert 'tier "cheap", sample 1 also stands on line 2' in messages(path, ["a"], tiers=("cheap",))[0]


@pytest.mark.parametrize("column", ["cost_usd", "output_tokens", "ttft_s", "task_s", "attempts"])
@pytest.mark.parametrize(
    ("value", "words"),
    [("-1", "below 0"), ("nan", "not a finite"), ("inf", "not a finite"), ("x", "not a number")],
)
def test_numbers_that_cannot_be_stop(tmp_path: Path, column: str, value: str, words: str) -> None:
    said = messages(write(tmp_path, f"id,tier,passed,{column}\na,cheap,1,{value}\n"), ["a"], tiers=("cheap",))
    assert len(said) == 1
    assert f"field {column}: " in said[0]
    assert words in said[0]


@pytest.mark.parametrize("score", ["1.2", "-0.1", "nan"])
def test_scores_lie_between_0_and_1(tmp_path: Path, score: str) -> None:
    said = messages(write(tmp_path, f"id,tier,score\na,cheap,{score}\n"), ["a"], tiers=("cheap",))
    assert len(said) == 1


def test_statuses_are_exact_words(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,tier,status\na,cheap,OK\na,frontier,correct\n"), ["a"])
    assert len(said) == 2
    assert said[0].endswith("Fix: write ok.")


def test_unanswered_rows_keep_their_cost_and_lose_their_score(tmp_path: Path) -> None:
    o = load(write(tmp_path, "id,tier,status,score,cost_usd\na,cheap,truncated,0,0.5\n"), ["a"], tiers=("cheap",))
    assert o.cost_usd[0, 0, 0] == 0.5
    assert np.isnan(o.score[0, 0, 0])
    assert not o.answered.any()


def test_columns_are_needed(tmp_path: Path) -> None:
    said = messages(write(tmp_path, "id,model\na,x\n"), ["a"])
    assert any('no column "tier"' in m for m in said)
    assert "status, passed or score" in messages(write(tmp_path, "id,tier\na,cheap\n"), ["a"])[0]


def test_other_columns_are_named(tmp_path: Path) -> None:
    o = load(write(tmp_path, "id,tier,passed,extra\na,cheap,1,z\n"), ["a"], tiers=("cheap",))
    assert o.notices == (f'{tmp_path / "outcomes.csv"}: the column "extra" is not used',)


def test_without_ids_the_items_are_those_of_the_file(tmp_path: Path) -> None:
    o = load(write(tmp_path, "id,tier,passed\nb,cheap,1\na,cheap,1\nb,frontier,1\na,frontier,1\n"))
    assert o.ids == ("b", "a")


def test_answered_statuses_are_the_graded_ones() -> None:
    assert {Status.OK, Status.WRONG, Status.CONTRACT_FAIL} == ANSWERED
    assert [s.value for s in STATUSES] == [
        "ok", "wrong", "contract_fail", "truncated", "budget_exhausted", "no_final_answer",
        "provider_refusal", "served_by_other_model", "judge_error", "error",
    ]  # fmt: skip


def test_error_texts_hide_keys(tmp_path: Path, shared: Path) -> None:
    body = (shared / "cases" / "H07-secrets" / "error.json").read_text(encoding="utf-8")
    line = '{"id": "a", "tier": "cheap", "status": "error", "error": ' + " ".join(body.split()) + "}\n"
    o = load(write(tmp_path, line, "o.jsonl"), ["a"], tiers=("cheap",))
    assert o.errors[0].first is not None
    assert o.errors[0].first.startswith("HTTP 401 Login refused for key ")
    assert "sk-FAKE" not in o.errors[0].first
    assert o.errors[0].first.endswith("(see headers).")
    long = "x " * 140 + "sk-FAKE-demo-0000-not-a-key"
    o = load(write(tmp_path, f"id,tier,status,error\na,cheap,error,{long}\n"), ["a"], tiers=("cheap",))
    assert "FAKE" not in str(o.errors[0].first)


def test_a_column_of_the_wrong_type_has_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "o.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "tier": [1.5, 2.5], "passed": [True, False]}), path)
    said = messages(path, ["a", "b"], tiers=("cheap",))
    assert [m for m in said if "stored as double, not as text" in m] == [said[0]]
    assert len(said) == 2
    assert "no row of a labelled item" in said[1]


def test_one_item_with_very_many_samples_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "o.parquet"
    n, many = 30_000, 2_000
    ids = [f"i{k}" for k in range(n)] + ["i0"] * (many - 1)
    pq.write_table(
        pa.table(
            {
                "id": ids,
                "tier": ["cheap"] * len(ids),
                "passed": [True] * len(ids),
                "sample": [0] * n + list(range(1, many)),
            }
        ),
        path,
    )
    assert "one item has 2,000 samples" in messages(path, tiers=("cheap",))[0]


@pytest.mark.parametrize("name", ["o.jsonl", "o.csv"])
def test_the_fingerprint_does_not_depend_on_a_key(tmp_path: Path, name: str) -> None:
    def mark(key: str) -> str:
        error = f'{{"http": 401, "message": "key {key}"}}'
        line = f'{{"id": "a", "tier": "cheap", "status": "error", "error": {error}}}\n'
        text = line if name == "o.jsonl" else f"id,tier,status,error\na,cheap,error,HTTP 401 key {key}\n"
        return load(write(tmp_path, text, name), ["a"], tiers=("cheap",)).fingerprint

    assert mark("sk-FAKE-demo-0000-not-a-key") == mark("sk-FAKE-demo-0001-not-a-key")
    assert mark("sk-FAKE-demo-0000-not-a-key") != mark("none")
