"""Several routers in one study, and routers that evalkit runs: from the study file to result.json and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, looks, verified, write_routers
from tests.workflows.studies import Ran, evalkit, write_csv, write_study


@pytest.fixture
def ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ran:
    write_routers(tmp_path)
    return evalkit(capsys, tmp_path)


def test_the_best_router_is_chosen_and_named(ran: Ran) -> None:
    result = ran.result
    assert ran.code == 0
    assert result["chosen_router"] == "keywords"
    assert result["verdict"]["headline"] == "Approved: router keywords, the best of 3"
    rows = {row["name"]: row for row in result["routers"]}
    assert list(rows) == ["keywords", "vendor", "noise"]
    assert {name: row["kind"] for name, row in rows.items()} == {
        "keywords": "rules",
        "vendor": "scores",
        "noise": "scores",
    }
    assert [name for name, row in rows.items() if row["chosen"]] == ["keywords"]
    assert rows["vendor"]["verdict"]["decision"] == "approve"
    assert rows["noise"]["verdict"]["decision"] != "approve"
    totals = {name: row["expected_total_usd"] for name, row in rows.items()}
    # 300 hard items at .02, 15 easy ones that the rules take for hard, 285 at .001; the vendor asks .001 of each
    assert totals["keywords"] == pytest.approx(300 * 0.02 + 15 * 0.02 + 285 * 0.001)
    assert totals["vendor"] == pytest.approx(300 * 0.02 + 300 * 0.001 + 600 * 0.001)
    assert rows["vendor"]["separation"]["auc"] == 1.0
    assert rows["keywords"]["separation"]["auc"] == pytest.approx((285 + 15 / 2) / 300)
    assert result["selected"]["expected_total_usd"] == pytest.approx(totals["keywords"])


def test_every_certificate_spends_its_part_of_the_error_rate(ran: Ran) -> None:
    result = ran.result
    gates = [gate for row in result["routers"] for gate in row["gates"]] + result["gates"]
    stated = [gate["confidence"] for gate in gates if gate["name"].startswith("under_route")]
    assert len(stated) == 8
    assert all(confidence == pytest.approx(1 - 0.05 / 3) for confidence in stated)
    # Of the chosen one of three, the union of three errors holds: 3 x 1.667 %.
    assert (
        "in at most 5 % of studies, all risk classes together, whichever of the 3 routers" in result["guarantee"]
    )


def test_policies_and_tried_routers_count_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, VENDOR | {"policy": "both"}, NOISE | {"routers": 4})
    result = evalkit(capsys, tmp_path).result
    assert result["gates"][0]["confidence"] == pytest.approx(1 - 0.05 / 6)
    (vendor, noise) = result["routers"]
    assert [row["policy"] for row in vendor["policies"]] == ["direct", "cascade"]
    assert noise["policies"] == []


@pytest.mark.parametrize(("tried", "of"), [({}, 1), ({"routers": 5}, 5), ({"policy": "both"}, 1)])
def test_stop_rules_know_of_the_routers_that_were_tried_elsewhere(
    tmp_path: Path, tried: dict[str, object], of: int
) -> None:
    """The best of five separates and gains by chance as often, whether or not the study lists the other four."""
    from evalkit.study.routing import read_study
    from evalkit.workflows.assemble import settings_of

    write_routers(tmp_path)
    write_study(tmp_path, router={key: v for key, v in VENDOR.items() if key != "name"} | tried)
    settings = settings_of(read_study(tmp_path / "study.yaml"), "direct", 0.05 / of)
    assert settings.chosen_from == of
    assert settings.stop_confidence == pytest.approx(1 - 0.05 / of)


def test_however_many_routers_it_is_one_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    evalkit(capsys, tmp_path)
    evalkit(capsys, tmp_path)
    (look,) = looks(tmp_path)
    assert {"scores.keywords", "scores.vendor", "scores.noise"} < look.keys()
    (tmp_path / "rules.yaml").write_text("rules: [{patterns: [contract], score: 0.8}]\notherwise: 0.1\n", "utf-8")
    second = evalkit(capsys, tmp_path)
    assert len(looks(tmp_path)) == 2
    assert second.result["looks"]["delta"] is None
    assert second.code == 3


def test_the_chosen_one_is_compared_with_each_other_on_the_same_items(ran: Ran) -> None:
    rows = {(row["against"], row["what"]): row for row in ran.result["router_comparisons"]}
    assert len(rows) == 6
    cost = rows["vendor", "cost_usd"]
    assert cost["difference"] == pytest.approx((15 * 0.019 - 600 * 0.001) / 600)
    assert cost["confidence"] == pytest.approx(0.975)
    assert cost["better"] is True
    passes = rows["vendor", "pass_rate"]
    assert (passes["difference"], passes["gained"], passes["lost"], passes["p_value"]) == (0.0, 0, 0, 1.0)


def test_a_declared_probability_is_held_against_what_came_true(ran: Ran) -> None:
    rows = {row["name"]: row for row in ran.result["routers"]}
    found = rows["vendor"]["calibration"]
    assert sum(one["n"] for one in found["bins"]) == found["n"] == 600
    assert [one["observed"] for one in found["bins"]][-1] == 1.0
    assert found["bins"][-1]["predicted"] == pytest.approx(0.9)
    easy = [0.1 + 0.0001 * i for i in range(600) if i % 2]
    assert found["brier"] == pytest.approx((300 * 0.1**2 + sum(round(p, 4) ** 2 for p in easy)) / 600)
    assert rows["noise"]["calibration"] is None
    assert rows["noise"]["calibration_reason"] == "the score declares no probability"


def test_one_router_that_evalkit_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    rules = {key: value for key, value in KEYWORDS.items() if key != "name"}
    write_study(tmp_path, router=rules)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0
    result = ran.result
    assert result["verdict"]["headline"] == "Approved"
    assert result["chosen_router"] == "rules"
    assert result["router_comparisons"] == []
    assert result["provenance"]["scores"]["file"] == "rules.yaml"
    assert result["gates"][0]["confidence"] == pytest.approx(0.95)
    assert verified(capsys, ran.folder)[0] == 0


def test_a_router_of_a_file_has_no_part_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    write_study(tmp_path)
    result = evalkit(capsys, tmp_path).result
    assert not {"routers", "chosen_router", "router_comparisons", "left_out"} & result.keys()
    assert not {"routers", "left_out"} & result["provenance"].keys()


def test_one_of_several_is_judged_at_its_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    ran = evalkit(capsys, tmp_path, "--router", "vendor", "--threshold", "0.5")
    assert ran.code == 0
    assert ran.result["judged"]["thresholds"] == [0.5]
    assert ran.result["gates"][0]["confidence"] == pytest.approx(1 - 0.05 / 3)
    assert verified(capsys, ran.folder)[0] == 0
    ran = evalkit(capsys, tmp_path, "--threshold", "0.5")
    assert ran.code == 2
    assert "the study has several routers: keywords, vendor, noise" in ran.err
    assert "--router" in ran.err


def test_a_target_escalation_is_told_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    ran = evalkit(capsys, tmp_path, "--target-escalation", "0.5")
    assert [line.split(":")[0] for line in ran.out.splitlines()] == ["keywords", "vendor", "noise"]
    assert ran.out.splitlines()[1] == "vendor: 50% at 0.9 (score >= threshold goes up)"
    assert ran.wrote_nothing()


def test_faults_of_the_files_of_all_routers_are_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_routers(tmp_path)
    write_csv(tmp_path / "noise.csv", [{"id": "q0", "score": "high"}])
    write_csv(tmp_path / "scores.csv", [{"id": "q0", "score": 7}])
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "noise.csv" in ran.err
    assert "scores.csv" in ran.err
    assert "Traceback" not in ran.err


def test_a_study_of_decisions_and_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    today = {"name": "today", "decisions": "routed.csv", "trained_on": "other_items", "cost_usd": 0, "seconds": 0}
    write_routers(tmp_path, KEYWORDS, today)
    write_csv(tmp_path / "routed.csv", [{"id": f"q{i}", "routed_tier": "frontier"} for i in range(600)])
    ran = evalkit(capsys, tmp_path)
    assert ran.result["chosen_router"] == "keywords"
    row = ran.result["routers"][1]
    assert (row["kind"], row["point_is"], row["rule"]) == ("decisions", "judged", "as the decisions say")
    assert row["separation"] is None
    assert verified(capsys, ran.folder)[0] == 0


def test_an_audit_of_several_routers_is_of_all_cheap_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    write_routers(tmp_path)
    asked = ["labels", "audit", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "audit.csv")]
    assert main(asked) == 2
    assert "field routers: lists several routers" in capsys.readouterr().err
    assert main([*asked, "--all"]) == 0


def test_the_terminal_shows_every_router(ran: Ran) -> None:
    lines = {line.split()[0]: line.split() for line in ran.out.splitlines() if line.strip()}
    assert lines["keywords"][:4] == ["keywords", "Approve", "$10.98", "$10.98"]
    assert lines["vendor"][1] == "Approve"
    assert lines["noise"][1] in {"Reject", "Insufficient"}


def test_the_order_of_routers_changes_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for place, order in enumerate(((KEYWORDS, VENDOR, NOISE), (NOISE, VENDOR, KEYWORDS))):
        folder = tmp_path / str(place)
        folder.mkdir()
        write_routers(folder, *order)
        found.append(evalkit(capsys, folder).result)
    one, other = found
    assert one["chosen_router"] == other["chosen_router"]
    assert one["gates"] == other["gates"]
    assert one["selected"] == other["selected"]
    assert {row["name"]: row for row in one["routers"]} == {row["name"]: row for row in other["routers"]}


def test_a_cascade_with_a_score_a_tier_beside_a_direct_router(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import random

    tiers, draw = ("cheap", "mid", "frontier"), random.Random(1)
    labels, outcomes, scores, replies = [], [], [], []
    for i in range(900):
        k, name = i % 3, f"q{i}"
        labels.append({"id": name, "required_tier": tiers[k], "risk": "critical" if i % 2 else "low"})
        scores.append({"id": name, "score": round(k / 3 + 0.2 * draw.random(), 4)})
        cheap, mid = (0.6 * (k <= j) + 0.3 * draw.random() for j in (0, 1))
        replies.append({"id": name, "score_cheap": round(cheap, 4), "score_mid": round(mid, 4)})
        for j, usd in enumerate((0.001, 0.006, 0.02)):
            row = {
                "id": name,
                "tier": tiers[j],
                "status": "ok" if j >= k else "wrong",
                "cost_usd": usd,
                "task_s": 1,
            }
            outcomes.append(row)
    write_csv(tmp_path / "labels.csv", labels)
    write_csv(tmp_path / "outcomes.csv", outcomes)
    write_csv(tmp_path / "scores.csv", scores)
    write_csv(tmp_path / "verified.csv", replies)
    verifier = NOISE | {"name": "verifier", "scores": "verified.csv", "policy": "cascade"}
    verifier["higher_means"] = "cheap_is_enough"
    routers = [VENDOR | {"policy": "both"}, verifier]
    write_study(tmp_path, router=None, routers=routers, tiers=[{"name": tier} for tier in tiers])
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.err
    vendor, other = ran.result["routers"]
    assert (vendor["policy"], other["policy"]) == ("direct", "cascade")
    assert len(vendor["thresholds"]) == len(other["thresholds"]) == 2
    assert other["rule"].startswith("each tier's reply has its own score and threshold; score < threshold")
    assert ran.result["gates"][0]["confidence"] == pytest.approx(1 - 0.05 / 3)
    assert "a score a tier" not in vendor["rule"]
    assert verified(capsys, ran.folder)[0] == 0


def test_a_comparison_says_which_router_each_run_chose(
    ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalkit.cli.app import main

    other = tmp_path / "other"
    other.mkdir()
    write_routers(other, NOISE, VENDOR)
    evalkit(capsys, other)
    capsys.readouterr()
    main(["compare", str(ran.folder), str(other / "run"), "--json", str(tmp_path / "c.json")])
    printed = capsys.readouterr().out
    assert "APPROVE, router keywords, threshold 0.9" in " ".join(printed.split())
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert (document["base"]["router"], document["candidate"]["router"]) == ("keywords", "vendor")
    (row,) = [row for row in document["inputs"] if row["input"] == "router"]
    assert row == {
        "input": "router",
        "base": "keywords (rules), the best of 3",
        "candidate": "vendor (scores), the best of 2",
        "same": False,
    }
