"""What each verifier makes of replies, by hand, and what it never sees."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.grading.items import Item
from evalkit.grading.read_rubric import read_rubric
from evalkit.grading.rubric import Rubric
from evalkit.labels.read import read_labels
from evalkit.providers.call import Failure, FailureKind, Reply
from evalkit.routers.verifiers.replies import BLIND_FIELDS, ReplyRow, TierReplies, blind_items, read_replies
from evalkit.routers.verifiers.scores import (
    by_judge,
    by_rubric,
    check_rubric,
    log_probability,
    self_consistency,
)


def samples(*texts: str | None, cost: float | None = 0.001, logprob: float | None = None) -> tuple[ReplyRow, ...]:
    return tuple(ReplyRow(n, text, cost, logprob) for n, text in enumerate(texts))


def replies(*rows: tuple[ReplyRow, ...]) -> TierReplies:
    return TierReplies("cheap", rows)


def rubric(folder: Path, text: str) -> Rubric:
    (folder / "rubric.yaml").write_text(text, encoding="utf-8")
    return read_rubric(folder / "rubric.yaml")


class TestSelfConsistency:
    def test_by_hand(self) -> None:
        found = self_consistency(
            replies(
                samples("4", " 4 ", "four", "4"),
                samples("a", "b", "c", "d"),
                samples("<think>low, no high</think>Low", "low", "LOW", None),
                samples("x"),
                samples(None, None),
                (),
            )
        )
        assert found.score[:3].tolist() == [0.75, 0.25, 0.75]
        assert np.isnan(found.score[3:]).all()
        assert found.missing == 3
        assert found.usd[:3].tolist() == [0.003, 0.003, 0.003]  # one of four is the answer, three verify it

    def test_an_unknown_cost_stays_unknown(self) -> None:
        rows = (ReplyRow(0, "a", 0.1, None), ReplyRow(1, "a", None, None))
        found = self_consistency(replies(rows, samples("a", "a", cost=0.0)))
        assert np.isnan(found.usd[0])
        assert found.usd[1] == 0.0

    @given(
        st.lists(st.one_of(st.none(), st.sampled_from(["a", "A ", "b", "c"])), min_size=2, max_size=8),
        st.randoms(),
    )
    def test_bounds_and_order(self, texts: list[str | None], random: object) -> None:
        score = self_consistency(replies(samples(*texts))).score[0]
        if all(text is None for text in texts):
            assert np.isnan(score)
            return
        assert 1 / len(texts) <= score <= 1
        shuffled = list(texts)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert self_consistency(replies(samples(*shuffled))).score[0] == score
        assert self_consistency(replies(samples(*texts, None))).score[0] <= score  # a failure never helps


class TestLogProbability:
    def test_of_the_first_sample_where_it_was_recorded(self) -> None:
        found = log_probability(
            replies(
                (ReplyRow(0, "a", None, -0.25), ReplyRow(1, "a", None, -9.0)),
                (ReplyRow(0, "a", None, None), ReplyRow(1, "a", None, -9.0)),
                (ReplyRow(0, None, None, -0.5),),
                (),
            )
        )
        assert found.score[0] == -0.25
        assert np.isnan(found.score[1:]).all()
        assert (found.usd == 0).all()


CONTRACT = "rubric: shape\ncheck: {kind: contract}\ncontract: {json: strict}\n"
ITEMS = (Item("a", prompt="p"), Item("b", prompt="p"), Item("c", prompt="p"))


class TestRubric:
    def test_a_contract_is_kept_or_broken(self, tmp_path: Path) -> None:
        one = rubric(tmp_path, CONTRACT)
        found = by_rubric(one, ITEMS, replies(samples('{"a": 1}', "no"), samples("no"), ()))
        assert found.score[:2].tolist() == [1.0, 0.0]
        assert np.isnan(found.score[2])
        assert (found.usd == 0).all()

    def test_what_it_does_not_do_is_said(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="graded by no judge"):
            check_rubric(rubric(tmp_path, CONTRACT), ITEMS, judged=True)
        with pytest.raises(InputError, match="take --verifier judge"):
            check_rubric(rubric(tmp_path, JUDGE), ITEMS, judged=False)
        check_rubric(rubric(tmp_path, JUDGE), ITEMS, judged=True)


JUDGE = """rubric: j
check: {kind: judge}
judge:
  model: openai/judge
  prompt: "Is {{ answer | block }} an answer to {{ prompt }}?"
  json_field: score
  scale: {worst: 0, best: 10}
