"""A routing study is read whole: every value lands where it belongs, and its fingerprint is what it says."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.study import RoutingStudy, override, read_study
from evalkit.study.models import Limits
from tests.study.routing_studies import FULL, SMALL, Write, changed, faults


def test_every_value_lands_where_it_belongs(write: Write) -> None:
    path = write(FULL)
    study = read_study(path)
    base = path.parent
    assert study.name == "support-routing"
    assert study.kind == "routing"
    assert study.description == "Which support requests may stay on the cheap model"
    assert (study.path, study.base) == (path, base)
    assert study.labels.path == base / "labels.csv"
    assert study.labels.address == str(base / "labels.csv")
    assert study.labels.columns == {"id": "query_id", "prompt": "query"}
    assert study.labels.encoding == "cp949"
    assert study.labels_kind == "author_rule"
    assert study.outcomes is not None
    assert study.outcomes.path == base / "outcomes.parquet"
    assert study.tier_names == ("cheap", "mid", "frontier")
    assert study.tiers[0].model == "openai/gpt-5-nano"
    assert study.tiers[0].params == {"max_tokens": 400, "temperature": 0.5}
    assert study.tiers[1].model is None
    assert study.tiers[1].cost_usd == Decimal("0.004")
    assert study.prices == base / "prices.yaml"
    assert study.rubric == base / "rubrics/support.yaml"
    assert study.missing_outcomes == "unanswered"
    assert study.pass_at == 0.8
    router = study.router
    assert router.policy == "both"
    assert router.scores is not None
    assert router.scores.columns == {"score_cheap": "s1", "id": "query_id"}
    assert router.higher_means == "needs_stronger"
    assert router.rule == "score >= threshold goes up"
    assert router.trained_on == "cross_fitted"
    assert router.cost_usd == Decimal("0.0001")
    assert router.seconds == 0.02
    assert router.thresholds == (0.41, 0.6)
    assert router.missing_scores == "escalate"
    assert router.probability is True
    assert router.routers == 3
    assert router.decisions is None
    assert study.risk_classes == ("low", "medium", "critical")
    low, medium, critical = study.risk.values()
    assert (low.under_route_loss, low.max_under_route, low.gate_on, low.weight) == (0.05, 0.1, "estimate", 0.05)
    assert (medium.max_under_route, medium.weight, medium.certified) == (None, 1.0, False)
    assert (critical.max_under_route, critical.gate_on, critical.weight) == (0.0, "bound", 25.0)
    assert [entry.certified for entry in study.risk.values()] == [False, False, True]
    assert study.contract_failure_cost == 0.02
    assert study.limits == Limits(0.85, 0.006, 8.0, 0.95)
    assert (study.confidence, study.looks, study.seed) == (0.9, 2, 7)
    assert (study.near_total_escalation, study.bootstrap_replicates) == (0.97, 10_000)
    assert study.notices == ()


def test_what_is_left_out_has_its_default(write: Write) -> None:
    study = read_study(write(SMALL))
    assert study.description is None
    assert study.labels_kind == "human"
    assert study.missing_outcomes == "error"
    assert study.pass_at == 1.0
    assert (study.prices, study.rubric) == (None, None)
    router = study.router
    assert (router.policy, router.seconds, router.thresholds) == ("direct", None, None)
    assert router.missing_scores is None
    assert (router.probability, router.routers) == (False, 1)
    assert router.cost_usd == 0
    assert router.rule == "score < threshold goes up"
    assert study.contract_failure_cost == 0.0
    assert study.limits == Limits()
    assert (study.confidence, study.looks, study.seed) == (0.95, 1, 0)
    assert (study.near_total_escalation, study.bootstrap_replicates) == (0.95, 2000)


def test_labels_may_come_from_the_hub(write: Write) -> None:
    address = f"hf://org/name@{'0' * 40}/test"
    study = read_study(
        write(changed(SMALL, "labels: labels.csv", f"labels: {{path: {address}, columns: {{id: qid}}}}"))
    )
    assert (study.labels.path, study.labels.hf, study.labels.address) == (None, address, address)
    assert study.labels.columns == {"id": "qid"}
    assert faults(write(changed(SMALL, "outcomes.parquet", address))) == [
        "study.yaml:4: field outcomes: is a Hub address, and only labels are read from the Hub. Fix: name a file."
    ]


def test_files_may_be_missing_where_only_the_tiers_are_needed(write: Write) -> None:
    text = changed(SMALL, "outcomes: outcomes.parquet", "outcomes: later.parquet\nprices: later.yaml")
    path = write(text)
    assert len(faults(path)) == 2
    study = read_study(path, files_exist=False)
    assert study.outcomes is not None
    assert study.outcomes.path == path.parent / "later.parquet"
    assert study.prices == path.parent / "later.yaml"


def test_decisions_take_the_place_of_scores(write: Write) -> None:
    text = changed(
        SMALL,
        "scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items",
        "decisions: routed.csv, policy: cascade",
    )
    study = read_study(write(text))
    assert study.router.decisions is not None
    assert study.router.scores is None
    assert study.router.trained_on is None
    assert study.router.rule == "as the decisions say"


def test_names_are_normalised(write: Write) -> None:
    decomposed = "\u1100\u1161"
    text = changed(SMALL, "{name: cheap}", f"{{name: {decomposed}}}")
    study = read_study(write(text.replace("{high:", f"{{{decomposed}:")))
    assert study.tier_names[0] == "\uac00"
    assert study.risk_classes == ("\uac00",)
    same = changed(SMALL, "{name: cheap}, {name: strong}", f"{{name: {decomposed}}}, {{name: \uac00}}")
    assert "names a tier on line 5 already" in faults(write(same))[0]


def test_the_fingerprint_hashes_what_the_study_says(write: Write, tmp_path: Path) -> None:
    first = read_study(write(FULL)).fingerprint
    assert len(first) == 64
    same = "# note\n" + FULL.replace("pass_at: 0.8\n", "").replace("seed: 7", "pass_at: 0.80\nseed: 7")
    assert read_study(write(same)).fingerprint == first
    explicit = changed(SMALL, "kind: routing", "kind: routing\nseed: 0\nlabels_kind: human\nconfidence: 0.95")
    assert read_study(write(explicit)).fingerprint == read_study(write(SMALL)).fingerprint
    for old, new in [
        ("seed: 7", "seed: 8"),
        ("0.41", "0.42"),
        ("cost_usd: 0.0001", "cost_usd: 0.0002"),
        ("max_under_route: 0,", "max_under_route: 0.01,"),
        ("{id: query_id, prompt: query}", "{id: query_id, prompt: text}"),
        ("temperature: 0.5", "temperature: 0.6"),
        ("author_rule", "human"),
    ]:
        assert read_study(write(changed(FULL, old, new))).fingerprint != first


def test_the_folder_of_a_study_is_no_part_of_it(write: Write, tmp_path: Path) -> None:
    first = read_study(write(FULL))
    other = tmp_path / "moved"
    other.mkdir()
    for name in ("labels.csv", "outcomes.parquet", "scores.csv", "prices.yaml"):
        (other / name).touch()
    (other / "rubrics").mkdir()
    (other / "rubrics" / "support.yaml").touch()
    (other / "study.yaml").write_text(FULL, encoding="utf-8")
    assert read_study(other / "study.yaml").fingerprint == first.fingerprint


def test_the_order_of_tiers_and_of_classes_is_content(write: Write) -> None:
    risk = "risk: {a: {under_route_loss: 1, max_under_route: 0}, b: {under_route_loss: 0.5}}"
    back = "risk: {b: {under_route_loss: 0.5}, a: {under_route_loss: 1, max_under_route: 0}}"
    old = "risk: {high: {under_route_loss: 1, max_under_route: 0.05}}"
    first = read_study(write(changed(SMALL, old, risk)))
    second = read_study(write(changed(SMALL, old, back)))
    assert (first.risk_classes, second.risk_classes) == (("a", "b"), ("b", "a"))
    assert first.fingerprint != second.fingerprint


def test_a_study_cannot_be_changed_after_reading(write: Write) -> None:
    study = read_study(write(SMALL))
    with pytest.raises(dataclasses.FrozenInstanceError):
        study.seed = 3  # type: ignore[misc]


@pytest.fixture
def small(write: Write) -> RoutingStudy:
    return read_study(write(SMALL))


def test_options_replace_what_the_file_says(small: RoutingStudy) -> None:
    changed_study = override(small, threshold="0.25", seed=9)
    assert changed_study.router.thresholds == (0.25,)
    assert changed_study.seed == 9
    assert changed_study.fingerprint != small.fingerprint
    assert small.router.thresholds is None
    assert override(small).fingerprint == small.fingerprint
    assert override(small, threshold=0.25, seed=9) == changed_study
    assert override(small, threshold=["0.25"], seed=9) == changed_study


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "abc", "", "0.3,nan", "1_0"])
def test_a_threshold_option_that_is_no_finite_number_is_named(small: RoutingStudy, value: str) -> None:
    with pytest.raises(InputError) as caught:
        override(small, threshold=value)
    assert "field --threshold: " in str(caught.value)
    assert value.split(",")[-1] in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_parsed_threshold_option_is_checked_too(small: RoutingStudy, value: float) -> None:
    with pytest.raises(InputError, match=rf'field --threshold: "{value}" is not a finite number'):
        override(small, threshold=value)


def test_options_have_to_fit_the_study(small: RoutingStudy, write: Write) -> None:
    with pytest.raises(InputError, match="field --threshold: has 2 thresholds for 2 tiers"):
        override(small, threshold=[0.3, 0.6])
    with pytest.raises(InputError, match="field --seed: is -1"):
        override(small, seed=-1)
    decided = changed(
        SMALL,
        "scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items",
        "decisions: routed.csv",
    )
    with pytest.raises(InputError, match="the study judges decisions, which have no threshold"):
        override(read_study(write(decided)), threshold=0.3)
