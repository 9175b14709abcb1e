"""The report of a ladder as its reader meets it: in Chromium, on a screen, a phone and paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opening import AXE_TAGS, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

NAMES = [
    "approve",
    "priced_next",
    "reject",
    "insufficient",
    "unknown_costs",
    "one_arm",
    "nothing_measured",
    "hostile",
]


@pytest.fixture(scope="module")
def ladders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Address of a report on disk for each example result."""
    from evalkit.reporting.reasoning import render_ladder_html
    from tests.reporting.ladder_examples import result

    folder = tmp_path_factory.mktemp("ladders")
    addresses = {}
    for name in NAMES:
        path: Path = folder / f"{name}.html"
        path.write_text(render_ladder_html(result(name)), encoding="utf-8")
        addresses[name] = path.as_uri()
    return addresses


@pytest.mark.parametrize("name", NAMES)
def test_it_asks_for_nothing_and_complains_of_nothing(
    chromium: Browser, ladders: dict[str, str], name: str
) -> None:
    with opened(chromium, ladders[name]) as (page, seen):
        page.wait_for_load_state("networkidle")
        assert seen == []
        assert page.evaluate("performance.getEntriesByType('resource').length") == 0
        assert "pwned" not in page.title()
        assert page.locator("script").count() == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1440, 768, 390, 320])
def test_the_page_never_scrolls_sideways(
    chromium: Browser, ladders: dict[str, str], name: str, width: int
) -> None:
    with opened(chromium, ladders[name], width=width) as (page, _):
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        *((name, 1440, "light") for name in NAMES),
        *((name, 390, "dark") for name in NAMES),
        ("insufficient", 1440, "dark"),
        ("insufficient", 390, "light"),
    ],
)
def test_axe_finds_nothing(chromium: Browser, ladders: dict[str, str], name: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # The page's own policy would keep the checker out too.
    with opened(chromium, ladders[name], width=width, color_scheme=scheme, bypass_csp=True) as (page, _):
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []


@pytest.mark.parametrize("width", [1440, 390])
def test_it_reads_without_its_script(chromium: Browser, ladders: dict[str, str], width: int) -> None:
    with opened(chromium, ladders["insufficient"], width=width, java_script_enabled=False) as (page, seen):
        assert seen == []
        for text in ("INSUFFICIENT EVIDENCE", "Choose nothing yet", "Every limit at every arm"):
            assert page.get_by_text(text).first.is_visible()
        assert page.locator("#items tbody tr").count() == page.locator("#items tbody tr:visible").count() > 0


def test_one_sentence_and_one_figure_fit_the_first_screens(chromium: Browser, ladders: dict[str, str]) -> None:
    with opened(chromium, ladders["approve"], width=1440) as (page, _):
        assert page.locator(".v-head").bounding_box()["y"] < 300  # type: ignore[index]
        chart = page.locator("#curve svg:visible")
        assert chart.count() == 1
        box = chart.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 1800
        assert page.locator("#curve .mk.here:visible").count() == 1


def test_the_filter_finds_tasks(chromium: Browser, ladders: dict[str, str]) -> None:
    with opened(chromium, ladders["insufficient"]) as (page, _):
        page.fill("#find", "t9")
        shown = page.locator("#items tbody tr:visible").count()
        assert page.inner_text("#found").startswith(f"{shown} of ")


@pytest.mark.parametrize("name", ["approve", "insufficient", "priced_next"])
def test_forced_colours_keep_the_figure(chromium: Browser, ladders: dict[str, str], name: str) -> None:
    with opened(chromium, ladders[name], forced_colors="active") as (page, seen):
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        stroke = page.locator("#curve svg:visible .line").first.evaluate("e => getComputedStyle(e).stroke")
        assert stroke not in (paper, "none")
        assert seen == []


@pytest.mark.parametrize("name", ["approve", "insufficient"])
def test_paper_is_light_and_whole(chromium: Browser, ladders: dict[str, str], name: str) -> None:
    # A4 less its margins at 96 pixels an inch.
    width, height = round((210 - 26) / 25.4 * 96), round((297 - 29) / 25.4 * 96)
    with opened(chromium, ladders[name], color_scheme="dark") as (page, _):
        assert page.pdf(prefer_css_page_size=True, print_background=True).startswith(b"%PDF")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="print", color_scheme="light")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        end = page.locator("#curve svg:visible").evaluate("e => e.getBoundingClientRect().bottom + scrollY")
        assert end <= height, "verdict and figure stand on the first page"
        for hidden in (".toc", ".filter"):
            if page.query_selector(hidden):
                assert not page.locator(hidden).is_visible()
