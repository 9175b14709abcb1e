"""Several routers in one study, and routers that evalkit runs: from the study file to result.json and back."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers
from tests.workflows.studies import Ran, evalkit, write_csv, write_study


def _looks(folder: Path) -> list[dict[str, Any]]:
    looks: list[dict[str, Any]] = json.loads((folder / "labels.csv.looks.json").read_text("utf-8"))["looks"]
    return looks


def _verify(capsys: pytest.CaptureFixture[str], folder: Path) -> tuple[int, str]:
    from evalkit.cli.app import main

    capsys.readouterr()
    code = main(["verify", str(folder)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


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


def test_however_many_routers_it_is_one_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    evalkit(capsys, tmp_path)
    evalkit(capsys, tmp_path)
    (look,) = _looks(tmp_path)
    assert {"scores.keywords", "scores.vendor", "scores.noise"} < look.keys()
    (tmp_path / "rules.yaml").write_text("rules: [{patterns: [contract], score: 0.8}]\notherwise: 0.1\n", "utf-8")
    second = evalkit(capsys, tmp_path)
    assert len(_looks(tmp_path)) == 2
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


def test_what_was_run_is_verified_without_running_it(
    ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        names = set(file.namelist())
        rows = [json.loads(line) for line in file.read("scores.keywords/scores.jsonl").splitlines()]
    assert {"scores.vendor/scores.csv", "scores.noise/noise.csv", "routers/routers.json"} < names
    assert [row["score"] for row in rows[:3]] == [0.9, 0.9, 0.9]
    (tmp_path / "rules.yaml").unlink()

    def never(*_: Any) -> None:
        raise AssertionError("a router was run")

    import evalkit.routers.score

    monkeypatch.setattr(evalkit.routers.score, "score_items", never)
    code, said = _verify(capsys, ran.folder)
    assert (code, "every figure of this run follows from its evidence" in said) == (0, True)
    facts = ran.result["provenance"]["routers"][0]
    assert facts["kind"] == "rules"
    assert facts["scores"]["computed_by"] == "rules"
    assert len(facts["facts"]["sha256"]) == 64


def _rewritten(bundle: Path, change: dict[str, bytes]) -> None:
    """The bundle with other content under true hashes, as somebody would forge it."""
    import hashlib

    with zipfile.ZipFile(bundle) as file:
        parts = {info.filename: file.read(info) for info in file.infolist()}
    parts |= change
    index = json.loads(parts["files.json"])
    for row in index["files"]:
        content = parts[row["name"]]
        row["sha256"], row["bytes"] = hashlib.sha256(content).hexdigest(), len(content)
    parts["files.json"] = json.dumps(index).encode()
    with zipfile.ZipFile(bundle, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def test_a_changed_score_is_found_and_named(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    import hashlib

    bundle, result = ran.folder / "evidence.zip", ran.folder / "result.json"
    with zipfile.ZipFile(bundle) as file:
        scores = file.read("scores.keywords/scores.jsonl")
    before = hashlib.sha256(bundle.read_bytes()).hexdigest()
    _rewritten(bundle, {"scores.keywords/scores.jsonl": scores.replace(b'"score": 0.1}', b'"score": 0.9}', 1)})
    code, said = _verify(capsys, ran.folder)
    assert code == 1
    assert "is not the one that result.json names" in said
    after = hashlib.sha256(bundle.read_bytes()).hexdigest()
    result.write_text(result.read_text("utf-8").replace(before, after), "utf-8")
    code, said = _verify(capsys, ran.folder)
    assert code == 1
    assert "provenance.routers[keywords].scores.hash is" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"trained_on": "these_items"}, "routers.json does not hold what it should"),
        ({"leaks": [["q1", "t1", "exact"]]}, "routers.json does not hold what it should"),
        ({"name": "other"}, "routers.json does not say what the study's routers are"),
    ],
)
def test_a_record_of_routers_that_evalkit_did_not_write_is_refused(
    ran: Ran, capsys: pytest.CaptureFixture[str], row: dict[str, Any], said: str
) -> None:
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        document = json.loads(file.read("routers/routers.json"))
    document["routers"][0] |= row
    _rewritten(ran.folder / "evidence.zip", {"routers/routers.json": json.dumps(document).encode()})
    code, printed = _verify(capsys, ran.folder)
    assert code == 1
    assert said in printed


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
    assert _verify(capsys, ran.folder)[0] == 0


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
    assert _verify(capsys, ran.folder)[0] == 0
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
    assert _verify(capsys, ran.folder)[0] == 0


TRAINED = VENDOR | {"train": "train.jsonl"}


def _train(folder: Path, *rows: tuple[str, str]) -> None:
    lines = [
        json.dumps({"id": i, "prompt": prompt, "required_tier": "cheap", "risk": "low"}) for i, prompt in rows
    ]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_leaks_are_an_error_that_names_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED)
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "something else altogether, of no judged item"))
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "field routers[1].train: vendor: " in ran.err
    assert "q3 is in training as t1 (exact)" in ran.err
    assert "leaks: drop" in ran.err
    assert ran.wrote_nothing()
    assert not (tmp_path / "labels.csv.looks.json").exists()


def test_dropped_leaks_are_judged_by_no_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"})
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "Question 8 about a CONTRACT!"))
    ran = evalkit(capsys, tmp_path)
    result = ran.result
    assert ran.code == 0, ran.err
    left = result["left_out"]["ids"]
    assert {"q3", "q8"} <= set(left)
    assert result["left_out"]["items"] == len(left) < 60
    assert result["counts"]["items"] == 600 - len(left)
    rows = {row["name"]: row for row in result["routers"]}
    assert {leak["id"] for leak in rows["vendor"]["leaks"]} == set(left)
    assert {"q3": "t1", "q8": "t2"}.items() <= {x["id"]: x["training_id"] for x in rows["vendor"]["leaks"]}.items()
    assert rows["vendor"]["leaks_checked"] is True
    assert rows["keywords"]["leaks"] == []
    assert any(
        f"{len(left)} labelled items were left out for all routers, being in the training labels of vendor" in said
        for said in result["evidence_limits"]
    )
    import gzip

    judged = [
        json.loads(line)["id"]
        for line in gzip.decompress((ran.folder / "items.jsonl.gz").read_bytes()).splitlines()
    ]
    assert set(judged) == {f"q{i}" for i in range(600)} - set(left)
    (look,) = _looks(tmp_path)
    assert "left_out" in look
    assert _verify(capsys, ran.folder)[0] == 0


def test_to_leave_out_others_is_another_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"})
    _train(tmp_path, ("t1", "question 3 about a greeting"))
    evalkit(capsys, tmp_path)
    _train(tmp_path, ("t1", "question 3 about a greeting"), ("t2", "question 8 about a contract"))
    second = evalkit(capsys, tmp_path)
    assert second.result["looks"]["delta"] is None
    assert second.code == 3


def test_where_every_item_leaked_nothing_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path, KEYWORDS, TRAINED | {"leaks": "drop"}, n=20)
    import csv

    with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    _train(tmp_path, *((f"t{i}", row["prompt"]) for i, row in enumerate(rows)))
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "every judged item stands in the training labels of a router" in ran.err


FITTED = {"name": "fitted", "kind": "classifier", "trained_on": "cross_fitted", "cost_usd": 0, "seconds": 0}


def _runs_as(monkeypatch: pytest.MonkeyPatch, trained_on: Any) -> None:
    """In place of a fitted model: every second item scores .9, from five folds."""
    import numpy as np

    import evalkit.routers.score as seam

    def score_items(_study: Any, _router: Any, labels: Any) -> seam.RouterScores:
        score = np.where(np.arange(len(labels)) % 2 == 0, 0.9, 0.1)
        return seam.RouterScores(
            score=score,
            trained_on=trained_on,
            fingerprint=seam.scores_fingerprint(labels.ids, score),
            facts={"kind": "classifier", "seed": 0, "folds": 5},
            fold=np.arange(len(labels), dtype=np.int16) % 5,
        )

    monkeypatch.setattr(seam, "score_items", score_items)


def test_cross_fitted_scores_certify_nothing_and_record_their_folds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_routers(tmp_path, FITTED, NOISE)
    _runs_as(monkeypatch, "cross_fitted")
    ran = evalkit(capsys, tmp_path)
    result = ran.result
    assert ran.code == 3
    assert result["chosen_router"] == "fitted"
    assert result["routers"][0]["trained_on"] == "cross_fitted"
    assert [gate["status"] for gate in result["gates"]] == ["estimate", "insufficient"]
    assert any(said.startswith("Approximate: cross-fitted.") for said in result["evidence_limits"])
    assert result["routers"][0]["calibration"]["brier"] == pytest.approx(0.01)  # a fitted score is a chance
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        rows = [json.loads(line) for line in file.read("scores.fitted/scores.jsonl").splitlines()]
    assert [row["fold"] for row in rows[:7]] == [0, 1, 2, 3, 4, 0, 1]
    assert _verify(capsys, ran.folder)[0] == 0


@pytest.mark.parametrize("true", ["other_items", "these_items"])
def test_a_router_that_is_not_what_the_study_says_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, true: str
) -> None:
    write_routers(tmp_path, NOISE, FITTED)
    _runs_as(monkeypatch, true)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "field routers[1].trained_on: " in ran.err
    assert ran.wrote_nothing()


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
    labels, outcomes, scores, verified = [], [], [], []
    for i in range(900):
        k, name = i % 3, f"q{i}"
        labels.append({"id": name, "required_tier": tiers[k], "risk": "critical" if i % 2 else "low"})
        scores.append({"id": name, "score": round(k / 3 + 0.2 * draw.random(), 4)})
        cheap, mid = (0.6 * (k <= j) + 0.3 * draw.random() for j in (0, 1))
        verified.append({"id": name, "score_cheap": round(cheap, 4), "score_mid": round(mid, 4)})
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
    write_csv(tmp_path / "verified.csv", verified)
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
    assert _verify(capsys, ran.folder)[0] == 0


def test_names_in_any_script_reach_the_evidence_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("한국어-규칙", "Ωmega_2", "a.b")
    routers = [router | {"name": name} for router, name in zip((KEYWORDS, VENDOR, NOISE), names, strict=True)]
    write_routers(tmp_path, *routers)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.err
    assert ran.result["chosen_router"] == "한국어-규칙"
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        assert "scores.한국어-규칙/scores.jsonl" in file.namelist()
        assert "scores.a.b/noise.csv" in file.namelist()
    assert _verify(capsys, ran.folder)[0] == 0
    assert evalkit(capsys, tmp_path, "--router", "Ωmega_2").result["gates"][0]["confidence"] is not None


@pytest.mark.parametrize(
    "role", ["scores...", "scores.a/b", "scores..x", "labels.x", "scores.", "decisions.\u202ex"]
)
def test_a_role_that_is_no_router_is_refused(ran: Ran, capsys: pytest.CaptureFixture[str], role: str) -> None:
    bundle = ran.folder / "evidence.zip"
    with zipfile.ZipFile(bundle) as file:
        parts = {info.filename: file.read(info) for info in file.infolist()}
    index = json.loads(parts["files.json"])
    next(row for row in index["files"] if row["role"] == "scores.noise")["role"] = role
    with zipfile.ZipFile(bundle, "w") as file:
        for name, content in (parts | {"files.json": json.dumps(index).encode()}).items():
            file.writestr(name, content)
    code, printed = _verify(capsys, ran.folder)
    assert code == 1
    assert "files.json does not hold what it should" in printed


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