"""


class TestJudge:
    def test_scores_and_costs(self, tmp_path: Path) -> None:
        def said(text: str) -> Reply:
            return Reply(text=text, finish_reason="stop")

        four = (*ITEMS, Item("d", prompt="p"))
        found = by_judge(
            rubric(tmp_path, JUDGE),
            four,
            replies(samples("x"), samples("x"), samples("x"), ()),
            {
                "a": ([said('{"score": 7}')], Decimal("0.0004")),
                "b": ([said("no verdict")], Decimal("0.0004")),
                "c": ([Failure(FailureKind.SERVER, "busy")], None),
            },
        )
        assert found.score[0] == pytest.approx(0.7)
        assert np.isnan(found.score[1:]).all()
        assert found.usd[0] == found.usd[1] == 0.0004  # a judgement without a verdict is paid for too
        assert np.isnan(found.usd[2:]).all()


class TestBlindness:
    def test_items_hold_nothing_that_a_person_judged(self, tmp_path: Path) -> None:
        row = {
            "id": "q1",
            "prompt": "how many?",
            "required_tier": "strong",
            "risk": "high",
            "category": "sums",
            "reference": "SECRET",
            "labels": {"ann": "strong"},
            "metadata": {"check": {"kind": "exact"}, "answer": "SECRET"},
        }
        (tmp_path / "labels.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        labels = read_labels(str(tmp_path / "labels.jsonl"), tiers=("cheap", "strong"), risk_classes=("high",))
        (item,) = blind_items(labels)
        assert item == Item("q1", prompt="how many?", category="sums", line=1)
        assert "SECRET" not in repr(item)

    def test_no_grade_is_a_field_of_the_reader(self) -> None:
        assert not {"status", "score", "passed", "error"} & set(BLIND_FIELDS)


class TestReplies:
    def write(self, folder: Path, text: str) -> Path:
        (folder / "o.csv").write_text(text, encoding="utf-8")
        return folder / "o.csv"

    def test_rows_by_item_tier_and_sample(self, tmp_path: Path) -> None:
        file = self.write(
            tmp_path,
            "id,tier,sample,status,reply,cost_usd,mean_logprob\n"
            "a,cheap,1,wrong,one,0.2,-1\na,cheap,0,ok,zero,0.1,\nb,cheap,0,error,,,\n"
            "a,strong,0,ok,no,1,\nother,cheap,0,ok,no,1,\n",
        )
        (found,) = read_replies(file, ids=("a", "b", "c"), tiers=("cheap",))
        assert found.rows[0] == (ReplyRow(0, "zero", 0.1, None), ReplyRow(1, "one", 0.2, -1.0))
        assert found.rows[1] == (ReplyRow(0, None, None, None),)
        assert found.rows[2] == ()

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("id,tier,sample,reply\na,cheap,0,x\na,cheap,0,y\n", "twice"),
            ("id,tier,sample,reply\na,cheap,0.5,x\n", "no whole number"),
            ("id,tier,reply,mean_logprob\na,cheap,x,0.5\n", "above 0"),
            ("id,tier,reply,mean_logprob\na,cheap,x,nan\n", "not a finite number"),
            ("id,tier,reply,cost_usd\na,cheap,x,-1\n", "below 0"),
            ("id,reply\na,x\n", "no column"),
            ("id,tier,reply\nz,cheap,x\n", "holds no row"),
        ],
    )
    def test_faults(self, text: str, what: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=what):
            read_replies(self.write(tmp_path, text), ids=("a",), tiers=("cheap",))
