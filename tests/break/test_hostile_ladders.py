"""Ladders that must not be approved, and arms that must not be taken for one another."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.ladders import Outcome, passing, reasoning_budget, write_ladder, write_runs
from tests.workflows.studies import Ran, write_csv

TWO = [{"name": "plain", "model": "demo/m"}, {"name": "think-1k", "model": "demo/m", "budget_tokens": 1024}]


def drop_failed_runs(folder: Path) -> int:
    """Of three runs of each task, half of the later ones of think-1k failed, and the log has no rows of them."""
    rng = random.Random(1)
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kept = [r for r in rows if r["arm"] != "think-1k" or r["sample"] == "0" or rng.random() < 0.5]
    write_csv(folder / "runs.csv", kept)
    return len(rows) - len(kept)


@pytest.mark.parametrize("samples", [3, None])
def test_a_log_that_drops_failed_runs_is_not_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: int | None
) -> None:
    write_ladder(tmp_path, arms=TWO, samples=samples)
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), samples=3)
    whole = reasoning_budget(capsys, tmp_path)
    assert (whole.code, whole.result["selected"]) == (0, "think-1k")
    (tmp_path / "tasks.csv.looks.json").unlink()
    dropped = drop_failed_runs(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code != 0
    assert ran.result["selected"] is None
    assert f"arm think-1k: {dropped:,} runs are missing" in ran.err
    arm = ran.result["arms"][1]
    assert arm["answered"] == 1200 - dropped
    assert arm["pass_rate"] == 1
    assert arm["pass_rate_lower"] == pytest.approx(1 - dropped / 1200)
    assert arm["cost_usd_per_request"] is None


def test_fewer_runs_are_enough_where_the_study_asks_for_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ladder(tmp_path, arms=TWO, samples=1)
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), samples=3)
    drop_failed_runs(tmp_path)
    assert reasoning_budget(capsys, tmp_path).code == 0


def test_outcomes_with_fewer_runs_than_declared_are_an_input_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ladder(tmp_path, arms=TWO, samples=3)
    write_runs(tmp_path, 100, arms=("plain", "think-1k"))
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 2
    assert "field samples: is 3, and no task has more than 1 run of an arm. Fix: record the runs" in ran.err


@pytest.mark.parametrize(
    ("model", "aliases", "selected"),
    [
        ("demo/other", None, "think-4k"),
        ("demo/other", {"demo/other": ["demo/m"]}, "think-1k"),
        ("gateway/demo/m", None, "think-1k"),
    ],
)
def test_what_another_model_answered_approves_no_arm(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model: str,
    aliases: dict[str, Any] | None,
    selected: str,
) -> None:
    """Every row says that demo/m answered."""
    arms = [TWO[0], {**TWO[1], "model": model}, {**TWO[1], "name": "think-4k", "budget_tokens": 4096}]
    write_ladder(tmp_path, arms=arms, aliases=aliases)
    write_runs(tmp_path, 400)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.result["selected"] == selected
    arm = ran.result["arms"][1]
    other = selected == "think-4k"
    assert (arm["answered"], arm["cost_usd_per_request"]) == (0 if other else 400, 0.004)
    assert ("think-1k: 400 of its outcomes are of demo/m and not of demo/other" in ran.err) is other
    assert any("400 outcomes unanswered (served by" in s for s in ran.result["evidence_limits"]) is other


def test_the_time_of_a_last_request_is_not_the_time_of_its_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three steps of 4 s are 12 s, over the limit of 5; the log has the seconds of the last request alone."""

    def outcome(i: int, arm: str, sample: int) -> dict[str, Any]:
        row = passing(i, arm, sample)
        row["request_s"] = row.pop("task_s")
        return row

    steps = [TWO[0], {"name": "think-1k", "model": "demo/m", "steps": 3}]
    limits = {"min_pass_rate": 0.9, "p95_task_seconds": 5}
    write_ladder(tmp_path, arms=steps, limits=limits)
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=outcome)
    ran = reasoning_budget(capsys, tmp_path)
    assert (ran.code, ran.result["selected"]) == (3, None)
    assert [a["p95_task_s"] for a in ran.result["arms"]] == [0.5, None]
    assert "request_s is that of its last request alone" in ran.err


def test_retries_too_are_not_in_the_time_of_the_last_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(i: int, arm: str, sample: int) -> dict[str, Any]:
        row = passing(i, arm, sample)
        row["request_s"] = row.pop("task_s")
        row["attempts"] = 2 if i < 100 else 1
        return row

    write_ladder(tmp_path, arms=TWO)
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=outcome)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code != 0
    late = next(g for g in ran.result["arms"][1]["gates"] if g["name"] == "p95_task")
    assert (late["k"], late["n"]) == (100, 400)


def test_one_unknown_time_leaves_a_selected_arm_inside_its_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(i: int, arm: str, sample: int) -> dict[str, Any]:
        return passing(i, arm, sample) | ({"task_s": ""} if i == 3 else {})

    write_ladder(tmp_path)
    write_runs(tmp_path, 400, outcome=outcome)
    result = reasoning_budget(capsys, tmp_path).result
    assert result["selected"] == result["candidate"] == "think-1k"


