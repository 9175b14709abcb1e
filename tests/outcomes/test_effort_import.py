"""Logs of reasoning runs: which ladders they hold, what is written of one, and the figures of a real log."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.errors import InputError
from evalkit.outcomes.importers.effort import EffortColumns, EffortLog, arm_order, published_rates, read_effort

NAMES = ("sample_id", "epoch", "model", "effort", "correct", "output_tokens", "reasoning_tokens")
ROWS: list[dict[str, Any]] = [
    dict(zip(NAMES, values, strict=True))
    for values in (
        ("a", 1, "m", "high", 1, 10, 5),
        ("a", 2, "m", "high", 0, 30, 5),
        ("a", 1, "m", "low", "", "", ""),
        ("b", 1, "m", "low", "true", 7, 9),
    )
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def faults(path: Path, columns: EffortColumns | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_effort(path, columns)
    return str(caught.value)


def test_one_ladder_as_outcomes(tmp_path: Path) -> None:
    log = read_effort(write(tmp_path / "log.csv", ROWS))
    ladder = log.table(None, None)
    assert ladder.arms == ("low", "high")
    assert ladder.items == ("a", "b")
    assert ladder.columns["arm"] == ["high", "high", "low", "low"]
    assert ladder.columns["sample"] == [0, 1, 0, 0]
    assert ladder.columns["status"] == ["ok", "wrong", "error", "ok"]
    assert ladder.columns["output_tokens"] == [10, 30, None, 7]  # as the log has them, beside or inside
    assert any("1 of 4 rows are ungraded" in note for note in log.notices)


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ({"correct": "maybe"}, ("correct", '"maybe"', "line 2", "1, 0, true, false")),
        ({"sample_id": ""}, ("sample_id", "blank")),
        ({"output_tokens": "many"}, ("output_tokens", "many")),
    ],
)
def test_faults_name_their_place(tmp_path: Path, change: dict[str, Any], tokens: tuple[str, ...]) -> None:
    message = faults(write(tmp_path / "log.csv", [ROWS[0] | change, *ROWS[1:]]))
    assert all(token.replace("line 2", ":2:") in message for token in tokens), message


def test_columns_by_other_names(tmp_path: Path) -> None:
    rows = [{"q": "a", "ok": 1, "llm": "m", "thinking": 1024}, {"q": "a", "ok": 0, "llm": "m", "thinking": ""}]
    path = write(tmp_path / "log.csv", rows)
    assert "there is no column" in faults(path)
    columns = EffortColumns(id="q", mark="ok", model="llm", budget="thinking")
    assert read_effort(path, columns).table(None, None).arms == ("plain", "budget-1024")
    assert "neither a column of efforts" in faults(path, EffortColumns(id="q", mark="ok", model="llm"))
    assert "thoughts" in faults(path, EffortColumns(id="q", mark="ok", model="llm", budget="thoughts"))


def test_a_row_that_stands_twice_is_named(tmp_path: Path) -> None:
    log = read_effort(write(tmp_path / "log.csv", [*ROWS, ROWS[0]]))
    with pytest.raises(InputError, match='"a", arm "high", stands twice'):
        log.table(None, None)


def test_further_runs_are_further_samples(tmp_path: Path) -> None:
    rows = [{**row, "run_id": run} for run in ("r1", "r2") for row in ROWS]
    ladder = read_effort(write(tmp_path / "log.csv", rows)).table(None, None, ["high"])
    assert sorted(ladder.columns["sample"]) == [0, 1, 2, 3]


def test_what_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    rows = [{**row, "task": task} for task in ("maths", "code") for row in ROWS]
    log = read_effort(write(tmp_path / "log.csv", rows))
    for task, model, arms, said in (
        (None, None, (), "2 tasks: maths, code"),
        ("math", None, (), 'did you mean "maths"'),
        ("maths", "x", (), "the models are m"),
        ("maths", None, ("medium",), 'no arm "medium"'),
    ):
        with pytest.raises(InputError) as caught:
            log.table(task, model, arms)
        assert said in str(caught.value)


def test_the_budget_order() -> None:
    names = ["max", "low", "budget-4096", "plain", "budget-1024", "high", "none"]
    assert sorted(names, key=arm_order) == ["plain", "budget-1024", "budget-4096", "none", "low", "high", "max"]


def test_negative_counts_are_unknown_and_counted(tmp_path: Path) -> None:
    log = read_effort(write(tmp_path / "log.csv", [ROWS[0] | {"output_tokens": -5}, *ROWS[1:]]))
    assert np.isnan(log.numbers["output_tokens"][0])
    assert any("1 rows have output_tokens below 0 (first: line 2 (row 1), -5)" in note for note in log.notices)


# The real log


@pytest.fixture(scope="module")
def epoch(shared: Path) -> Path:
    return shared / "data" / "epoch_effort"


GPT = {"low": (0.7889, 4538), "medium": (0.9389, 7995), "high": (0.9611, 11017), "xhigh": (0.9611, 18615)}
CARD = """\
currency: USD
unit: per_1m_tokens
as_of: "2026-11-01"
source: assumed for this test
kind: assumed
models:
  openai/gpt-5.2-2025-12-11: {input: 2.00, output: 10.00}
