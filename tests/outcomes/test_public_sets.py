"""Public sets, imported by the command line as docs/importing.md shows, give their published figures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evalkit.labels.read import read_labels
from evalkit.outcomes.derive import required_tiers
from evalkit.outcomes.figures import item_passes, oracle_share, pass_table, tier_totals
from evalkit.outcomes.rates import pass_rate
from evalkit.outcomes.read import read_outcomes


def evalkit(*arguments: object, cwd: Path) -> str:
    """Run the real command; its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", "from evalkit.cli.app import main; main()", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_routellm_mmlu(shared: Path, tmp_path: Path) -> None:
    data = shared / "data" / "routellm" / "mmlu"
    order = (data / "domains_order.txt").read_text(encoding="utf-8").split()
    files = [data / f"mmlu_{name}.csv" for name in order]
    said = evalkit(
        "import", "wide", *files, "--id-from-row",
        "--tier", "cheap=mistralai/Mixtral-8x7B-Instruct-v0.1", "--tier", "frontier=gpt-4-1106-preview",
        "--keep", "prompt=prompt", "--keep", "category=@file", "--labels-out", "items.jsonl",
        "--exclude", data / "contaminated_prompts.jsonl", "--exclude-column", "eval_prompt",
        "--exclude-on", "prompt", "--out", "outcomes.parquet",
        cwd=tmp_path,
    )  # fmt: skip
    assert "28,074 rows, 14,037 items, 2 tiers" in said
    said = evalkit(
        "labels", "derive", "outcomes.parquet", "--tiers", "cheap,frontier", "--labels", "items.jsonl",
        "--risk", "standard", "--out", "labels.jsonl",
        cwd=tmp_path,
    )  # fmt: skip
    assert "derived, not judged by people" in said
    labels = read_labels(tmp_path / "labels.jsonl", tiers=("cheap", "frontier"), risk_classes=("standard",))
    outcomes = read_outcomes(tmp_path / "outcomes.parquet", ids=labels.ids, tiers=labels.tiers)
    assert len(labels) == 14_037
    assert pass_rate(outcomes, 0).rate == pytest.approx(0.680915, abs=5e-7)
    assert pass_rate(outcomes, 1).rate == pytest.approx(0.805870, abs=5e-7)
    table = pass_table(outcomes, 0, 1)
    assert (table.both, table.weak_only, table.strong_only, table.neither) == (8816, 742, 2496, 1983)
    oracle = oracle_share(outcomes)
    assert oracle.solved == pytest.approx(0.858730, abs=5e-7)
    assert oracle.by_tier[1] == pytest.approx(0.177816, abs=5e-7)
    assert np.bincount(labels.required).tolist() == [8816 + 742, 2496, 1983]
    assert (labels.required == required_tiers(outcomes)).all()
    assert labels.metadata is not None
    assert {m["labels_kind"] for m in labels.metadata} == {"derived"}
    assert labels.category is not None
    assert len(set(labels.category)) == 57
    said = evalkit(
        "labels", "check", "labels.jsonl", "--tiers", "cheap,frontier", "--risk-classes", "standard",
        "--json", "check.json",
        cwd=tmp_path,
    )  # fmt: skip
    assert labels.fingerprint in said
    assert json.loads((tmp_path / "check.json").read_text(encoding="utf-8"))["needs"] == {"standard": 2496}


def test_superhard_matrix(shared: Path, tmp_path: Path) -> None:
    source = shared / "data" / "superhard_matrix" / "matrix_superhard.json"
    said = evalkit(
        "import", "matrix", source, "--ok", "ok", "--cost", "usd", "--latency-ms", "lat", "--out", "o.parquet",
        cwd=tmp_path,
    )  # fmt: skip
    assert "952 rows, 56 items, 17 tiers" in said
    models = list(json.loads(source.read_text(encoding="utf-8")))
    outcomes = read_outcomes(tmp_path / "o.parquet", ids=None, tiers=models)
    assert int(item_passes(outcomes).any(axis=1).sum()) == 46
    assert oracle_share(outcomes).solved == 46 / 56
    assert outcomes.task_s[outcomes.ids.index("sh007"), 0, 0] == 113.03


@pytest.mark.parametrize("name", ["results_2026-08-19.json", "results_fresh-16k-2026-08-20.json"])
def test_omnisbench(shared: Path, tmp_path: Path, name: str) -> None:
    source = shared / "data" / "omnisbench" / name
    evalkit(
        "import", "long", source, "--records", "items", "--id", "item_id", "--tier-column", "policy",
        "--ok", "passed", "--tier", "cheap=always_cheap", "--tier", "frontier=always_big",
        "--model", "chosen_model", "--cost", "cost_usd", "--input-tokens", "input_tokens",
        "--output-tokens", "output_tokens", "--latency-ms", "latency_ms", "--reply", "response_text",
        "--out", "o.jsonl",
        cwd=tmp_path,
    )  # fmt: skip
    outcomes = read_outcomes(tmp_path / "o.jsonl", ids=None, tiers=("cheap", "frontier"))
    published = {row["policy"]: row for row in json.loads(source.read_text(encoding="utf-8"))["leaderboard"]}
    for tier, policy in enumerate(("always_cheap", "always_big")):
        totals, row = tier_totals(outcomes, tier), published[policy]
        assert totals.items == row["n"]
        assert totals.pass_rate.lower == pytest.approx(row["quality"], rel=1e-12)
        assert totals.cost_usd_total == pytest.approx(row["total_cost_usd"], rel=1e-12)
        assert totals.cost_usd_per_request == pytest.approx(row["avg_cost_usd"], rel=1e-12)
    assert outcomes.model == (("openai/gpt-5-nano",), ("anthropic/claude-opus-5",))


def test_a_labelled_wide_json_list(shared: Path, tmp_path: Path) -> None:
    source = shared / "data" / "superhard_matrix" / "labelset_export.json"
    evalkit(
        "import", "wide", source, "--id", "id", "--tier", "cheap=cheap_correct", "--tier", "strong=strong_correct",
        "--cost", "cheap=cheap_usd", "--cost", "strong=strong_usd", "--keep", "prompt=prompt",
        "--keep", "category=discipline", "--labels-out", "items.csv", "--out", "o.csv",
        cwd=tmp_path,
    )  # fmt: skip
    records = json.loads(source.read_text(encoding="utf-8"))
    outcomes = read_outcomes(tmp_path / "o.csv", ids=[r["id"] for r in records], tiers=("cheap", "strong"))
    assert outcomes.passed[:, 0, 0].tolist() == [r["cheap_correct"] for r in records]
    assert outcomes.cost_usd[:, 1, 0].tolist() == [r["strong_usd"] for r in records]
    evalkit(
        "labels", "derive", "o.csv", "--tiers", "cheap,strong", "--labels", "items.csv", "--risk", "all",
        "--out", "labels.csv",
        cwd=tmp_path,
    )  # fmt: skip
    labels = read_labels(tmp_path / "labels.csv", tiers=("cheap", "strong"), risk_classes=("all",))
    assert list(labels.prompts) == [r["prompt"] for r in records]
    assert Counter(labels.category or ()) == Counter(r["discipline"] for r in records)
