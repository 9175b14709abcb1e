"""A sign-off says the same in every form, and in no form what its gates do not carry."""

from __future__ import annotations

import copy
import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import signoff_examples as examples
from hypothesis import given
from hypothesis import strategies as st
from report_dom import cells, parse
from rich.console import Console

import evalkit
from evalkit.reporting.signoff import (
    render_signoff_html,
    render_signoff_junit,
    render_signoff_markdown,
    render_signoff_terminal,
    signoff_contradictions,
    signoff_exit_code,
)

Document = dict[str, Any]
PLAIN = ["approve", "reject", "insufficient", "many"]
WORDS = {
    "approve": ("APPROVE", "승인"),
    "reject": ("REJECT", "거부"),
    "insufficient_evidence": ("INSUFFICIENT EVIDENCE", "근거 부족"),
}


def terminal(document: Document, lang: str = "en", width: int = 160) -> str:
    out = io.StringIO()
    render_signoff_terminal(document, Console(file=out, width=width), lang)
    return out.getvalue()


@pytest.mark.parametrize("name", PLAIN)
def test_every_form_has_the_same_verdict_states_and_digest(name: str) -> None:
    document = examples.ALL[name]()
    decision, digest = document["verdict"]["decision"], document["digest"]
    states = sorted(gate["state"] for gate in document["gates"])
    assert signoff_exit_code(document) == {"approve": 0, "reject": 1, "insufficient_evidence": 3}[decision]

    suite = ElementTree.fromstring(render_signoff_junit(document))
    tests = suite.findall(".//testcase[@classname='evalkit.gates']")
    seen = ["fail" if t.find("failure") is not None else "open" if t.find("error") is not None else "pass"
            for t in tests]  # fmt: skip
    assert sorted(seen) == states
    verdict = suite.find(".//testcase[@classname='evalkit.verdict']")
    assert verdict is not None
    green = verdict.find("failure") is None and verdict.find("error") is None
    assert green is (decision == "approve")
    assert digest in (ElementTree.tostring(verdict, encoding="unicode"))
    assert suite.find(".//skipped") is None

    for lang, word in zip(("en", "ko"), WORDS[decision], strict=True):
        html = render_signoff_html(document, lang)
        tree = parse(html)
        assert tree.all("span", "v-word")[0].words() == word
        rows = [tr for tr in tree.all("table", "gates")[0].all("tr") if tr.all("td", "c-state")]
        rows += [item for held in tree.all("ul", "held") for item in held.all("li")]
        assert sorted(next(c for c in ("pass", "open", "fail") if f"g-{c}" in row.attributes["class"].split())
                      for row in rows) == states  # fmt: skip
        # In page, provenance and signature block; in the foot of each sheet of paper.
        assert html.count(digest) >= 3
        markdown = render_signoff_markdown(document, lang)
        assert word in markdown.splitlines()[0]
        assert digest.replace(":", "&#58;") in markdown
        shown = terminal(document, lang)
        assert f"{word}: " in shown
        assert digest in shown


@pytest.mark.parametrize("name", PLAIN)
def test_the_figures_of_a_gate_do_not_depend_on_the_language(name: str) -> None:
    document = examples.ALL[name]()
    pages = []
    for lang in ("en", "ko"):
        table = parse(render_signoff_html(document, lang)).all("table", "gates")[0]
        pages.append(
            [[re.findall(r"[−\d.,]+", cell) for cell in row[2:6]] for row in cells(table) if len(row) > 2]
        )
    assert pages[0] == pages[1]
    held = [g for g in document["gates"] if g["basis"] == "fact" and g["state"] == "pass"]
    assert len(pages[0]) == len(document["gates"]) - len(held)


def test_what_stops_a_release_comes_first() -> None:
    table = parse(render_signoff_html(examples.insufficient())).all("table", "gates")[0]
    words = [row[0].split()[0] for row in cells(table) if row[0]]
    assert words == sorted(words, key=("Fail", "Open", "Pass").index)


