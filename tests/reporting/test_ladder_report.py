"""Every output of a ladder says the same, says it first, and nothing from data can act in it."""

from __future__ import annotations

import copy
import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from report_dom import Node, parse
from rich.console import Console

from evalkit.reporting import dump_json, exit_code, render_junit
from evalkit.reporting.reasoning import (
    advice,
    ladder_contradictions,
    render_ladder_html,
    render_ladder_markdown,
    render_ladder_terminal,
)
from tests.reporting.ladder_examples import ALL, ATTACKS, result

CODES = {
    "approve": 0,
    "priced_next": 0,
    "reject": 1,
    "insufficient": 3,
    "unknown_costs": 3,
    "one_arm": 3,
    "nothing_measured": 3,
    "hostile": 1,
}


def terminal(document: dict[str, Any], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    render_ladder_terminal(document, Console(file=out, width=80, highlight=False, markup=False))
    out.flush()
    return raw.getvalue().decode(encoding)


@pytest.fixture(scope="module", params=ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tree(name: str) -> Node:
    return parse(render_ladder_html(result(name)))


def test_the_exit_code_is_the_verdict(name: str) -> None:
    assert exit_code(result(name)) == CODES[name]
    assert ladder_contradictions(result(name)) == []


def test_the_decision_comes_first_and_the_figure_next(tree: Node) -> None:
    ids = [node.attributes["id"] for node in tree.all("main")[0].all("section")]
    assert ids[:4] == ["verdict", "curve", "gates", "ladder"]
    assert ids[-4:] == ["items", "limits", "provenance", "signature"]


def test_every_output_says_what_to_choose(name: str, tree: Node) -> None:
    said = advice(result(name))
    page = tree.by_id("verdict").words()
    flat = " ".join(terminal(result(name)).split())
    for sentence in (said.choice, said.flat, said.next_point, said.worth):
        if name != "hostile" and sentence:
            assert " ".join(sentence.split()) in page
            assert sentence.replace(" ", "") in flat.replace(" ", "")
    assert sum(said.choice.count(stop) for stop in ".") >= 1
    assert "\n" not in said.choice


def test_no_figure_is_nan_none_or_null(name: str, tree: Node) -> None:
    shown = re.sub(r"\bNone of these\b|none of these", "", " ".join(_visible(tree)))
    text = f"{shown} {terminal(result(name))} {render_ladder_markdown(result(name))}"
    text = re.sub(r"none of these|choose none|asked for no", "", text, flags=re.I)
    if name != "hostile":
        assert not re.search(r"\b(nan|none|null|inf|infinity|undefined)\b", text, re.I)


def _visible(node: Node) -> list[str]:
    found = []
    for child in node.children:
        if isinstance(child, str):
            found.append(child)
        elif child.tag not in {"script", "style", "head"}:
            found += _visible(child)
    return found


def test_the_json_is_strict_and_every_null_has_its_reason(name: str) -> None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    document = json.loads(dump_json(result(name)), parse_constant=refuse)
    for arm in document["arms"]:
        for key in (
            "pass_rate",
            "cost_usd_per_request",
            "billed_tokens_per_request",
            "p95_task_s",
            "marginal_cost_per_quality_point",
            "net_benefit_vs_previous",
            "status",
        ):
            assert arm[key] is not None or arm[f"{key}_reason"], key


def test_the_page_carries_the_figures_of_the_result(name: str, tree: Node) -> None:
    if name == "hostile":
        return
    table = tree.by_id("ladder").all("table")[0]
    rows = table.all("tbody")[0].all("tr")
    assert len(rows) == len(result(name)["arms"])
    for row, arm in zip(rows, result(name)["arms"], strict=True):
        words = row.words()
        assert words.startswith(arm["name"])
        assert f"{100 * arm['pass_rate_lower']:.1f} %" in words
        if arm["cost_usd_per_request"] is None:
            assert "n/a" in words
        else:
            assert f"${1000 * arm['cost_usd_per_request']:.2f}" in words


def test_the_figure_marks_the_arm_the_flat_part_and_the_price() -> None:
    page = parse(render_ladder_html(result("approve"))).by_id("curve")
    svg = page.all("svg")[0]
    assert len(svg.all("path", "here")) == 1
    assert svg.all("rect", "no"), "the plateau is hatched"
    assert "flat: each step gains less than 5 points" in svg.words()
    assert "at least 90 %" in svg.words()
    assert len(svg.all("path", "err")) >= 3
    priced = parse(render_ladder_html(result("priced_next"))).by_id("curve").all("svg")[0].words()
    arm = next(a for a in result("priced_next")["arms"] if a["name"] == "think-4k")
    assert f"${1000 * arm['marginal_cost_per_quality_point']:.2f} a point" in priced
    assert "The next point beyond think-1k costs" in advice(result("priced_next")).next_point


def test_the_figure_shows_a_limit_that_every_arm_stays_below() -> None:
    """Arms at two thirds, the limit at 90 %: its line stands where the axis says 90 %, above every arm."""
    svg = parse(render_ladder_html(result("reject"))).by_id("curve").all("svg")[0]
    line, mark = svg.all("path", "limit")[0].attributes["d"], svg.all("path", "here")[0].attributes["transform"]
    ticks = {t.words(): float(t.attributes["y"]) - 4 for t in svg.all("text", "tick") if t.words().endswith(" %")}
    assert float(re.findall(r"[\d.]+", line)[1]) == pytest.approx(ticks["90 %"], abs=0.1)
    ends = [
        float(y) for bar in svg.all("path", "err") for y in re.findall(r"M[\d.]+,([\d.]+)V", bar.attributes["d"])
    ]
    assert ticks["90 %"] < min([*ends, float(re.findall(r"[\d.]+", mark)[1])])


def test_an_arm_says_how_many_limits_it_breaks_and_intervals_their_confidence() -> None:
    document = copy.deepcopy(result("reject"))
    broken = sum(g["status"] == "violated" for g in document["arms"][0]["gates"])
    assert broken > 1
    assert f"breaks {broken}" in terminal(document)
    document["confidence"] = 0.9
    assert "90 % interval" in terminal(document)


def test_without_costs_the_figure_shows_tokens() -> None:
    page = parse(render_ladder_html(result("unknown_costs"))).by_id("curve")
    assert "billed tokens per request" in page.all("svg")[0].words()
    assert "some costs are unknown" in advice(result("unknown_costs")).next_point


def test_junit_and_markdown_carry_the_verdict(name: str) -> None:
    document = result(name)
    suite = ElementTree.fromstring(render_junit(document))
    case = next(c for c in suite.iter("testcase") if c.attrib["classname"] == "evalkit.verdict")
    assert (case.find("failure") is not None) == (document["verdict"]["decision"] == "reject")
    assert (case.find("error") is not None) == (document["verdict"]["decision"] == "insufficient_evidence")
    head = render_ladder_markdown(document).splitlines()[0]
    assert {"approve": "APPROVE", "reject": "REJECT"}.get(
        document["verdict"]["decision"], "INSUFFICIENT EVIDENCE"
    ) in head


def test_nothing_from_data_is_markup() -> None:
    html = render_ladder_html(result("hostile"))
    tree = parse(html)
    assert len(tree.all("script")) == 1
    for tag in ("img", "iframe", "object", "form"):
        assert tree.all(tag) == []
    assert not [a for node in tree.all() for a in node.attributes if a.startswith("on")]
    assert "7*7" in html
    assert ATTACKS[0][:20] not in html
    plain = terminal(result("hostile"))
    assert "\x1b" not in plain
    assert "\u202e" not in plain
    table = [line for line in render_ladder_markdown(result("hostile")).splitlines() if line.startswith("| ")]
    assert all("<" not in line for line in table)


def test_a_terminal_that_knows_ascii_only() -> None:
    for example in ("approve", "hostile"):
        assert terminal(result(example), "ascii").isascii()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"selected": None}, "not in the ladder"),
        ({"selected": "think-4k"}, "not those of the selected arm"),
        ({"selected": "plain"}, "plain"),
    ],
)
def test_a_result_that_contradicts_itself_is_not_rendered(change: dict[str, Any], said: str) -> None:
    broken = copy.deepcopy(result("approve")) | change
    assert any(said in found for found in ladder_contradictions(broken))
    for render in (render_ladder_html, render_ladder_markdown, terminal):
        with pytest.raises(ValueError, match="contradicts itself"):
            render(broken)


def test_an_open_gate_never_stands_under_an_approval() -> None:
    broken = copy.deepcopy(result("approve"))
    for gates in (broken["gates"], next(a for a in broken["arms"] if a["name"] == "think-1k")["gates"]):
        gates[0]["status"] = "insufficient"
    assert any("open" in found for found in ladder_contradictions(broken))


def test_a_cheaper_arm_that_meets_every_limit_is_never_passed_over() -> None:
    broken = copy.deepcopy(result("approve"))
    next(a for a in broken["arms"] if a["name"] == "plain")["meets_all_limits"] = True
    assert any("at less cost" in found for found in ladder_contradictions(broken))
