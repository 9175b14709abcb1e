"""route-sweep from files to files, through the command line: verdicts, exit codes, what is written."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.workflows.studies import evalkit, write_csv, write_items, write_study


@pytest.fixture(autouse=True)
def _fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def test_a_separating_router_is_approved_at_the_gap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path, "--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "s.md"))
    result = ran.result
    assert ran.code == 0, ran.out + ran.err
    assert result["verdict"]["decision"] == "approve"
    selected = result["selected"]
    # 300 of 600 items need the frontier tier; all score .9: cost = 600 x .0001 + 300 x .001 + 300 x .02
    assert selected["thresholds"] == [0.9]
    assert selected["cost_usd_total"] == pytest.approx(6.36)
    assert selected["saving_usd_vs_strongest"] == pytest.approx(12.0 - 6.36)
    assert selected["under_route_count"] == 0
    assert selected["escalation_rate"] == 0.5
    assert {g["name"]: g["status"] for g in result["gates"]} == {
        "under_route:low": "certified",
        "under_route:critical": "certified",
    }
    assert result["gates"][1]["n"] == 150
    assert result["gates"][1]["upper_bound"] == pytest.approx(0.01977343816450844)  # 0 of 150, golden
    rows = [
        json.loads(line) for line in gzip.decompress((ran.folder / "items.jsonl.gz").read_bytes()).splitlines()
    ]
    assert len(rows) == 600
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(6.36)
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert not list(suite.iter("failure")), "an approval has no failed case"
    assert "APPROVE" in (tmp_path / "s.md").read_text(encoding="utf-8")
    assert "APPROVE" in ran.html


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path, 200)
    write_study(tmp_path)
    names = ("report.html", "result.json", "items.jsonl.gz")
    first = evalkit(capsys, tmp_path)
    before = {name: (first.folder / name).read_bytes() for name in names}
    second = evalkit(capsys, tmp_path)
    assert {name: (second.folder / name).read_bytes() for name in names} == before


def test_too_few_needs_is_insufficient_evidence_and_says_how_many_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path, 200)  # 50 critical needs; a limit of 5 % takes 59
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3
    gate = next(g for g in ran.result["gates"] if g["name"] == "under_route:critical")
    assert (gate["status"], gate["n"], gate["missing_n"]) == ("insufficient", 50, 9)
    assert ran.result["selected"] is None
    assert ran.result["candidate"] is not None


def test_no_gain_over_the_best_fixed_arm_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    router = {
        "scores": "scores.csv",
        "higher_means": "needs_stronger",
        "trained_on": "other_items",
        "cost_usd": 0.05,
        "seconds": 0.01,
    }
    write_study(tmp_path, router=router)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 1
    assert any("No gain" in reason for reason in ran.result["verdict"]["reasons"])


def test_a_second_look_certifies_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    write_study(tmp_path)
    assert evalkit(capsys, tmp_path).code == 0
    assert evalkit(capsys, tmp_path).code == 0
    ran = evalkit(capsys, tmp_path, "--seed", "99")
    assert ran.code == 3
    looks = ran.result["looks"]
    assert (looks["declared"], looks["this"], looks["delta"]) == (1, 2, None)
    assert looks["delta_reason"] == "this look spends nothing"
    assert "fresh sample" in ran.result["verdict"]["next_step"]
    assert ran.result["guarantee"] is None


def test_a_threshold_fixed_in_advance_is_tested_not_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    write_study(tmp_path, looks=4)
    good = evalkit(capsys, tmp_path, "--threshold", "0.5")
    assert good.code == 0, good.out + good.err
    assert good.result["judged"]["thresholds"] == [0.5]
    bad = evalkit(capsys, tmp_path, "--threshold", "0.95")  # nobody goes up: all needs are under-routed
    assert bad.code == 1
    assert all(g["status"] == "violated" for g in bad.result["gates"])


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "x", ""])
def test_a_threshold_that_is_no_number_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    write_items(tmp_path, 40)
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path, f"--threshold={value}")
    assert ran.code == 2
    assert "--threshold" in ran.err
    assert ran.wrote_nothing()


def test_target_escalation_prints_what_ties_allow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path, 40)
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path, "--target-escalation", "0.3")
    assert ran.code == 0
    assert "not reachable: 0% at" in ran.out
    assert "50% at 0.9" in ran.out
    assert ran.wrote_nothing()


BAD = {
    "missing file": lambda d: (d / "labels.csv").unlink(),
    "empty file": lambda d: (d / "labels.csv").write_bytes(b""),
    "wrong encoding": lambda d: (d / "labels.csv").write_bytes(
        "id,prompt,required_tier,risk\nq0,환불,cheap,low\n".encode("cp949")
    ),
    "NaN scores": lambda d: (d / "scores.csv").write_text("id,score\nq0,NaN\nq1,0.1\n", encoding="utf-8"),
    "unknown risk class": lambda d: (d / "labels.csv").write_text(
        (d / "labels.csv").read_text(encoding="utf-8").replace(",critical", ",criticl"), encoding="utf-8"
    ),
    "one tier without outcomes": lambda d: (d / "outcomes.csv").write_text(
        "\n".join(
            row for row in (d / "outcomes.csv").read_text(encoding="utf-8").splitlines() if "frontier" not in row
        )
        + "\n",
        encoding="utf-8",
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    write_items(tmp_path, 40)
    write_study(tmp_path)
    BAD[fault](tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "Fix: " in ran.err
    assert "Traceback" not in ran.err
    assert ran.wrote_nothing()
    assert not list(tmp_path.glob("*.looks.json")), "an input error is no look"


def test_constant_scores_are_said_and_never_approved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    write_csv(tmp_path / "scores.csv", [{"id": f"q{i}", "score": 0.5} for i in range(600)])
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert ran.code in {1, 3}
    assert "all 600 scores equal 0.5" in ran.err
    assert ran.result["separation"]["auc"] == 0.5


def test_no_item_that_needs_a_strong_tier_is_insufficient(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    labels = (tmp_path / "labels.csv").read_text(encoding="utf-8").replace(",frontier,", ",cheap,")
    (tmp_path / "labels.csv").write_text(labels, encoding="utf-8")
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3
    assert {g["status"] for g in ran.result["gates"]} == {"not_statable"}
    assert "no item of this class needs more than cheap" in ran.out


def test_an_unknown_cost_is_never_zero_and_never_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    outcomes = (
        (tmp_path / "outcomes.csv")
        .read_text(encoding="utf-8")
        .replace("q7,frontier,demo/frontier,ok,0.02", "q7,frontier,demo/frontier,ok,")
    )
    (tmp_path / "outcomes.csv").write_text(outcomes, encoding="utf-8")
    write_study(tmp_path)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3
    result = ran.result
    assert result["baselines"]["always:frontier"]["cost_usd_total"] is None
    assert result["baselines"]["always:cheap"]["cost_usd_total"] == pytest.approx(0.6)
    gate = next(g for g in result["gates"] if g["name"] == "cost_known")
    assert gate["status"] == "not_statable"
    assert "1 of 1,200" in gate["message"]
    assert "nan" not in ran.html.lower().replace("financ", "").split("<body")[1].split()


def test_decisions_are_judged_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    write_csv(
        tmp_path / "routed.csv",
        [{"id": f"q{i}", "routed_tier": "frontier" if i % 2 == 0 else "cheap"} for i in range(600)],
    )
    write_study(tmp_path, router={"decisions": "routed.csv", "cost_usd": 0})
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.out + ran.err
    assert ran.result["policy"] == "decisions"
    assert ran.result["judged"]["confusion"] == [[300, 0], [0, 300], [0, 0]]


def test_both_policies_share_the_error_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    router = {
        "policy": "both",
        "scores": "scores.csv",
        "higher_means": "needs_stronger",
        "trained_on": "other_items",
        "cost_usd": 0.0001,
        "seconds": 0.01,
    }
    write_study(tmp_path, router=router)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.out + ran.err
    assert [row["policy"] for row in ran.result["policies_compared"]] == ["direct", "cascade"]
    # Each policy spends 2.5 %; of the better one, chosen on these items, the union of both holds.
    assert "at most 5 % of studies, all risk classes together, whichever of the 2" in ran.result["guarantee"]
    gate = ran.result["gates"][1]
    assert gate["upper_bound"] == pytest.approx(1 - 0.025 ** (1 / 150))  # 0 of 150 at 97.5 %


def test_one_file_more_in_the_way_leaves_nothing_half_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path, 200)
    write_study(tmp_path)
    (tmp_path / "run").write_text("in the way", encoding="utf-8")
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert (tmp_path / "run").read_text(encoding="utf-8") == "in the way"
    assert "--out" in ran.err


def test_piped_output_has_no_control_codes_and_fits_80_columns(tmp_path: Path) -> None:
    write_items(tmp_path, 200)
    write_study(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "evalkit",
            "route-sweep",
            str(tmp_path / "study.yaml"),
            "--out",
            str(tmp_path / "o"),
        ],
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode("utf-8")
    assert done.returncode == 3
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("report:")) <= 80


def test_derived_labels_are_called_derived_though_the_study_is_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path, 100)
    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = (json.dumps({**row, "metadata": {"labels_kind": "derived"}}) + "\n" for row in rows)
    (tmp_path / "labels.jsonl").write_text("".join(lines), encoding="utf-8")
    write_study(tmp_path, labels="labels.jsonl")
    ran = evalkit(capsys, tmp_path)
    assert ran.result["provenance"]["labels"]["kind"] == "derived"
    assert any("derived from the outcomes" in s for s in ran.result["evidence_limits"])
    assert "set by people" not in ran.html


def test_scores_that_rank_the_wrong_way_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_items(tmp_path)
    router = {"scores": "scores.csv", "higher_means": "cheap_is_enough", "trained_on": "other_items",
              "cost_usd": 0.0001, "seconds": 0.01}  # fmt: skip
    write_study(tmp_path, router=router)
    verdict = evalkit(capsys, tmp_path).result["verdict"]
    assert verdict["decision"] != "approve"
    if verdict["decision"] == "insufficient_evidence":
        assert "opposite order" in verdict["reasons"][0]
        assert "router.higher_means" in verdict["next_step"]


def test_cross_fitted_scores_never_certify_the_costliest_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_items(tmp_path)
    router = {"scores": "scores.csv", "higher_means": "needs_stronger", "trained_on": "cross_fitted",
              "cost_usd": 0.0001, "seconds": 0.01}  # fmt: skip
    write_study(tmp_path, router=router)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 3
    assert "approximate: cross-fitted" in " ".join(ran.out.split())
