"""One result, many views: page, JUnit, Markdown, terminal and exit code say the same."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import report_examples as examples
from report_dom import Node, cells, parse
from rich.cells import cell_len
from rich.console import Console

from evalkit import reporting
from evalkit.reporting.gates_view import gate_rows

WORDS = {"approve": "APPROVE", "reject": "REJECT", "insufficient_evidence": "INSUFFICIENT EVIDENCE"}
STATES = {
    "certified": "Pass",
    "estimate": "Pass",
    "insufficient": "Open",
    "not_statable": "Open",
    "violated": "Fail",
    "infeasible": "Fail",
}


@pytest.fixture(scope="module", params=examples.ALL)
def result(request: pytest.FixtureRequest) -> dict[str, Any]:
    return examples.ALL[request.param]()


@pytest.fixture(scope="module")
def page(result: dict[str, Any]) -> Node:
    return parse(reporting.render_html(result))


def terminal(result: dict[str, Any], **options: Any) -> str:
    out = io.StringIO()
    reporting.render_terminal(result, Console(file=out, width=80, **options))
    return out.getvalue()


def folded(shown: str) -> str:
    return " ".join(shown.split())


def test_the_verdict_is_the_same_everywhere(result: dict[str, Any], page: Node) -> None:
    word = WORDS[result["verdict"]["decision"]]
    others = [other for other in WORDS.values() if other != word]
    assert page.by_id("verdict-h").words() == f"Verdict {word}"
    assert word in reporting.render_markdown(result).splitlines()[0]
    assert f"\n{word}: " in terminal(result)
    assert word in ET.fromstring(reporting.render_junit(result)).findall(".//testcase")[-1][0].attrib.get(
        "message", word
    )
    assert reporting.exit_code(result) == {"APPROVE": 0, "REJECT": 1, "INSUFFICIENT EVIDENCE": 3}[word]
    for other in others:
        assert other not in page.by_id("verdict").words()
        assert other not in terminal(result)


def test_every_gate_has_one_state_everywhere(result: dict[str, Any], page: Node) -> None:
    expected = sorted(STATES[gate["status"]] for gate in result["gates"])
    rows = list(page.by_id("gates").all("tbody")[0].all("tr"))
    assert sorted(row.all("td", "c-state")[0].all("strong")[0].text() for row in rows) == expected
    markdown = re.findall(r"^\| (?:✅|❓|❌) (Pass|Open|Fail), ", reporting.render_markdown(result), re.M)
    assert sorted(markdown) == expected
    cases = [
        c
        for c in ET.fromstring(reporting.render_junit(result)).iter("testcase")
        if c.get("classname") == "evalkit.gates"
    ]
    words = {"system-out": "Pass", "error": "Open", "failure": "Fail"}
    assert sorted(words[case[0].tag] for case in cases) == expected
    for word in ("Pass", "Open", "Fail"):
        shown = [line for line in terminal(result).splitlines() if re.match(rf"{word}\b", line)]
        assert len(shown) == expected.count(word)


def test_limits_estimates_and_bounds_read_the_same(result: dict[str, Any], page: Node) -> None:
    words = page.by_id("gates").words()
    markdown = reporting.render_markdown(result).replace("\\", "")
    junit = " ".join(
        t.get("message") or t.text or ""
        for c in ET.fromstring(reporting.render_junit(result)).iter("testcase")
        for t in c
    )
    for row in gate_rows(result):
        for shown in (row.limit, row.estimate, row.bound):
            head = shown.partition(" (")[0]
            assert head in words
            assert head in markdown
            assert head in junit


def test_ci_is_green_for_an_approval_alone(result: dict[str, Any]) -> None:
    root = ET.fromstring(reporting.render_junit(result))
    red = len(root.findall(".//failure")) + len(root.findall(".//error"))
    assert (red == 0) == (result["verdict"]["decision"] == "approve")
    suite = root.find("testsuite")
    assert suite is not None
    for node in (root, suite):
        assert int(node.attrib["tests"]) == len(root.findall(".//testcase"))
        assert int(node.attrib["failures"]) == len(root.findall(".//failure"))
        assert int(node.attrib["errors"]) == len(root.findall(".//error"))
        assert node.attrib["skipped"] == "0"


def test_headline_reasons_and_next_step_are_on_every_view(result: dict[str, Any], page: Node) -> None:
    from evalkit.reporting.gates_view import verdict_view

    view = verdict_view(result)
    card, out = page.by_id("verdict").words(), folded(terminal(result))
    junit = ET.fromstring(reporting.render_junit(result)).findall(".//testcase")[-1][0]
    said = junit.get("message") or junit.text or ""
    for shown in (view.headline, *view.reasons, view.next_step, *view.uncertified):
        assert folded(shown) in card
        assert folded(shown).replace(" ", "") in out.replace(" ", "")
        assert folded(shown) in folded(said)


def test_a_terminal_of_80_columns_holds_it_and_a_pipe_sees_no_codes(result: dict[str, Any]) -> None:
    out = terminal(result)
    assert max(cell_len(line) for line in out.splitlines()) <= 80
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", out)
    assert "\x1b[" in terminal(result, force_terminal=True, color_system="standard")


def test_a_terminal_without_unicode_gets_ascii(result: dict[str, Any]) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    reporting.render_terminal(result, Console(file=stream, width=80))
    stream.flush()
    assert b"<=" in raw.getvalue()


def test_the_same_result_makes_the_same_bytes(result: dict[str, Any]) -> None:
    for view in (reporting.render_html, reporting.render_markdown, reporting.render_junit):
        assert view(result) == view(result)


def test_the_tables_of_page_and_markdown_agree(result: dict[str, Any], page: Node) -> None:
    policies = list(page.by_id("changes").all("table", "policies"))
    if not policies:
        return
    lines = [line for line in reporting.render_markdown(result).splitlines() if line.startswith("| ")]
    for row in cells(policies[0]):
        head = row[1].partition(" note")[0]
        assert any(head in line.replace("\\", "") for line in lines)