def test_an_open_gate_says_what_would_settle_it_in_both_languages() -> None:
    document = examples.insufficient()
    document["gates"][3] |= {
        "status": "insufficient",
        "state": "open",
        "bound": 0.8411,
        "message": "Pass rate: low",
    }
    english, korean = render_signoff_markdown(document), render_signoff_markdown(document, "ko")
    assert "460 more needs without a further failure would settle it" in english
    assert "460개(필요 항목)" in korean
    for text, words in ((english, "More of the same will not settle it."), (korean, "결론이 나지 않습니다")):
        (row,) = [line for line in text.splitlines() if "≥ 85 %" in line]
        assert words in row


def test_a_class_judged_on_the_estimate_is_named_and_looks_different() -> None:
    for lang in ("en", "ko"):
        tree = parse(render_signoff_html(examples.approve(), lang))
        assert "low" in tree.by_id("verdict").words()
        marked = [tr.words() for tr in tree.all("tr", "uncertified")]
        assert len(marked) == 2
    assert "NOT CERTIFIED" in terminal(examples.approve())
    document = examples.approve()
    document["verdict"]["headline"] = ""
    assert "not certified: low" in parse(render_signoff_html(document)).all("p", "v-head")[0].words()


def test_the_change_is_the_difference_of_what_is_shown() -> None:
    table = parse(render_signoff_html(examples.approve())).all("table", "changes")[0]
    rows = {row[0].split(" (")[0]: row[1:] for row in cells(table)}
    # .00518 and .00388 USD a request: 5.18 and 3.88 per 1,000, 1.30 or 25.1 % less.
    cost = next(v for k, v in rows.items() if k.startswith("Cost per 1,000"))
    assert cost == ["$5.18", "$3.88", "−$1.30 −25.1 %"]
    rate = next(v for k, v in rows.items() if k.startswith("Pass rate"))
    assert rate == ["86.1 %", "85.7 %", "−0.48 points"]


def _broken(change: Any) -> Document:
    document = examples.approve()
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["gates"][0].update(status="insufficient", state="open"), "is open"),
        (lambda d: d["gates"][0].update(status="violated", state="fail"), "failed"),
        (lambda d: d["gates"][0].update(status="insufficient"), "shown as 'pass'"),
        (lambda d: d["gates"][0].update(status="fine"), "unknown status"),
        (lambda d: d["gates"][0].update(bound=0.021), "beyond 0.02"),
        (lambda d: d["gates"][0].update(bound=None), "has no upper bound"),
        (lambda d: d["gates"][5].update(observed=0.005), "beyond 0.0046"),
        (lambda d: d["gates"][6].update(bound=-1.01), "beyond -1.0"),
        (lambda d: d["gates"][6].update(bound=None), "has no bound"),
        (lambda d: d["gates"][9].update(observed=61), "beyond 60"),
        (lambda d: d.update(gates=[]), "without a gate"),
        (lambda d: d["verdict"].update(uncertified=[]), "without naming low"),
        (lambda d: d["verdict"].update(decision="yes"), "is not one of"),
        (lambda d: d["stop_rules"][0].update(triggered=True), "is triggered"),
        (lambda d: d["stop_rules"][0].update(triggered=None), "was not computed"),
        (lambda d: d["runs"][0].update(verdict="insufficient_evidence"), "the run routing-1"),
        (lambda d: d["runs"][0].update(verdict={"decision": "reject"}), "the run routing-1"),
        (lambda d: d.update(schema="evalkit.signoff/2"), "schema"),
    ],
)
def test_a_document_that_contradicts_itself_is_shown_in_no_form(change: Any, words: str) -> None:
    document = _broken(change)
    assert any(words in found for found in signoff_contradictions(document))
    for render in (
        render_signoff_html,
        render_signoff_markdown,
        render_signoff_junit,
        terminal,
        signoff_exit_code,
    ):
        with pytest.raises(ValueError, match="contradicts itself"):
            render(document)


