"""`evalkit labels` from end to end: plan, sample, agree, audit, next, as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from evalkit.cli.app import main

STUDY = """study: planted
kind: routing
labels: labels.jsonl
tiers: [{name: cheap, cost_usd: 0.001}, {name: strong, cost_usd: 0.02}]
router: {scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, thresholds: [0.5], cost_usd: 0}
risk:
  low: {under_route_loss: 0.05, max_under_route: 0.2}
  high: {under_route_loss: 4.0, max_under_route: 0.05}
confidence: 0.95
seed: 7
"""


@pytest.fixture(scope="module")
def world() -> list[dict[str, Any]]:
    """400 items of each class, 30 % true needs. The router sends up every need that its score shows; the needs
    with the lowest scores, a tenth of them, it does not see."""
    rng = np.random.default_rng(11)
    rows = []
    for risk in ("low", "high"):
        for i in range(400):
            need = i < 120
            hidden = need and i < 12
            score = rng.uniform(0.5, 1) if need and not hidden else rng.uniform(0, 0.5)
            true = "strong" if need else "cheap"
            rows.append({"id": f"{risk}-{i}", "risk": risk, "true": true, "hidden": hidden, "score": float(score)})
    return rows


def write(folder: Path, world: list[dict[str, Any]], *, miss: bool) -> Path:
    """The study's files; with `miss` the needs that the router does not see are labelled cheap."""
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
        for row in world:
            said = "cheap" if miss and row["hidden"] else row["true"]
            record = {
                "id": row["id"],
                "prompt": f"question {row['id']}",
                "required_tier": said,
                "risk": row["risk"],
            }
            file.write(json.dumps(record) + "\n")
    with (folder / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows([("id", "score"), *((row["id"], row["score"]) for row in world)])
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder / "study.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


class TestPlan:
    def test_json_says_what_is_missing(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        code, out, err = run(capsys, "labels", "plan", study, "--json", tmp_path / "p.json")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80
        low, high = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["classes"]
        assert (high["have"], high["needs_share"], high["class_share"]) == (120, 0.3, 0.5)
        assert [row["needs"] for row in high["rows"][:3]] == [59, 93, 124]
        assert [row["missing"] for row in high["rows"][:3]] == [0, 0, 4]
        assert low["errors_allowed_now"] == 16  # binom.cdf(16, 120, .2) = .044, (17) = .078
        assert not (tmp_path / "labels.jsonl.looks.json").exists()

    def test_without_labels_and_with_looks(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        (tmp_path / "labels.jsonl").unlink()
        study.write_text(STUDY + "looks: 2\n", encoding="utf-8")
        code, _, _ = run(
            capsys, "labels", "plan", study, "--needs-share", "high=0.3", "--json", tmp_path / "p.json"
        )
        assert code == 0
        plan = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
        assert plan["delta"] == pytest.approx(0.025)  # the first of two looks spends half
        low, high = plan["classes"]
        assert high["rows"][0]["needs"] == 72  # ceil(log(.025) / log(.95))
        assert high["rows"][0]["draw_of_class"] > 72 / 0.3
        assert low["rows"][0]["draw_of_class"] is None

    def test_an_audit_takes_half_of_the_error_rate(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        study.write_text(STUDY + "audit: audit.json\n", encoding="utf-8")
        (tmp_path / "audit.json").write_text("{}", encoding="utf-8")
        code, out, _ = run(capsys, "labels", "plan", study, "--json", tmp_path / "p.json")
        assert code == 0
        assert max(map(len, out.splitlines())) <= 100
        assert "Half of it is the audit's" in out
        plan = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
        assert plan["delta"] == pytest.approx(0.025)
        assert plan["classes"][1]["rows"][0]["needs"] == 72  # ceil(log(.025) / log(.95))

    def test_faults(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        assert run(capsys, "labels", "plan", study, "--needs-share", "high=2")[0] == 2
        assert run(capsys, "labels", "plan", study, "--needs-share", "none=.2")[0] == 2
        assert run(capsys, "labels", "plan", study, "--json", study)[0] == 2


class TestAudit:
    def judge(self, folder: Path, world: Any, drop: int = 0) -> Path:
        true = {row["id"]: row["true"] for row in world}
        with (folder / "audit.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        assert not any(row["required_tier"] for row in rows)  # blind
        for row in rows:
            row["required_tier"] = true[row["id"]]
        with (folder / "audit.csv").open("w", encoding="utf-8", newline="") as file:
            out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            out.writeheader()
            out.writerows(rows[drop:])
        return folder / "audit.csv"

    def test_missed_needs_are_carried_into_the_bound(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=True)
        code, out, err = run(capsys, "labels", "audit", study, "--out", tmp_path / "audit.csv", "--per-class", 150)
        assert (code, err) == (0, "")
        assert "cheap labels" in out
        judged = self.judge(tmp_path, world)
        code, out, _ = run(capsys, "labels", "audit", study, "--judged", judged, "--json", tmp_path / "a.json")
        assert code == 0
        result = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
        high = result["classes"][1]
        # By its labels the router misses nothing: 0 of 108, at most 2.7 %. In truth it misses 12 of 120, 10 %.
        assert (high["under_routed"], high["needs"], high["cheap_labels"]) == (0, 108, 292)
        assert high["upper_without_audit"] == pytest.approx(1 - 0.05 ** (1 / 108))
        assert high["missed"] == len(high["missed_ids"]) > 0
        assert high["upper_with_audit"] > 0.10 > 0.05 > high["upper_without_audit"]
        assert high["within_limit"] is False
        assert "NOT KEPT" in out
        truly = {row["id"] for row in world if row["hidden"]}
        assert set(high["missed_ids"]) <= truly

    def test_sound_labels_keep_a_bound(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        assert run(capsys, "labels", "audit", study, "--out", tmp_path / "audit.csv")[0] == 0
        judged = self.judge(tmp_path, world)
        assert run(capsys, "labels", "audit", study, "--judged", judged, "--json", tmp_path / "a.json")[0] == 0
        high = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["classes"][1]
        assert (high["missed"], high["under_routed"], high["needs"]) == (0, 12, 120)
        assert high["upper_with_audit"] > high["upper_without_audit"] > 0.1

    @pytest.mark.parametrize("how", ["left out", "added", "reseeded", "relabelled", "unjudged", "no record"])
    def test_what_was_drawn_is_what_is_judged(self, how: str, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=True)
        assert run(capsys, "labels", "audit", study, "--out", tmp_path / "audit.csv", "--per-class", 50)[0] == 0
        record = tmp_path / "audit.csv.draw.json"
        if how != "unjudged":
            self.judge(tmp_path, world, drop=1 if how == "left out" else 0)
        if how == "added":
            with (tmp_path / "audit.csv").open("a", encoding="utf-8") as file:
                file.write("other,hm,low,cheap\n")
        elif how == "reseeded":
            record.write_text(
                record.read_text(encoding="utf-8").replace('"seed": 7', '"seed": 8'), encoding="utf-8"
            )
        elif how == "relabelled":
            write(tmp_path, world, miss=False)
        elif how == "no record":
            record.unlink()
        code, out, err = run(capsys, "labels", "audit", study, "--judged", tmp_path / "audit.csv")
        assert (code, out) == (2, "")
        assert "Fix:" in err


class TestAgree:
    def file(self, folder: Path) -> Path:
        """Three annotators; the third labels every fifth strong need cheap."""
        with (folder / "rated.jsonl").open("w", encoding="utf-8") as out:
            for i in range(300):
                true = "strong" if i % 3 == 0 else "cheap"
                third = "cheap" if i % 15 == 0 else true
                first = "cheap" if i == 6 else true
                record = {"id": f"r{i}", "risk": "low" if i < 200 else "high",
                          "labels": {"ann": first, "bo": true, "cy": third}}  # fmt: skip
                out.write(json.dumps(record) + "\n")
        return folder / "rated.jsonl"

    def test_planted_annotator_is_named(self, tmp_path: Path, capsys: Any) -> None:
        options = ["--tiers", "cheap,strong", "--risk-classes", "low,high", "--json", tmp_path / "g.json"]
        code, out, err = run(capsys, "labels", "agree", self.file(tmp_path), *options)
        assert (code, err) == (0, "")
        assert "cy: needs missed here" in out
        (row,) = (line for line in out.splitlines() if line.endswith("LEANS LOW"))
        before, _, shares = row.partition(" %")
        assert len(before) - len(before.split()[-1]) + len("100.0 % [88.6, 100.0]  LEANS LOW") <= 79
        assert shares.endswith("]  LEANS LOW")
        result = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
        cy = result["leanings"][2]
        assert (cy["annotator"], cy["below"], cy["above_lowest_by_others"], cy["leans_low"]) == (
            "cy",
            20,
            99,
            True,
        )
        assert not any(row["leans_low"] for row in result["leanings"][:2])
        assert len(result["disagreements"]) == 21
        assert set(result["by_risk"]) == {"low", "high"}
        assert result["all"]["raw"]["value"] == pytest.approx(1 - 21 * (2 / 3) / 300)

    def test_two_files(self, tmp_path: Path, capsys: Any) -> None:
        for name, flip in (("a", 0), ("b", 4)):
            rows = [f"i{i},low,{'strong' if i % 2 and i >= flip else 'cheap'}" for i in range(40)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["id,risk,required_tier", *rows]), encoding="utf-8")
        code, out, _ = run(capsys, "labels", "agree", tmp_path / "a.csv", tmp_path / "b.csv",
                           "--tiers", "cheap,strong", "--risk-classes", "low")  # fmt: skip
        assert code == 0
        assert "2 items in dispute, widest apart first: i1, i3" in out

    def test_columns_stand_apart_where_agreement_is_worse_than_chance(self, tmp_path: Path, capsys: Any) -> None:
        for name, flip in (("a", 0), ("b", 1)):
            rows = [f"i{i},low,{'strong' if (i + flip) % 7 == 0 else 'cheap'}" for i in range(40)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["id,risk,required_tier", *rows]), encoding="utf-8")
        code, out, _ = run(capsys, "labels", "agree", tmp_path / "a.csv", tmp_path / "b.csv",
                           "--tiers", "cheap,strong", "--risk-classes", "low")  # fmt: skip
        assert code == 0
        (row,) = (line for line in out.splitlines() if line.startswith("low"))
        assert row.count("] ") == 2
        assert " -0." in row
        assert len(row) <= 80

    def test_every_label_that_is_no_tier_is_named(self, tmp_path: Path, capsys: Any) -> None:
        file = tmp_path / "rated.jsonl"
        rows = [
            {"id": "a", "labels": {"x": "cheep", "y": "cheap"}},
            {"id": "b", "labels": {"x": 3, "y": "\x1b[2J"}},
        ]
        file.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
        code, out, err = run(capsys, "labels", "agree", file, "--tiers", "cheap,strong")
        assert (code, out) == (2, "")
        assert len(err.strip().splitlines()) == 3
        assert "rated.jsonl:1: row 1 (id a), field labels" in err
        assert "\x1b" not in err


class TestNextAndSample:
    def test_next_draws_by_class(self, tmp_path: Path, world: Any, capsys: Any) -> None:
        study = write(tmp_path, world, miss=False)
        pool = [
            {"id": f"n{i}", "risk": "high" if i % 2 else "low", "prompt": "q", "score": i / 400}
            for i in range(400)
        ]
        (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, pool)), encoding="utf-8")
        code, _, err = run(capsys, "labels", "next", study, "--unlabelled", tmp_path / "pool.jsonl", "--count", 60,
                           "--out", tmp_path / "n.csv", "--json", tmp_path / "n.json")  # fmt: skip
        assert (code, err) == (0, "")
        result = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))
        low, high = result["classes"]
        assert (low["label"], high["label"]) == (0, 60)  # 10 % seen: far from 5 %, within 20 %
        scores = [pool[int(name[1:])]["score"] for name in result["ids"]]
        assert 0.35 < np.mean(scores) < 0.65  # never the highest first
        with (tmp_path / "n.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert sorted(row["id"] for row in rows) == sorted(result["ids"])
        assert "score" not in rows[0]

    def test_next_tells_what_is_under_routed_only_after_a_look(
        self, tmp_path: Path, world: Any, capsys: Any
    ) -> None:
        """To label on until the bound suits would be a look at every step."""
        study = write(tmp_path, world, miss=False)
        study.write_text(STUDY + "looks: 2\n", encoding="utf-8")
        pool = [{"id": f"n{i}", "risk": "high", "prompt": "q"} for i in range(400)]
        (tmp_path / "pool.jsonl").write_text("\n".join(map(json.dumps, pool)), encoding="utf-8")
        asked = ("labels", "next", study, "--unlabelled", tmp_path / "pool.jsonl", "--json", tmp_path / "n.json")

        def now() -> tuple[bool, float, str]:
            code, out, err = run(capsys, *asked)
            assert code == 0, err
            document = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))
            return document["looked_at"], document["classes"][1]["upper_now"], out

        known, upper, out = now()
        assert (known, upper) == (False, pytest.approx(1 - 0.025 ** (1 / 120)))
        assert "What is under-routed at the threshold is not told before evalkit route-sweep" in out
        assert run(capsys, "route-sweep", study, "--out", tmp_path / "run", "--quiet")[0] in {1, 3}
        known, upper, out = now()
        assert known
        assert upper == pytest.approx(
            float(beta.ppf(1 - 0.0125, 13, 108))
        )  # 12 of 120; the next look spends 1.25 %
        assert "at the fixed threshold" in out
        # Other scores of the same labels were not looked at.
        rows = (tmp_path / "scores.csv").read_text(encoding="utf-8").splitlines()
        (tmp_path / "scores.csv").write_text("\n".join([rows[0], "low-0,0.51", *rows[2:]]), encoding="utf-8")
        assert now()[0] is False

    def test_next_says_what_to_do_where_nobody_knows_the_risk_class(
        self, tmp_path: Path, world: Any, capsys: Any
    ) -> None:
        study = write(tmp_path, world, miss=False)
        (tmp_path / "pool.csv").write_text("id,prompt,class\nx,p,low\n", encoding="utf-8")
        code, _, err = run(capsys, "labels", "next", study, "--unlabelled", tmp_path / "pool.csv")
        assert (code, err.count("\n")) == (2, 1)
        assert "--column risk=COLUMN" in err
        assert "evalkit labels plan says how many (draw all)" in err
        named = ("--unlabelled", tmp_path / "pool.csv", "--column", "risk=class", "--count", 1)
        assert run(capsys, "labels", "next", study, *named)[0] == 0

    def test_next_leaves_out_what_is_labelled_and_refuses_what_stands_twice(
        self, tmp_path: Path, world: Any, capsys: Any
    ) -> None:
        study, pool, out = write(tmp_path, world, miss=False), tmp_path / "pool.csv", tmp_path / "next.json"
        pool.write_text("id,risk,prompt\nlow-1,low,a\nx,low,b\nhigh-2,high,c\n", encoding="utf-8")
        code, _, err = run(capsys, "labels", "next", study, "--unlabelled", pool, "--json", out)
        assert code == 0
        assert "2 items are labelled already, and left out of the pool" in err
        assert json.loads(out.read_text(encoding="utf-8"))["ids"] == ["x"]
        pool.write_text("id,risk\nx,low\nx,low\n", encoding="utf-8")
        code, _, err = run(capsys, "labels", "next", study, "--unlabelled", pool)
        assert code == 2
        assert "also stands on" in err

    def test_next_says_how_classes_keep_their_share_of_the_traffic(
        self, tmp_path: Path, world: Any, capsys: Any
    ) -> None:
        """400 items of each class, each of weight 1; of weight 2 each, 100 more of the class that decides."""
        study, pool, out = write(tmp_path, world, miss=False), tmp_path / "pool.csv", tmp_path / "next.json"
        rows = "".join(f"h{i},high,2\n" for i in range(100))
        pool.write_text(f"id,risk,weight\n{rows}l,low,2\n", encoding="utf-8")
        code, shown, _ = run(capsys, "labels", "next", study, "--unlabelled", pool, "--count", 100, "--json", out)
        assert code == 0
        found = json.loads(out.read_text(encoding="utf-8"))
        assert [row["label"] for row in found["classes"]] == [0, 100]
        scales = found["weight_scales"]
        assert scales == {"low": 1, "high": pytest.approx(400 / 600, rel=1e-5)}
        assert 400 * scales["low"] == pytest.approx((400 + 100 * 2) * scales["high"], rel=1e-5)
        assert "keeps its share of the traffic: low 1, high 0.666667" in shown

    def test_next_refers_to_a_fresh_sample_where_no_look_is_left(
        self, tmp_path: Path, world: Any, capsys: Any
    ) -> None:
        study, pool, out = write(tmp_path, world, miss=False), tmp_path / "pool.csv", tmp_path / "next.json"
        pool.write_text("id,risk\nh,high\n", encoding="utf-8")
        look = {"key": "0" * 64, "delta": 0.05, "first_at": "2026-01-01T00:00:00Z"}
        record = {"schema": "evalkit.looks/1", "looks": [look]}
        (tmp_path / "labels.jsonl.looks.json").write_text(json.dumps(record), encoding="utf-8")
        code, shown, _ = run(capsys, "labels", "next", study, "--unlabelled", pool, "--json", out)
        assert code == 0
        assert json.loads(out.read_text(encoding="utf-8"))["weight_scales"] is None
        assert "A fresh sample needs every class by its traffic" in shown

    def test_sample_from_log_to_labels(self, tmp_path: Path, capsys: Any) -> None:
        rng = np.random.default_rng(2)
        secret = "dana.reyes@example.com"
        with (tmp_path / "log.jsonl").open("w", encoding="utf-8") as out:
            for i in range(500):
                text = " ".join(f"w{k}" for k in rng.integers(0, 3000, 12)) + (f" {secret}" if i % 5 == 0 else "")
                out.write(json.dumps({"id": f"q{i}", "prompt": text, "risk": "high" if i < 25 else "low"}) + "\n")
        code, shown, err = run(capsys, "labels", "sample", tmp_path / "log.jsonl", "--out", tmp_path / "s.csv",
                               "--count", 50, "--json", tmp_path / "s.json")  # fmt: skip
        assert code == 0
        report = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
        assert report["personal_data"]["removed"]["email"] == 100
        assert [(s["name"], s["drawn"], s["traffic_share"]) for s in report["strata"]] == [
            ("high", 25, 0.05), ("low", 25, 0.95),
        ]  # fmt: skip
        with (tmp_path / "s.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        weight = {r: sum(float(row["weight"]) for row in rows if row["risk"] == r) for r in ("high", "low")}
        assert weight == pytest.approx({"high": 25, "low": 475})
        assert "an item stands for, 1 to 19; leave it as it is" in shown
        assert report["weights"] == pytest.approx({"least": 1, "largest": 19})
        everything = shown + err + "".join(p.read_text(encoding="utf-8") for p in tmp_path.glob("s.*"))
        assert secret not in everything

    def test_one_stratum_under_two_spellings_is_said(self, tmp_path: Path, capsys: Any) -> None:
        lines = [
            {"id": f"q{i}", "prompt": f"word{i} " * 9, "risk": ("High ", "high", "low")[i % 3]} for i in range(30)
        ]
        log, out = tmp_path / "log.jsonl", tmp_path / "s.csv"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        code, _, err = run(capsys, "labels", "sample", log, "--out", out, "--count", 6)
        told = " ".join(err.split())
        assert code == 0
        assert 'field risk: spellings found: "High " (10), "high" (10)' in told
        _, _, err = run(capsys, "labels", "sample", log, "--out", out, "--count", 6, "--by", "none")
        assert "spellings" not in err

    def test_sample_faults(self, tmp_path: Path, capsys: Any) -> None:
        log = tmp_path / "log.csv"
        log.write_text("id,prompt\n1,hello there\n", encoding="utf-8")
        out = tmp_path / "s.csv"
        for options in (["--count", 0], ["--by", "risk"], ["--by", "x"], ["--part", "a=1"], ["--part", "a"],
                        ["--regions", "XX"], ["--similarity", 0.1]):  # fmt: skip
            assert run(capsys, "labels", "sample", log, "--out", out, *options)[0] == 2, options
        assert run(capsys, "labels", "sample", log, "--out", log)[0] == 2
        assert not out.exists()
        code, shown, _ = run(capsys, "labels", "sample", log, "--out", out, "--count", 5)
        assert code == 0
        assert "1 of 1 rows drawn, and there are no more to draw (5 asked for)" in shown


class TestNothingLabelledYet:
    """A sample as `labels sample` writes it, before anybody labelled it."""

    @pytest.mark.parametrize(
        "text", ['{"id": "a", "prompt": "p"}\n', '{"id": "a", "required_tier": "", "risk": "low"}\n']
    )
    def test_plan_counts_on_no_label(self, tmp_path: Path, capsys: Any, text: str) -> None:
        study = tmp_path / "study.yaml"
        study.write_text(STUDY, encoding="utf-8")
        code, nothing, _ = run(capsys, "labels", "plan", study, "--needs-share", "high=0.3")
        assert code == 0
        (tmp_path / "labels.jsonl").write_text(text, encoding="utf-8")
        code, out, err = run(capsys, "labels", "plan", study, "--needs-share", "high=0.3")
        assert (code, out) == (0, nothing)
        assert "nothing is labelled" in err
        assert f"{59:>7}" in out  # needs without an error for 5 %: ln .05 / ln .95, rounded up

    def test_a_label_that_is_missing_among_others_is_a_fault(self, tmp_path: Path, capsys: Any) -> None:
        (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
        rows = '{"id": "a", "risk": "low", "required_tier": "cheap"}\n{"id": "b", "risk": "low"}\n'
        (tmp_path / "labels.jsonl").write_text(rows, encoding="utf-8")
        code, _, err = run(capsys, "labels", "plan", tmp_path / "study.yaml")
        assert code == 2
        assert "labels.jsonl:2" in err

    def test_decisions_are_no_labels(self, tmp_path: Path, capsys: Any) -> None:
        (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
        head = {"schema": "evalkit.label-decisions/1", "annotator": "ann", "seed": 0, "adjudicates": []}
        for name in ("ann.jsonl", "bo.jsonl"):
            (tmp_path / name).write_text(json.dumps(head) + "\n", encoding="utf-8")
        code, _, err = run(
            capsys,
            "labels",
            "agree",
            tmp_path / "ann.jsonl",
            tmp_path / "bo.jsonl",
            "--study",
            tmp_path / "study.yaml",
        )
        assert code == 2
        assert err.count("\n") == 1
        assert "evalkit label ... --decisions FILE --export" in err
