"""Conditions of a CI job: met, not met, and never silently fine where they cannot be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import InputError
from evalkit.signoff.compare import compare
from evalkit.signoff.fail_on import CONDITIONS, exit_code, judge_conditions, parse_conditions
from tests.signoff.runs import failing, item, priced, run_of, under_routed

SAME = [item(f"q{i}", cost_usd=0.001 + 0.0001 * (i % 5)) for i in range(40)]


def judged(
    tmp_path: Path, candidate: list[dict[str, Any]], condition: str, **changes: Any
) -> tuple[bool | None, int]:
    document = compare(run_of(tmp_path / "a", SAME), run_of(tmp_path / "b", candidate, **changes))
    rows = judge_conditions(document, parse_conditions([condition]))
    return rows[0]["met"], exit_code(rows)


WORSE_VERDICT = {"verdict": {"decision": "insufficient_evidence", "headline": "x"}}
DEARER = [row | {"cost_usd": row["cost_usd"] * 2} for row in SAME]
OTHER = {"seed": 8}


@pytest.mark.parametrize("condition", list(CONDITIONS))
def test_nothing_is_met_by_the_same_run(tmp_path: Path, condition: str) -> None:
    assert judged(tmp_path, SAME, condition) == (False, 0)


@pytest.mark.parametrize(
    ("condition", "candidate", "changes"),
    [
        ("newly-failing", [failing("q0"), *SAME[1:]], {}),
        ("newly-failing:low", [failing("q0"), *SAME[1:]], {}),
        ("newly-under-routed", [item("q0", flags=["under_routed"]), *SAME[1:]], {}),
        ("lower-pass-rate", [failing(f"q{i}") if i < 15 else SAME[i] for i in range(40)], {}),
        ("higher-cost", DEARER, {}),
        ("higher-under-route-loss", [item(f"q{i}", flags=["under_routed"] * (i % 2)) for i in range(40)], {}),
        ("gate-lost", SAME, {"gates": []}),
        ("worse-verdict", SAME, WORSE_VERDICT),
        ("items-differ", [*SAME, item("new")], {}),
        ("inputs-differ", SAME, {"evalkit_version": "0.2.0"}),
        ("inputs-differ:prices", SAME, priced(file="p.yaml", hash="sha256:" + "c" * 64)),
    ],
)
def test_a_condition_is_met(
    tmp_path: Path, condition: str, candidate: list[dict[str, Any]], changes: dict[str, Any]
) -> None:
    assert judged(tmp_path, candidate, condition, **changes) == (True, 1)


@pytest.mark.parametrize(
    ("condition", "candidate", "changes"),
    [
        ("newly-failing", [item("q0", passed=None), *SAME[1:]], {}),  # not graded
        ("newly-failing", SAME[1:], {}),  # an item that is gone may have failed
        ("newly-under-routed", [item("q0", risk="critical"), *SAME[1:]], {}),  # another question
        ("newly-failing", [item("other")], {}),
        ("lower-pass-rate", [item("q0", passed=None), *SAME[1:]], {}),
        ("higher-cost", [item("q0", cost_usd=None), *SAME[1:]], {}),
        ("higher-cost", DEARER, priced(file="p.yaml", hash="sha256:" + "c" * 64)),
        ("lower-pass-rate", SAME, {"counts": {"items": 40, "groups": 9}}),
        ("worse-verdict", SAME, {"verdict": {"decision": None}}),
    ],
)
def test_what_cannot_be_told_is_not_fine(
    tmp_path: Path, condition: str, candidate: list[dict[str, Any]], changes: dict[str, Any]
) -> None:
    assert judged(tmp_path, candidate, condition, **changes) == (None, 3)


def test_a_drop_that_may_be_chance_is_not_met(tmp_path: Path) -> None:
    assert judged(tmp_path, [failing("q0"), *SAME[1:]], "lower-pass-rate") == (False, 0)


def test_a_condition_for_another_risk_class_is_not_met(tmp_path: Path) -> None:
    base = [*SAME, item("c", risk="critical")]
    one, other = run_of(tmp_path / "a", base), run_of(tmp_path / "b", [failing("q0"), *base[1:]])
    document = compare(one, other)
    rows = judge_conditions(document, parse_conditions(["newly-failing:critical,newly-failing:low"]))
    assert [row["met"] for row in rows] == [False, True]
    with pytest.raises(InputError, match="the classes are: critical, low"):
        judge_conditions(document, parse_conditions(["newly-failing:criticla"]))


def test_a_condition_that_is_met_outweighs_one_that_cannot_be_told() -> None:
    assert exit_code([{"met": None}, {"met": True}]) == 1
    assert exit_code([{"met": None}, {"met": False}]) == 3
    assert exit_code([]) == 0


def test_a_ladder_has_no_under_routing_to_fail_on(tmp_path: Path) -> None:
    arms = {"arms": {"plain": {"passed": 1.0, "cost_usd": 0.1, "status": "ok"}}}
    changes = {
        "schema": "evalkit.reasoning-budget/1",
        "arms": [{"name": "plain", "gates": []}],
        "selected": "plain",
    }
    rows = [under_routed("a", **arms), item("b", **arms)]
    document = compare(*(run_of(tmp_path / name, rows, **changes) for name in "ab"))
    for name in ("newly-under-routed", "higher-under-route-loss"):
        assert judge_conditions(document, parse_conditions([name]))[0]["met"] is None


def test_every_unknown_condition_is_named() -> None:
    with pytest.raises(InputError) as refused:
        parse_conditions(
            ["newly-failing,newly-broken", "gate-lost:x", "inputs-differ:weather", "newly-failing:", ""]
        )
    said = str(refused.value)
    assert len(refused.value.faults) == 5
    assert '"newly-broken" is no condition' in said
    assert '"weather" is no input' in said
