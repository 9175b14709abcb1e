"""Pass rates with their bounds, and figures of recorded outcomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalkit.outcomes.figures import oracle_share, pass_table, tier_totals
from evalkit.outcomes.rates import PassRate, nothing_scored, pass_rate
from evalkit.outcomes.read import read_outcomes
from evalkit.outcomes.table import Outcomes


def load(tmp_path: Path, text: str, tiers: tuple[str, ...] = ("cheap", "top"), **kw: object) -> Outcomes:
    path = tmp_path / "o.csv"
    path.write_text(text, encoding="utf-8")
    return read_outcomes(path, ids=None, tiers=tiers, **kw)  # type: ignore[arg-type]


def test_r07_the_denominator_is_shown(shared: Path) -> None:
    outcomes = read_outcomes(
        shared / "cases" / "R07-error-denominator" / "results.jsonl",
        ids=[f"q{i}" for i in range(1, 11)],
        tiers=["mid"],
        columns={"id": "query_id", "passed": "correct"},
    )
    rate = pass_rate(outcomes, 0)
    assert rate == PassRate(7, 8, 10, 0.875, 0.7, 0.9)
    assert rate.sentence() == "7 of 8 answered right, 2 of 10 unanswered, 70.0 % to 90.0 %"
    assert nothing_scored(outcomes) is None


def test_k01_nothing_was_scored(shared: Path) -> None:
    folder = shared / "cases" / "K01-all-errored-exit-0"
    columns = {"id": "query_id", "passed": "correct"}
    outcomes = read_outcomes(
        folder / "results_all_error.jsonl", ids=None, tiers=["mid"], columns={"id": "query_id"}
    )
    assert nothing_scored(outcomes) == (
        "5 of 5 errored, nothing was scored; first error: HTTP 401 invalid key (5 times)"
    )
    passed = read_outcomes(folder / "results_pass.jsonl", ids=None, tiers=["mid"], columns=columns)
    failed = read_outcomes(folder / "results_fail.jsonl", ids=None, tiers=["mid"], columns=columns)
    assert pass_rate(passed, 0).lower == 1
    assert pass_rate(failed, 0).lower == 0
    assert nothing_scored(failed) is None


def test_nothing_scored_without_errors(tmp_path: Path) -> None:
    outcomes = load(tmp_path, "id,tier,status\na,cheap,truncated\nb,cheap,error\n", ("cheap",))
    assert nothing_scored(outcomes) == "2 of 2 unanswered, nothing was scored"


def test_each_item_counts_once_whatever_its_samples(tmp_path: Path) -> None:
    outcomes = load(
        tmp_path,
        "id,tier,sample,status\n"
        "a,cheap,0,ok\na,cheap,1,wrong\na,cheap,2,error\na,cheap,3,ok\nb,cheap,0,wrong\nc,cheap,0,error\n",
        ("cheap",),
    )
    rate = pass_rate(outcomes, 0)
    assert (rate.passed, rate.answered, rate.total) == (0.5, 1.75, 3)
    assert rate.rate == pytest.approx(0.5 / 1.75)
    assert rate.lower == pytest.approx(0.5 / 3)
    assert rate.upper == pytest.approx((0.5 + 1.25) / 3)
    assert rate.sentence() == "0.5 of 1.8 answered right, 1.2 of 3 unanswered, 16.7 % to 58.3 %"


def test_weights_move_rates_and_not_counts(tmp_path: Path) -> None:
    outcomes = load(tmp_path, "id,tier,status\na,cheap,ok\nb,cheap,wrong\nc,cheap,error\n", ("cheap",))
    rate = pass_rate(outcomes, 0, np.array([6.0, 3.0, 1.0]))
    assert (rate.passed, rate.answered, rate.total) == (1, 2, 3)
    assert rate.rate == pytest.approx(6 / 9)
    assert rate.lower == pytest.approx(0.6)
    assert rate.upper == pytest.approx(0.7)


def test_an_item_without_a_row_is_unanswered(tmp_path: Path) -> None:
    outcomes = load(tmp_path, "id,tier,passed\na,cheap,1\na,top,1\nb,top,1\n", missing="unanswered")
    assert pass_rate(outcomes, 0) == PassRate(1, 1, 2, 1.0, 0.5, 1.0)


def test_nothing_answered_has_no_rate(tmp_path: Path) -> None:
    rate = pass_rate(load(tmp_path, "id,tier,status\na,cheap,error\n", ("cheap",)), 0)
    assert (rate.rate, rate.lower, rate.upper) == (None, 0.0, 1.0)


def test_tables_oracle_and_totals(tmp_path: Path) -> None:
    outcomes = load(
        tmp_path,
        "id,tier,status,cost_usd\n"
        "a,cheap,ok,0.1\na,top,ok,1\nb,cheap,wrong,0.1\nb,top,ok,1\n"
        "c,cheap,ok,0.1\nc,top,error,1\nd,cheap,error,\nd,top,wrong,1\n",
    )
    table = pass_table(outcomes, 0, 1)
    assert (table.both, table.weak_only, table.strong_only, table.neither) == (1, 1, 1, 1)
    oracle = oracle_share(outcomes)
    assert (oracle.solved, oracle.by_tier) == (0.75, (0.75, 0.25))
    assert tier_totals(outcomes, 1).cost_usd_total == 4
    cheap = tier_totals(outcomes, 0)
    assert (cheap.cost_usd_total, cheap.cost_usd_per_request, cheap.unknown_costs) == (None, None, 1)


def test_a_tier_passes_an_item_when_every_sample_did(tmp_path: Path) -> None:
    outcomes = load(
        tmp_path,
        "id,tier,sample,status,cost_usd\na,cheap,0,ok,1\na,cheap,1,error,2\na,top,0,ok,3\na,top,1,ok,5\n",
    )
    assert oracle_share(outcomes).by_tier == (0, 1)
    assert tier_totals(outcomes, 1).cost_usd_total == 4
