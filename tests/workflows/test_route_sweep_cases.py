"""Faults from practice, each as its case describes, through the command line."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.studies import CASE_COLUMNS, evalkit, write_study

TIERS = ("cheap", "mid", "frontier", "reasoning")
RISK = {
    "low": {"under_route_loss": 1, "max_under_route": 0.1, "weight": 1},
    "medium": {"under_route_loss": 3, "max_under_route": 0.1, "weight": 3},
    "high": {"under_route_loss": 10, "max_under_route": 0.05, "weight": 10},
    "critical": {"under_route_loss": 25, "max_under_route": 0, "weight": 25},
}


def case(shared: Path, name: str, folder: Path) -> dict[str, Any]:
    """Copy a case's inputs into `folder`; its expect.json."""
    for file in (shared / "cases" / name).iterdir():
        if file.suffix != ".md":
            shutil.copyfile(file, folder / file.name)
    return json.loads((folder / "expect.json").read_text(encoding="utf-8"))


def study(folder: Path, router: dict[str, Any], **changes: Any) -> None:
    settings: dict[str, Any] = {
        "labels": {"path": "labels.csv", "columns": CASE_COLUMNS},
        "outcomes": None,
        "tiers": [{"name": tier} for tier in TIERS],
        "router": {"cost_usd": 0, **router},
        "risk": RISK,
    }
    write_study(folder, **(settings | changes))


def decided(file: str) -> dict[str, Any]:
    return {"decisions": {"path": file, "columns": {"id": "query_id"}}}


def scored(file: str, **more: Any) -> dict[str, Any]:
    return {
        "scores": {"path": file, "columns": {"id": "query_id"}},
        "higher_means": "needs_stronger",
        "trained_on": "untrained",
        **more,
    }


