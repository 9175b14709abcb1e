"""The report as its reader meets it: opened from disk in Chromium, on a screen, a phone and paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from opening import AXE_TAGS, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

NAMES = [
    "approve",
    "reject",
    "insufficient",
    "four_tiers",
    "unknown_costs",
    "fixed_decisions",
    "nothing_measured",
    "hostile",
]

MOVE = (
    "i => { const s = document.querySelector('#slider');"
    " if (s) { s.value = i; s.dispatchEvent(new Event('input')); } }"
)


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_for_nothing_and_complains_of_nothing(
    chromium: Browser, reports: dict[str, str], name: str
) -> None:
    with opened(chromium, reports[name]) as (page, seen):
        page.wait_for_load_state("networkidle")
        if page.query_selector("#slider"):
            page.focus("#slider")
            page.keyboard.press("End")
        assert seen == []
        assert page.evaluate("performance.getEntriesByType('resource').length") == 0


def test_its_policy_stops_what_would_be_added(chromium: Browser, reports: dict[str, str]) -> None:
    with opened(chromium, reports["insufficient"]) as (page, seen):
        page.evaluate(
            "(() => { const s = document.createElement('script');"
            " try { s.textContent = 'window.ran = 1'; document.body.append(s); } catch (e) {} })()"
        )
        assert page.evaluate("window.ran") is None
        assert (
            page.evaluate(
                "(() => { try { document.body.insertAdjacentHTML('beforeend', '<img src=x>'); return 'in'; }"
                " catch (e) { return e.name; } })()"
            )
            == "TypeError"
        )
        assert page.query_selector("img") is None
        assert seen


@pytest.mark.parametrize("name", NAMES)
def test_the_page_never_scrolls_sideways(chromium: Browser, reports: dict[str, str], name: str) -> None:
    with opened(chromium, reports[name]) as (page, _):
        for width in (1440, 1024, 768, 390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1440, 390])
def test_it_reads_without_its_script(chromium: Browser, reports: dict[str, str], width: int) -> None:
    with opened(chromium, reports["insufficient"], width=width, java_script_enabled=False) as (page, seen):
        assert seen == []
        for text in ("INSUFFICIENT EVIDENCE", "Too few critical items", "points; all of them are in result.json"):
            assert page.get_by_text(text).first.is_visible()
        assert not page.locator("#slider").is_visible()
        assert page.locator(".curve svg").first.is_visible()
        assert page.locator("#items tbody tr").count() == page.locator("#items tbody tr:visible").count() > 0


@pytest.mark.parametrize("name", ["hostile"])
def test_hostile_text_is_inert(chromium: Browser, reports: dict[str, str], name: str) -> None:
    with opened(chromium, reports[name]) as (page, seen):
        title = page.title()
        page.wait_for_timeout(300)
        assert page.title() == title
        assert "pwned" not in title
        for tag in ("img", "iframe", "object", "embed", "form", "base"):
            assert page.locator(tag).count() == 0
        assert page.locator("script").count() == 2
        assert (
            page.evaluate(
                "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                ".filter(a => a.startsWith('on'))"
            )
            == []
        )
        assert page.locator("a").evaluate_all("links => links.every(a => a.getAttribute('href').startsWith('#'))")
        assert "</td><script>document.title=" in page.inner_text("main")
        assert "&lt;already escaped&gt;" in page.inner_text("main")
        assert seen == []


def test_the_keyboard_is_enough(chromium: Browser, reports: dict[str, str]) -> None:
    with opened(chromium, reports["insufficient"]) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "verdict"
        verdict = page.inner_text(".v-word")

        before = page.inner_text("[data-o='1']")
        page.focus("#slider")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("[data-o='1']") != before
        assert "for looking only" in page.inner_text("#where")
        assert page.get_attribute("#slider", "aria-valuetext") not in (None, "")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "back"
        page.keyboard.press("Enter")
        assert page.inner_text("[data-o='1']") == before
        assert page.inner_text(".v-word") == verdict

        page.focus("#find")
        page.keyboard.type("headset")
        shown = page.locator("#items tbody tr:visible").count()
        assert page.inner_text("#found").startswith(f"{shown} of ")
        assert 0 < shown < page.locator("#items tbody tr").count()


def test_the_explorer_shows_the_figures_of_each_point(chromium: Browser, reports: dict[str, str]) -> None:
    with opened(chromium, reports["insufficient"]) as (page, _):
        data = page.evaluate("JSON.parse(document.querySelector('#points').textContent)")
        for index in (0, len(data["text"]) // 2, len(data["text"]) - 1):
            page.evaluate(
                MOVE,
                index,
            )
            for slot in (0, 1, 2, 3, 4, 7, 8, 9):
                assert page.text_content(f"[data-o='{slot}']") == data["text"][index][slot]
            x, y, _top = data["marks"][index][0]
            assert page.get_attribute(".curve .est >> nth=0", "transform") == f"translate({x:g},{y:g})"


def test_wide_tables_scroll_in_their_own_box_by_keyboard(chromium: Browser, reports: dict[str, str]) -> None:
    with opened(chromium, reports["four_tiers"], width=390) as (page, _):
        box = page.locator(".box", has=page.locator(".policies"))
        assert box.evaluate("b => b.scrollWidth > b.clientWidth")
        assert box.get_attribute("tabindex") == "0"
        box.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("b => b.scrollLeft > 0", arg=box.element_handle())
    with opened(chromium, reports["insufficient"], width=1440) as (page, _):
        fits = page.locator(".box").evaluate_all(
            "bs => bs.filter(b => b.scrollWidth <= b.clientWidth + 1 && b.tabIndex === 0).length"
        )
        assert fits == 0


SCREENS = [
    *((name, 1440, "light") for name in NAMES),
    *((name, 1440, "dark") for name in ("approve", "reject", "insufficient")),
    *((name, 390, scheme) for name in ("reject", "hostile") for scheme in ("light", "dark")),
]


@pytest.mark.parametrize(("name", "width", "scheme"), SCREENS)
def test_axe_finds_nothing(chromium: Browser, reports: dict[str, str], name: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # The page's own policy would keep the checker out too.
    with opened(chromium, reports[name], width=width, color_scheme=scheme, bypass_csp=True) as (page, _):
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []


@pytest.mark.parametrize("name", ["approve", "reject", "insufficient"])
def test_forced_colours_keep_state_and_figures(chromium: Browser, reports: dict[str, str], name: str) -> None:
    with opened(chromium, reports[name], forced_colors="active") as (page, seen):
        for cell in page.locator(".gates .c-state").all():
            assert re.match(r"Pass|Open|Fail", cell.inner_text().strip())
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for css in (".bar .limit", ".chart .rate", ".sign .rim"):
            stroke = page.locator(css).first.evaluate("e => getComputedStyle(e).stroke")
            assert stroke not in (paper, "none")
        assert seen == []


@pytest.mark.parametrize("name", ["insufficient", "four_tiers", "reject"])
def test_paper_is_light_whole_and_starts_with_verdict_and_gates(
    chromium: Browser, reports: dict[str, str], name: str
) -> None:
    # A4 less its margins at 96 pixels an inch.
    width, height = round((210 - 26) / 25.4 * 96), round((297 - 29) / 25.4 * 96)
    with opened(chromium, reports[name], color_scheme="dark") as (page, _):
        if page.query_selector("#find"):
            page.fill("#find", "no such text")
        page.evaluate(MOVE, 0)
        pdf = page.pdf(prefer_css_page_size=True, print_background=True)
        assert pdf.startswith(b"%PDF")
        # What printing puts on paper is the state between these two events.
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#items tbody tr:visible").count() == page.locator("#items tbody tr").count()
        assert "Showing the" in (page.text_content("#where") or "")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        end = page.locator("table.gates").evaluate("e => e.getBoundingClientRect().bottom + scrollY")
        assert end <= height
        flows = page.locator(".box").evaluate_all("bs => bs.map(b => getComputedStyle(b).overflowX)")
        assert set(flows) == {"visible"}
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for hidden in (".toc", ".pick", ".filter"):
            assert not page.locator(hidden).is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("#items tbody tr:visible").count() == 0


def test_a_study_of_20000_items_opens_at_once(chromium: Browser, reports: dict[str, str], tmp_path: Any) -> None:
    import report_examples as examples

    from evalkit.reporting import render_html

    result = examples.insufficient()
    template = result["worst_items"][0]
    result["worst_items"] = [template | {"id": f"q{i}", "reply": "long " * 800} for i in range(2_000)]
    result["worst_items_total"] = 20_000
    path = tmp_path / "large.html"
    path.write_text(render_html(result), encoding="utf-8")
    with opened(chromium, path.as_uri()) as (page, seen):
        assert page.locator("#items tbody tr").count() == 40
        assert "40 of 20,000 shown" in page.inner_text("#items")
        assert seen == []
