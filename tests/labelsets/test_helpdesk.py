"""The bundled study is what its scripts make of its sources and recordings."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.costs import Kind
from evalkit.errors import InputError
from evalkit.study import read_study
from evalkit.study.prices import read_price_card

Row = dict[str, Any]
Scripts = dict[str, ModuleType]
TIERS = ("cheap", "mid", "top")


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]


@pytest.fixture(scope="module")
def labels(helpdesk: Path) -> list[Row]:
    return rows_of(helpdesk / "labels.jsonl")


@pytest.fixture(scope="module")
def train(helpdesk: Path) -> list[Row]:
    return rows_of(helpdesk / "train.jsonl")


@pytest.fixture(scope="module")
def outcomes(helpdesk: Path) -> list[Row]:
    return rows_of(helpdesk / "outcomes.jsonl")


def test_labels_are_built_from_the_sources(scripts: Scripts, helpdesk: Path) -> None:
    build = scripts["build"]
    for name, rows in build.build(build.read_source(helpdesk / "source")).items():
        assert build.as_jsonl(rows) == (helpdesk / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("features", "tier"),
    [
        ({}, "cheap"),
        ({"options": 3}, "cheap"),
        ({"fields": 2}, "cheap"),
        ({"options": 4}, "mid"),
        ({"fields": 3}, "mid"),
        ({"verbatim": False}, "mid"),
        ({"fields": 4}, "top"),
        ({"exception": True}, "top"),
        ({"steps": 2}, "top"),
        ({"steps": 3, "verbatim": False, "options": 9}, "top"),
    ],
)
def test_the_written_rule(scripts: Scripts, features: Row, tier: str) -> None:
    easiest = {"steps": 1, "verbatim": True, "options": 0, "fields": 0, "exception": False}
    assert scripts["build"].required_tier(easiest | features) == tier


def test_the_mix(labels: list[Row], train: list[Row]) -> None:
    rows = labels + train
    assert len({row["id"] for row in rows}) == len(rows) >= 400
    assert len(labels) >= 300
    for row in rows:
        assert row["required_tier"] in TIERS
        assert row["metadata"]["label_source"].startswith("author label by the written rule")
    kinds = {(row["metadata"]["language"], row["category"]) for row in rows}
    assert len(kinds) == 2 * 6
    # Every class has easy and hard items, and the risky ones are oversampled.
    counts = Counter((row["risk"], row["required_tier"]) for row in labels)
    assert all(counts[risk, tier] >= 10 for risk in ("low", "medium", "high", "critical") for tier in TIERS)


def test_no_group_trains_and_certifies(labels: list[Row], train: list[Row]) -> None:
    assert not {row["group"] for row in labels} & {row["group"] for row in train}
    assert {row["metadata"]["split"] for row in labels} == {"certify"}
    assert {row["metadata"]["split"] for row in train} == {"train"}
    for language, category in itertools.product(("en", "ko"), {row["category"] for row in train}):
        sizes = [
            len({r["group"] for r in part if (r["metadata"]["language"], r["category"]) == (language, category)})
            for part in (train, labels)
        ]
        assert sizes[0] / sum(sizes) == pytest.approx(1 / 3, abs=0.05)


def test_weights_restore_the_assumed_traffic(labels: list[Row]) -> None:
    shares = {"low": 0.62, "medium": 0.25, "high": 0.10, "critical": 0.03}
    total = sum(row["weight"] for row in labels)
    assert total == pytest.approx(len(labels), rel=1e-5)
    for risk, share in shares.items():
        weights = [row["weight"] for row in labels if row["risk"] == risk]
        assert len(set(weights)) == 1
        assert sum(weights) / total == pytest.approx(share, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"steps": "1"}, "steps"),
        ({"verbatim": 1}, "verbatim"),
        ({"risk": "Low"}, "risk"),
        ({"prompt": "Cafe\u0301"}, "prompt"),
        ({"reference": "maybe"}, "reference"),
        ({"check": {"kind": "guess"}}, "check.kind"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_a_faulty_source_is_named(scripts: Scripts, tmp_path: Path, change: Row, field: str) -> None:
    item = {
        "id": "en-cls-001",
        "language": "en",
        "category": "classification",
        "risk": "low",
        "prompt": "Answer yes or no.",
        "check": {"kind": "choice", "options": ["yes", "no"]},
        "reference": "yes",
        "max_tokens": 8,
        **{"steps": 1, "verbatim": True, "options": 2, "fields": 0, "exception": False},
    }
    path = tmp_path / "en.jsonl"
    path.write_text(json.dumps(item) + "\n" + json.dumps(item | change) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        scripts["build"].read_source(tmp_path)
    faults = raised.value.faults
    assert {(fault.line, fault.field) for fault in faults} == {(2, field), (2, "id")}


def test_every_reply_is_there_once(labels: list[Row], outcomes: list[Row]) -> None:
    found = Counter((row["id"], row["tier"]) for row in outcomes)
    assert found == Counter((row["id"], tier) for row in labels for tier in TIERS)


def test_a_replay_of_the_recordings_gives_the_outcomes(helpdesk: Path, tmp_path: Path) -> None:
    """No model is called: prompts, keys, checks and prices as they are now give the outcomes byte for byte."""
    arguments = ["--recorded", str(helpdesk / "recordings"), "--offline", "--out", str(tmp_path), "--quiet"]
    assert main(["replay", str(helpdesk / "study.yaml"), *arguments]) == 0
    assert (tmp_path / "outcomes.jsonl").read_bytes() == (helpdesk / "outcomes.jsonl").read_bytes()


def letters(text: str) -> str:
    return "".join(ch for ch in text.casefold() if ch.isalnum())


def test_passes_hold_under_a_plainer_reading(labels: list[Row], outcomes: list[Row]) -> None:
    """Written apart from the grader: a pass has the reference's letters or its number, and no more."""
    items = {row["id"]: row for row in labels}
    passed = [row for row in outcomes if row.get("passed")]
    assert len(passed) >= 100
    for row in passed:
        item = items[row["id"]]
        kind, reference, reply = item["metadata"]["check"]["kind"], item["reference"], row["reply"]
        if kind == "number":
            (number,) = re.findall(r"-?[\d.]*\d", reply.replace(",", ""))
            assert Decimal(number) == Decimal(reference.replace(",", ""))
        elif kind == "json":
            assert json.loads(reply) == json.loads(reference)
        else:
            assert letters(reply) == letters(reference)


