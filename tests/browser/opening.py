"""How a page is opened in these tests, and what is watched while it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def opened(
    browser: Browser, address: str, *, width: int = 1440, **options: Any
) -> Iterator[tuple[Page, list[str]]]:
    """The page, and everything it asked for or complained about."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    seen: list[str] = []
    page.on("console", lambda m: seen.append(f"console {m.type}: {m.text}"))
    page.on("pageerror", lambda e: seen.append(f"error: {e}"))
    page.on("dialog", lambda d: (seen.append(f"dialog: {d.message}"), d.dismiss()))
    page.on("request", lambda r: None if r.url.partition("#")[0] == address else seen.append(f"request: {r.url}"))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', e => console.error('policy ' + e.violatedDirective))"
    )
    page.goto(address)
    try:
        yield page, seen
    finally:
        context.close()
