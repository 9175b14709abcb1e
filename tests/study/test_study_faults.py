"""What no routing study may say: every fault is named at once, with its line and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.study import read_study
from tests.study.routing_studies import SMALL, Write, changed, faults


def test_all_faults_of_a_study_come_in_one_run(write: Write) -> None:
    text = """\
study: ../evil
kind: routing
labels: missing.csv
outcomes: rubrics
tiers:
  - {name: cheap, modell: x}
  - {name: cheap}
  - {name: unsolvable}
  - mid
prices: no
missing_outcomes: skip
router:
  scores: scores.csv
  cost_usd: free
  threshold: 0.4
risk:
  low: 1
  high: {under_route_loss: -1, max_under_route: 5}
limits: {min_pass_rate: 85%, max_escalation: "0.9", max_cost_per_request: nan, p95_task_seconds: }
confidence: 95
seed: 1.5
contract_failure_cost: 0,02
"""
    assert faults(write(text)) == [
        'study.yaml:1: field study: "../evil" holds signs that no folder name should have. Fix: use letters, '
        "digits, "
        "- and _; the name is the folder of the reports too.",
        'study.yaml:3: field labels: there is no file "missing.csv". Fix: name a file, relative to the '
        "folder of the "
        "study file.",
        'study.yaml:4: field outcomes: "rubrics" is a folder. Fix: name a file, relative to the folder of '
        "the study "
        "file.",
        "study.yaml:6: field tiers[0].modell: is not a known key. Fix: write model.",
        'study.yaml:7: field tiers[1].name: "cheap" names a tier on line 6 already. Fix: give every tier its '
        "own name.",
        'study.yaml:8: field tiers[2].name: "unsolvable" is the label of items that no tier can solve. Fix: '
        "give the "
        "tier another name.",
        'study.yaml:9: field tiers[3]: is "mid", not a mapping. Fix: write {name: mid}.',
        "study.yaml:10: field prices: without quotes some YAML readers take no for false. Fix: write false, or "
        '"no" in quotes where text is meant.',
        'study.yaml:11: field missing_outcomes: is "skip"; allowed: error, unanswered. Fix: write one of: error, '
        "unanswered.",
        "study.yaml:13: field router.higher_means: is required. Fix: write needs_stronger (a high score asks "
        "for a "
        "stronger tier) or cheap_is_enough; it is never guessed.",
        "study.yaml:13: field router.trained_on: is required. Fix: write other_items, cross_fitted, "
        "these_items or "
        "untrained.",
        'study.yaml:14: field router.cost_usd: is "free", not a number. Fix: write a plain number such as 0.05.',
        "study.yaml:15: field router.threshold: is not a key of a routing study. Fix: write "
        "router.thresholds, a list "
        "with one number for each tier above the cheapest.",
        "study.yaml:17: field risk.low: is 1, not a mapping. Fix: write {under_route_loss: 1.0, max_under_route: "
        "0.05}.",
        "study.yaml:18: field risk.high.under_route_loss: is -1, which is not from 0 to 1,000,000,000,000. Fix: "
        "write a number from 0 to 1,000,000,000,000.",
        "study.yaml:18: field risk.high.max_under_route: is 5, which is not from 0 to 1. Fix: write a number "
        "from 0 "
        "to 1; 5 % is 0.05.",
        'study.yaml:19: field limits.min_pass_rate: is "85%", not a number. Fix: write 0.85.',
        'study.yaml:19: field limits.max_cost_per_request: is "nan", not a number. Fix: write a finite number.',
        "study.yaml:19: field limits.p95_task_seconds: has no value. Fix: write a value, or leave the key out.",
        'study.yaml:19: field limits.max_escalation: is "0.9", not a number. Fix: write 0.9 without quotes.',
        "study.yaml:20: field confidence: is 95, which is not from 0.5 to 1. Fix: write a number from 0.5 to 1.",
        "study.yaml:21: field seed: is 1.5, not a whole number. Fix: write a whole number.",
        'study.yaml:22: field contract_failure_cost: is "0,02", not a number. Fix: write 0.02, with a point.',
    ]


def test_the_direction_is_required_and_never_guessed(write: Write) -> None:
    (message,) = faults(write(changed(SMALL, "higher_means: cheap_is_enough, ", "")))
    assert message.startswith("study.yaml:6: field router.higher_means: is required. Fix: write needs_stronger")


def test_names_from_elsewhere_get_the_right_hint(write: Write) -> None:
    text = changed(
        SMALL, "kind: routing", "kind: routing\nscore_means: p_needs_strong\nrisk_classes: {low: 1}\nscores: x"
    )
    assert faults(write(text)) == [
        "study.yaml:3: field score_means: is not a key of a routing study. Fix: write router.higher_means: "
        "needs_stronger (a high score asks for a stronger tier) or cheap_is_enough.",
        "study.yaml:4: field risk_classes: is not a key of a routing study. Fix: write risk, with "
        "{under_route_loss: ..., max_under_route: ...} for each class.",
        "study.yaml:5: field scores: does not belong at the top of the study. Fix: write it under router.",
    ]


def test_configs_of_the_cases_are_told_what_this_study_calls_it(shared: Path) -> None:
    """Their keys are placeholders: none is accepted, and the one about the direction gets its name here."""
    for name in ("config_wrong.yaml", "config_right.yaml"):
        found = faults(shared / "cases" / "M06-reversed-score" / name)
        (message,) = [fault for fault in found if "score_means" in fault]
        assert message.startswith(f"{name}:2: field score_means: is not a key of a routing study")
        assert "router.higher_means" in message
    found = faults(shared / "cases" / "M06-reversed-score" / "config_missing.yaml")
    assert any("field router: is required" in fault and "higher_means" in fault for fault in found)
    found = faults(shared / "cases" / "M04-ties-at-threshold" / "config.yaml")
    assert [fault.split(": ")[0] for fault in found if "router.higher_means: needs_stronger" in fault] == [
        "config.yaml:2",
        "config.yaml:3",
    ]
    found = faults(shared / "cases" / "L11-unknown-risk-class" / "config.yaml")
    assert any("config.yaml:1: field risk_classes" in fault and "write risk, with" in fault for fault in found)


def test_a_misspelt_limit_is_not_lost(write: Write) -> None:
    text = SMALL + "limits: {min_pas_rate: 0.9}\n"
    assert faults(write(text)) == [
        "study.yaml:8: field limits.min_pas_rate: is not a known key. Fix: write min_pass_rate."
    ]
    text = changed(SMALL, "max_under_route: 0.05", "max_under_route: ")
    assert any("risk.high.max_under_route: has no value" in message for message in faults(write(text)))


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "nan", "inf"])
def test_thresholds_and_limits_are_finite(write: Write, value: str) -> None:
    text = changed(SMALL, "cost_usd: 0", f"cost_usd: 0, thresholds: [{value}]")
    (message,) = faults(write(text))
    assert message.startswith("study.yaml:6: field router.thresholds[0]: ")
    assert value in message
    (message,) = faults(
        write(changed(SMALL, "max_under_route: 0.05", f"max_under_route: {value}, gate_on: bound"))
    )[:1]
    assert message.startswith("study.yaml:7: field risk.high.max_under_route: ")
    assert value in message


@pytest.mark.parametrize(
    ("direction", "thresholds", "problem"),
    [
        (
            "needs_stronger",
            "[0.4]",
            "has 1 thresholds for 3 tiers (0.4). Fix: write 2, one to reach each of: b, c",
        ),
        ("needs_stronger", "[0.6, 0.4]", "0.6, 0.4 are out of order. Fix: with one score they must never fall"),
        ("cheap_is_enough", "[0.4, 0.6]", "0.4, 0.6 are out of order. Fix: with one score they must never rise"),
        ("needs_stronger", "[0.4, 0.6]", None),
        ("cheap_is_enough", "[0.6, 0.4]", None),
        ("needs_stronger", "[0.5, 0.5]", None),
        ("needs_stronger", "0.5", "is 0.5, not a list. Fix: write [0.5]"),
        ("needs_stronger", "[]", "is an empty list"),
    ],
)
def test_thresholds_fit_the_tiers(write: Write, direction: str, thresholds: str, problem: str | None) -> None:
    text = changed(SMALL, "[{name: cheap}, {name: strong}]", "[{name: a}, {name: b}, {name: c}]")
    text = changed(text, "cheap_is_enough", direction)
    path = write(changed(text, "cost_usd: 0", f"cost_usd: 0, thresholds: {thresholds}"))
    if problem is None:
        assert read_study(path).router.thresholds is not None
    else:
        (message,) = faults(path)
        assert f"field router.thresholds: {problem}" in message


def test_a_cascade_may_have_a_score_a_tier_so_its_thresholds_are_free(write: Write) -> None:
    text = changed(SMALL, "[{name: cheap}, {name: strong}]", "[{name: a}, {name: b}, {name: c}]")
    text = changed(text, "cost_usd: 0", "cost_usd: 0, policy: cascade, thresholds: [0.4, 0.6]")
    assert read_study(write(text)).router.thresholds == (0.4, 0.6)


def test_a_probability_has_its_range_and_the_float_beyond_it_means_never(write: Write) -> None:
    text = changed(SMALL, "cost_usd: 0", "cost_usd: 0, probability: true, thresholds: [1.2]")
    (message,) = faults(write(text))
    assert "1.2 is not from 0 to 1, and the score is a probability" in message
    assert read_study(write(text.replace("1.2", "1.0000000000000002"))).router.thresholds == (1.0000000000000002,)
    assert read_study(write(text.replace("probability: true, ", ""))).router.thresholds == (1.2,)


def test_no_certificate_from_a_router_that_saw_the_items(write: Write) -> None:
    (message,) = faults(write(changed(SMALL, "other_items", "these_items")))
    assert "router.trained_on: is these_items, and high must meet a certified limit" in message


def test_the_costliest_class_is_certified(write: Write) -> None:
    risk = "risk: {high: {under_route_loss: 1, max_under_route: 0.05}}"
    on_estimate = "risk: {high: {under_route_loss: 1, max_under_route: 0.05, gate_on: estimate}}"
    (message,) = faults(write(changed(SMALL, risk, on_estimate)))
    assert "risk.high.gate_on: is estimate, and 1 USD is the highest under_route_loss" in message
    two = "risk: {low: {under_route_loss: 0.1, max_under_route: 0.05}, high: {under_route_loss: 1}}"
    (message,) = faults(write(changed(SMALL, risk, two)))
    assert "risk.high.max_under_route: is missing, and 1 USD is the highest" in message
    equal = (
        "risk: {a: {under_route_loss: 1, max_under_route: 0.1}, b: {under_route_loss: 1, max_under_route: "
        "0.1, gate_on: estimate}}"
    )
    (message,) = faults(write(changed(SMALL, risk, equal)))
    assert "risk.b.gate_on: is estimate" in message
    fine = (
        "risk: {a: {under_route_loss: 2, max_under_route: 0}, b: {under_route_loss: 1, max_under_route: 0.1, "
        "gate_on: estimate}}"
    )
    assert read_study(write(changed(SMALL, risk, fine))).risk["b"].gate_on == "estimate"
    limitless = "risk: {a: {under_route_loss: 2, max_under_route: 0}, b: {under_route_loss: 1, gate_on: estimate}}"
    (message,) = faults(write(changed(SMALL, risk, limitless)))
    assert "risk.b.gate_on: stands without a limit" in message


def test_weights_of_zero_are_noted_and_not_all_may_be(write: Write) -> None:
    risk = "risk: {high: {under_route_loss: 1, max_under_route: 0.05}}"
    some = "risk: {low: {under_route_loss: 0}, high: {under_route_loss: 1, max_under_route: 0.05}}"
    study = read_study(write(changed(SMALL, risk, some)))
    (notice,) = study.notices
    assert "study.yaml:7: field risk.low.weight: risk class low has weight 0" in notice
    none = "risk: {high: {under_route_loss: 0, max_under_route: 0.05}}"
    (message,) = faults(write(changed(SMALL, risk, none)))
    assert "risk: has no class with a weight above 0" in message


def test_scores_and_decisions_exclude_each_other(write: Write) -> None:
    text = changed(SMALL, "cost_usd: 0", "cost_usd: 0, decisions: routed.csv")
    (message,) = faults(write(text))
    assert "router.decisions: stands beside scores" in message
    text = changed(SMALL, "scores: scores.csv", "decisions: routed.csv, policy: both, thresholds: [1]")
    assert [message.split("field ")[1].split(": ")[0] for message in faults(write(text))] == [
        "router.thresholds",
        "router.higher_means",
        "router.policy",
    ]
    text = changed(SMALL, "scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items, ", "")
    (message,) = faults(write(text))
    assert "router.scores: is required where there are no decisions" in message
    text = changed(SMALL, "cost_usd: 0", "cost_usd: 0, kind: rules, rules: rules.yaml")
    assert any(
        "router.kind: stands beside scores: the router is run, or" in message for message in faults(write(text))
    )


def test_what_routing_costs_and_takes_is_said_not_assumed(write: Write) -> None:
    (message,) = faults(write(changed(SMALL, ", cost_usd: 0", "")))
    assert "router.cost_usd: is required" in message
    assert "write 0 if it is free" in message
    (message,) = faults(write(SMALL + "limits: {p95_task_seconds: 8}\n"))
    assert message.startswith(
        "study.yaml:6: field router.seconds: is required where limits.p95_task_seconds is set"
    )


def test_without_outcomes_the_models_and_the_rubric_are_needed(write: Write) -> None:
    text = changed(SMALL, "outcomes: outcomes.parquet\n", "")
    messages = faults(write(text))
    assert len(messages) == 2
    assert "outcomes: is missing, and these tiers name no model to call: cheap, strong" in messages[0]
    assert "rubric: is missing" in messages[1]
    assert "under outcomes (it may come after labels, routers), or a rubric" in messages[1]


def test_columns_written_the_wrong_way_round_are_named(write: Write) -> None:
    text = changed(
        SMALL, "labels: labels.csv", "labels: {path: labels.csv, columns: {query_id: id, promt: q, risk: 3}}"
    )
    assert faults(write(text)) == [
        "study.yaml:3: field labels.columns.query_id: is not a column of labels. Fix: write it the other way "
        "round, "
        "id: query_id.",
        "study.yaml:3: field labels.columns.promt: is not a column of labels. Fix: write prompt.",
        "study.yaml:3: field labels.columns.risk: is 3, not the name of a column. Fix: write the file's "
        "column name, "
        "as text.",
    ]
    text = changed(SMALL, "labels: labels.csv", "labels: {path: labels.csv, encoding: klingon}")
    assert 'labels.encoding: "klingon" is not a known text encoding' in faults(write(text))[0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a/b", "holds signs"),
        ("..", "starts or ends with a point"),
        ('"a\\u202eb"', "invisible character"),
        ('" a"', "blanks at its start or end"),
        ("x" * 101, "has 101 characters"),
        ("2026", "is 2026, not text"),
    ],
)
def test_the_name_can_be_a_folder(write: Write, name: str, problem: str) -> None:
    (message,) = faults(write(changed(SMALL, "study: small", f"study: {name}")))
    assert problem in message


def test_other_kinds_of_study_are_sent_where_they_belong(write: Write) -> None:
    path = write("study: x\nkind: reasoning-budget\narms: [{name: a}]\n")
    (message,) = faults(path)
    assert message.startswith(
        "study.yaml:2: field kind: is reasoning-budget, and this command reads routing studies"
    )
    assert "evalkit reasoning-budget" in message
    assert (
        'kind: is "routng"; allowed: routing. Fix: write routing'
        in faults(write(changed(SMALL, "routing", "routng")))[0]
    )
    assert "kind: is required. Fix: write kind: routing" in faults(write(changed(SMALL, "kind: routing\n", "")))[0]


@pytest.mark.parametrize("text", ["- a\n", "just text\n"])
def test_a_file_without_keys_is_no_study(write: Write, text: str) -> None:
    (message,) = faults(write(text))
    assert "is not a study: it holds no keys" in message
