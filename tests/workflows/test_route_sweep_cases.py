"""Faults from practice in labels, scores, decisions and outcomes, each as its case describes, through the command
line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.cases import TIERS, TWO_TIERS, assumed_costs, case, decided, labelled, mentions, scored, study
from tests.workflows.studies import evalkit, write_items, write_study


def test_m02_rows_are_truth_in_tier_order(shared: Path, tmp_path: Path, capsys: Any) -> None:
    expect = case(shared, "M02-matrix-orientation", tmp_path)["values"]
    study(tmp_path, decided("routed.csv"))
    ran = evalkit(capsys, tmp_path)
    judged = ran.result["judged"]
    matrix = [[4, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 0]]
    assert matrix == expect["matrix"]
    assert judged["confusion"][:4] == matrix
    assert judged["confusion"][4] == [0, 0, 0, 0]
    assert judged["under_route_count"] == 2
    assert judged["unnecessary_escalation_count"] == 2
    assert judged["risk_weighted_under_route"] == pytest.approx(20 / 38)
    worst = {item["id"]: item["flags"] for item in ran.result["worst_items"]}
    assert [i for i, flags in worst.items() if "under_routed" in flags] == expect["under"] == ["b2", "b3"]
    assert {"required", "routed"} <= set(ran.html.lower().replace(">", " ").replace("<", " ").split())


def test_m02_the_reversed_order_of_tiers_moves_the_figures_with_it(
    shared: Path, tmp_path: Path, capsys: Any
) -> None:
    case(shared, "M02-matrix-orientation", tmp_path)
    study(tmp_path, decided("routed.csv"), tiers=[{"name": tier} for tier in reversed(TIERS)])
    judged = evalkit(capsys, tmp_path).result["judged"]
    # With reasoning as the cheapest, what was over-routed (a5, c1) lies below its required tier.
    assert judged["under_route_count"] == 2
    assert judged["unnecessary_escalation_count"] == 2
    assert [row[::-1] for row in judged["confusion"][:4]][::-1][0] == [4, 0, 1, 0]


def test_m03_accuracy_does_not_hide_under_routing(shared: Path, tmp_path: Path, capsys: Any) -> None:
    values = case(shared, "M03-accuracy-hides-under-routing", tmp_path)["values"]
    points = {}
    for router in ("a", "b"):
        study(tmp_path, decided(f"routed_{router}.csv"), looks=5)
        ran = evalkit(capsys, tmp_path)
        points[router] = ran.result["judged"]
        if router == "a":
            assert ran.code == 1
            gate = next(g for g in ran.result["gates"] if g["name"] == "under_route:critical")
            assert (gate["status"], gate["k"], gate["n"]) == ("violated", 2, 2)
            assert [w["id"] for w in ran.result["worst_items"][:2]] == ["h1", "h2"]
            body = ran.html.split("<body")[1].lower()
            assert "accuracy" not in body or body.index("under-rout") < body.index("accuracy")
    assert points["a"]["accuracy"] == pytest.approx(float(Fraction(values["A"]["accuracy"]))) == 0.9
    assert points["a"]["risk_weighted_under_route"] == pytest.approx(
        float(Fraction(values["A"]["weighted_under"]))
    )
    assert points["a"]["risk_weighted_under_route"] == pytest.approx(50 / 68)
    assert points["a"]["escalation_rate"] == 0
    assert points["a"]["by_risk"]["critical"]["under_route_rate"] == 1.0
    assert points["b"]["accuracy"] == pytest.approx(0.7)
    assert points["b"]["risk_weighted_under_route"] == 0
    assert points["b"]["unnecessary_escalation_count"] == values["B"]["over"] == 6
    assert points["b"]["escalation_rate"] == pytest.approx(8 / 20)
    assert points["b"]["under_route_loss_usd"] < points["a"]["under_route_loss_usd"]


def test_m04_ties_move_whole_blocks(shared: Path, tmp_path: Path, capsys: Any) -> None:
    expect = case(shared, "M04-ties-at-threshold", tmp_path)["values"]
    ids, passes = labelled(tmp_path)
    assumed_costs(tmp_path, ids, passes)
    study(tmp_path, scored("scores_tied.csv"), **TWO_TIERS, looks=9)
    ran = evalkit(capsys, tmp_path, "--threshold", "0.5")
    assert ran.result["judged"]["escalation_rate"] * 10 == expect["escalated_ge"] == 8
    assert "score >= threshold" in ran.result["rule"]
    assert "0.5" in ran.out
    target = evalkit(capsys, tmp_path, "--target-escalation", "0.5").out
    assert mentions(target, ["50%", "20% at 0.9", "80% at 0.5", ">="])
    searched = evalkit(capsys, tmp_path)
    rates = sorted({p["escalation_rate"] for p in searched.result["points"]})
    assert rates == pytest.approx(expect["reachable"])


def test_m04_a_constant_score_carries_no_information(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M04-ties-at-threshold", tmp_path)
    ids, passes = labelled(tmp_path)
    assumed_costs(tmp_path, ids, passes)
    study(tmp_path, scored("scores_constant.csv"), **TWO_TIERS)
    ran = evalkit(capsys, tmp_path)
    assert mentions(ran.err, ["scores_constant.csv", "all 10 scores equal 0.5", "carries no information"])
    assert ran.result["separation"]["auc"] == 0.5
    assert {p["escalation_rate"] for p in ran.result["points"]} == {0.0, 1.0}
    assert ran.code != 0


def test_m05_scores_that_cannot_be_read_stop_all_in_one_run(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M05-nan-scores", tmp_path)
    ids, passes = labelled(tmp_path)
    assumed_costs(tmp_path, ids, passes)
    study(tmp_path, scored("scores.csv", probability=True), **TWO_TIERS)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    for tokens in (
        ["scores.csv:3", "q2", "NaN"],
        ["scores.csv:4", "q3", "score"],
        ["scores.csv:5", "q4", "inf"],
        ["scores.csv:6", "q5", "1.2"],
        ["scores.csv:7", "q6"],
    ):
        assert mentions(ran.err, tokens), (tokens, ran.err)
    assert "scores.csv:8" not in ran.err  # q7 is fine
    assert ran.wrote_nothing()


def test_m06_direction_is_declared_and_never_flipped(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M06-reversed-score", tmp_path)
    ids, passes = labelled(tmp_path)
    assumed_costs(tmp_path, ids, passes)
    missing = scored("scores.csv")
    del missing["higher_means"]
    study(tmp_path, missing, **TWO_TIERS)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert mentions(ran.err, ["study.yaml", "router.higher_means"])

    study(tmp_path, scored("scores.csv", higher_means="needs_stronger"), **TWO_TIERS, looks=9)
    first = evalkit(capsys, tmp_path)
    first_auc = first.result["separation"]["auc"]
    study(tmp_path, scored("scores.csv", higher_means="cheap_is_enough"), **TWO_TIERS, looks=9)
    second = evalkit(capsys, tmp_path)
    # The high scores are those of the items for which cheap is enough.
    assert (first_auc, second.result["separation"]["auc"]) == (0.0, 1.0)
    assert first.code != 0
    assert "opposite order (AUC 0.00" in " ".join(first.out.split())
    assert "router.higher_means" in " ".join(first.out.split())
    assert "opposite order" not in second.out


def test_m07_missing_unknown_and_repeated_scores(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M07-missing-scores", tmp_path)
    ids, passes = labelled(tmp_path)
    assumed_costs(tmp_path, ids, passes)
    study(tmp_path, scored("scores.csv"), **TWO_TIERS)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert mentions(ran.err, ["scores.csv", "q4", "critical"])
    assert mentions(ran.err, ["scores.csv:6", "q9"])
    assert mentions(ran.err, ["scores.csv", "3", "5", "q2"])

    text = "query_id,score\nq1,0.1\nq2,0.2\nq3,0.9\nq5,0.1\n"
    (tmp_path / "scores.csv").write_text(text, encoding="utf-8")
    study(tmp_path, scored("scores.csv", missing_scores="escalate"), **TWO_TIERS)
    ran = evalkit(capsys, tmp_path)
    assert ran.code in {1, 3}
    assert any("1 query without score, treated as going up" in s for s in ran.result["evidence_limits"])
    assert all(p["escalation_rate"] >= 0.2 for p in ran.result["points"])


def test_k01_nothing_measured_is_its_own_exit_code(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "K01-all-errored-exit-0", tmp_path)
    ids = [f"q{i}" for i in range(1, 6)]
    labels = "id,prompt,required_tier,risk\n" + "".join(f"{i},x,mid,low\n" for i in ids)
    (tmp_path / "labels.csv").write_text(labels, encoding="utf-8")
    (tmp_path / "scores.csv").write_text(
        "id,score\n" + "".join(f"{i},0.{n + 1}\n" for n, i in enumerate(ids)), encoding="utf-8"
    )
    rows = [json.loads(line) for line in (tmp_path / "results_all_error.jsonl").read_text().splitlines()]
    both = [{**row, "tier": tier} for row in rows for tier in ("cheap", "mid")]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(r) + "\n" for r in both), encoding="utf-8")
    write_study(
        tmp_path,
        outcomes={"path": "both.jsonl", "columns": {"id": "query_id"}},
        tiers=[{"name": "cheap"}, {"name": "mid"}],
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3
    told = " ".join(ran.out.split())
    assert "10 of 10 errored, nothing was scored; first error: HTTP 401 invalid key (10 times)" in told
    assert ran.result["verdict"]["decision"] == "insufficient_evidence"
    assert "nothing was scored" in ran.html


@pytest.mark.parametrize("limits", [{"min_pass_rate": 0.9}, {"max_escalation": 0.1}, {"p95_task_seconds": 1}])
def test_k01_a_limit_is_not_failed_by_requests_that_nobody_answered(
    tmp_path: Path, capsys: Any, limits: dict[str, float]
) -> None:
    ids = [f"q{i}" for i in range(80)]
    (tmp_path / "labels.csv").write_text(
        "id,prompt,required_tier,risk\n" + "".join(f"{i},x,mid,low\n" for i in ids), encoding="utf-8"
    )
    (tmp_path / "routed.csv").write_text("id,routed_tier\n" + "".join(f"{i},mid\n" for i in ids), encoding="utf-8")
    rows = [
        {"id": i, "tier": tier, "status": "error", "error": "HTTP 401 invalid key", "cost_usd": 0, "task_s": 9}
        for i in ids
        for tier in ("cheap", "mid")
    ]
    (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    write_study(
        tmp_path,
        outcomes="outcomes.jsonl",
        tiers=[{"name": "cheap"}, {"name": "mid"}],
        router={"decisions": "routed.csv", "cost_usd": 0, "seconds": 0},
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.5}},
        limits=limits,
    )
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3, ran.out + ran.err
    assert "160 of 160 errored, nothing was scored" in " ".join(ran.out.split())
    assert not {g["status"] for g in ran.result["gates"]} & {"violated", "infeasible"}


def test_k01_one_silent_tier_is_not_measured_rather_than_failed(tmp_path: Path, capsys: Any) -> None:
    write_items(tmp_path)
    text = (tmp_path / "outcomes.csv").read_text(encoding="utf-8")
    text = text.replace("frontier,demo/frontier,ok", "frontier,demo/frontier,error")
    (tmp_path / "outcomes.csv").write_text(text, encoding="utf-8")
    write_study(tmp_path, limits={"min_pass_rate": 0.9})
    ran = evalkit(capsys, tmp_path, "--threshold", "0.5")
    gate = next(g for g in ran.result["gates"] if g["name"] == "pass_rate")
    assert gate["status"] == "insufficient"
    assert any("600 outcomes unanswered (error)" in s for s in ran.result["evidence_limits"])


def test_r07_tiers_are_also_compared_on_what_both_answered(tmp_path: Path, capsys: Any) -> None:
    write_items(tmp_path)
    text = (tmp_path / "outcomes.csv").read_text(encoding="utf-8")
    for i in (1, 3, 5):  # easy items: three of the cheap tier's 300 passes were never answered
        text = text.replace(f"q{i},cheap,demo/cheap,ok", f"q{i},cheap,demo/cheap,error")
    (tmp_path / "outcomes.csv").write_text(text, encoding="utf-8")
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path, "--threshold", "0.9")
    said = [s for s in ran.result["evidence_limits"] if "both answered" in s]
    # The policy is right on all of the 597 both answered; the frontier tier is too.
    assert any("On the 597 of 600 items that both answered" in s and "+0.0 points" in s for s in said), said


def test_r07_unanswered_stays_in_the_denominator(shared: Path, tmp_path: Path, capsys: Any) -> None:
    expect = case(shared, "R07-error-denominator", tmp_path)["values"]
    ids = [f"q{i}" for i in range(1, 11)]
    labels = "id,prompt,required_tier,risk\n" + "".join(f"{i},x,mid,low\n" for i in ids)
    (tmp_path / "labels.csv").write_text(labels, encoding="utf-8")
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    both = [
        {
            **{k: v for k, v in row.items() if k != "correct"},
            "tier": tier,
            "passed": row.get("correct"),
            "cost_usd": 1,
        }
        for row in rows
        for tier in ("cheap", "mid")
    ]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(r) + "\n" for r in both), encoding="utf-8")
    (tmp_path / "routed.csv").write_text("id,routed_tier\n" + "".join(f"{i},mid\n" for i in ids), encoding="utf-8")
    write_study(
        tmp_path,
        outcomes={"path": "both.jsonl", "columns": {"id": "query_id"}},
        tiers=[{"name": "cheap"}, {"name": "mid"}],
        router={"decisions": "routed.csv", "cost_usd": 0},
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path)
    judged = ran.result["judged"]
    assert judged["pass_rate"] == pytest.approx(expect["answered_rate"]) == pytest.approx(0.875)
    assert judged["pass_rate_lower"] == pytest.approx(expect["lower"]) == pytest.approx(0.7)
    assert judged["pass_rate_upper"] == pytest.approx(expect["upper"]) == pytest.approx(0.9)
    assert "70.0 % to 90.0 %" in ran.out
    assert "70.0 % to 90.0 %" in ran.html