@given(
    st.lists(st.sampled_from(sorted(examples.STATES)), min_size=1, max_size=6),
    st.sampled_from(sorted(WORDS)),
)
def test_no_form_approves_over_a_gate_that_does_not_pass(statuses: list[str], decision: str) -> None:
    document = examples.approve()
    document["verdict"]["decision"] = decision
    document["gates"] = [
        examples.gate(f"pass_rate_{i}", "x", status, limit_is="min", limit=0.5, observed=0.9, bound=0.8)
        for i, status in enumerate(statuses)
    ]
    states = {examples.STATES[status] for status in statuses}
    if (decision == "approve" and states != {"pass"}) or ("fail" in states and decision != "reject"):
        assert signoff_contradictions(document)
    else:
        assert signoff_contradictions(document) == []


@pytest.mark.parametrize("name", [*PLAIN, "bare", "hostile"])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_the_same_document_gives_the_same_text_and_is_not_changed(name: str, lang: str) -> None:
    document = examples.ALL[name]()
    before = copy.deepcopy(document)
    assert render_signoff_html(document, lang) == render_signoff_html(copy.deepcopy(document), lang)
    assert render_signoff_markdown(document, lang) == render_signoff_markdown(copy.deepcopy(document), lang)
    assert document == before


def test_hostile_text_is_inert_in_markdown_junit_and_terminal() -> None:
    document = examples.hostile()
    for lang in ("en", "ko"):
        markdown = render_signoff_markdown(document, lang)
        assert not re.search(r"<(?!br)", markdown)
        assert not re.search(r"(?<!\\)\]\(", markdown)
        assert "\x1b" not in markdown
        lines = [line for line in markdown.splitlines() if line.startswith("|")]
        # Every row of the table of gates has its eight cells, whatever is in them.
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines[: 2 + len(document["gates"])]} == {9}
        shown = terminal(document, lang)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    suite = ElementTree.fromstring(render_signoff_junit(document))
    assert len(suite.findall(".//testcase")) == len(document["gates"]) + len(document["stop_rules"]) + 1


def test_junit_is_the_same_whatever_the_language_of_the_reader() -> None:
    assert not re.search(r"[가-힣]", render_signoff_junit(examples.reject()))


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_why_a_pass_is_no_certificate_is_said_once(lang: str) -> None:
    document = examples.approve()
    low = next(gate for gate in document["gates"] if gate["name"] == "under_route:low")
    reason = {"code": "estimate", "gate": low["id"], "text": low["message"]}
    document["verdict"]["reasons"].append(reason)
    mark = "NOT CERTIFIED" if lang == "en" else "보증 안 됨:"
    page = parse(render_signoff_html(document, lang=lang))
    estimates = sum(gate["status"] == "estimate" for gate in document["gates"])
    assert mark not in page.by_id("verdict").words().replace("보증 안 됨: low", "")
    assert page.by_id("gates").words().count(mark) == estimates
    assert terminal(document, lang).replace("보증 안 됨: low", "").count(mark) == estimates


def test_a_condition_that_not_every_run_meets_is_named_with_the_run_that_does() -> None:
    shown = terminal(examples.many())  # the ladder left its bundle out
    held = next(line for line in shown.splitlines() if line.startswith("Conditions that hold"))
    assert "Evidence can be recomputed (support-routing)" in held
    assert "Policy fixed before the run;" in held


def test_what_a_number_counts_is_korean_too() -> None:
    document = examples.approve()
    document["gates"][0] |= {"n_is": "audited items"}
    assert "audited" not in parse(render_signoff_html(document, lang="ko")).by_id("gates").words()
    from evalkit.reporting.language import language
    from evalkit.reporting.signoff.said import things

    # Every unit that a gate of the engine counts in.
    source = Path(evalkit.__file__).parent
    counted = {
        name
        for path in source.rglob("*.py")
        if "reporting" not in path.parts
        for name in re.findall(r'n_is(?:: str)? ?= ?"([a-z ]+)"', path.read_text(encoding="utf-8"))
    }
    assert {"audited items", "judgements", "items"} <= counted
    assert [name for name in sorted(counted) if things(name, language("ko")) == name] == []
