"""Routing studies that must not be approved, and looks that must not come for free."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.studies import evalkit, write_csv, write_items, write_study


def rows_of(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def three_samples(folder: Path) -> None:
    """Each request three times, with the same outcome each time."""
    write_items(folder)
    rows = rows_of(folder / "outcomes.csv")
    write_csv(folder / "outcomes.csv", [{**row, "sample": s} for row in rows for s in range(3)])


def drop_runs(folder: Path, tier: str) -> int:
    """Half of the later runs of a tier are not in the log."""
    rng = random.Random(1)
    rows = rows_of(folder / "outcomes.csv")
    kept = [r for r in rows if r["tier"] != tier or r["sample"] == "0" or rng.random() < 0.5]
    write_csv(folder / "outcomes.csv", kept)
    return len(rows) - len(kept)


@pytest.mark.parametrize("samples", [3, None])
def test_a_log_that_drops_failed_runs_is_not_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: int | None
) -> None:
    more = {} if samples is None else {"samples": samples}
    three_samples(tmp_path)
    write_study(tmp_path, **more)
    assert evalkit(capsys, tmp_path).code == 0
    next(tmp_path.glob("*.looks.json")).unlink()
    dropped = drop_runs(tmp_path, "frontier")
    ran = evalkit(capsys, tmp_path)
    assert ran.code != 0
    assert ran.result["selected"] is None
    assert f"tier frontier: {dropped:,} runs are missing" in ran.err
    always = ran.result["baselines"]["always:frontier"]
    runs = 3 * ran.result["counts"]["items"]
    assert always["pass_rate_upper"] - always["pass_rate_lower"] == pytest.approx(dropped / runs)
    assert always["cost_usd_total"] is None


def test_fewer_runs_are_enough_where_the_study_asks_for_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three_samples(tmp_path)
    drop_runs(tmp_path, "frontier")
    write_study(tmp_path, samples=1)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0
    said = "tier frontier: its items have 1 to 3 runs, and the study asks for 1"
    assert [said in note for note in ran.result["notices"]].count(True) == 1
    assert said in ran.err


def test_outcomes_with_fewer_runs_than_declared_are_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    write_study(tmp_path, samples=3)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "samples: is 3, and no item has more than 1 run of a tier" in ran.err
    assert ran.wrote_nothing()


def without_costs(folder: Path) -> list[dict[str, Any]]:
    rows = rows_of(folder / "outcomes.csv")
    write_csv(folder / "outcomes.csv", [{**row, "cost_usd": ""} for row in rows])
    return rows


def test_limits_that_were_changed_after_a_look_without_costs_certify_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without costs every bound is shown all the same."""
    write_items(tmp_path)
    write_study(tmp_path, limits={"min_pass_rate": 0.99})
    rows = without_costs(tmp_path)
    assert evalkit(capsys, tmp_path).code != 0
    write_csv(tmp_path / "outcomes.csv", rows)
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert (ran.result["selected"], ran.result["looks"]["this"]) == (None, 2)
    assert ran.code != 0


def test_costs_that_come_later_or_change_are_the_same_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    write_study(tmp_path)
    rows = without_costs(tmp_path)
    assert evalkit(capsys, tmp_path).code == 3
    for factor in (1, 2):
        write_csv(tmp_path / "outcomes.csv", [{**r, "cost_usd": factor * float(r["cost_usd"])} for r in rows])
        ran = evalkit(capsys, tmp_path)
        assert (ran.code, ran.result["looks"]["this"]) == (0, 1)


def test_a_run_in_which_nothing_was_answered_does_not_cost_the_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    write_study(tmp_path)
    rows = rows_of(tmp_path / "outcomes.csv")
    write_csv(tmp_path / "outcomes.csv", [{**row, "status": "error", "cost_usd": ""} for row in rows])
    assert evalkit(capsys, tmp_path).code == 3
    write_csv(tmp_path / "outcomes.csv", rows)
    ran = evalkit(capsys, tmp_path)
    assert (ran.code, ran.result["looks"]["this"]) == (0, 1)
    next(row for row in rows if row["status"] == "ok")["status"] = "wrong"
    write_csv(tmp_path / "outcomes.csv", rows)
    assert evalkit(capsys, tmp_path).result["looks"]["this"] == 2
