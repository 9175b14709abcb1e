"""A real Chromium, and the reports to open in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "reporting")]

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = Path(os.environ.get("EVALKIT_CHROMIUM", "/usr/bin/chromium"))
# No network of its own: what the page asks for is all there is to see.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file of tests; each test opens its own context.

    Not for the session: Playwright keeps an event loop running in this thread until it stops, and other tests
    start loops of their own.
    """
    if not CHROMIUM.is_file():
        reason = f"needs Chromium at {CHROMIUM} (EVALKIT_CHROMIUM names another place)"
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Address of a report on disk for each example result."""
    import report_examples as examples

    from evalkit.reporting import render_html

    folder = tmp_path_factory.mktemp("reports")
    addresses = {}
    for name, make in examples.ALL.items():
        path = folder / f"{name}.html"
        path.write_text(render_html(make()), encoding="utf-8")
        addresses[name] = path.as_uri()
    return addresses
