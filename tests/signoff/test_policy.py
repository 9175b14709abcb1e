"""A gate policy is read strictly, and of two limits the stricter holds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.signoff.policy import ClassRule, Signer, read_policy
from evalkit.signoff.policy_limits import held_to
from evalkit.study import read_study
from tests.signoff.facts import write_policy
from tests.workflows.studies import write_items, write_study

WHOLE = """\
policy: support-release
risk:
  critical: {max_under_route: 0.02, max_failure: 0.05}
  low: {max_under_route: 0.1, gate_on: estimate}
baseline: {arm: "always:frontier", margin_points: 1.5}
limits:
  min_pass_rate: 0.9
  max_cost_per_request: 0.01
  max_escalation: 0.6
  p95_task_seconds: 8
  min_answered_share: 0.98
judge: {min_agreement: 0.8, max_unparseable: 0.05}
labels: {min_alpha: 0.7, max_age_days: 180}
prices: {max_age_days: 60}
attempts: {max: 1}
release:
  rollout: [5 % for a day, then everybody]
  rollback_when: pass rate below 90 % on a day
  rollback_how: set the threshold to 0
  owner: the support team
  expires: "2027-03-01"
signers:
  - {role: approver, name: A. Nother}
  - {role: reviewer}
"""


def faults(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_policy(path)
    return [str(fault) for fault in caught.value.faults]


def test_every_field_is_read(tmp_path: Path) -> None:
    policy = write_policy(tmp_path / "gates.yaml", WHOLE)
    assert policy.name == "support-release"
    assert policy.sha256 == hashlib.sha256(WHOLE.encode()).hexdigest()
    assert policy.risk == {"critical": ClassRule(0.02, 0.05, "bound"), "low": ClassRule(0.1, None, "estimate")}
    assert policy.baseline is not None
    assert policy.baseline.arms == ("always:frontier",)
    assert policy.baseline.margin == pytest.approx(0.015)
    limits = policy.limits
    assert (limits.min_pass_rate, limits.max_cost_per_request, limits.p95_task_seconds) == (0.9, 0.01, 8.0)
    assert (limits.max_escalation, limits.min_answered_share) == (0.6, 0.98)
    assert (policy.judge_min_agreement, policy.judge_max_unparseable) == (0.8, 0.05)
    assert (policy.labels_min_alpha, policy.labels_max_age_days) == (0.7, 180)
    assert (policy.prices_max_age_days, policy.attempts_max) == (60, 1)
    assert policy.release["rollout"] == ("5 % for a day", "then everybody")
    assert policy.release["rollback_when"] == ("pass rate below 90 % on a day",)
    assert policy.release["expires"] == "2027-03-01"
    assert policy.signers == (Signer("approver", "A. Nother"), Signer("reviewer", None))


def test_all_faults_are_named_in_one_run_with_their_lines(tmp_path: Path) -> None:
    text = WHOLE.replace("0.02,", "2 %,").replace("min_alpha", "min_alfa").replace("max: 1", "max: 0")
    found = faults(tmp_path / "gates.yaml", text.replace('"2027-03-01"', '"2027-02-30"'))
    assert len(found) == 4
    assert "gates.yaml:3: field risk.critical.max_under_route: " in found[0]
    assert "write 0.02" in found[0]
    assert ":13: field labels.min_alfa: is not a known key" in found[1]
    assert ":15: field attempts.max: " in found[2]
    assert ":21: field release.expires: " in found[3]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("policy: p\n", "sets no limit at all"),
        ("risk: {high: {max_failure: 0.1}}\n", "field policy: is required"),
        ("policy: p\nrisk: {high: {}}\n", "holds no limit"),
        ("policy: p\nlimits: {}\n", "holds no limit"),
        ("policy: p\nattempts: {max: null}\n", "holds no limit"),
        ("policy: p\nrisk: {high: {max_failure: 1}}\n", "which nothing can break"),
        ("policy: p\nbaseline: {margin_points: 1}\n", "names neither an arm nor a run of today"),
        ('policy: p\nbaseline: {arm: "a", today: "b", margin_points: 1}\n', "names both"),
        ('policy: p\nbaseline: {arm: "a"}\n', "margin_points: is required"),
        ("policy: p\nattempts: {max: 1}\nsigners: [{role: r}, {role: r}]\n", "twice"),
        ("policy: p\nattempts: {max: 1}\nrelease: {owner: sk-abcdefghijklmnop1234}\n", "a key or password"),
        ("- 1\n", "is no policy"),
    ],
)
def test_a_policy_that_says_less_than_it_seems_to_is_refused(tmp_path: Path, text: str, what: str) -> None:
    assert any(what in fault for fault in faults(tmp_path / "gates.yaml", text))


def test_of_two_limits_the_stricter_holds_and_is_another_look(tmp_path: Path) -> None:
    write_items(tmp_path, 20)
    write_study(tmp_path, limits={"min_pass_rate": 0.95, "max_escalation": 0.5})
    study = read_study(tmp_path / "study.yaml")
    policy = write_policy(tmp_path / "gates.yaml", WHOLE)
    held, changes = held_to(study, policy)
    assert held.risk["critical"].max_under_route == 0.02  # stricter than the study's .05
    assert held.risk["critical"].gate_on == "bound"
    assert (held.risk["low"].max_under_route, held.risk["low"].gate_on) == (
        0.1,
        "bound",
    )  # the study asks for a bound
    assert held.limits.min_pass_rate == 0.95
    assert held.limits.max_escalation == 0.5
    assert held.limits.max_cost_per_request == 0.01
    assert [(c.field, c.before, c.after) for c in changes] == [
        ("risk.critical.max_under_route", 0.05, 0.02),
        ("limits.max_cost_per_request", None, 0.01),
        ("limits.p95_task_seconds", None, 8.0),
    ]
    assert held.fingerprint != study.fingerprint


def test_a_looser_policy_changes_nothing(tmp_path: Path) -> None:
    write_items(tmp_path, 20)
    write_study(tmp_path)
    study = read_study(tmp_path / "study.yaml")
    policy = write_policy(tmp_path / "gates.yaml", "policy: p\nrisk: {critical: {max_under_route: 0.2}}\n")
    assert held_to(study, policy) == (study, ())


def test_an_estimate_of_the_study_becomes_a_bound_where_the_policy_wants_one(tmp_path: Path) -> None:
    write_items(tmp_path, 20)
    risk = {
        "low": {"under_route_loss": 0.05, "max_under_route": 0.1, "gate_on": "estimate"},
        "critical": {"under_route_loss": 0.5, "max_under_route": 0.05},
    }
    write_study(tmp_path, risk=risk)
    policy = write_policy(tmp_path / "gates.yaml", "policy: p\nrisk: {low: {max_under_route: 0.3}}\n")
    held, changes = held_to(read_study(tmp_path / "study.yaml"), policy)
    assert (held.risk["low"].max_under_route, held.risk["low"].gate_on) == (0.1, "bound")
    assert [c.field for c in changes] == ["risk.low.gate_on"]


def test_a_limit_on_time_needs_the_routers_own_seconds(tmp_path: Path) -> None:
    write_items(tmp_path, 20)
    router = {
        "scores": "scores.csv",
        "higher_means": "needs_stronger",
        "trained_on": "other_items",
        "cost_usd": 0,
    }
    write_study(tmp_path, router=router)
    policy = write_policy(tmp_path / "gates.yaml", "policy: p\nlimits: {p95_task_seconds: 5}\n")
    with pytest.raises(InputError, match=r"router\.seconds"):
        held_to(read_study(tmp_path / "study.yaml"), policy)
