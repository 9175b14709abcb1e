"""Arms made of runs: votes, loops, fallbacks and arms that were one on the wire."""

from __future__ import annotations

import numpy as np
import pytest

from evalkit.reasoning.runs import ladder, loop_runs, pooled, vote_runs, with_fallback
from tests.reasoning.ladders import arm_runs

F, T = False, True


class TestVotes:
    def test_the_majority_answers_and_everything_is_paid(self) -> None:
        runs = arm_runs([[T, F, T], [F, F, T]], cost_usd=[[1.0, 2, 3], [1, 1, 1]], task_s=[[5.0, 9, 2], [1, 2, 3]])
        out, left = vote_runs(runs, np.array([[7, 8, 7], [1, 1, 7]]), 3, at_once=True)
        assert out.passed.tolist() == [[T], [F]]
        assert out.cost_usd.tolist() == [[6.0], [3.0]]
        assert out.task_s.tolist() == [[9.0], [3.0]]
        assert out.billed_output_tokens.tolist() == [[300.0], [300.0]]
        assert left == 0
        one_by_one, _ = vote_runs(runs, np.array([[7, 8, 7], [1, 1, 7]]), 3, at_once=False)
        assert one_by_one.task_s.tolist() == [[16.0], [6.0]]

    def test_of_equally_frequent_answers_the_first_wins(self) -> None:
        out, _ = vote_runs(arm_runs([[F, T, T, F]]), np.array([[3, 4, 4, 3]]), 4, at_once=True)
        assert out.passed.tolist() == [[F]]

    def test_an_unanswered_run_has_no_vote_but_its_price(self) -> None:
        runs = arm_runs([[F, T, F]], answered=[[F, T, F]], exhausted=[[T, F, T]])
        out, _ = vote_runs(runs, np.array([[-1, 4, -1]]), 3, at_once=True)
        assert out.passed.tolist() == [[T]]
        assert out.cost_usd[0, 0] == pytest.approx(0.03)
        none, _ = vote_runs(arm_runs([[F, F]], answered=[[F, F]]), np.array([[-1, -1]]), 2, at_once=True)
        assert (none.sampled[0, 0], none.answered[0, 0], none.passed[0, 0]) == (T, F, F)

    def test_blocks_that_are_not_full_are_left_over(self) -> None:
        out, left = vote_runs(arm_runs([[T] * 5, [T] * 5]), np.zeros((2, 5), dtype=np.int64), 2, at_once=True)
        assert out.sampled.sum(axis=1).tolist() == [2, 2]
        assert left == 2

    def test_an_unknown_cost_of_one_run_makes_the_block_unknown(self) -> None:
        runs = arm_runs([[T, T]], cost_usd=[[np.nan, 1.0]])
        assert np.isnan(vote_runs(runs, np.zeros((1, 2), dtype=np.int64), 2, at_once=True)[0].cost_usd[0, 0])


class TestLoops:
    def test_it_stops_at_the_first_reply_that_passes_the_check(self) -> None:
        runs = arm_runs([[F, T, T], [F, F, F]], cost_usd=[[1.0, 2, 4], [1, 2, 4]], task_s=[[1.0, 2, 4], [1, 2, 4]])
        kept = np.array([[F, T, T], [F, F, F]])
        out, _ = loop_runs(runs, kept, 3, check_usd=0.5, check_s=0.25)
        assert out.passed.tolist() == [[T], [F]]
        assert out.cost_usd.tolist() == [[4.0], [8.5]]
        assert out.task_s.tolist() == [[3.5], [7.75]]

    def test_a_reply_that_passes_the_check_may_still_be_wrong(self) -> None:
        out, _ = loop_runs(arm_runs([[F, T]]), np.array([[T, T]]), 2)
        assert out.passed.tolist() == [[F]]


class TestFallback:
    def test_what_is_declined_goes_on_and_costs_both(self) -> None:
        runs = arm_runs([[F, T]], cost_usd=[[1.0, 1.0]])
        other = arm_runs([[T, F]], cost_usd=[[10.0, 20.0]], task_s=[[3.0, 4.0]])
        out = with_fallback(runs, np.array([[T, F]]), other)
        assert out.passed.tolist() == [[T, T]]
        assert out.cost_usd.tolist() == [[11.0, 1.0]]
        assert out.task_s.tolist() == [[4.0, 1.0]]
        assert out.abstained.tolist() == [[T, F]]

    def test_runs_pair_up_and_are_used_in_turn(self) -> None:
        other = arm_runs([[T, F]])
        out = with_fallback(arm_runs([[F, F, F]]), np.array([[T, T, T]]), other)
        assert out.passed.tolist() == [[T, F, T]]

    def test_a_person_is_paid_and_nobody_graded_the_answer(self) -> None:
        out = with_fallback(arm_runs([[T, T]]), np.array([[T, F]]), None, usd=2.0, seconds=60)
        assert out.passed.tolist() == [[F, T]]
        assert out.answered.tolist() == [[F, T]]
        assert out.cost_usd.tolist() == [[2.01, 0.01]]
        assert out.task_s.tolist() == [[61.0, 1.0]]

    def test_nothing_of_the_arm_itself_is_changed(self) -> None:
        runs = arm_runs([[T, T]])
        with_fallback(runs, np.array([[T, T]]), None, usd=1.0)
        assert runs.passed.all()
        assert not runs.abstained.any()


def test_arms_that_were_one_on_the_wire_pool_their_runs() -> None:
    out = pooled([arm_runs([[T], [F]]), arm_runs([[F, F], [T, T]])])
    assert out.passed.tolist() == [[T, F, F], [F, T, T]]


def test_arms_stand_side_by_side_padded() -> None:
    data = ladder(
        [("a", arm_runs([[T]])), ("b", arm_runs([[T, F, T]]))],
        risk_classes=("x",),
        risk=np.zeros(1, dtype=np.int16),
        weight=np.ones(1),
        group=None,
    )
    assert data.sampled.tolist() == [[[T, F, F], [T, T, T]]]
    assert np.isnan(data.cost_usd[0, 0, 1:]).all()
    assert data.runs.tolist() == [[1, 3]]
