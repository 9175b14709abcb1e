"""The verdict rule over all combinations of gates and stop rules: an approval is never reached by default."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import pytest

import evalkit.gates
from evalkit.gates import Decision, Gate, Status, StopRule, Verdict, decide, exit_code

RULES = {
    "quiet": StopRule("a", False, "a is quiet"),
    "rejects": StopRule("b", True, "b rejects"),
    "asks": StopRule("c", True, "c asks", "insufficient_evidence"),
    "unknown": StopRule("d", None, "d is not known"),
    "unknown_asks": StopRule("e", None, "e is not known", "insufficient_evidence"),
    "idle": StopRule("f", None, "f does not apply", applies=False),
    "idle_triggered": StopRule("g", True, "g does not apply", applies=False),
}


def gate(status: Status, missing: int | None = None) -> Gate:
    return Gate(
        name=f"under_route:{status.value}",
        label=f"Under-routing, {status.value}",
        limit=0.02,
        limit_is="max",
        unit="share",
        observed=0.01,
        bound=0.03,
        k=1,
        n=100,
        n_is="needs",
        status=status,
        missing_n=missing,
        message=f"gate is {status.value}",
        basis="bound",
        confidence=0.95,
    )


def by_hand(statuses: Sequence[Status], rules: Sequence[str], has_selection: bool) -> Decision:
    """The rule of the design, read out."""
    if "rejects" in rules or set(statuses) & {Status.VIOLATED, Status.INFEASIBLE}:
        return Decision.REJECT
    if set(statuses) & {Status.INSUFFICIENT, Status.NOT_STATABLE} or not statuses or not has_selection:
        return Decision.INSUFFICIENT_EVIDENCE
    if set(rules) & {"asks", "unknown", "unknown_asks"}:
        return Decision.INSUFFICIENT_EVIDENCE
    return Decision.APPROVE


def every_case() -> list[tuple[tuple[Status, ...], tuple[str, ...], bool]]:
    gates = [g for size in range(4) for g in combinations_with_replacement(Status, size)]
    rules = [r for size in range(4) for r in combinations_with_replacement(RULES, size)]
    return list(product(gates, rules, (True, False)))


def test_every_combination() -> None:
    approved = 0
    for statuses, names, has_selection in every_case():
        rules = [RULES[name] for name in names]
        gates = [gate(s) for s in statuses]
        verdict = decide(gates, rules, uncertified=(), has_selection=has_selection)
        assert verdict.decision is by_hand(statuses, names, has_selection), (statuses, names, has_selection)
        assert verdict.reasons, (statuses, names, has_selection)
        if verdict.decision is Decision.APPROVE:
            approved += 1
            assert has_selection
            assert statuses
            assert set(statuses) <= {Status.CERTIFIED, Status.ESTIMATE}
            assert not any(r.applies and (r.triggered or r.triggered is None) for r in rules)
        # The order of what is known changes neither the decision nor what is said.
        backwards = decide(gates[::-1], rules[::-1], uncertified=(), has_selection=has_selection)
        assert backwards.decision is verdict.decision
        assert sorted(backwards.reasons) == sorted(verdict.reasons)
    assert approved  # the rule can approve


def test_more_trouble_never_makes_a_verdict_better() -> None:
    rank = {Decision.APPROVE: 2, Decision.INSUFFICIENT_EVIDENCE: 1, Decision.REJECT: 0}
    start = [gate(Status.CERTIFIED)]
    for more in [Status.VIOLATED, Status.INFEASIBLE, Status.INSUFFICIENT, Status.NOT_STATABLE]:
        for names in (("quiet",), ("unknown",), ("rejects",)):
            rules = [RULES[n] for n in names]
            before = decide(start, rules, uncertified=(), has_selection=True).decision
            after = decide([*start, gate(more)], rules, uncertified=(), has_selection=True).decision
            assert rank[after] <= rank[before]


def test_reasons_are_weightiest_first() -> None:
    gates = [gate(Status.INSUFFICIENT), gate(Status.CERTIFIED), gate(Status.VIOLATED)]
    rules = [RULES["unknown"], RULES["rejects"], RULES["idle_triggered"], RULES["quiet"]]
    verdict = decide(gates, rules, uncertified=("low",), has_selection=True)
    assert verdict.reasons == ("gate is violated", "b rejects", "gate is insufficient", "d is not known")
    assert verdict.uncertified == ("low",)


def test_the_headline_of_an_approval_names_what_is_not_certified() -> None:
    def approved(*uncertified: str) -> Verdict:
        return decide([gate(Status.CERTIFIED)], [], uncertified=uncertified, has_selection=True)

    assert approved().headline.startswith("Approved")
    assert "uncertified" not in approved().headline
    assert "1 uncertified class" in approved("low").headline
    assert "low" in approved("low").headline
    assert "2 uncertified classes" in approved("low", "medium").headline


def test_nothing_to_show_is_said() -> None:
    verdict = decide([], [], uncertified=(), has_selection=True)
    assert "No limit is set" in verdict.reasons[0]
    verdict = decide([gate(Status.CERTIFIED)], [], uncertified=(), has_selection=False)
    assert verdict.reasons == ("No operating point could be selected",)


def test_the_next_step_counts_the_labels_that_are_missing() -> None:
    verdict = decide([gate(Status.INSUFFICIENT, missing=1234)], [], uncertified=(), has_selection=True)
    assert "1,234 more needs" in verdict.next_step
    verdict = decide([gate(Status.INSUFFICIENT)], [], uncertified=(), has_selection=True)
    assert "Under-routing, insufficient" in verdict.next_step
    assert "Under-routing, violated" in (
        decide([gate(Status.VIOLATED)], [], uncertified=(), has_selection=True).next_step
    )


@pytest.mark.parametrize(("decision", "code"), [("approve", 0), ("reject", 1), ("insufficient_evidence", 3)])
def test_exit_codes(decision: str, code: int) -> None:
    assert exit_code(Decision(decision)) == code


def test_exported() -> None:
    assert set(evalkit.gates.__all__) == {
        "Decision",
        "Gate",
        "Status",
        "StopRule",
        "Verdict",
        "decide",
        "exit_code",
    }
    assert all(hasattr(evalkit.gates, name) for name in evalkit.gates.__all__)
