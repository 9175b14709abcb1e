"""How the labelling page is opened and driven in these tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "labelling"))

from labelling_files import RISKS, TIERS, jsonl
from labelling_run import Page, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

__all__ = [
    "BY_REPLY",
    "BY_TIER",
    "NAMES",
    "RISKS",
    "TIERS",
    "Page",
    "at",
    "jsonl",
    "keys_for",
    "opened",
    "press",
    "served",
    "written",
]

NAMES = ("--tiers", ",".join(TIERS), "--risk-classes", ",".join(RISKS))
BY_REPLY = ("items.jsonl", *NAMES, "--replies", "replies.jsonl")
BY_TIER = ("items.jsonl", *NAMES)


def written(folder: Path, count: int = 30) -> Path:
    """Items whose replies say how long they are: the text tells a test, not a person, of which tier it is."""
    items = [
        {"id": f"q{i}", "prompt": f"Question {i}?", "category": "chat"} | ({"risk": "high"} if i % 3 == 0 else {})
        for i in range(count)
    ]
    replies = [
        {"id": item["id"], "tier": tier, "reply": f"{length} answer to {item['id']}"}
        for item in items
        for tier, length in zip(TIERS, ("short", "longer", "longest"), strict=True)
    ]
    jsonl(folder / "items.jsonl", items)
    jsonl(folder / "replies.jsonl", replies)
    return folder


WORD = dict(zip(TIERS, ("short", "longer", "longest"), strict=True))


@contextmanager
def opened(browser: Browser, page: Page, *, width: int = 1440, **options: Any) -> Iterator[tuple[Tab, list[str]]]:
    """The page in a tab, and whatever it complained about or asked of anybody else."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    tab = context.new_page()
    tab.set_default_timeout(10_000)
    seen: list[str] = []
    tab.on("console", lambda m: seen.append(f"console {m.type}: {m.text}"))
    tab.on("pageerror", lambda e: seen.append(f"error: {e}"))
    tab.on("dialog", lambda d: (seen.append(f"dialog: {d.message}"), d.dismiss()))
    home = page.address.partition(page.token)[0]
    tab.on("request", lambda r: None if r.url.startswith((home, "data:")) else seen.append(f"request: {r.url}"))
    tab.add_init_script(
        "addEventListener('securitypolicyviolation', e => console.error('policy ' + e.violatedDirective))"
    )
    tab.goto(page.address)
    tab.wait_for_selector("#item:not([hidden]), #done:not([hidden])")
    try:
        yield tab, seen
    finally:
        context.close()


def at(tab: Tab, n: int, total: int = 30, lang: str = "en") -> None:
    """Wait until item `n`, counted from 1, is shown."""
    tab.wait_for_function(
        "t => document.getElementById('item-title').textContent === t && !document.getElementById('item').hidden",
        arg=f"Item {n} of {total}" if lang == "en" else f"항목 {n} / {total}",
    )


def keys_for(tab: Tab, good: tuple[str, ...]) -> list[str]:
    """The letters of the replies of these tiers, by what the page shows."""
    cards = tab.locator(".reply").evaluate_all("all => all.map(c => c.innerText)")
    words = {WORD[tier] for tier in good}
    return ["ABC"[k] for k, text in enumerate(cards) if any(f"{word} answer" in text for word in words)]


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.keyboard.press(key)
