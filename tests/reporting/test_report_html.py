"""The page: what it says, in which order, and that nothing in it can act."""

from __future__ import annotations

import base64
import copy
import hashlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import report_examples as examples
from report_dom import Node, cells, parse

from evalkit import reporting
from evalkit.reporting import environment as environment_module
from evalkit.reporting import page as page_module

TEMPLATES = Path(page_module.__file__).parent / "templates"
Result = dict[str, Any]


@pytest.fixture(scope="module", params=examples.ALL)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def html(name: str) -> str:
    return reporting.render_html(examples.ALL[name]())


@pytest.fixture(scope="module")
def tree(html: str) -> Node:
    return parse(html)


def test_the_decision_comes_first(tree: Node) -> None:
    ids = [node.attributes["id"] for node in tree.all("main")[0].all("section")]
    assert ids[:4] == ["verdict", "gates", "changes", "explorer"]
    assert ids[-4:] == ["items", "limits", "provenance", "signature"]


def test_no_figure_is_nan_none_or_null(tree: Node) -> None:
    words = " ".join(_visible(tree)).replace("reverse=True", "")  # one request is Python
    assert not re.search(r"\b(nan|none|null|inf|infinity|undefined)\b", words, re.I)
    assert not re.search(r"\b(True|False)\b", words)


def _visible(node: Node) -> list[str]:
    found = []
    for child in node.children:
        if isinstance(child, str):
            found.append(child)
        elif child.tag not in {"script", "style", "head"}:
            found += _visible(child)
    return found


def test_script_and_style_are_the_ones_its_policy_names(html: str, tree: Node) -> None:
    policy = next(
        m.attributes["content"] for m in tree.all("meta") if "content-security" in str(m.attributes).lower()
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag in ("style", "script"):
        found = [n for n in tree.all(tag) if n.attributes.get("type") != "application/json"]
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].text().encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert " style=" not in re.sub(r"<(style|script).*?</\1>", "", html, flags=re.S)
    for node in tree.all():
        assert not [a for a in node.attributes if a.startswith("on")]


