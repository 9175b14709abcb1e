"""The sign-off page: what it says, in which order, that nothing in it can act, and how large it may get."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import signoff_examples as examples
from report_dom import Node, cells, parse

from evalkit.reporting.signoff import render_signoff_html

Document = dict[str, Any]
SECTIONS = ["verdict", "gates", "decided", "slices", "ladder", "stop-rules", "items", "limits", "release",
            "provenance", "signature"]  # fmt: skip


@pytest.fixture(scope="module", params=[(n, lang) for n in examples.ALL for lang in ("en", "ko")], ids="-".join)
def html(request: pytest.FixtureRequest) -> str:
    name, lang = request.param
    return render_signoff_html(examples.ALL[name](), lang)


@pytest.fixture(scope="module")
def tree(html: str) -> Node:
    return parse(html)


def test_sections_come_in_the_order_of_the_decision(tree: Node) -> None:
    ids = [node.attributes["id"] for node in tree.all("main")[0].all("section")]
    assert ids == SECTIONS
    links = [a.attributes["href"] for a in tree.all("nav")[0].all("a")]
    assert links == [f"#{name}" for name in ids]


def test_every_id_is_there_once_and_every_reference_finds_it(tree: Node) -> None:
    ids = [node.attributes["id"] for node in tree.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in tree.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(node.attributes.get(name, "").split()) <= set(ids)


def test_no_figure_is_nan_none_or_null(tree: Node) -> None:
    words = " ".join(_visible(tree))
    assert not re.search(
        r"\b(nan|none|null|inf|infinity|undefined|True|False)\b(?!</)", words.replace("none", "", 9)
    )


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
        (found,) = tree.all(tag)
        digest = base64.b64encode(hashlib.sha256(found.text().encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert " style=" not in re.sub(r"<(style|script).*?</\1>", "", html, flags=re.S)
    for node in tree.all():
        assert not [a for a in node.attributes if a.startswith("on")]
    # Nothing is loaded: what it needs is in it.
    assert not {node.tag for node in tree.all()} & {"img", "iframe", "object", "embed", "form", "base", "b"}
    assert [n.attributes["href"] for n in tree.all("link")] == ["data:,"]


def test_its_language_is_declared_and_what_is_not_in_it_is_marked() -> None:
    document = examples.reject()
    known = {*document["evidence_limits"], "Look 1 of 2 declared: each spends its part of the error rate."}
    new = {"A sentence that no catalogue has, about 12 items."}
    document["evidence_limits"] = [*known, *new]
    tree = parse(render_signoff_html(document, "ko"))
    assert tree.all("html")[0].attributes["lang"] == "ko"
    marked = {node.words() for node in tree.all() if node.attributes.get("lang") == "en"}
    assert new <= marked
    words = tree.by_id("limits").words()
    assert "필요한 모델 등급은 사람이 정했습니다." in words
    assert "선언한 2회 중 1회째" in words
    assert not [limit for limit in known if limit in words]
    assert parse(render_signoff_html(document)).all("html")[0].attributes["lang"] == "en"


def test_hostile_text_stands_there_as_text() -> None:
    document = examples.hostile()
    tree = parse(render_signoff_html(document))
    words = tree.all("main")[0].words()
    assert "&lt;already escaped&gt;" in words
    assert "</td><script>document.title='pwned'</script>" in words
    assert "\u202e" not in words
    assert "\\u202e" in words
    assert "{{ 7*7 }}" in words
    for link in tree.all("a"):
        assert link.attributes["href"].startswith("#"), "the folder of a run with such a name is no link"
    # The style sheet holds no text of the document beyond its verdict and the letters of its digest.
    assert "pwned'" not in tree.all("style")[0].text()


@pytest.mark.parametrize(
    "folder",
    ["../routing-1", "runs/../x", "/etc", "runs/a b", "javascript:alert(1)", "//evil", "runs/.x", "runs/"],
)
def test_only_a_plain_folder_of_the_sign_off_is_linked(folder: str) -> None:
    document = examples.approve()
    links = [a.attributes["href"] for a in parse(render_signoff_html(document)).by_id("decided").all("a")]
    assert links == ["runs/routing-1/report.html"]
    document["runs"][0]["folder"] = folder
    assert parse(render_signoff_html(document)).by_id("decided").all("a") == []


def test_a_hundred_thousand_items_stay_below_three_megabytes() -> None:
    html = render_signoff_html(examples.large())
    tree = parse(html)
    assert len(html.encode()) < 3_000_000
    assert len(tree.by_id("items").all("table")[0].all("tbody")[0].all("tr")) == 40
    assert "40 of 100,000 shown" in tree.by_id("items").words()
    assert "cut here; 4,000 characters in all" in tree.by_id("items").words()
    assert "440 more stand in signoff.json." in tree.by_id("limits").words()
    assert "1,880 more stand in manifest.json" in tree.by_id("provenance").words()


def test_conditions_that_the_policy_does_not_state_are_said_to_be_missing() -> None:
    document = examples.approve()
    document["release"] = {"owner": "the support platform team"}
    words = parse(render_signoff_html(document)).by_id("release").words()
    assert words.count("n/a (the policy does not state it)") == 4
    assert "the support platform team" in words


def test_a_secret_in_any_text_is_hidden() -> None:
    key = "sk-proj-" + "a1B2" * 10
    document = examples.approve()
    document["worst_items"][0]["text"] = f"my key is {key}, help"
    document["release"]["owner"] = key
    document["provenance"]["note"] = {"value": key}
    assert key not in render_signoff_html(document)


def test_the_ladder_is_drawn_where_every_rung_is_known() -> None:
    tree = parse(render_signoff_html(examples.reject()))
    assert len(tree.by_id("ladder").all("svg")) == 2
    rows = cells(tree.by_id("ladder").all("table")[0])
    assert [row[0].split()[0] for row in rows] == [r["arm"] for r in examples.reject()["ladder"]]
    # 0.00093 USD a point: 0.93 per 1,000 requests.
    assert rows[2][1:] == ["84.6 % 83.9 % to 85.3 %", "$6.35", "$0.93"]
    document = examples.reject()
    document["ladder"][1]["cost_usd"] = None
    tree = parse(render_signoff_html(document))
    assert tree.by_id("ladder").all("svg") == []
    assert "n/a" in tree.by_id("ladder").words()


def test_the_names_of_those_who_sign_come_from_the_document_alone() -> None:
    document = examples.approve()
    document["signers"] = [{"role": "approver", "name": "head of support"}]
    rows = cells(parse(render_signoff_html(document)).by_id("signature").all("table")[0])
    assert [row[:2] for row in rows] == [["Approved by", "head of support"]]
    del document["signers"]
    rows = cells(parse(render_signoff_html(document)).by_id("signature").all("table")[0])
    assert [row[1] for row in rows] == ["to fill in"] * 3


def test_templates_trust_nothing(request: pytest.FixtureRequest) -> None:
    folder = Path(request.config.rootpath) / "evalkit" / "reporting" / "templates" / "signoff"
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.html")]
    assert len(sources) >= 10
    assert not [s for s in sources if re.search(r"\|\s*safe|autoescape|Markup", s)]
