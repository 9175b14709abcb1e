"""The section of several routers as its reader meets it: in Chromium, on a screen, a phone and paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from opening import AXE_TAGS, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the report of a run that judged four routers and left out what leaked."""
    from evalkit.cli.app import main
    from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, write_routers

    folder: Path = tmp_path_factory.mktemp("routers")
    long = NOISE | {"name": "n" * 60, "probability": True}
    write_routers(folder, KEYWORDS, VENDOR | {"train": "train.jsonl", "leaks": "drop"}, NOISE, long)
    row = {"id": "t1", "prompt": "question 3 about a greeting", "required_tier": "cheap", "risk": "low"}
    (folder / "train.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert main(["route-sweep", str(folder / "study.yaml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return (folder / "run" / "report.html").as_uri()


def test_it_asks_for_nothing_and_complains_of_nothing(chromium: Browser, report: str) -> None:
    with opened(chromium, report) as (page, seen):
        page.wait_for_load_state("networkidle")
        assert seen == []
        assert page.locator("#routers .calibration svg:visible").count() == 2
        assert page.locator("#routers tr.here:visible").count() == 1


@pytest.mark.parametrize("width", [1440, 768, 390, 320])
def test_the_page_never_scrolls_sideways(chromium: Browser, report: str, width: int) -> None:
    with opened(chromium, report, width=width) as (page, _):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#routers summary").first.click()
        assert page.locator("#routers .calibration table:visible").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing(chromium: Browser, report: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with opened(chromium, report, width=width, color_scheme=scheme, bypass_csp=True) as (page, _):
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []


def test_on_paper_every_bin_is_there(chromium: Browser, report: str) -> None:
    with opened(chromium, report) as (page, _):
        page.emulate_media(media="print")
        heights = "[...document.querySelectorAll('.calibration table')].map(t => t.getBoundingClientRect().height)"
        assert min(page.evaluate(heights)) > 50


@pytest.mark.parametrize(("width", "least"), [(1440, 10), (390, 3)])
def test_verdict_and_money_of_every_router_are_seen_without_scrolling(
    chromium: Browser, report: str, width: int, least: int
) -> None:
    with opened(chromium, report, width=width) as (page, _):
        seen = page.evaluate(
            """() => { const box = document.querySelector(".routers").closest(".box").getBoundingClientRect();
            return [...document.querySelectorAll(".routers thead th")]
              .filter(cell => cell.getBoundingClientRect().right <= box.right + 1).map(cell => cell.innerText) }"""
        )
        assert [name.split()[0] for name in seen[:3]] == ["Router", "Verdict", "Expected"]
        assert len(seen) >= least


def test_forced_colours_keep_the_chosen_router_and_its_curve(chromium: Browser, report: str) -> None:
    with opened(chromium, report, forced_colors="active") as (page, seen):
        assert seen == []
        edge = page.locator("#routers tr.here th").evaluate("e => getComputedStyle(e).borderLeftWidth")
        assert float(edge.removesuffix("px")) >= 3
        dots = page.locator(".calibration .est").evaluate_all("es => es.map(e => getComputedStyle(e).fill)")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert dots
        assert paper not in dots


def test_page_one_of_a4_holds_verdict_and_gates_and_no_table_of_routers(
    chromium: Browser, report: str, tmp_path: Path
) -> None:
    with opened(chromium, report) as (page, _):
        page.set_viewport_size({"width": 695, "height": 1000})  # 184 mm between the margins
        page.emulate_media(media="print", color_scheme="light")
        bottom = page.evaluate("document.querySelector('table.gates').getBoundingClientRect().bottom + scrollY")
        assert bottom < 1010  # 268 mm
        assert page.locator("#gates").bounding_box()["y"] < page.locator("#routers").bounding_box()["y"]  # type: ignore[index]
