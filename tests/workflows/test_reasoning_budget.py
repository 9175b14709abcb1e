"""reasoning-budget from files to files, through the command line: verdicts, exit codes, what is written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from tests.workflows.ladders import ARMS, passing, reasoning_budget, write_ladder, write_runs
from tests.workflows.studies import write_csv


@pytest.fixture(autouse=True)
def _fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def arm(result: dict[str, Any], name: str) -> dict[str, Any]:
    return next(a for a in result["arms"] if a["name"] == name)


def test_the_least_costly_arm_that_meets_every_limit_is_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path)
    write_ladder(tmp_path)
    ran = reasoning_budget(
        capsys, tmp_path, "--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "s.md")
    )
    result = ran.result
    assert ran.code == 0, ran.out + ran.err
    assert result["schema"] == "evalkit.reasoning-budget/1"
    assert result["verdict"]["decision"] == "approve"
    assert (result["selected"], result["candidate"], result["plateau_at"]) == ("think-1k", "think-1k", "think-1k")
    assert result["verdict"]["uncertified"] == ["low"]
    assert {g["name"]: g["status"] for g in result["gates"]} == {
        "risk_failure:high": "certified",
        "pass_rate": "certified",
        "p95_task": "certified",
    }
    plain, think = arm(result, "plain"), arm(result, "think-1k")
    assert (plain["pass_rate_lower"], think["pass_rate_lower"]) == (0.75, 1.0)
    assert plain["risk_failure"]["high"] == {
        "tasks": 200, "failed": 100, "rate": 0.5, "upper_bound": pytest.approx(0.5603, abs=1e-4), "n": 200.0,
        "n_is": "tasks",
    }  # fmt: skip
    assert (think["billed_tokens_per_request"], think["reasoning_tokens_per_request"]) == (450, 380)
    assert think["flips"] == {"gained": 100, "broken": 0, "gained_tasks": 100.0, "broken_tasks": 0.0}
    # 25 points for .003 USD
    assert think["marginal_cost_per_quality_point"] == pytest.approx(0.00012)
    assert think["net_benefit_vs_previous"]["decision"] == "worth it"
    assert think["net_benefit_vs_previous"]["value"] == pytest.approx(25 * 0.002 - 0.003)
    assert arm(result, "think-4k")["status"] == "dominated"
    assert arm(result, "think-4k")["net_benefit_vs_previous"]["decision"] == "not worth it"
    assert "Choose think-1k" in ran.out
    assert "APPROVE" in ran.html
    rows = [
        json.loads(line) for line in gzip.decompress((ran.folder / "items.jsonl.gz").read_bytes()).splitlines()
    ]
    assert len(rows) == 400
    assert rows[1]["arms"]["plain"] == {
        "passed": 0.0, "answered": 1.0, "runs": 1, "cost_usd": 0.001, "task_s": 0.5, "status": "wrong",
    }  # fmt: skip
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suite.attrib["name"] == "evalkit reasoning-budget"
    assert not list(suite.iter("failure"))
    assert "Choose think-1k" in (tmp_path / "s.md").read_text(encoding="utf-8")


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 80)
    write_ladder(tmp_path)
    names = ("report.html", "result.json", "items.jsonl.gz")
    first = reasoning_budget(capsys, tmp_path)
    before = {name: (first.folder / name).read_bytes() for name in names}
    second = reasoning_budget(capsys, tmp_path)
    assert {name: (second.folder / name).read_bytes() for name in names} == before


def test_too_few_tasks_are_insufficient_evidence_and_say_how_many_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path, 48)
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 3
    assert ran.result["selected"] is None
    assert ran.result["candidate"] == "think-1k"
    gate = next(g for g in ran.result["gates"] if g["name"] == "risk_failure:high")
    # 24 tasks of the class; 5 % at .05 / 3 takes 80 without a failure
    assert (gate["status"], gate["n"], gate["missing_n"]) == ("insufficient", 24, 56)
    assert "59" in " ".join(ran.result["evidence_limits"])


def test_where_every_arm_breaks_a_limit_the_ladder_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path, outcome=lambda i, a, s: passing(i, a, s) | {"status": "ok" if i % 3 else "wrong"})
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 1
    assert ran.result["verdict"]["reasons"][0].startswith("Every arm breaks a limit")
    assert "Choose none of these arms" in ran.out


def test_a_second_look_certifies_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path)
    write_ladder(tmp_path)
    assert reasoning_budget(capsys, tmp_path).code == 0
    ran = reasoning_budget(capsys, tmp_path, "--seed", "5")
    assert ran.code == 3
    assert ran.result["guarantee"] is None
    assert ran.result["plateau_at"] is None
    assert arm(ran.result, "think-1k")["net_benefit_vs_previous"] is None


def test_runs_of_one_task_are_one_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 40, samples=10)
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 3  # 400 runs, 40 tasks
    assert all(g["n"] <= 40 for g in ran.result["gates"])


def test_unanswered_runs_are_failures_of_the_gates_and_billed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def outcome(i: int, name: str, s: int) -> dict[str, Any]:
        row = passing(i, name, s)
        return row | {"status": "budget_exhausted", "reply": ""} if name == "think-1k" and i % 5 == 0 else row

    write_runs(tmp_path, outcome=outcome)
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    think = arm(ran.result, "think-1k")
    assert (think["pass_rate"], think["pass_rate_lower"], think["pass_rate_upper"]) == (1.0, 0.8, 1.0)
    assert (think["budget_exhausted"], think["cost_usd_per_request"]) == (80, 0.004)
    assert ran.result["selected"] == "think-4k"
    assert "80 of 400 runs used up their budget" in ran.err
    assert "max_tokens" in ran.err


def test_everything_failed_is_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 30, outcome=lambda i, a, s: {"status": "error", "error": "HTTP 401 invalid key"})
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 3
    assert "nothing was scored; first error: HTTP 401 invalid key" in ran.result["verdict"]["reasons"][0]
    assert "nothing was scored" in ran.html


def test_an_unknown_cost_is_never_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(
        tmp_path,
        outcome=lambda i, a, s: passing(i, a, s) | ({"cost_usd": ""} if a == "think-1k" and i == 7 else {}),
    )
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    think = arm(ran.result, "think-1k")
    assert (think["cost_usd_per_request"], think["status"]) == (None, None)
    assert think["cost_usd_per_request_reason"] == "1 costs unknown"
    assert think["net_benefit_vs_previous_reason"] == "some costs are unknown"
    assert ran.result["selected"] == "think-4k"  # the cheaper one cannot be shown to be so
    assert "n/a" in ran.html


CARD = """\
currency: USD
unit: per_1m_tokens
as_of: "2026-11-01"
source: assumed
kind: assumed
models:
  google/gemini-x: {input: 2.00, output: 12.00}
  openai/gpt-x: {input: 2.00, output: 12.00}
