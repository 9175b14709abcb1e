"""The section of routers: what it says, what it never does, and that it is there for several routers only."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.reporting import render_html, render_markdown
from evalkit.reporting.verdict import contradictions
from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers
from tests.workflows.studies import evalkit, write_study


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
