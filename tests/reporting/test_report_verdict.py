"""The exit code, and the last guard: no output for a result that contradicts itself."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import report_examples as examples
from rich.console import Console

from evalkit import reporting

Result = dict[str, Any]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("approve", 0),
        ("reject", 1),
        ("insufficient", 3),
        ("four_tiers", 3),
        ("unknown_costs", 3),
        ("fixed_decisions", 3),
        ("nothing_measured", 3),
        ("hostile", 3),
    ],
)
def test_exit_codes(name: str, code: int) -> None:
    assert reporting.exit_code(examples.ALL[name]()) == code


APPROVED = examples.approve()


def _gate(result: Result, name: str) -> Result:
    return next(gate for gate in result["gates"] if gate["name"] == name)


def _open_gate(result: Result) -> None:
    _gate(result, "under_route:critical")["status"] = "insufficient"


def _unstatable_gate(result: Result) -> None:
    _gate(result, "pass_rate")["status"] = "not_statable"


def _broken_gate(result: Result) -> None:
    _gate(result, "under_route:critical")["status"] = "violated"


def _infeasible_gate(result: Result) -> None:
    _gate(result, "pass_rate")["status"] = "infeasible"


def _bound_outside(result: Result) -> None:
    gate = _gate(result, "under_route:critical")
    gate["upper_bound"] = gate["limit"] + 1e-6


def _bound_missing(result: Result) -> None:
    _gate(result, "under_route:critical")["upper_bound"] = None


def _lower_bound_outside(result: Result) -> None:
    gate = _gate(result, "pass_rate")
    gate["lower_bound"] = gate["limit"] - 1e-6


def _estimate_outside(result: Result) -> None:
    gate = _gate(result, "cost_per_request")
    gate["observed"] = gate["limit"] * 1.01


def _rule_triggered(result: Result) -> None:
    result["stop_rules"][1]["triggered"] = True


def _rule_unknown(result: Result) -> None:
    result["stop_rules"][1]["triggered"] = None


def _no_point(result: Result) -> None:
    result["selected"] = None


def _no_gates(result: Result) -> None:
    result["gates"] = []


def _nothing_answered(result: Result) -> None:
    result["counts"]["answered"] = 0


def _unnamed_class(result: Result) -> None:
    result["verdict"]["uncertified"] = []


def _odd_status(result: Result) -> None:
    result["gates"][0]["status"] = "fine"


def _odd_decision(result: Result) -> None:
    result["verdict"]["decision"] = "ok"


BREAKERS = [
    _open_gate,
    _unstatable_gate,
    _broken_gate,
    _infeasible_gate,
    _bound_outside,
    _bound_missing,
    _lower_bound_outside,
    _estimate_outside,
    _rule_triggered,
    _rule_unknown,
    _no_point,
    _no_gates,
    _nothing_answered,
    _unnamed_class,
    _odd_status,
    _odd_decision,
]


@pytest.mark.parametrize("breaker", BREAKERS, ids=lambda f: f.__name__)
def test_nothing_is_written_for_an_approval_that_its_evidence_denies(breaker: Callable[[Result], None]) -> None:
    result = copy.deepcopy(APPROVED)
    assert reporting.contradictions(result) == []
    breaker(result)
    assert reporting.contradictions(result)
    outputs: list[Callable[[Result], object]] = [
        reporting.dump_json,
        reporting.render_html,
        reporting.render_markdown,
        reporting.render_junit,
        reporting.exit_code,
        lambda r: reporting.render_terminal(r, Console()),
    ]
    for output in outputs:
        with pytest.raises(ValueError, match="contradicts itself"):
            output(result)


def test_a_broken_gate_rejects_and_only_an_approval_selects() -> None:
    result = examples.insufficient()
    result["gates"][0]["status"] = "violated"
    assert reporting.contradictions(result)
    result = examples.insufficient()
    result["selected"] = result["candidate"]
    assert reporting.contradictions(result)


def test_a_rule_that_does_not_apply_blocks_nothing() -> None:
    result = copy.deepcopy(APPROVED)
    result["stop_rules"][0] |= {"triggered": None, "applies": False}
    assert reporting.contradictions(result) == []
