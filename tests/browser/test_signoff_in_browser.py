"""The sign-off as its reader meets it: opened from disk in Chromium, in two languages, on screens and on paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import signoff_examples as examples
from opening import AXE_TAGS, opened

from evalkit.reporting.signoff import render_signoff_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

NAMES = list(examples.ALL)
PAGES = [f"{name}-{lang}" for name in NAMES for lang in ("en", "ko")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Address on disk of each example in each language."""
    folder = tmp_path_factory.mktemp("signoffs")
    addresses = {}
    for name, make in examples.ALL.items():
        for lang in ("en", "ko"):
            path = folder / f"{name}-{lang}.html"
            path.write_text(render_signoff_html(make(), lang), encoding="utf-8")
            addresses[f"{name}-{lang}"] = path.as_uri()
    return addresses


@pytest.mark.parametrize("name", PAGES)
def test_it_asks_for_nothing_complains_of_nothing_and_never_scrolls_sideways(
    chromium: Browser, pages: dict[str, str], name: str
) -> None:
    with opened(chromium, pages[name]) as (page, seen):
        page.wait_for_load_state("networkidle")
        for width in (1440, 1024, 768, 390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen == []
        assert page.evaluate("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("name", ["insufficient-en", "reject-ko"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_cell_of_the_gates_covers_another(
    chromium: Browser, pages: dict[str, str], name: str, width: int
) -> None:
    overlap = (
        "() => { const bad = []; for (const row of document.querySelectorAll('.gates tr')) {"
        " const boxes = [...row.children].map(c => { const r = document.createRange(); r.selectNodeContents(c);"
        " return [...r.getClientRects()].filter(b => b.width > 1 && b.height > 1); });"
        " boxes.forEach((a, i) => boxes.forEach((b, j) => { if (i < j) for (const p of a) for (const q of b)"
        " if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&"
        " Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 2) bad.push(row.innerText); })); } return bad; }"
    )
    with opened(chromium, pages[name], width=width) as (page, _):
        # Words for screen readers alone take no room.
        page.evaluate("document.querySelectorAll('.vh').forEach(e => e.remove())")
        assert page.evaluate(overlap) == []
        if width == 1440:
            page.set_viewport_size({"width": 695, "height": 1015})
            page.emulate_media(media="print")
            assert page.evaluate(overlap) == []


@pytest.mark.parametrize("width", [1440, 390])
def test_it_reads_without_its_script(chromium: Browser, pages: dict[str, str], width: int) -> None:
    with opened(chromium, pages["insufficient-en"], width=width, java_script_enabled=False) as (page, seen):
        assert seen == []
        for text in ("INSUFFICIENT EVIDENCE", "460 more needs", "Roll back when", "sha256:0123456789abcdef"):
            assert page.get_by_text(text).first.is_visible()
        assert not page.locator("#find").is_visible()
        assert page.locator("#items tbody tr").count() == page.locator("#items tbody tr:visible").count() > 0


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_hostile_text_is_inert(chromium: Browser, pages: dict[str, str], lang: str) -> None:
    with opened(chromium, pages[f"hostile-{lang}"]) as (page, seen):
        title = page.title()
        page.wait_for_timeout(300)
        assert page.title() == title
        assert title.endswith("evalkit sign-off")
        for tag in ("img", "iframe", "object", "embed", "form", "base", "b"):
            assert page.locator(tag).count() == 0
        assert page.locator("script").count() == 1
        assert (
            page.evaluate(
                "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                ".filter(a => a.startsWith('on') || a === 'style')"
            )
            == []
        )
        assert page.locator("a").evaluate_all("links => links.every(a => a.getAttribute('href').startsWith('#'))")
        assert "&lt;already escaped&gt;" in page.inner_text("main")
        assert seen == []


def test_the_keyboard_is_enough(chromium: Browser, pages: dict[str, str]) -> None:
    with opened(chromium, pages["approve-ko"]) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "verdict"
        verdict = page.inner_text(".verdict")
        page.focus("#find")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.type("warfarin")
        shown = page.locator("#items tbody tr:visible").count()
        everything = page.locator("#items tbody tr").count()
        assert 0 < shown < everything
        assert page.inner_text("#found") == f"{everything}건 중 {shown}건 표시"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "find-risk"
        page.select_option("#find-risk", "critical")
        assert page.locator("#items tbody tr:visible").count() <= shown
        assert page.inner_text(".verdict") == verdict


def test_every_stop_of_the_keyboard_is_seen(chromium: Browser, pages: dict[str, str]) -> None:
    with opened(chromium, pages["reject-en"]) as (page, _):
        stops = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            here = page.evaluate(
                "(() => { const e = document.activeElement; if (e === document.body) return null;"
                " return [e.tagName, e.id || e.href || e.className, getComputedStyle(e).outlineStyle]; })()"
            )
            if here is None:
                break
            assert here[2] == "solid"
            stops.add(here[1])
        assert {"find", "find-risk"} <= stops


SCREENS = [
    *((name, 1440, "light") for name in PAGES),
    *((f"{name}-en", 1440, "dark") for name in ("approve", "reject", "insufficient")),
    *((name, 390, scheme) for name in ("reject-ko", "hostile-en") for scheme in ("light", "dark")),
]


@pytest.mark.parametrize(("name", "width", "scheme"), SCREENS)
def test_axe_finds_nothing(chromium: Browser, pages: dict[str, str], name: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, pages[name], width=width, color_scheme=scheme, bypass_csp=True) as (page, _):
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []


@pytest.mark.parametrize("name", ["approve-en", "reject-ko", "insufficient-en"])
def test_forced_colours_keep_state_and_figures(chromium: Browser, pages: dict[str, str], name: str) -> None:
    with opened(chromium, pages[name], forced_colors="active") as (page, seen):
        for cell in page.locator(".gates .c-state").all():
            assert re.match(
                r"Pass|Open|Fail|통과|미결|실패|certified|not certified|보증", cell.inner_text().strip()
            )
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for css in (".bar .limit", ".sign .rim"):
            stroke = page.locator(css).first.evaluate("e => getComputedStyle(e).stroke")
            assert stroke not in (paper, "none")
        assert seen == []


@pytest.mark.parametrize("name", ["approve-en", "insufficient-en", "many-en", "many-ko", "reject-ko"])
def test_page_one_of_a4_holds_verdict_reason_next_step_and_all_gates(
    chromium: Browser, pages: dict[str, str], name: str
) -> None:
    # A4 less its margins at 96 pixels an inch.
    width, height = round((210 - 26) / 25.4 * 96), round((297 - 29) / 25.4 * 96)
    with opened(chromium, pages[name], color_scheme="dark") as (page, _):
        page.fill("#find", "no such text")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#items tbody tr:visible").count() == page.locator("#items tbody tr").count()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for css in (".v-word", ".v-head", ".v-facts .next", ".gates:not(.slices)"):
            end = page.locator(css).first.evaluate("e => e.getBoundingClientRect().bottom + scrollY")
            assert end <= height, css
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for hidden in (".toc", ".filter"):
            assert not page.locator(hidden).is_visible()
        flows = page.locator(".box").evaluate_all("bs => bs.map(b => b.scrollWidth <= b.clientWidth + 1)")
        assert all(flows)


def test_a_study_of_100000_items_opens_at_once(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("large") / "large.html"
    path.write_text(render_signoff_html(examples.large()), encoding="utf-8")
    assert path.stat().st_size < 3_000_000
    with opened(chromium, path.as_uri(), width=390) as (page, seen):
        assert page.locator("#items tbody tr").count() == 40
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert seen == []
