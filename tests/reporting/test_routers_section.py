"""The section of routers: what it says, what it never does, and that it is there for several routers only."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from report_dom import cells, parse
from rich.console import Console

from evalkit.reporting import numbers, render_html, render_markdown, render_terminal
from evalkit.reporting.verdict import contradictions, exit_code
from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers
from tests.workflows.studies import evalkit, write_csv, write_study


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from evalkit.cli.app import main

    folder = tmp_path_factory.mktemp("routers")
    trained = VENDOR | {"train": "train.jsonl", "leaks": "drop"}
    write_routers(folder, KEYWORDS, trained, NOISE)
    row = {"id": "t<1>", "prompt": "question 3 about a greeting", "required_tier": "cheap", "risk": "low"}
    (folder / "train.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert main(["route-sweep", str(folder / "study.yaml"), "--out", str(folder / "run"), "--quiet"]) == 0
    found: dict[str, Any] = json.loads((folder / "run" / "result.json").read_text(encoding="utf-8"))
    return found


def _section(html: str) -> str:
    start = html.index('<section id="routers"')
    return html[start : html.index("</section>", start)]


def test_every_router_has_its_row_and_the_headline_names_the_chosen_one(result: dict[str, Any]) -> None:
    html = render_html(result)
    part = _section(html)
    assert '<p class="v-head">Approved: router keywords, the best of 3</p>' in html
    assert '<a href="#routers">Routers</a>' in html
    assert "Deploy router keywords with the selected threshold as printed" in html
    assert part.count('<th scope="row"><bdi>keywords</bdi>') == 1
    for shown in (
        "chosen; rules, not trained",
        "scores from a file, trained on other items",
        "Under-routed, critical",
    ):
        assert shown in part
    assert part.count('<tr class="here">') == 1
    assert "0 of 150" in part
    assert "at most 2.7\u00a0%" in part
    assert "minus the other on the same items" in part
    assert "intervals at 97.5\u00a0%" in part or "intervals at 97.5 %" in part
    summary = render_markdown(result)
    assert "Approved: router keywords, the best of 3" in summary
    assert "| **keywords** | ✅ Approve | 0.9 |" in summary
    assert summary.count("### Routers") == 1


def test_each_probability_has_a_curve_and_its_table(result: dict[str, Any]) -> None:
    part = _section(render_html(result))
    assert part.count('class="calibration"') == 1
    assert part.count('aria-labelledby="calibration-1"') == 1
    assert '<figcaption id="calibration-1"><bdi>vendor</bdi>' in part
    bins = result["routers"][1]["calibration"]["bins"]
    assert part.count('class="est"') == len(bins)
    table = part[part.index("Bins of <bdi>vendor</bdi> as a table") :]
    assert table[: table.index("</table>")].count("<tr>") == len(bins) + 1
    assert "Without a declared probability: <bdi>keywords</bdi>, <bdi>noise</bdi>" in part


def test_what_was_left_out_is_said_with_its_pairs(result: dict[str, Any]) -> None:
    part = _section(render_html(result))
    left = result["left_out"]["items"]
    assert left >= 1
    assert "left out for all routers, being in the training labels of vendor" in part
    assert "t&lt;1&gt;" in part
    assert "t<1>" not in part


def test_names_facts_and_leaks_are_text_and_nothing_else(result: dict[str, Any]) -> None:
    hostile = copy.deepcopy(result)
    bad = "<script>alert(1)</script>\u202e\x1b[31m"
    row = hostile["routers"][0]
    row["facts"] = {bad: {bad: bad}, "list": [bad], "none": None}
    row["kind"] = bad
    hostile["routers"][1]["leaks"] = [{"id": bad, "training_id": bad, "kind": "exact", "similarity": 1.0}]
    for text in (hostile["routers"][1], hostile["router_comparisons"][0]):
        text["name" if "name" in text else "against"] = bad
    part = _section(render_html(hostile))
    assert "<script" not in part
    assert "\u202e" not in part
    assert "\x1b" not in part


def test_a_result_whose_routers_contradict_its_verdict_makes_no_page(result: dict[str, Any]) -> None:
    assert contradictions(result) == []
    other = copy.deepcopy(result)
    other["chosen_router"] = "noise"
    assert "the chosen router is 'noise'" in contradictions(other)[0]
    other = copy.deepcopy(result)
    other["routers"][0]["verdict"]["decision"] = "insufficient_evidence"
    assert contradictions(other) == ["approve although the chosen router keywords has insufficient_evidence"]
    other["verdict"]["decision"], other["selected"] = "insufficient_evidence", None
    assert "although another router than keywords is approved" in contradictions(other)[0]
    with pytest.raises(ValueError, match="contradicts itself"):
        render_html(other)


def test_one_router_of_a_file_has_no_section(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_routers(tmp_path)
    write_study(tmp_path)
    html = evalkit(capsys, tmp_path).html
    assert "routers" not in html.partition("<body>")[2].partition("<script")[0].casefold().replace(
        "all routers", ""
    )
    assert "/* routers */" not in html
    assert "### Routers" not in render_markdown(json.loads((tmp_path / "run" / "result.json").read_text("utf-8")))


def _closed(words: str) -> str:
    """Marks stand at the word before them, as on the page."""
    return words.replace(" :", ":").replace(" ,", ",")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Three routers, all cheap labels judged again without a missed need, one class judged on its estimate."""
    from evalkit.cli.app import main

    folder = tmp_path_factory.mktemp("audited")
    low = {"low": {"under_route_loss": 0.05, "max_under_route": 0.3, "gate_on": "estimate"}}
    upside_down = NOISE | {"name": "upside_down", "higher_means": "cheap_is_enough"}
    write_routers(folder, KEYWORDS, NOISE, upside_down, n=1200)
    study = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    study["risk"] |= low
    (folder / "study.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    draw = ["labels", "audit", str(folder / "study.yaml"), "--quiet", "--all"]
    assert main([*draw, "--out", str(folder / "audit.csv"), "--per-class", "1000"]) == 0
    with (folder / "audit.csv").open(encoding="utf-8", newline="") as file:
        rows = [row | {"required_tier": "cheap"} for row in csv.DictReader(file)]
    write_csv(folder / "audit.csv", rows)
    said = ["--judged", str(folder / "audit.csv"), "--json", str(folder / "audit.json")]
    assert main(["labels", "audit", str(folder / "study.yaml"), "--quiet", *said]) == 0
    (folder / "study.yaml").write_text(yaml.safe_dump(study | {"audit": "audit.json"}), encoding="utf-8")
    run = folder / "run"
    code = main(["route-sweep", str(folder / "study.yaml"), "--out", str(run), "--quiet"])
    found: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert code == exit_code(found)
    return found


def test_the_routers_read_the_same_on_every_view(audited: dict[str, Any]) -> None:
    page = parse(render_html(audited)).by_id("routers")
    table = next(iter(page.all("table", "routers")))
    markdown = render_markdown(audited).replace("\\", "")
    out = io.StringIO()
    render_terminal(audited, Console(file=out, width=80))
    terminal = out.getvalue()
    n = audited["counts"]["items"]
    for row, shown in zip(audited["routers"], cells(table), strict=True):
        word = {"approve": "Approve", "reject": "Reject"}.get(row["verdict"]["decision"], "Insufficient evidence")
        total = numbers.per_thousand(row["expected_total_usd"], n)
        cost, up = numbers.per_thousand(row["cost_usd_per_request"], 1), numbers.percent(row["escalation_rate"])
        under = [numbers.of(r["under_route_count"], r["needs"]) for r in row["by_risk"].values()]
        assert shown[0].startswith(row["name"])
        assert ("chosen" in shown[0]) == row["chosen"]
        assert [cell.partition(" (")[0] for cell in shown[1:4]] == [word, total, cost]
        assert shown[5] == up
        assert all(want in cell for want, cell in zip(under, shown[6:], strict=False))
        assert f"{row['thresholds'][0]!r}" in shown[6 + len(under)]
        line = next(line for line in markdown.splitlines() if line.startswith("| ") and row["name"] in line)
        for want in (word, total, cost, up, f"{row['thresholds'][0]!r}"):
            assert want in line
        line = next(line for line in terminal.splitlines() if line.startswith(row["name"]))
        for want in (word.partition(" ")[0], total, cost, up):
            assert want in line
        for gate in row["gates"] if row["chosen"] else []:
            same = next(other for other in audited["gates"] if other["name"] == gate["name"])
            assert all(same[key] == value for key, value in gate.items())


def test_the_table_says_which_way_a_threshold_goes_and_what_stands_against_a_router(
    audited: dict[str, Any],
) -> None:
    words = _closed(parse(render_html(audited)).by_id("routers").words())
    assert "Thresholds of keywords, noise: score >= threshold goes up." in words
    assert "Thresholds of upside_down: score < threshold goes up." in words
    for row in audited["routers"]:
        against = f"Against {row['name']}: "
        assert (against in words) == (row["verdict"]["decision"] != "approve" and not row["chosen"])
        if against in words:
            assert against + row["verdict"]["reasons"][0] in words


def test_nothing_is_said_twice_of_a_gate_on_its_estimate(audited: dict[str, Any]) -> None:
    assert audited["verdict"]["decision"] == "approve"
    page = parse(render_html(audited))
    out = io.StringIO()
    render_terminal(audited, Console(file=out, width=80))
    assert page.by_id("gates").words().count("NOT CERTIFIED (policy)") == 1
    assert "NOT CERTIFIED" not in page.by_id("verdict").words()
    assert "Not certified low: judged on the estimate by policy" in _closed(page.by_id("verdict").words())
    assert out.getvalue().count("NOT CERTIFIED (policy)") == 1


def test_every_file_that_the_comparison_stands_on_has_its_hash(audited: dict[str, Any]) -> None:
    words = parse(render_html(audited)).by_id("provenance").words()
    for name, part in (
        *((f"Scores of {row['name']}", row["scores"]) for row in audited["provenance"]["routers"]),
        ("Audit", audited["provenance"]["audit"]),
    ):
        assert name in words
        assert part["hash"] in words
