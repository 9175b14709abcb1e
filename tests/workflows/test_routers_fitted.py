"""A router that evalkit fits on other labels, freezes, judges beside others, and that verify never runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.router_studies import KEYWORDS, NOISE, write_routers
from tests.workflows.studies import evalkit

pytest.importorskip("sklearn")
pytest.importorskip("skops")

FITTED: dict[str, Any] = {
    "name": "fitted",
    "kind": "classifier",
    "model": "models/fitted",
    "train": "train.jsonl",
    "cost_usd": 0,
    "seconds": 0,
}


def _train(folder: Path, n: int = 120) -> None:
    """Labels of other requests: those about contracts need the frontier tier."""
    import random

    draw, lines = random.Random(3), []
    for i in range(n):
        hard = i % 2 == 0
        words = " ".join(f"w{draw.randrange(5000)}" for _ in range(3))
        prompt = f"{words} {'contract' if hard else 'greeting'}"
        tier = "frontier" if hard else "cheap"
        lines.append(json.dumps({"id": f"t{i}", "prompt": prompt, "required_tier": tier, "risk": "low"}))
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A study of a fitted router, rules and noise, with the model fitted."""
    from evalkit.cli.app import main

    write_routers(tmp_path, FITTED, KEYWORDS, NOISE)
    _train(tmp_path)
    out = str(tmp_path / "models" / "fitted")
    assert main(["router", "fit", str(tmp_path / "study.yaml"), "--router", "fitted", "--out", out]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_frozen_router_is_certified_and_what_it_is_recorded(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    ran = evalkit(capsys, study)
    assert ran.code == 0, ran.err
    row = ran.result["routers"][0]
    assert (row["kind"], row["trained_on"], row["verdict"]["decision"]) == ("classifier", "other_items", "approve")
    assert row["leaks"] == []
    assert row["leaks_checked"] is True
    assert row["calibration"]["n"] == 600
    assert row["facts"]["training"]["items"] == 120
    facts = ran.result["provenance"]["routers"][0]
    assert facts["facts"]["model_sha256"] == row["facts"]["model_sha256"]
    assert facts["train"] == "train.jsonl"
    shutil.rmtree(study / "models")
    (study / "train.jsonl").unlink()
    assert main(["verify", str(ran.folder)]) == 0


def test_another_model_is_another_look(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evalkit.cli.app import main

    evalkit(capsys, study)
    _train(study, n=80)
    out = str(study / "models" / "fitted")
    assert main(["router", "fit", str(study / "study.yaml"), "--router", "fitted", "--out", out, "--force"]) == 0
    second = evalkit(capsys, study)
    assert second.result["looks"]["delta"] is None
    assert second.code == 3


def test_training_on_judged_items_is_found_in_the_model_itself(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    with (study / "train.jsonl").open("a", encoding="utf-8") as file:
        row = {"id": "t900", "prompt": "question 3 about a greeting", "required_tier": "cheap", "risk": "low"}
        file.write(json.dumps(row) + "\n")
    out = str(study / "models" / "fitted")
    assert main(["router", "fit", str(study / "study.yaml"), "--router", "fitted", "--out", out, "--force"]) == 0
    text = (study / "study.yaml").read_text(encoding="utf-8")
    (study / "study.yaml").write_text(text.replace("  train: train.jsonl\n", ""), encoding="utf-8")
    ran = evalkit(capsys, study)
    assert ran.code == 2
    assert "q3 is in training as t900 (exact)" in ran.err
    assert "field routers[0].model: " in ran.err


def test_with_three_tiers_the_share_of_tiers_is_held_against_the_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.workflows.studies import write_csv, write_study

    tiers, words = ("cheap", "mid", "frontier"), ("greeting", "invoice", "contract")
    labels, outcomes = [], []
    for i in range(300):
        k = i % 3
        row = {
            "id": f"q{i}",
            "prompt": f"note {i * 7919} on a {words[k]}",
            "required_tier": tiers[k],
            "risk": "low",
        }
        labels.append(row)
        for j, usd in enumerate((0.001, 0.006, 0.02)):
            status = "ok" if j >= k else "wrong"
            outcomes.append({"id": f"q{i}", "tier": tiers[j], "status": status, "cost_usd": usd, "task_s": 1})
    write_csv(tmp_path / "labels.csv", labels)
    write_csv(tmp_path / "outcomes.csv", outcomes)
    fitted = {"kind": "classifier", "trained_on": "cross_fitted", "cost_usd": 0, "seconds": 0}
    write_study(
        tmp_path, router=fitted, tiers=[{"name": tier} for tier in tiers],
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.1}},
    )  # fmt: skip
    ran = evalkit(capsys, tmp_path)
    (row,) = ran.result["routers"]
    found = row["calibration"]
    assert found["what"] == "share of tiers that are not enough"
    assert found["n"] == 300
    # A third needs none, half and all of the tiers above: the mean of what was observed is .5.
    assert sum(one["observed"] * one["n"] for one in found["bins"]) / 300 == pytest.approx(0.5)
    assert "share of tiers that are not enough: observed against predicted" in ran.html