def test_equal_names_of_steps_with_other_instructions_are_two_arms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def steps(plan: str) -> list[dict[str, str]]:
        return [{"plan": plan}, {"solve": "Solve it."}]

    arms = [{"name": name, "model": "demo/m", "steps": steps(name)} for name in ("plain", "think-1k", "think-4k")]
    arms[2]["steps"] = steps("plain")
    write_ladder(tmp_path, arms=arms)
    write_runs(tmp_path, 100)
    ran = reasoning_budget(capsys, tmp_path)
    assert [(a["name"], a["merged"]) for a in ran.result["arms"]] == [("plain", ["think-4k"]), ("think-1k", [])]
    assert "plain asks for the steps plan, solve" in ran.err


@pytest.mark.parametrize(
    ("field", "value"),
    [("input_tokens", "1e308"), ("output_tokens", "1.1e12"), ("task_s", "1e308"), ("attempts", "1e18")],
)
def test_a_number_that_no_request_has_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str, value: str
) -> None:
    write_ladder(tmp_path)
    write_runs(tmp_path, 60, outcome=lambda i, a, s: passing(i, a, s) | ({field: value} if i == 7 else {}))
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 2
    assert f'field {field}: "{value}" is above' in ran.err


@pytest.mark.parametrize(
    ("risk", "refused"),
    [
        ({"high": {"max_failure": 0.05, "gate_on": "estimate"}, "low": {"max_failure": 0.3}}, "high"),
        ({"high": {"max_failure": 0.05}, "low": {"max_failure": 0.01, "gate_on": "estimate"}}, "low"),
        ({"high": {"max_failure": 0.05}, "low": {"max_failure": 0.05, "gate_on": "estimate"}}, None),
        ({"high": {"max_failure": 0.05}, "low": {"max_failure": 0.1, "gate_on": "estimate"}}, None),
    ],
)
def test_the_class_with_the_strictest_limit_is_never_judged_on_the_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], risk: dict[str, Any], refused: str | None
) -> None:
    write_ladder(tmp_path, risk=risk)
    write_runs(tmp_path, 400)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == (0 if refused is None else 2)
    if refused is not None:
        assert f"field risk.{refused}.gate_on: is estimate for the class with the strictest limit" in ran.err


def voted(folder: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome) -> Ran:
    write_ladder(folder, arms=[TWO[0], {"name": "vote", "of": "plain", "vote": 3}])
    write_runs(folder, 60, arms=("plain",), samples=3, outcome=outcome)
    return reasoning_budget(capsys, folder)


def test_a_majority_of_equal_answers_with_different_grades_is_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grades = {0: "ok", 1: "ok", 2: "wrong"}
    ran = voted(tmp_path, capsys, lambda i, a, s: passing(i, a, s) | {"reply": "42", "status": grades[s]})
    assert [a["pass_rate"] for a in ran.result["arms"]] == [pytest.approx(2 / 3), 0]


def test_replies_that_are_never_equal_make_no_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = voted(tmp_path, capsys, lambda i, a, s: passing(i, a, s) | {"reply": f"I thought {s} times: {i}"})
    assert "arm vote: in 60 of 60 tasks no two replies of plain are equal, so that the first stands" in ran.err
    assert "no two replies" not in voted(tmp_path, capsys, passing).err


def a_failure_in_25(i: int, arm: str, sample: int) -> dict[str, Any]:
    return passing(i, arm, sample) | {"status": "ok" if i % 25 else "wrong"}


def without_cost(i: int, arm: str, sample: int) -> dict[str, Any]:
    return a_failure_in_25(i, arm, sample) | {"cost_usd": ""}


def test_limits_that_were_lowered_after_a_look_without_costs_certify_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without costs every pass rate and bound is shown all the same, and the ladder can be rejected."""
    write_ladder(
        tmp_path, arms=TWO, risk={"high": {"max_failure": 0.12}, "low": {}}, limits={"min_pass_rate": 0.99}
    )
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=without_cost)
    assert reasoning_budget(capsys, tmp_path).code == 1
    write_ladder(
        tmp_path, arms=TWO, risk={"high": {"max_failure": 0.12}, "low": {}}, limits={"min_pass_rate": 0.9}
    )
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=a_failure_in_25)
    ran = reasoning_budget(capsys, tmp_path)
    assert (ran.code, ran.result["selected"], ran.result["looks"]["this"]) == (3, None, 2)


def test_costs_that_come_later_or_change_are_the_same_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_ladder(
        tmp_path, arms=TWO, risk={"high": {"max_failure": 0.12}, "low": {}}, limits={"min_pass_rate": 0.9}
    )
    write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=without_cost)
    assert reasoning_budget(capsys, tmp_path).code == 3
    for factor in (1, 2):

        def outcome(i: int, arm: str, sample: int, factor: int = factor) -> dict[str, Any]:
            row = a_failure_in_25(i, arm, sample)
            return row | {"cost_usd": row["cost_usd"] * factor}

        write_runs(tmp_path, 400, arms=("plain", "think-1k"), outcome=outcome)
        ran = reasoning_budget(capsys, tmp_path)
        assert (ran.code, ran.result["selected"], ran.result["looks"]["this"]) == (0, "plain", 1)