def test_nothing_is_loaded(html: str, tree: Node, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for node in tree.all():
        for attribute in ("src", "href", "srcset", "action", "poster", "data", "xlink:href"):
            if attribute in node.attributes:
                assert node.attributes[attribute].startswith(("#", "data:,"))
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    shared: Path = request.getfixturevalue("shared")
    report = tmp_path / "report.html"
    report.write_text(html, encoding="utf-8")
    check = shared / "cases" / "H03-offline" / "check_offline.py"
    done = subprocess.run([sys.executable, str(check), str(report)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_can_be_read_by_everybody(tree: Node) -> None:
    assert tree.all("html")[0].attributes["lang"] == "en"
    assert len(tree.all("h1")) == 1
    levels = [int(n.tag[1]) for n in tree.all() if n.tag in {"h1", "h2", "h3"}]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    for table in tree.all("table"):
        assert table.all("caption")
        assert table.all("th")
    for box in tree.all(css="box"):
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["role"] == "region"
        assert box.attributes["aria-label"]
    ids = [n.attributes["id"] for n in tree.all() if "id" in n.attributes]
    assert len(ids) == len(set(ids))
    targets = [n.attributes["href"] for n in tree.all("a")]
    assert all(target[1:] in ids for target in targets)
    for node in tree.all():
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            assert node.attributes.get(attribute, ids[0]) in ids


def test_size_and_script(html: str) -> None:
    assert len(html.encode()) < 500_000
    assert len((TEMPLATES / "report.js").read_bytes()) <= 8_000


def test_the_script_only_shows_what_the_page_holds(tree: Node) -> None:
    found = [n for n in tree.all("script") if n.attributes.get("id") == "points"]
    if not found:
        return
    data = json.loads(found[0].text())
    slots = [n for n in tree.all() if "data-o" in n.attributes]
    for slot in slots:
        assert slot.text() == data["text"][data["start"]][int(slot.attributes["data-o"])]
    curves = [n for n in tree.all("svg", "chart") if "class-" in n.attributes.get("aria-labelledby", "")]
    assert all(len(marks) == len(curves) for marks in data["marks"])
    assert len(data["text"]) == len(data["marks"])


def test_no_data_is_trusted_as_markup() -> None:
    sources = {p: p.read_text(encoding="utf-8") for p in TEMPLATES.rglob("*.html")}
    assert len(sources) > 10
    for path, source in sources.items():
        assert not re.search(r"\|\s*(safe|tojson)|autoescape", source), path
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script)
    package = Path(page_module.__file__).parent
    trusting = {
        p.name for p in package.glob("*.py") if re.search(r"\bMarkup\((?![\"'])", p.read_text(encoding="utf-8"))
    }
    assert trusting == {"page.py", "items_page.py"}

    def lines(name: str) -> list[str]:
        source = (package / name).read_text(encoding="utf-8")
        return sorted(x.strip() for x in source.splitlines() if "Markup(" in x)

    assert lines("page.py") == [
        '"explorer_json": Markup(text.script_json(board.script)) if board else "",',
        '"script": Markup(script),',
        '"style": Markup(style),',
    ]
    assert lines("items_page.py") == [
        '"style": Markup(style),  # a file of this package, not data',
        "rows=Markup(body),",  # what `row_renderer` made, by a template
    ]


def test_a_number_without_a_format_cannot_be_printed() -> None:
    for value in (1.5, None, True):
        with pytest.raises(TypeError, match="numbers are written by"):
            environment_module._only_text(value)


# ---- hostile text (case H01) ----


@pytest.mark.parametrize(
    "source", ["insufficient", "approve", "reject", "four_tiers", "fixed_decisions", "unknown_costs"]
)
def test_hostile_text_makes_no_element_and_no_attribute(source: str) -> None:
    plain = parse(reporting.render_html(examples.ALL[source]()))
    tree = parse(reporting.render_html(examples.hostile(examples.ALL[source]())))
    for tag in ("script", "svg", "img", "iframe", "b", "a", "style", "form", "object"):
        assert len(tree.all(tag)) == len(plain.all(tag)), tag
    assert not tree.all("b")
    assert {n.tag for n in tree.all()} == {n.tag for n in plain.all()}
    names = {a for n in tree.all() for a in n.attributes}
    assert names <= {a for n in plain.all() for a in n.attributes}
    assert not [n for n in tree.all() if "javascript:" in n.attributes.get("href", "")]


def test_case_h01_shows_every_value_as_the_text_it_is(shared: Path) -> None:
    rows = [
        json.loads(x) for x in (shared / "cases/H01-xss/results.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    result = examples.insufficient()
    template = result["worst_items"][0]
    result["worst_items"] = [
        template
        | {
            "id": row["query_id"],
            "model": row["model"],
            "prompt": row["query"],
            "reply": row["output"],
            "reference": row.get("judge_reason"),
            "flags": [row.get("error", {}).get("message", "none given")],
        }
        for row in rows
    ]
    html = reporting.render_html(result)
    shown = parse(html).by_id("items").text()
    for row in rows:
        for value in (row["query_id"], row["model"], row["query"], row["output"], row.get("judge_reason", "")):
            assert value in shown
    assert "&amp;lt;already escaped&amp;gt;" in html


def test_controls_and_reordering_marks_are_visible() -> None:
    html = reporting.render_html(examples.hostile())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u200b\u202a-\u202e\u2066-\u2069\u2028\u2029]", html)
    assert "\\u202e" in html
    assert "{{ 7*7 }}" in html
    assert ">49<" not in html


def test_secrets_are_hidden_before_text_is_cut() -> None:
    result = examples.insufficient()
    secret = "sk-FAKE-demo-0000-not-a-key"
    for before in range(290, 330, 5):
        result["worst_items"][0]["prompt"] = "x" * before + f" api key {secret} y"
        result["notices"] = [f"Authorization: Bearer {secret}"]
        for view in (reporting.render_html, reporting.render_markdown, reporting.render_junit):
            assert "FAKE-demo" not in view(result)


# ---- what the cases ask of a report ----


def _matrix(tree: Node, title: str) -> tuple[list[str], list[list[str]]]:
    for table in tree.by_id("matrices").all("table"):
        if table.all("caption")[0].words() == title:
            return [c.words() for c in table.all("thead")[0].all("tr")[1].all("th")], cells(table)
    raise AssertionError(title)


def test_case_m02_rows_are_required_and_columns_routed_in_tier_order(shared: Path) -> None:
    want = json.loads((shared / "cases/M02-matrix-orientation/expect.json").read_text(encoding="utf-8"))["values"]
    result = examples.four_tiers()
    point = result["shown"]
    point["confusion"] = [*want["matrix"], [0, 0, 0, 0]]
    point["confusion_weighted"] = copy.deepcopy(point["confusion"])
    point["confusion_loss_usd"] = [[0.0] * 4 for _ in range(5)]
    tree = parse(reporting.render_html(result))
    head, body = _matrix(tree, "All items")
    assert head == ["Required", "cheap", "mid", "frontier", "reasoning", "n"]
    assert [row[0] for row in body] == ["cheap", "mid", "frontier", "reasoning", "unsolvable"]
    assert "Routed to" in tree.by_id("matrices").words()
    counts = [[int(cell.split()[0]) for cell in row[1:-1]] for row in body[:4]]
    assert counts == want["matrix"]
    for r, row in enumerate(body[:4]):
        for c, cell in enumerate(row[1:-1]):
            assert ("under" in cell) == (c < r)
            assert ("over" in cell) == (c > r)
    under = sum(n for r, row in enumerate(counts) for c, n in enumerate(row) if c < r)
    over = sum(n for r, row in enumerate(counts) for c, n in enumerate(row) if c > r)
    assert (under, over) == (len(want["under"]), len(want["over"]))


def test_case_m03_accuracy_is_never_first_and_recall_by_class_comes_before_it() -> None:
    words = parse(reporting.render_html(examples.reject())).all("main")[0].words()
    accuracy = words.index("Routed to exactly the required tier")
    for earlier in ("Under-routed, of needs", "reached their tier", "Risk class critical"):
        assert words.index(earlier) < accuracy
    assert "hides under-routing" in words[accuracy:]


def test_case_m03_names_the_share_of_critical_needs_that_reached_their_tier() -> None:
    result = examples.reject()
    part = result["judged"]["by_risk"]["critical"]
    part |= {"needs": 2, "under_route_count": 2, "under_route_rate": 1.0}
    assert "0 of 2 (0.0 %) of the needs reached their tier" in parse(reporting.render_html(result)).words()


def test_case_r07_shows_all_three_rates_with_what_was_not_answered() -> None:
    result = examples.insufficient()
    result["counts"] |= {"items": 10, "answered": 8, "unanswered": 2}
    result["candidate"] |= {
        "pass_rate": 0.875,
        "pass_rate_lower": 0.7,
        "pass_rate_upper": 0.9,
        "passed_count": 7,
        "answered_count": 8,
    }
    want = "7 of 8 answered passed (87.5 %), 2 of 10 unanswered, 70.0 % to 90.0 % of all. Gates take the lower."
    assert want in parse(reporting.render_html(result)).words()
    assert want in reporting.render_markdown(result)


def test_case_k01_nothing_measured_is_on_the_page_and_not_green() -> None:
    result = examples.nothing_measured()
    words = parse(reporting.render_html(result)).by_id("verdict").words()
    assert "5 of 5 errored" in words
    assert "401" in words
    assert "INSUFFICIENT EVIDENCE" in words
    assert reporting.exit_code(result) == 3


def test_case_m09_percentiles_show_n_and_say_when_they_are_the_maximum() -> None:
    result = examples.fixed_decisions()
    result["by_tier"][0] |= {"n": 19, "task_p95_s": 19.0}
    result["by_tier"][1] |= {"n": 20, "task_p95_s": 18.0}
    result["by_tier"][2] |= {"n": 0, "task_p95_s": None}
    tree = parse(reporting.render_html(result))
    row = next(r for r in cells(tree.by_id("tiers").all("table")[0]) if r[0] == "Whole task, p95")
    assert row[1] == "19.0 s n 19; equals maximum, n too small"
    assert row[2] == "18.0 s n 20"
    assert row[3] == "n/a 0 values"
    assert "nearest rank" in tree.by_id("limits").words()


def test_a_class_on_the_estimate_reads_not_certified() -> None:
    result = examples.approve()
    gate = next(g for g in result["gates"] if g["name"] == "under_route:low")
    gate |= {"k": 2, "n": 50, "observed": 0.04, "upper_bound": 0.1213, "limit": 0.10}
    want = (
        "NOT CERTIFIED (policy). low: 2 of 50 needs under-routed, 4.0 %; could be 12.1 %. Limit 10 %. "
        "A threshold set on the estimate breaks the limit in more than half of studies."
    )
    tree = parse(reporting.render_html(result))
    row = next(r for r in tree.by_id("gates").all("tr") if "low" in r.words())
    assert want in row.words()
    assert "uncertified" in row.attributes["class"].split()
    assert "Not certified low" in tree.by_id("verdict").words()


def test_case_h04_many_and_long_items_stay_a_page() -> None:
    result = examples.insufficient()
    template = result["worst_items"][0]
    long = {"prompt": "word " * 200, "reply": "long " * 800 + "x"}
    result["worst_items"] = [template | long | {"id": f"q{i}"} for i in range(2_000)]
    result["worst_items_total"] = 2_000
    result["counts"] |= {"items": 20_000, "answered": 20_000, "unanswered": 0}
    html = reporting.render_html(result)
    assert len(html.encode()) < 500_000
    words = parse(html).by_id("items").words()
    assert "40 of 2,000 shown, worst first; all 20,000 items are in items.jsonl.gz" in words
    assert "… cut here; 1,000 characters in all" in words
    assert "… cut here; 4,001 characters in all" in words


def test_case_l06_one_huge_request_is_cut_with_a_mark() -> None:
    result = examples.insufficient()
    result["worst_items"][0]["prompt"] = "가" * 131_600
    html = reporting.render_html(result)
    assert "131,600 characters in all" in html
    assert len(html.encode()) < 200_000


def test_512_points_and_many_classes_stay_small() -> None:
    result = examples.insufficient()
    result["points"] = [
        result["points"][i % len(result["points"])] | {"thresholds": [i / 512, 0.9]} for i in range(512)
    ]
    extra = [copy.deepcopy(result["risk_classes"][0]) | {"name": f"class {i}"} for i in range(9)]
    result["risk_classes"] += extra
    html = reporting.render_html(result)
    assert len(html.encode()) < 1_000_000
    assert "further risk classes stand in the table" in html
