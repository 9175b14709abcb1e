"""What the labelling page must not do: run hostile text, obey other pages, name a tier, hide from anybody."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from labelling_browser import BY_REPLY, BY_TIER, TIERS, at, jsonl, opened, press, served, written
from opening import AXE_TAGS

from evalkit.labelling.log_file import read_decisions

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.browser


HOSTILE = (
    "<img src=x onerror=alert(1)><script>document.title='owned'</script><iframe src=javascript:alert(2)></iframe>"
    "{{7*7}} ${1} </script><style>*{display:none}</style><a href='javascript:alert(3)'>x</a>\u202egnp.exe\x1b[2J"
    "&lt;b&gt; </textarea><form action=http://evil.example><input autofocus onfocus=alert(4)>"
)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_hostile_text_stays_text(chromium: Browser, tmp_path: Path, lang: str) -> None:
    row = {"id": HOSTILE, "category": HOSTILE, "reference": HOSTILE, "metadata": {"x": HOSTILE}}
    items = [
        row | {"messages": [{"role": HOSTILE, "content": HOSTILE}]},
        row | {"id": f"2{HOSTILE}", "prompt": HOSTILE},
    ]
    jsonl(tmp_path / "items.jsonl", items)
    jsonl(
        tmp_path / "replies.jsonl",
        [{"id": item["id"], "tier": tier, "reply": f"{tier[0]}{HOSTILE}"} for item in items for tier in TIERS],
    )
    risks = "lo<img src=x onerror=alert(5)>,high"
    command = ("items.jsonl", "--tiers", ",".join(TIERS), "--risk-classes", risks, "--lang", lang)
    for name in ("<b>ann</b>", "bo"):
        given = (*command, "--replies", "replies.jsonl", "--annotator", name, "--out", f"{len(name)}.jsonl")
        with served(tmp_path, *given) as page, opened(chromium, page) as (tab, seen):
            for k in range(2):
                at(tab, k + 1, 2, lang)
                harmless(tab, seen)
                press(tab, "a" if name == "bo" else "b", "1", "m")
                tab.keyboard.insert_text(HOSTILE.replace("\x1b", ""))
                press(tab, "Enter")
            tab.wait_for_selector("#done:not([hidden])")
            assert seen == []
            _, out, err = page.stop()
            assert not {"\x1b", "\u202e"} & set(out + err)
    files = ("10.jsonl", "2.jsonl")
    given = (*command, "--replies", "replies.jsonl", "--annotator", "cy", "--adjudicate", *files)
    with served(tmp_path, *given) as page, opened(chromium, page) as (tab, seen):
        assert tab.locator(".opinion").count() == 2
        harmless(tab, seen)
    kept = b"".join((tmp_path / name).read_bytes() for name in files)
    assert b"\x1b" not in kept
    assert "\u202e".encode() not in kept


def harmless(tab: Tab, seen: list[str]) -> None:
    assert tab.title().endswith("evalkit label")
    for tag in ("img", "iframe", "style", "b", "a[href^='javascript']", "form[action]", "[onerror]", "[onfocus]"):
        assert tab.locator(tag).count() == 0, tag
    assert tab.locator("script").count() == 3
    assert "<img src=x onerror=alert(1)>" in tab.inner_text("#turns")
    assert "[U+202E]gnp.exe[U+001B][2J" in tab.inner_text("#turns")
    assert "{{7*7}}" in tab.inner_text("main")
    assert seen == []


class _Other(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!doctype html><title>other</title><p>another page on this machine"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def other_page() -> Iterator[str]:
    """A real page of another origin: this machine, another port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_no_other_page_can_post_to_it_read_it_or_frame_it(
    chromium: Browser, tmp_path: Path, other_page: str
) -> None:
    written(tmp_path, 3)
    with served(tmp_path, *BY_TIER, "--annotator", "ann") as page:
        context = chromium.new_context()
        try:
            mine = context.new_page()
            mine.goto(page.address)  # the person has the page open in the same browser
            tab = context.new_page()
            tab.goto(other_page)
            home = f"http://127.0.0.1:{page.port}"
            # Even a page that knows the token, which none does.
            sent = {"index": 0, "after": 0, "tier": "cheap", "risk": "low", "note": ""}
            attempts = """async ([home, token, sent]) => {
                const body = JSON.stringify(sent), known = {'X-Evalkit-Token': token}, out = [];
                for (const options of [
                    {method: 'POST', body, mode: 'no-cors', credentials: 'include'},
                    {method: 'POST', body, headers: {'Content-Type': 'text/plain'}},
                    {method: 'POST', body, headers: {...known, 'Content-Type': 'application/json'}},
                    {headers: known},
                ]) {
                    const path = options.method ? '/api/decide' : '/api/state';
                    try { const r = await fetch(home + path, options); out.push(r.type + ' ' + r.status); }
                    catch (error) { out.push('refused'); }
                }
                const form = document.createElement('form');
                Object.assign(form, {method: 'post', enctype: 'text/plain', target: 'f'});
                form.action = home + '/api/decide';
                const field = document.createElement('input');
                Object.assign(field, {name: body.slice(0, -1) + ',"x":"', value: '"}'});
                const frame = document.createElement('iframe');
                frame.name = 'f';
                form.append(field);
                document.body.append(form, frame);
                const loaded = new Promise(done => frame.addEventListener('load', done, {once: true}));
                form.submit();
                await loaded;
                const framed = document.createElement('iframe');
                const shown = new Promise(done => framed.addEventListener('load', done, {once: true}));
                framed.src = home + '/' + token + '/';
                document.body.append(framed);
                await shown;
                return out;
            }"""
            out = tab.evaluate(attempts, [home, page.token, sent])
            assert out == ["refused"] * 4
            frames = [f for f in tab.frames if f.url.startswith((home, "chrome-error"))]
            assert all(f.locator("#item").count() == 0 for f in frames)
            assert page.api("state")["n"] == 0
            assert read_decisions(tmp_path / "items.ann.decisions.jsonl").work.n == 0
            # And from its own page it works.
            mine.keyboard.press("a")
            mine.keyboard.press("Enter")
            at(mine, 2, 3)
            assert page.api("state")["n"] == 1
        finally:
            context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("lang", "width"), [("en", 1440), ("ko", 390)])
