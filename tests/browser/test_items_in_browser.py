"""The pages of all items as somebody looks through them: opened from disk in Chromium, by links alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opening import AXE_TAGS, opened

from evalkit.workflows.items_pages import ItemsOptions, write_items

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.workflows.item_runs import hostile_run, item, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAGES = [
    "plain/index",
    "plain/0001",
    "plain/0003",
    "plain/given-0001",
    "ladder/index",
    "ladder/0001",
    "hostile/index",
]
PAGES += ["hostile/0001", "hostile/risk1-flag1-0001", "empty/index", "empty/0001"]
ARMS = ("no thinking", "think-1k", "think-4k")


def plain_run(folder: Path) -> Path:
    """1,200 items of two risks with flags, some of which lack figures."""
    flags = {0: ["under_routed", "wrong"], 1: ["unnecessary_escalation"], 2: ["contract_failure", "unanswered"]}
    rows = (
        item(
            i,
            risk="critical" if i % 3 else "low",
            flags=flags.get(i % 7, []),
            loss_usd=float(i % 7 == 0) * i,
            cost_usd=None if i % 11 == 0 else 0.00042 * (i % 13),
            group=f"conversation {i // 4}",
        )
        for i in range(1200)
    )
    return write_run(folder, rows)


def ladder_run(folder: Path) -> Path:
    """Tasks of three arms."""
    fared = {
        "passed": 1 / 3,
        "answered": 1.0,
        "runs": 3,
        "cost_usd": 0.01,
        "task_s": 3.2,
        "status": "ok, wrong, wrong",
    }
    rows = [
        {
            "id": f"task-{i}",
            "risk": "high" if i % 2 else None,
            "category": None,
            "group": None,
            "weight": 1.0,
            "flags": ["broken by think-4k"] if i % 3 == 0 else [],
            "arms": {arm: fared | {"passed": float((i + a) % 2)} for a, arm in enumerate(ARMS)},
        }
        for i in range(60)
    ]
    arms = [{"name": arm, "gates": []} for arm in ARMS]
    schema = "evalkit.reasoning-budget/1"
    risks = [{"name": "high"}]
    return write_run(folder, rows, schema=schema, arms=arms, shown=ARMS[1], selected=None, risk_classes=risks)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Address on disk of each page that is looked at."""
    folder = tmp_path_factory.mktemp("items")
    makers = {"plain": plain_run, "ladder": ladder_run, "hostile": hostile_run}
    for name, make in makers.items():
        run = make(folder / name)
        (run / "report.html").write_text("<!doctype html><title>report</title>", encoding="utf-8")
        write_items(ItemsOptions(run, page_size=400, quiet=True))
    write_items(ItemsOptions(folder / "plain", folder / "empty" / "items", only=("unsolvable",), quiet=True))
    return {name: (folder / f"{name.replace('/', '/items/')}.html").as_uri() for name in PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_it_asks_for_nothing_complains_of_nothing_and_never_scrolls_sideways(
    chromium: Browser, pages: dict[str, str], name: str
) -> None:
    with opened(chromium, pages[name]) as (page, seen):
        page.wait_for_load_state("networkidle")
        for width in (1440, 768, 390, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen == []
        assert page.evaluate("performance.getEntriesByType('resource').length") == 0
        assert page.locator("script").count() == 0


def test_links_alone_lead_through_risk_flag_order_and_pages(chromium: Browser, pages: dict[str, str]) -> None:
    with opened(chromium, pages["plain/index"], width=390, java_script_enabled=False) as (page, _):
        page.locator("main a", has_text="1,200").first.click()
        assert page.inner_text("h2") == "All items, worst first"
        assert page.locator(".list tbody tr").count() == 400
        assert page.inner_text(".list tbody tr:first-child .id") == "q1197"  # the greatest loss of an under-route
        page.locator(".pager >> nth=0").get_by_text("Next").click()
        assert page.inner_text(".about") == "All items, worst first: 401 to 800 of 1,200"
        assert page.inner_text(".pager [aria-current] >> nth=0") == "2"
        page.get_by_role("link", name="critical (800)").click()
        assert page.inner_text("h2") == "critical, worst first"
        page.get_by_role("link", name="wrong (").click()
        assert page.inner_text("h2") == "critical, wrong, worst first"
        cells = page.locator(".list tbody tr")
        assert cells.count() == len([i for i in range(1200) if i % 7 == 0 and i % 3])
        page.get_by_role("link", name="order of the labels").click()
        assert page.inner_text(".list tbody tr:first-child .id") == "q0"
        page.get_by_role("link", name="overview").click()
        page.get_by_role("link", name="Back to the report").click()
        assert page.title() == "report"


def test_the_keyboard_is_enough(chromium: Browser, pages: dict[str, str]) -> None:
    with opened(chromium, pages["plain/0001"]) as (page, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "items"
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert page.evaluate("document.activeElement.textContent") == "2"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url.endswith("/0002.html")


@pytest.mark.parametrize("name", ["hostile/index", "hostile/0001", "hostile/risk1-flag1-0001"])
def test_hostile_text_is_inert(chromium: Browser, pages: dict[str, str], name: str) -> None:
    with opened(chromium, pages[name]) as (page, seen):
        page.wait_for_timeout(200)
        assert page.title().endswith("evalkit items")
        for tag in ("script", "img", "iframe", "object", "embed", "form", "base", "b"):
            assert page.locator(tag).count() == 0
        assert (
            page.evaluate(
                "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                ".filter(a => a.startsWith('on') || a === 'style')"
            )
            == []
        )
        hrefs = page.locator("a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
        assert all(h in {"#items", "../report.html", "index.html"} or h.endswith("0001.html") for h in hrefs)
        assert "<script>" in page.inner_text("body")
        assert seen == []


SCREENS = [(name, 1440, "light") for name in PAGES] + [
    (name, width, "dark") for name in ("plain/0001", "ladder/0001", "plain/index") for width in (390, 1440)
]


@pytest.mark.parametrize(("name", "width", "scheme"), SCREENS)
def test_axe_finds_nothing(chromium: Browser, pages: dict[str, str], name: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, pages[name], width=width, color_scheme=scheme, bypass_csp=True) as (page, _):
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []


@pytest.mark.parametrize("name", ["plain/0001", "ladder/0001"])
def test_every_value_has_its_name_on_a_phone(chromium: Browser, pages: dict[str, str], name: str) -> None:
    with opened(chromium, pages[name], width=320) as (page, _):
        names = page.locator(".list tbody tr:nth-child(2) td:not(:empty)").evaluate_all(
            "cells => cells.map(c => getComputedStyle(c, '::before').content)"
        )
        heads = page.locator(".list thead th").all_inner_texts()[1:]
        assert [text.strip('"') for text in names] == heads


def test_on_paper_the_items_stand_and_the_links_do_not(chromium: Browser, pages: dict[str, str]) -> None:
    width = round((210 - 26) / 25.4 * 96)
    with opened(chromium, pages["plain/0001"], width=width, color_scheme="dark") as (page, _):
        page.emulate_media(media="print", color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".list tbody tr:visible").count() == 400
        for hidden in (".pager", ".pick-row"):
            assert not page.locator(hidden).first.is_visible()
