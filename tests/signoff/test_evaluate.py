"""The gates of a policy and the verdict over all of them, on runs made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.gates import Status
from evalkit.routing.paired_walk import PairedWalk
from evalkit.signoff.baseline import difference_bounds, non_inferiority
from evalkit.signoff.document import signoff_document
from evalkit.signoff.evaluate import all_gates
from evalkit.signoff.model import Paired, RunFacts
from evalkit.signoff.policy import ClassRule, Policy, PolicyLimits
from evalkit.signoff.verdict import signoff_verdict
from evalkit.statistics.bounds import upper_bound
from evalkit.statistics.paired_score import score_lower
from tests.signoff.facts import AT, gate_row, run_facts, write_policy


def policy_of(tmp_path: Path, text: str) -> Policy:
    return write_policy(tmp_path / "gates.yaml", f"policy: p\n{text}")


def gates_of(policy: Policy, *runs: RunFacts, at: str = AT) -> dict[str, Any]:
    return {gate.id: gate for gate in all_gates(policy, runs, at)}


def state(policy: Policy, id_: str, *runs: RunFacts, at: str = AT) -> tuple[str, str]:
    gate = gates_of(policy, *runs, at=at)[id_]
    return gate.gate.status.value, gate.state


def test_the_policy_must_be_the_one_that_the_run_recorded(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "attempts: {max: 1}\n")
    for recorded, expected in ((policy.sha256, "pass"), (None, "open"), ("0" * 64, "open")):
        run = run_facts(gate_row(), policy_sha256=recorded)
        assert state(policy, "support:policy_before_run", run)[1] == expected
        verdict = signoff_verdict(all_gates(policy, [run], AT), [run])
        assert verdict["decision"] == ("approve" if expected == "pass" else "insufficient_evidence")


def test_a_run_whose_figures_were_not_computed_again_is_open(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "attempts: {max: 1}\n")
    run = run_facts(gate_row(), policy_sha256=policy.sha256, evidence="the bundle is missing")
    assert state(policy, "support:evidence", run) == ("not_statable", "open")
    assert signoff_verdict(all_gates(policy, [run], AT), [run])["decision"] == "insufficient_evidence"


def test_a_bundle_that_hides_keys_says_so(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "attempts: {max: 1}\n")
    run = run_facts(gate_row(), policy_sha256=policy.sha256, hidden_in=("labels", "outcomes"))
    gate = gates_of(policy, run)["support:evidence"]
    assert gate.state == "pass"
    assert gate.gate.message.endswith("; keys or passwords are hidden in its labels, outcomes")


def test_a_run_that_no_baseline_goes_with_is_named(tmp_path: Path) -> None:
    """An arm of a ladder says nothing of a router: whoever approves must see what nothing is held against."""
    arm = "baseline: {arm: think-4k, margin_points: 1}\n"
    policy = policy_of(tmp_path, arm)
    run = run_facts(gate_row(), policy_sha256=policy.sha256)
    limits = signoff_document(policy, [run], created_at=AT, manifest=[])["evidence_limits"]
    named = [row for row in limits if row["text"].startswith("No baseline of the policy goes with this run")]
    assert [row["runs"] for row in named] == [["support"]]
    policy = policy_of(tmp_path, arm.replace("think-4k", '"always:frontier"'))
    limits = signoff_document(policy, [run], created_at=AT, manifest=[])["evidence_limits"]
    assert not [row for row in limits if "baseline" in row["text"]]


@pytest.mark.parametrize(
    ("gate", "extra"),
    [
        (gate_row(limit=0.02), None),  # judged as strictly as the policy asks: the run's gate is the policy's
        (gate_row(limit=0.01), None),
        (gate_row(limit=0.05), "looser limit"),
        (gate_row("under_route:low"), "judged no limit"),
        (gate_row(limit=0.02, status="estimate"), "asks for a bound"),
    ],
)
def test_a_limit_that_the_run_did_not_judge_as_strictly_is_open(
    tmp_path: Path, gate: dict[str, Any], extra: str | None
) -> None:
    policy = policy_of(tmp_path, "risk: {critical: {max_under_route: 0.02}}\n")
    found = gates_of(policy, run_facts(gate, policy_sha256=policy.sha256)).get(
        "support:policy:under_route:critical"
    )
    if extra is None:
        assert found is None
    else:
        assert found is not None
        assert (found.state, extra in found.gate.message, found.risk) == ("open", True, "critical")


def test_a_class_that_no_run_has_is_open_and_so_is_a_limit_without_a_run_of_its_kind(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "risk: {critcal: {max_under_route: 0.02}, critical: {max_failure: 0.1}}\n")
    run = run_facts(gate_row(), policy_sha256=policy.sha256)
    assert state(policy, "under_route:critcal", run) == ("not_statable", "open")
    assert state(policy, "risk_failure:critical", run) == ("not_statable", "open")
    gates = gates_of(policy, run)
    assert gates["under_route:critcal"].gate.label == "Under-routing, critcal"
    assert gates["risk_failure:critical"].gate.message.startswith("Failures, critical: no reasoning-budget run of")


def test_the_answered_share_comes_from_the_bounds_of_the_pass_rate(tmp_path: Path) -> None:
    run = run_facts(gate_row())  # .95 to .96: 1 % unanswered
    for limit, expected in ((0.99, ("estimate", "pass")), (0.995, ("insufficient", "open"))):
        policy = policy_of(tmp_path, f"limits: {{min_answered_share: {limit}}}\n")
        assert state(policy, "support:answered_share", run) == expected


def test_what_the_policy_asks_for_and_nobody_measured_is_open(tmp_path: Path) -> None:
    policy = policy_of(
        tmp_path,
        "judge: {min_agreement: 0.8, max_unparseable: 0.05}\nlabels: {min_alpha: 0.7, max_age_days: 180}\n"
        'prices: {max_age_days: 60}\nbaseline: {arm: "always:frontier", margin_points: 1}\n',
    )
    run = run_facts(gate_row(), policy_sha256=policy.sha256)
    found = gates_of(policy, run)
    names = ("judge_agreement", "judge_unparseable", "label_agreement", "label_age", "price_age")
    for name in (*names, "non_inferiority:always:frontier"):
        assert found[f"support:{name}"].gate.status is Status.NOT_STATABLE, name
    verdict = signoff_verdict(list(found.values()), [run])
    assert verdict["decision"] == "insufficient_evidence"


def test_judge_agreement_is_judged_on_its_exact_bound_over_items(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "judge: {min_agreement: 0.8}\n")

    def judged(agreed: int, n: int, items: int) -> tuple[str, float]:
        quality = {"agreement": {"n": n, "agreed": agreed, "rate": agreed / n}, "items": items}
        gate = gates_of(policy, run_facts(gate_row(), provenance={"judge": {"quality": quality}}))[
            "support:judge_agreement"
        ].gate
        assert gate.bound is not None
        return gate.status.value, gate.bound

    status, bound = judged(270, 300, 300)
    assert status == "certified"
    assert bound == pytest.approx(1 - (upper_bound(30, 300, 0.95) or 1), abs=1e-12)
    assert judged(270, 300, 30)[0] == "insufficient"  # ten replies an item are thirty items, not 300
    assert judged(82, 100, 100)[0] == "insufficient"  # 82 % seen, the bound is below 80 %


@pytest.mark.parametrize(
    ("agreement", "expected", "more"),
    [
        ({"alpha": 0.9, "lower": 0.7, "raw": 0.95, "raw_lower": 0.9, "items": 100}, "estimate", False),
        # The observed one is inside, its interval is not: about ((0.9 - 0.6) / (0.9 - 0.7)) ** 2 - 1 as many more.
        ({"alpha": 0.9, "lower": 0.6, "raw": 0.95, "raw_lower": 0.9, "items": 100}, "insufficient", 125),
        ({"alpha": 0.6, "lower": 0.5, "raw": 0.9, "raw_lower": 0.8, "items": 100}, "insufficient", None),
        # Two items on which all agree could be chance; forty are enough for 0.7.
        ({"alpha": 1.0, "lower": None, "raw": 1.0, "raw_lower": 0.342, "items": 2}, "insufficient", 8),
        ({"alpha": 1.0, "lower": None, "raw": 1.0, "raw_lower": 0.912, "items": 40}, "estimate", False),
        # No interval for another reason: nothing is known of its lower end.
        ({"alpha": 0.9, "lower": None, "raw": 0.95, "raw_lower": None, "items": 3}, "not_statable", None),
        ({"alpha": None, "raw": 1.0, "items": 50}, "not_statable", None),
        (None, "not_statable", None),
    ],
)
def test_agreement_of_labels_is_judged_on_its_interval(
    tmp_path: Path, agreement: dict[str, Any] | None, expected: str, more: int | None
) -> None:
    policy = policy_of(tmp_path, "labels: {min_alpha: 0.7}\n")
    run = run_facts(gate_row(), provenance={"labels": {"agreement": agreement}})
    gate = gates_of(policy, run)["support:label_agreement"].gate
    assert (gate.status.value, gate.missing_n or None) == (expected, more or None)


@pytest.mark.parametrize(
    ("oldest", "expected"),
    [
        ("2026-06-04", "pass"),  # 180 days
        ("2026-06-03", "open"),
        ("2026-12-02", "open"),  # a day to come
        (None, "open"),
    ],
)
def test_ages_are_counted_to_the_day_of_the_sign_off(tmp_path: Path, oldest: str | None, expected: str) -> None:
    policy = policy_of(tmp_path, "labels: {max_age_days: 180}\n")
    run = run_facts(gate_row(), provenance={"labels": {"labelled": {"oldest": oldest}}})
    assert state(policy, "support:label_age", run)[1] == expected


def test_looks_and_expiry(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, 'attempts: {max: 1}\nrelease: {expires: "2026-12-01"}\n')
    looks = {"declared": 3, "this": 2, "delta": 0.01, "recorded": True}
    run = run_facts(gate_row(), policy_sha256=policy.sha256, looks=looks)
    assert state(policy, "support:attempts", run) == ("insufficient", "open")
    assert state(policy, "sign_off_expiry", run)[1] == "pass"  # its last day is not over
    assert state(policy, "sign_off_expiry", run, at="2026-12-02T00:00:00Z")[1] == "open"


def test_a_runs_own_verdict_makes_the_whole_worse_never_better(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "attempts: {max: 1}\n")
    for decision in ("reject", "insufficient_evidence"):
        run = run_facts(gate_row(), policy_sha256=policy.sha256, decision=decision)
        verdict = signoff_verdict(all_gates(policy, [run], AT), [run])
        assert verdict["decision"] == decision
        assert verdict["reasons"][-1]["code"] == f"run_{decision}"
    broken = run_facts(gate_row(status="violated"), policy_sha256=policy.sha256)
    assert signoff_verdict(all_gates(policy, [broken], AT), [broken])["decision"] == "reject"


def test_nobody_is_told_to_change_a_router_where_a_ladder_failed(tmp_path: Path) -> None:
    policy = write_policy(tmp_path / "gates.yaml", "policy: p\nrisk: {critical: {max_failure: 0.05}}")
    kept = run_facts(gate_row(), policy_sha256=policy.sha256)
    broken = gate_row("risk_failure:critical", "violated", message="broken", label="Failures, critical")
    ladder = run_facts(
        broken, policy_sha256=policy.sha256, id="math", kind="reasoning-budget", study="math", decision="reject"
    )
    wrong = run_facts(gate_row(status="violated", label="Under-routing, critical"), policy_sha256=policy.sha256)
    for runs, step in (
        ([ladder], "Change the model, the prompt or the limit (broken: Failures, critical), then judge"),
        (
            [kept, ladder],
            "Change the model, the prompt or the limit (broken: math, Failures, critical), then judge",
        ),
        ([wrong, ladder], "Change what is broken (broken: support, Under-routing, critical; math, Failures"),
        ([wrong], "Change the router (broken: Under-routing, critical), then judge it on fresh labels"),
    ):
        gates = [gate for gate in all_gates(policy, runs, AT) if gate.state == "fail" or len(runs) > 1]
        found = signoff_verdict(gates, runs)
        assert found["decision"] == "reject"
        assert found["next_step"]["text"].startswith(step)


def test_nothing_is_approved_without_a_run(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, 'attempts: {max: 1}\nrelease: {expires: "2027-01-01"}\n')
    assert signoff_verdict(all_gates(policy, [], AT), [])["decision"] == "insufficient_evidence"


STATUSES = st.sampled_from([status.value for status in Status])
RULES = st.lists(
    st.tuples(st.sampled_from([True, False, None]), st.sampled_from(["reject", "insufficient_evidence"])),
    max_size=3,
)


@given(
    st.lists(st.tuples(st.lists(STATUSES, max_size=4), RULES, st.sampled_from(["approve", "reject"])), max_size=3),
    st.booleans(),
)
def test_no_sign_off_approves_with_one_open_or_failing_gate_rule_or_run(
    runs: list[tuple[list[str], list[tuple[bool | None, str]], str]], recorded: bool
) -> None:
    policy = Policy("p", Path("gates.yaml"), "a" * 64, b"", {"critical": ClassRule(0.05)}, PolicyLimits())
    facts = []
    for place, (statuses, rules, decision) in enumerate(runs):
        rows = [
            {"name": f"r{i}", "triggered": t, "detail": "d", "on_trigger": o} for i, (t, o) in enumerate(rules)
        ]
        gates = [gate_row("under_route:critical", status) for status in statuses]
        sha = policy.sha256 if recorded else None
        facts.append(run_facts(*gates, policy_sha256=sha, decision=decision, stop_rules=rows, id=f"run-{place}"))
    document = signoff_document(policy, facts, created_at=AT, manifest=[])
    states = [gate["state"] for gate in document["gates"]]
    fine = (
        bool(facts)
        and recorded
        and set(states) == {"pass"}
        and all(decision == "approve" and statuses for statuses, _, decision in runs)
        and not any(triggered is not False for _, rules, _ in runs for triggered, _ in rules)
    )
    assert (document["verdict"]["decision"] == "approve") is (
        fine and all(status == "certified" for statuses, _, _ in runs for status in statuses)
    )
    if "fail" in states:
        assert document["verdict"]["decision"] == "reject"
    from evalkit.reporting.signoff import signoff_contradictions

    assert signoff_contradictions(document) == []


def paired(d: list[float], weight: list[float] | None = None, group: list[int] | None = None) -> Paired:
    w = np.ones(len(d)) if weight is None else np.array(weight)
    return Paired(np.array(d), w, None if group is None else np.array(group))


def test_non_inferiority_takes_the_worse_of_t_and_the_exact_bound() -> None:
    from scipy import stats

    d = [1.0] * 6 + [-1.0] * 10 + [0.0] * 384
    mean, lower, upper, n = difference_bounds(paired(d), 0.05)
    t = stats.ttest_1samp(d, 0).confidence_interval(0.90)
    exact = 6 / 400 - stats.binomtest(10, 400, alternative="less").proportion_ci(0.95, "exact").high
    assert (mean, n) == (pytest.approx(-0.01), 400)
    assert lower == pytest.approx(min(t.low, exact, score_lower(6, 10, 400, 0.05)), abs=1e-9)
    other = stats.binomtest(6, 400, alternative="less").proportion_ci(0.95, "exact").high - 10 / 400
    assert upper == pytest.approx(max(t.high, other, -score_lower(10, 6, 400, 0.05)), abs=1e-9)


def test_a_difference_of_few_items_takes_the_variance_of_the_limit() -> None:
    """At -1 point of 1,000 items, 3 newly pass and 13 newly fail: the score bound is the lowest."""
    _, lower, _, _ = difference_bounds(paired([1.0] * 3 + [-1.0] * 13 + [0.0] * 984), 0.05)
    assert lower == score_lower(3, 13, 1000, 0.05)


def test_items_that_all_agree_certify_no_margin_below_what_their_number_bounds() -> None:
    gate = non_inferiority(paired([0.0] * 100), against="x", margin=0.02, delta=0.05, searched=False)
    assert gate.status is Status.INSUFFICIENT  # 0 of 100 lost could be 2.95 %
    assert gate.bound == pytest.approx(-100 * (upper_bound(0, 100) or 1), abs=1e-6)
    assert gate.missing_n is not None
    more = non_inferiority(paired([0.0] * 150), against="x", margin=0.02, delta=0.05, searched=False)
    assert more.status is Status.CERTIFIED


def test_a_conversation_counts_once_however_long_it_is() -> None:
    d = [0.0] * 600
    alone = difference_bounds(paired(d), 0.05)
    tens = difference_bounds(paired(d, group=[i // 10 for i in range(600)]), 0.05)
    assert (alone[3], tens[3]) == (600, 60)
    assert tens[1] is not None
    assert tens[1] == pytest.approx(-(upper_bound(0, 60) or 1))


def walked(broken: list[float], n: int = 400) -> Paired:
    last = round(broken[-1] * n)
    path = PairedWalk(np.array(broken), np.zeros(len(broken)), n)
    return replace(paired([-1.0] * last + [0.0] * (n - last)), walk=path)


def test_a_searched_threshold_is_certified_where_its_whole_path_keeps_the_margin() -> None:
    judge = {"against": "x", "margin": 0.02, "delta": 0.05, "searched": True}
    gate = non_inferiority(walked([0.0, 0.0, 1 / 400]), **judge)
    assert gate.status is Status.CERTIFIED
    # One lost of 400 at 2.5 %, nothing gained: the exact bound, below that of one side at 5 %.
    assert gate.bound == pytest.approx(-100 * (upper_bound(1, 400, 0.975) or 1), abs=1e-6)
    through = non_inferiority(walked([0.0, 0.05, 1 / 400]), **judge)
    assert (through.status, through.basis) == (Status.ESTIMATE, "estimate")  # a point before it is not kept
    assert "the threshold was chosen on these items" in through.message
    few = non_inferiority(walked([0.0, 0.0], n=160), **judge)
    assert few.status is Status.ESTIMATE  # 0 of 160 are at most 1.9 % by one side, 2.3 % by the walk


def test_what_makes_every_bound_approximate_leaves_an_estimate() -> None:
    why = "today's threshold was chosen on these items"
    for searched in (True, False):
        pair = replace(walked([0.0, 0.0]), approximate=why)
        gate = non_inferiority(pair, against="x", margin=0.02, delta=0.05, searched=searched)
        assert gate.status is Status.ESTIMATE
        assert why in gate.message


def test_a_searched_threshold_without_a_path_is_never_certified_and_a_lost_pass_rate_is_rejected() -> None:
    assert non_inferiority(paired([0.0] * 400), against="x", margin=0.02, delta=0.05, searched=True).status is (
        Status.ESTIMATE
    )
    lost = paired([-1.0] * 60 + [0.0] * 340)
    for searched in (True, False):
        gate = non_inferiority(lost, against="x", margin=0.02, delta=0.05, searched=searched)
        assert gate.status is Status.VIOLATED
    assert non_inferiority(paired([0.0] * 400), against="x", margin=0.02, delta=None, searched=False).status is (
        Status.INSUFFICIENT
    )


def test_the_run_of_today_and_arms_are_matched_to_the_runs_that_have_them(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, 'baseline: {arm: ["always:frontier", "plain"], margin_points: 2}\n')
    run = run_facts(gate_row(), policy_sha256=policy.sha256, paired={"always:frontier": paired([0.0] * 400)})
    found = gates_of(policy, run)
    assert found["support:non_inferiority:always:frontier"].state == "pass"
    assert found["non_inferiority:plain"].state == "open"  # there is no ladder with this arm


@pytest.mark.parametrize(
    ("upper", "expected"), [(0.02, "certified"), (0.020001, "insufficient"), (None, "not_statable")]
)
def test_missed_needs_are_held_to_the_greatest_bound_of_an_audit(
    tmp_path: Path, upper: float | None, expected: str
) -> None:
    policy = policy_of(tmp_path, "labels: {max_missed_needs: 0.02}\n")
    rows = [
        {"risk": "low", "audited": 300, "missed": 0, "missed_share": 0.0, "missed_share_upper": 0.01},
        {"risk": "critical", "audited": 300, "missed": 1, "missed_share": 0.004, "missed_share_upper": upper},
    ]
    run = run_facts(gate_row(), label_audit={"delta": 0.025, "classes": rows})
    assert state(policy, "support:missed_needs", run)[0] == expected
    assert state(policy, "support:missed_needs", run_facts(gate_row())) == ("not_statable", "open")
    for damaged in ("x", {"delta": "x", "classes": rows}, {"delta": 0.025, "classes": [1]}, {"delta": 0.025}):
        assert state(policy, "support:missed_needs", run_facts(gate_row(), label_audit=damaged))[1] == "open"


def test_a_policy_that_asks_for_no_audit_asks_what_it_did(tmp_path: Path) -> None:
    plain = policy_of(tmp_path, "labels: {min_alpha: 0.7}\n").gates_fingerprint
    assert policy_of(tmp_path, "labels: {min_alpha: 0.7, max_missed_needs: 0.1}\n").gates_fingerprint != plain
    assert plain == "6ca222b73b168e095178909f577f31e9d1445f2164739531ccde6594abee47ff"  # as it was written before


def test_a_baseline_that_was_chosen_from_several_on_these_items_takes_its_part_of_the_error_rate(
    tmp_path: Path,
) -> None:
    policy = write_policy(tmp_path / "p.yaml", "policy: p\nbaseline: {arm: always:frontier, margin_points: 2}\n")
    found = {}
    for many in (1, 4):
        pair = replace(paired([0.0] * 200), baseline_of=many)
        run = run_facts(gate_row(), judged={"name": "judged"}, paired={"always:frontier": pair})
        (gate,) = [one.gate for one in all_gates(policy, (run,), AT) if one.gate.name == "non_inferiority"]
        found[many] = gate
    # Nothing lost of 200: at most 1.49 % at 5 %, 2.17 % at 1.25 %.
    assert (found[1].status, found[4].status) == (Status.CERTIFIED, Status.INSUFFICIENT)
    assert found[4].confidence == pytest.approx(1 - 0.05 / 4)