"""


def test_reasoning_beside_the_output_is_priced_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def outcome(i: int, name: str, s: int) -> dict[str, Any]:
        beside = name == "beside"
        return {
            "model": "google/gemini-x" if beside else "openai/gpt-x",
            "status": "ok",
            "input_tokens": 300,
            "output_tokens": 200 if beside else 900,
            "reasoning_tokens": 700,
            "task_s": 1,
        }

    write_runs(tmp_path, 60, arms=("inside", "beside"), outcome=outcome)
    (tmp_path / "prices.yaml").write_text(CARD, encoding="utf-8")
    write_ladder(tmp_path, arms=[{"name": "inside"}, {"name": "beside"}], prices="prices.yaml", risk=None)
    write_csv(tmp_path / "tasks.csv", [{"id": f"t{i}"} for i in range(60)])
    ran = reasoning_budget(capsys, tmp_path)
    for name in ("inside", "beside"):
        seen = arm(ran.result, name)
        assert seen["cost_usd_per_request"] == pytest.approx(0.0114)  # 300 x 2 + 900 x 12, per million
        assert seen["billed_tokens_per_request"] == 1200
    assert arm(ran.result, "beside")["output_tokens_per_request"] == 200
    assert "google/gemini-x: reasoning is counted beside the output (60 of 60 runs" in ran.err


@pytest.mark.parametrize("own", [False, True], ids=["the base alone", "a card above it"])
def test_prices_of_the_base_say_which_card_priced_each_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own: bool
) -> None:
    def outcome(i: int, name: str, s: int) -> dict[str, Any]:
        model = {"nano": "openai/gpt-5-nano", "x": "openai/gpt-x"}[name]
        return {"model": model, "status": "ok", "input_tokens": 1000, "output_tokens": 100, "task_s": 1}

    write_runs(tmp_path, 20, arms=("nano", "x"), outcome=outcome)
    (tmp_path / "prices.yaml").write_text(CARD.replace("kind: assumed", "kind: assumed\nbase: genai-prices"))
    prices = "prices.yaml" if own else "genai-prices"
    write_ladder(tmp_path, arms=[{"name": "nano"}, {"name": "x"}], prices=prices, risk=None)
    write_csv(tmp_path / "tasks.csv", [{"id": f"t{i}"} for i in range(20)])
    ran = reasoning_budget(capsys, tmp_path)
    assert arm(ran.result, "nano")["cost_usd_per_request"] == pytest.approx(0.00009)  # .05 and .4 per million
    unknown = arm(ran.result, "x")
    models = ran.result["provenance"]["prices"]["models"]
    assert models["openai/gpt-5-nano"]["card"] == "genai-prices"
    assert models["openai/gpt-5-nano"]["kind"] == "cited"
    if own:
        assert unknown["cost_usd_per_request"] == pytest.approx(0.0032)
        assert (models["openai/gpt-x"]["card"], models["openai/gpt-x"]["kind"]) == ("prices.yaml", "assumed")
    else:
        assert unknown["cost_usd_per_request"] is None
        assert "openai/gpt-x has no price" in ran.err


class TestMadeArms:
    def test_a_majority_costs_all_its_runs(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        def outcome(i: int, name: str, s: int) -> dict[str, Any]:
            ok = s < 2 or i % 2  # run 2 of every other task is wrong, and the majority right
            said = {"status": "ok", "reply": "<think>x</think> A "} if ok else {"status": "wrong", "reply": "b"}
            return passing(i, "plain", s) | said

        write_runs(tmp_path, 60, arms=("plain",), samples=3, outcome=outcome)
        write_ladder(tmp_path, arms=[{"name": "plain"}, {"name": "vote", "of": "plain", "vote": 3}])
        result = reasoning_budget(capsys, tmp_path).result
        vote = arm(result, "vote")
        assert arm(result, "plain")["pass_rate_lower"] == pytest.approx(5 / 6)
        assert (vote["pass_rate_lower"], vote["cost_usd_per_request"], vote["runs"]) == (1.0, 0.003, 60)
        assert vote["p95_task_s"] == 0.5  # at once
        assert vote["requested_budget"] == "majority of 3 runs of plain"

    def test_a_majority_without_replies_is_an_input_error(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_runs(tmp_path, 5, arms=("plain",), samples=3, outcome=lambda i, a, s: {"status": "ok"})
        write_ladder(tmp_path, arms=[{"name": "plain"}, {"name": "vote", "of": "plain", "vote": 3}])
        ran = reasoning_budget(capsys, tmp_path)
        assert ran.code == 2
        assert "no column reply" in ran.err
        assert ran.wrote_nothing()

    def test_a_loop_stops_at_the_first_reply_that_keeps_its_contract(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def outcome(i: int, name: str, s: int) -> dict[str, Any]:
            status = "contract_fail" if s == 0 else "ok" if i % 2 else "wrong"
            return passing(i, "plain", s) | {"status": status}

        write_runs(tmp_path, 60, arms=("plain",), samples=2, outcome=outcome)
        loop = {"name": "loop", "of": "plain", "loop": 2, "check_usd": 0.0001, "check_seconds": 0.25}
        write_ladder(tmp_path, arms=[{"name": "plain"}, loop])
        seen = arm(reasoning_budget(capsys, tmp_path).result, "loop")
        # a wrong reply that keeps its contract ends the loop: the check does not know what is right
        assert seen["pass_rate_lower"] == 0.5
        assert seen["cost_usd_per_request"] == pytest.approx(0.0022)
        assert seen["p95_task_s"] == pytest.approx(1.5)

    def test_what_an_arm_declines_goes_to_its_fallback(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def outcome(i: int, name: str, s: int) -> dict[str, Any]:
            row = passing(i, name, s)
            return row | {"status": "no_final_answer"} if name == "plain" and i % 4 == 1 else row

        write_runs(tmp_path, 80, outcome=outcome)
        arms = [
            {"name": "plain", "declines_as": "no_final_answer", "fallback": "think-4k"},
            {"name": "think-1k"},
            {"name": "think-4k"},
        ]
        write_ladder(tmp_path, arms=arms)
        plain = arm(reasoning_budget(capsys, tmp_path).result, "plain")
        assert (plain["abstained"], plain["pass_rate_lower"]) == (20, 1.0)
        assert plain["cost_usd_per_request"] == pytest.approx(0.001 + 0.25 * 0.02)

    def test_a_fallback_that_nobody_graded_leaves_the_task_unanswered(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def outcome(i: int, name: str, s: int) -> dict[str, Any]:
            return passing(i, name, s) | ({"status": "no_final_answer"} if i % 4 == 1 else {})

        write_runs(tmp_path, 80, arms=("plain",), outcome=outcome)
        person = {
            "name": "plain",
            "declines_as": ["no_final_answer"],
            "fallback": {"cost_usd": 2.0, "seconds": 600},
        }
        write_ladder(tmp_path, arms=[person])
        ran = reasoning_budget(capsys, tmp_path)
        plain = arm(ran.result, "plain")
        assert (plain["abstained"], plain["pass_rate_lower"], plain["pass_rate_upper"]) == (20, 0.75, 1.0)
        assert plain["cost_usd_per_request"] == pytest.approx(0.501)
        assert any("was not measured" in said for said in ran.result["evidence_limits"])


class TestOnTheWire:
    """Case B04: arms that were one on the wire are one arm, with a warning."""

    def test_recorded_bodies(self, tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
        case = shared / "cases" / "B04-effort-dropped"
        rows = [json.loads(line) for line in (case / "arms.jsonl").read_text(encoding="utf-8").splitlines()]
        tokens = {row["arm"]: row["reasoning_tokens"] for row in rows}
        write_runs(
            tmp_path,
            3,
            arms=tuple(tokens),
            outcome=lambda i, name, s: {"status": "ok", "cost_usd": 0.01, "reasoning_tokens": tokens[name][i]},
        )
        arms = [
            {
                "name": DoubleQuotedScalarString(row["arm"]),  # "off" is a truth value to YAML
                "effort": row["requested"]["reasoning_effort"],
                "sent": row["sent"],
            }
            for row in rows
        ]
        write_ladder(tmp_path, arms=arms)
        ran = reasoning_budget(capsys, tmp_path)
        expect = json.loads((case / "expect.json").read_text(encoding="utf-8"))
        assert len(ran.result["arms"]) == expect["values"]["distinct_arms"]
        for group in expect["message_must_contain"]:
            assert any(all(token in line for token in group) for line in ran.err.splitlines()), group
        (one,) = ran.result["arms"]
        assert (one["name"], one["merged"], one["runs"]) == ("low", ["high", "off"], 9)
        assert one["requested_budget"] == "low effort"
        assert one["sent"] == rows[0]["sent"]
        assert "low (= high, off)" in ran.html


def test_one_arm_one_task_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 1, arms=("plain",))
    write_ladder(tmp_path, arms=[{"name": "plain"}])
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 3
    assert ran.result["minimum_detectable_gain_points"] is None
    assert ran.result["minimum_detectable_gain_points_reason"] == "there is one arm"


def test_equal_arms_show_no_measurable_gain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, outcome=lambda i, a, s: passing(i, "think-1k", s))
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.result["selected"] == "plain"
    assert [a["status"] for a in ran.result["arms"]] == ["frontier", "dominated", "dominated"]
    assert ran.result["plateau_at"] == "plain"


def test_the_other_kind_of_study_is_sent_to_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_runs(tmp_path, 3)
    write_ladder(tmp_path, kind="routing")
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 2
    assert "evalkit route-sweep" in ran.err


def test_faults_of_every_file_come_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 4)
    write_ladder(tmp_path)
    text = (tmp_path / "runs.csv").read_text(encoding="utf-8")
    text = text.replace("t3,plain", "t9,plain").replace(",wrong,", ",wronk,")
    (tmp_path / "runs.csv").write_text(text, encoding="utf-8")
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 2
    assert "t9" in ran.err
    assert "wronk" in ran.err
    assert ran.wrote_nothing()


def test_quiet_prints_the_choice_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path)
    write_ladder(tmp_path)
    ran = reasoning_budget(capsys, tmp_path, "--quiet", "--json", str(tmp_path / "copy.json"))
    assert len(ran.out.splitlines()) == 2
    assert "Choose think-1k" in ran.out
    assert (tmp_path / "copy.json").read_bytes() == (ran.folder / "result.json").read_bytes()


def test_weights_and_groups_reach_the_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path, 40)
    rows = [
        {"id": f"t{i}", "risk": "high", "weight": 2 if i < 20 else 1, "group": f"g{i // 2}"} for i in range(40)
    ]
    write_csv(tmp_path / "tasks.csv", rows)
    write_ladder(tmp_path)
    result = reasoning_budget(capsys, tmp_path).result
    assert result["counts"]["groups"] == 20
    # tasks 1, 5, 9, 13, 17 of the first twenty fail at plain: 5 x 2 + 5 x 1 of 60
    assert arm(result, "plain")["pass_rate_lower"] == pytest.approx(45 / 60)
    gate = next(g for g in result["gates"] if g["name"] == "pass_rate")
    assert gate["n"] == pytest.approx(60 / 2 / 2)
    assert set(ARMS) == {a["name"] for a in result["arms"]}


def test_without_a_study_the_bundled_one_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalkit.cli.app import main
    from evalkit.study.bundled import bundled_path
    from evalkit.workflows import reasoning_budget_command

    folder = tmp_path / "bundled"
    folder.mkdir()
    source = bundled_path(reasoning_budget_command.BUNDLED)
    for name in ("study.yaml", "tasks.jsonl", "outcomes.jsonl", "prices.yaml"):
        (folder / name).write_bytes((source.parent / name).read_bytes())
    # A copy, so that the look at the bundled tasks is not spent by a test.
    monkeypatch.setattr(reasoning_budget_command, "bundled_path", lambda name: folder / "study.yaml")
    assert main(["reasoning-budget", "--out", str(tmp_path / "out")]) == 1
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert [arm["name"] for arm in result["arms"]] == ["plain", "multi-step", "think-32", "think-64", "think-160"]
    # Worked out from the outcomes: 18, 29, 26, 35 and 53 of 144 runs pass, three of each task.
    assert [round(arm["pass_rate_lower"] * 144) for arm in result["arms"]] == [18, 29, 26, 35, 53]


def test_faults_of_the_runs_speak_of_arms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path)
    write_ladder(tmp_path)
    runs = tmp_path / "runs.csv"
    runs.write_text(runs.read_text(encoding="utf-8").replace(",think-4k,", ",think-9k,"), encoding="utf-8")
    ran = reasoning_budget(capsys, tmp_path)
    assert ran.code == 2
    assert '"think-9k" is not an arm of the study' in ran.err
    assert 'the arm "think-4k" has no row of a labelled item' in ran.err
    assert " tier" not in ran.err