"""


def test_the_effort_ladder_from_log_to_verdict(
    tmp_path: Path, epoch: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    arguments = ["--task", "otis_mock_aime", "--out", str(tmp_path / "runs.csv")]
    arguments += ["--tasks-out", str(tmp_path / "tasks.csv"), "--study-out", str(tmp_path / "study.yaml")]
    assert main(["import", "effort", str(epoch / "gpt52_effort_ladder.csv"), *arguments]) == 0
    (tmp_path / "prices.yaml").write_text(CARD, encoding="utf-8")
    study = tmp_path / "study.yaml"
    more = "prices: prices.yaml\nsmallest_worthwhile_gain: 15\nvalue_per_point_usd: 0.005\n"
    more += "limits: {min_pass_rate: 0.8}\n"
    study.write_text(study.read_text(encoding="utf-8") + more, encoding="utf-8")
    capsys.readouterr()
    code = main(["reasoning-budget", str(study), "--out", str(tmp_path / "run")])
    said = capsys.readouterr()
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert code == 0, said.err
    arms = {arm["name"]: arm for arm in result["arms"]}
    assert list(arms) == list(GPT)
    for name, (rate, tokens) in GPT.items():
        assert round(arms[name]["pass_rate_lower"], 4) == rate
        assert round(arms[name]["output_tokens_per_request"]) == tokens
        assert arms[name]["tasks"] == 45
    # 16 tasks pass more often at medium, one less often; the next step gains less than the study can show
    assert (arms["medium"]["flips"]["gained"], arms["medium"]["flips"]["broken"]) == (16, 1)
    assert (arms["xhigh"]["flips"]["gained"], arms["xhigh"]["flips"]["broken"]) == (1, 1)
    assert result["plateau_at"] == "medium"
    cost = arms["medium"]["cost_usd_per_request"] - arms["low"]["cost_usd_per_request"]
    assert arms["medium"]["marginal_cost_per_quality_point"] == pytest.approx(cost / 15)
    assert arms["high"]["marginal_cost_per_quality_point_reason"] == "no measurable gain"
    assert arms["xhigh"]["status"] == "dominated"
    assert result["selected"] == "high"
    # 25 rows have more reasoning than output: there it stands beside, and is billed
    assert "25 of 1,260 runs have more reasoning than output" in said.err
    assert arms["medium"]["billed_tokens_per_request"] > arms["medium"]["output_tokens_per_request"] + 1169


@pytest.mark.parametrize(
    ("model", "arms", "tasks"),
    [
        ("anthropic/claude-opus-4-5-20251101", ["plain", "budget-16000", "budget-32000"], 45),
        (
            "anthropic/claude-sonnet-4-5-20250929",
            ["plain", "budget-16000", "budget-32000", "budget-59000"],
            45,
        ),
        ("anthropic/claude-opus-4-6", ["budget-32000", "budget-64000"], 45),
    ],
)
def test_the_budget_ladder(
    tmp_path: Path, epoch: Path, capsys: pytest.CaptureFixture[str], model: str, arms: list[str], tasks: int
) -> None:
    from evalkit.cli.app import main

    arguments = ["--task", "otis_mock_aime", "--model", model, "--out", str(tmp_path / "runs.parquet")]
    arguments += ["--tasks-out", str(tmp_path / "tasks.csv"), "--study-out", str(tmp_path / "study.yaml")]
    assert main(["import", "effort", str(epoch / "claude_thinking_budget_ladder.csv"), *arguments]) == 0
    code = main(["reasoning-budget", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run")])
    assert code == 3, capsys.readouterr().err  # no limit is set
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert [arm["name"] for arm in result["arms"]] == arms
    assert {arm["tasks"] for arm in result["arms"]} == {tasks}


def test_the_sixteen_runs_that_dropped_failures_are_named(epoch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evalkit.cli.app import main

    found, total = published_rates(epoch / "runs.csv")
    assert (len(found), total) == (16, 333)
    assert (
        main(["import", "effort", str(epoch / "gpt52_effort_ladder.csv"), "--runs", str(epoch / "runs.csv")]) == 0
    )
    said = capsys.readouterr()
    assert "16 of 333 runs" in said.out
    for rate in found:
        assert rate.run in said.err
        assert rate.model in said.err
    assert "published 12.24 % is 12 of 98; of all 100 it is 12.00 %: 2 failed runs were dropped" in said.err


@pytest.fixture(scope="module")
def whole(epoch: Path) -> EffortLog:
    return read_effort(epoch / "per_sample.csv.gz")


def test_the_layout_of_every_model(whole: EffortLog) -> None:
    from evalkit.costs.settle import settle

    beside, odd = set(), 0
    for j, model in enumerate(whole.models):
        rows = whole.model == j
        found = settle(whole.numbers["output_tokens"][rows], whole.numbers["reasoning_tokens"][rows], model)
        known = ~np.isnan(found.whole)
        assert (found.whole[known] >= np.nan_to_num(whole.numbers["reasoning_tokens"][rows])[known]).all()
        odd += found.odd
        if found.beside:
            beside.add(model.partition("/")[0])
    assert beside == {"google", "grok"}
    above = whole.numbers["reasoning_tokens"] > whole.numbers["output_tokens"]
    assert int(above.sum()) + 4 == 16_976  # the four rows of negative output are unknown here
    assert odd == sum(
        int((above & (whole.model == j)).sum())
        for j, model in enumerate(whole.models)
        if model.partition("/")[0] not in beside
    )


def test_every_ladder_of_the_whole_log_is_analysed(whole: EffortLog) -> None:
    from evalkit.reasoning.analysis import analyse
    from evalkit.reasoning.data import Limits, Settings
    from tests.outcomes.effort_ladders import ladder_of_log

    assert len(whole) == 135_080
    start = time.process_time()
    judged = 0
    for task, model, arms in whole.ladders():
        data = ladder_of_log(whole, task, model, arms)
        result = analyse(data, Settings(limits=Limits(min_pass_rate=0.5), smallest_gain=0.01, value_usd=0.2))
        judged += int(data.sampled.sum())
        assert result.verdict.decision is not None
    assert judged == 135_080
    print(f"{time.process_time() - start:.1f} s")