def test_right_replies_are_not_failed(labels: list[Row], outcomes: list[Row]) -> None:
    items = {row["id"]: row for row in labels}
    for row in outcomes:
        kind = items[row["id"]]["metadata"]["check"]["kind"]
        if kind != "json" and row["reply"] == items[row["id"]]["reference"] and row["status"] != "truncated":
            assert row["passed"] is True


def test_costs_are_tokens_times_the_assumed_prices(outcomes: list[Row]) -> None:
    prices = {"cheap": ("0.05", "0.20"), "mid": ("0.25", "1.00"), "top": ("1.50", "6.00")}
    for row in outcomes:
        price_in, price_out = map(Decimal, prices[row["tier"]])
        exact = (row["input_tokens"] * price_in + row["output_tokens"] * price_out) / 1_000_000
        assert Decimal(str(row["cost_usd"])) == exact


def test_recordings_are_of_these_items_and_models(labels: list[Row], helpdesk: Path) -> None:
    study = read_study(helpdesk / "study.yaml")
    path = helpdesk / "recordings" / "replies.jsonl.gz"
    assert path.stat().st_size < 500_000
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert {(line["item"], line["candidate"]) for line in lines} == {
        (row["id"], tier) for row in labels for tier in TIERS
    }
    items = {row["id"]: row for row in labels}
    models = {tier.name: tier.model for tier in study.tiers}
    for line in lines:
        asked, reply = line["request"], line["reply"]
        assert asked["model"] == models[line["candidate"]]
        assert asked["files"]["weights"] == study.calls.local_models[asked["model"]].sha256
        assert asked["messages"][-1] == {"role": "user", "content": items[line["item"]]["prompt"]}
        assert reply["served_model"] == asked["model"].removeprefix("local/")
        assert 0 < reply["usage"]["completion_tokens"] <= asked["params"]["max_tokens"]
        assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_the_study_says_what_its_labels_and_prices_are(helpdesk: Path) -> None:
    study = read_study(helpdesk / "study.yaml")
    assert (study.labels_kind, study.router.trained_on) == ("author_rule", "other_items")
    card = read_price_card(helpdesk / "prices.yaml")
    for tier in study.tiers:
        price = card.price(str(tier.model))
        assert price is not None
        assert price.period.kind is Kind.ASSUMED


def test_scores_are_for_the_certifying_items_only(labels: list[Row], helpdesk: Path) -> None:
    with (helpdesk / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [row["id"] for row in labels]
    assert all(re.fullmatch(r"[01]\.\d{6}", row["score"]) for row in rows)


def test_the_router_is_the_one_trained_on_the_training_items(scripts: Scripts, helpdesk: Path) -> None:
    router = scripts["train_router"]
    again = router.router_scores(router.read_rows("train.jsonl"), router.read_rows("labels.jsonl"))
    with (helpdesk / "scores.csv").open(encoding="utf-8", newline="") as file:
        frozen = [float(row["score"]) for row in csv.DictReader(file)]
    # Another linear algebra library may stop the fit a little earlier or later.
    assert again == pytest.approx(frozen, abs=1e-3)