def test_axe_finds_nothing(chromium: Browser, tmp_path: Path, scheme: Any, lang: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    written(tmp_path, 3)

    def found(tab: Tab) -> list[tuple[str, str]]:
        result = Axe().run(tab, options={"runOnly": {"type": "tag", "values": AXE_TAGS}}).response["violations"]
        return [(v["id"], v["nodes"][0]["html"][:200]) for v in result]

    for kind in (BY_REPLY, BY_TIER):
        name = "a" if kind is BY_REPLY else "b"
        given = (*kind, "--annotator", "ann", "--out", f"{name}.jsonl", "--lang", lang)
        # Axe is put into the page, which the page itself forbids; everything else about it stays.
        with (
            served(tmp_path, *given) as page,
            opened(chromium, page, width=width, color_scheme=scheme, bypass_csp=True) as (tab, _),
        ):
            assert found(tab) == []
            for narrow in (320, width):
                tab.set_viewport_size({"width": narrow, "height": 900})
                assert tab.evaluate("document.documentElement.scrollWidth") <= narrow
            press(tab, "a")
            assert found(tab) == []
            press(tab, "x")
            assert found(tab) == []
            press(tab, "?")
            assert found(tab) == []
            press(tab, "Escape")
            for _ in range(3):
                press(tab, "x" if kind is BY_TIER else "v", "1", "Enter")
                tab.wait_for_timeout(200)
            tab.wait_for_selector("#done:not([hidden])")
            assert found(tab) == []


def test_the_colours_are_those_of_the_reports(repo: Path) -> None:
    def tokens(path: Path) -> list[dict[str, str]]:
        blocks = re.findall(r":root \{(.*?)\}", path.read_text(encoding="utf-8"), re.DOTALL)
        return [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in blocks]

    page = tokens(repo / "evalkit/labelling/static/label.css")
    report = tokens(repo / "evalkit/reporting/templates/report.css")
    assert len(page) == len(report) == 2
    for mine, theirs in zip(page, report, strict=True):
        assert mine.items() <= theirs.items()
        assert len(mine) > 10


def test_a_prompt_of_a_megabyte_is_scrolled_in_its_box_and_a_decision_stays_quick(
    chromium: Browser, tmp_path: Path
) -> None:
    long = [("word " * 20 + "\n") * 10_000, "x" * 1_000_000, "가" * 300_000]
    jsonl(
        tmp_path / "items.jsonl", [{"id": f"q{i}", "prompt": text, "risk": "low"} for i, text in enumerate(long)]
    )
    with served(tmp_path, *BY_TIER, "--annotator", "ann") as page, opened(chromium, page) as (tab, seen):
        for i, text in enumerate(long):
            at(tab, i + 1, 3)
            box = tab.locator("#turns .text")
            assert box.evaluate("b => b.textContent.length") == len(text)
            assert box.evaluate("b => b.scrollHeight > b.clientHeight && b.clientHeight < 500")
            assert tab.evaluate("document.documentElement.scrollWidth") <= 1440
            press(tab, "Tab")
            box.focus()
            press(tab, "End")
            press(tab, "b", "Enter")
        tab.wait_for_selector("#done:not([hidden])")
        assert seen == []
    assert len(read_decisions(tmp_path / "items.ann.decisions.jsonl").work) == 3


def test_what_the_page_is_sent_names_no_tier(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 4)
    with served(tmp_path, *BY_REPLY, "--annotator", "ann") as page:
        context = chromium.new_context()
        try:
            tab = context.new_page()
            bodies: list[tuple[str, str]] = []
            tab.on("response", lambda r: bodies.append((r.url, r.text())))
            tab.goto(page.address)
            for i in range(4):
                at(tab, i + 1, 4)
                press(tab, "a", "1", "Enter")
            tab.wait_for_selector("#done:not([hidden])")
            tab.wait_for_load_state("networkidle")
        finally:
            context.close()
        assert len(bodies) > 10
        for url, body in bodies:
            if not url.endswith((".css", ".js")):
                assert not re.search(r"\b(cheap|mid|top)\b", body), url