def assumed_costs(folder: Path, ids: list[str], passes: dict[str, int]) -> None:
    """Outcomes for two tiers at made-up costs: an item passes from its required tier on."""
    with (folder / "outcomes.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "tier", "passed", "cost_usd"])
        for item in ids:
            for j, tier in enumerate(("cheap", "frontier")):
                writer.writerow([item, tier, "true" if j >= passes[item] else "false", (0.001, 0.02)[j]])


def labelled(folder: Path) -> tuple[list[str], dict[str, int]]:
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [r["query_id"] for r in rows], {r["query_id"]: int(r["required_tier"] != "cheap") for r in rows}


TWO_TIERS = {"outcomes": "outcomes.csv", "tiers": [{"name": "cheap"}, {"name": "frontier"}]}


def mentions(text: str, tokens: list[str]) -> bool:
    """One line holds all tokens."""
    return any(all(token in line for token in tokens) for line in text.splitlines())


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


def test_h06_every_file_is_strict_json_and_no_page_says_nan(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H06-strict-json-out", tmp_path)
    study(tmp_path, decided("routed.csv"))
    ran = evalkit(capsys, tmp_path)
    result = ran.result  # the parser refuses NaN and Infinity
    high = result["judged"]["by_risk"]["high"]
    assert high["under_route_rate"] is None
    assert high["under_route_rate_reason"] == "0 needs"
    assert result["judged"]["p95_task_s"] is None
    assert result["judged"]["p95_task_s_reason"] == "no task times"
    shown = _Text(ran.html).text
    assert "n/a" in shown
    for word in ("nan", "None", "null", "Infinity"):
        assert not re.search(rf"(?<![A-Za-z]){word}(?! of)(?![A-Za-z])", shown), word


class _Text(HTMLParser):
    """Visible text and the elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[str] = []
        self._hidden = 0
        self.feed(html)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in {"script", "style"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def test_h01_text_from_labels_and_models_stays_text(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H01-xss", tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    evil = [
        rows[0]["query"],
        rows[0]["output"],
        rows[0]["query_id"],
        rows[0]["model"],
        rows[1]["output"],
        "</script><script>document.title='pwned-5'</script>",
        "${7*7}{{7*7}}",
        "\u202e\u2066\x1b[31mred",
    ]
    labels, outcomes, routed = [], [], []
    for n, text in enumerate(evil):
        item = f"{rows[0]['query_id']}{n}"
        labels.append(
            {
                "id": item,
                "prompt": text,
                "required_tier": "frontier",
                "risk": "low<i>",
                "category": text,
                "reference": text,
            }
        )
        routed.append({"id": item, "routed_tier": "cheap"})
        outcomes += [
            {
                "id": item,
                "tier": tier,
                "model": text,
                "status": "error" if n % 2 else "wrong",
                "cost_usd": 0.1,
                "reply": text,
                "error": {"message": text},
            }
            for tier in ("cheap", "frontier")
        ]
    for name, table in (("labels", labels), ("outcomes", outcomes), ("routed", routed)):
        lines = "".join(json.dumps(row) + "\n" for row in table)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    write_study(
        tmp_path,
        description='x"><svg onload=document.title=1>',
        labels="labels.jsonl",
        outcomes="outcomes.jsonl",
        tiers=[{"name": "cheap", "model": "<b>mid</b>"}, {"name": "frontier"}],
        router={"decisions": "routed.jsonl", "cost_usd": 0},
        risk={"low<i>": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path, "--markdown", str(tmp_path / "s.md"), "--junit", str(tmp_path / "j.xml"))
    assert ran.code in {1, 3}, ran.err
    page = _Text(ran.html)
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "b", "i", "object", "embed", "base", "form"}
    assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
    assert not [v for _, attrs in page.tags for v in attrs.values() if v and "javascript:" in v.lower()]
    assert "&amp;lt;already escaped&amp;gt;" in ran.html
    assert "&lt;already escaped&gt;" in page.text
    for control in ("\u202e", "\u2066", "\x1b"):
        assert control not in ran.html
        assert control not in ran.out + ran.err
        assert control not in (tmp_path / "s.md").read_text(encoding="utf-8")
    assert "<script" not in (tmp_path / "s.md").read_text(encoding="utf-8")


def test_h03_the_report_loads_nothing(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "M02-matrix-orientation", tmp_path)
    study(tmp_path, decided("routed.csv"), description="see https://example.org/page")
    ran = evalkit(capsys, tmp_path)
    check = subprocess.run(
        [sys.executable, str(shared / "cases/H03-offline/check_offline.py"), str(ran.folder / "report.html")],
        check=False,
        capture_output=True,
    )
    assert check.returncode == 0, check.stdout
    assert "<svg" in ran.html
    assert sorted(p.name for p in ran.folder.iterdir()) == ["items.jsonl.gz", "report.html", "result.json"]


def test_h04_twenty_thousand_long_items_stay_a_small_page(shared: Path, tmp_path: Path, capsys: Any) -> None:
    case(shared, "H04-huge-report", tmp_path)
    subprocess.run([sys.executable, "make_input.py", "20000"], cwd=tmp_path, check=True)
    with (
        (tmp_path / "results.jsonl").open(encoding="utf-8") as results,
        (tmp_path / "labels.jsonl").open("w", encoding="utf-8") as labels,
        (tmp_path / "outcomes.jsonl").open("w", encoding="utf-8") as out,
        (tmp_path / "routed.csv").open("w", encoding="utf-8") as routed,
    ):
        routed.write("id,routed_tier\n")
        for line in results:
            row = json.loads(line)
            item = row["query_id"]
            labels.write(
                json.dumps({"id": item, "prompt": row["query"], "required_tier": "cheap", "risk": "low"}) + "\n"
            )
            for tier in ("cheap", "frontier"):
                out.write(
                    json.dumps(
                        {
                            "id": item,
                            "tier": tier,
                            "passed": row["correct"],
                            "cost_usd": 0.001,
                            "reply": row["output"],
                        }
                    )
                    + "\n"
                )
            routed.write(f"{item},cheap\n")
    write_study(
        tmp_path,
        labels="labels.jsonl",
        outcomes="outcomes.jsonl",
        router={"decisions": "routed.csv", "cost_usd": 0},
        risk={"low": {"under_route_loss": 1, "max_under_route": 0.5}},
    )
    ran = evalkit(capsys, tmp_path)
    assert (ran.folder / "report.html").stat().st_size < 3_000_000
    assert ran.result["judged"]["pass_rate"] == pytest.approx(18_000 / 20_000)
    assert ran.result["worst_items_total"] == 2_000
    text = _Text(ran.html).text
    assert "40 of 2,000" in text
    assert "items.jsonl.gz" in text


SECRET = "sk-FAKE-demo-0000-not-a-key"


@pytest.mark.parametrize("debug", [False, True])
def test_h07_a_key_reaches_no_output(shared: Path, tmp_path: Path, capsys: Any, debug: bool) -> None:
    case(shared, "H07-secrets", tmp_path)
    labels = "id,prompt,required_tier,risk\n" + "".join(
        f"q{i},my key is {SECRET} thanks,frontier,low\n" for i in range(4)
    )
    (tmp_path / "labels.csv").write_text(labels, encoding="utf-8")
    (tmp_path / "routed.csv").write_text(
        "id,routed_tier\n" + "".join(f"q{i},cheap\n" for i in range(4)), encoding="utf-8"
    )
    error = json.loads((tmp_path / "error.json").read_text(encoding="utf-8"))
    rows = [
        {
            "id": f"q{i}",
            "tier": tier,
            "status": "error",
            "error": error,
            "cost_usd": 0.1,
            "reply": "x" * 1990 + f" {SECRET}",
        }
        for i in range(4)
        for tier in ("cheap", "frontier")
    ]
    (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        f"""study: secrets
kind: routing
labels: labels.csv
outcomes: outcomes.jsonl
tiers:
  - name: cheap
    model: demo/mid
    params:
      api_key: {SECRET}
      api_base: "https://user:{SECRET}@gw.example/v1?api_key={SECRET}"
      extra_headers:
        Authorization: "Bearer {SECRET}"
        X-Team: routing
      max_tokens: 256
  - {{name: frontier, model: demo/frontier}}
router: {{decisions: routed.csv, cost_usd: 0}}
risk:
  low: {{under_route_loss: 1, max_under_route: 0.5}}
""",
        encoding="utf-8",
    )
    options = ["--markdown", str(tmp_path / "run" / "s.md"), "--junit", str(tmp_path / "run" / "j.xml")]
    ran = evalkit(capsys, tmp_path, *options, *(["--debug"] if debug else []))
    assert ran.code in {1, 3}, ran.err
    assert mentions(ran.err, ["study.yaml:9", "api_key", "environment variable"])
    import gzip

    written = {p.name: p.read_bytes() for p in ran.folder.iterdir()}
    written["items.jsonl.gz"] = gzip.decompress(written["items.jsonl.gz"])
    written |= {p.name: p.read_bytes() for p in tmp_path.glob("*.looks.json")}
    written |= {"stdout": ran.out.encode(), "stderr": ran.err.encode()}
    for name, content in written.items():
        assert SECRET.encode() not in content, name
        assert SECRET[:14].encode() not in content, f"half a key in {name}"
    text = written["result.json"].decode()
    for kept in ("256", "routing", "gw.example", "demo/mid"):
        assert kept in text, kept
