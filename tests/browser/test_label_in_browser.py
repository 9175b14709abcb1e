"""The labelling page as people use it: a real process, a real browser, keys and fingers, kills and reloads."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opening import AXE_TAGS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "labelling"))

from labelling_files import RISKS, TIERS, jsonl
from labelling_run import Page, served

from evalkit.labelling.log_file import read_decisions
from evalkit.labels.read import read_labels
from evalkit.workflows.label_page import LabelOptions, label

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.browser

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


def wanted(i: int) -> tuple[tuple[str, ...], str, str]:
    """What the test decides of item `i`: good tiers, risk class, required tier."""
    good = (TIERS, TIERS[1:], TIERS[2:], ())[i % 4]
    return good, RISKS[i % 3 == 0], good[0] if good else "unsolvable"


def decide(tab: Tab, i: int, *, save: bool = True) -> None:
    good, risk, _ = wanted(i)
    press(tab, *(keys_for(tab, good) if good else ["x"]))
    if risk == "low":
        press(tab, "1")  # high is given by the file
    if save:
        press(tab, "Enter")


def test_thirty_items_by_keyboard_undone_reloaded_killed_and_gone_on_with(
    chromium: Browser, tmp_path: Path
) -> None:
    written(tmp_path)
    log = tmp_path / "items.ann.decisions.jsonl"
    with served(tmp_path, *BY_REPLY, "--annotator", "ann") as page, opened(chromium, page) as (tab, seen):
        for i in range(10):
            at(tab, i + 1)
            decide(tab, i)
        at(tab, 11)
        assert tab.inner_text("#count") == "10 of 30 decided"
        assert tab.evaluate("document.activeElement.id") == "item-title"

        press(tab, "u")
        at(tab, 10)
        press(tab, "u")
        at(tab, 9)
        press(tab, "u")
        at(tab, 8)
        assert tab.inner_text("#count") == "7 of 30 decided"
        # What was undone stands there again, so that one key puts it right.
        good = [c == "true" for c in tab.locator(".mark").evaluate_all("m => m.map(x => x.ariaPressed)")]
        assert ["ABC"[k] for k, is_good in enumerate(good) if is_good] == keys_for(tab, wanted(7)[0])
        for i in (7, 8, 9):
            at(tab, i + 1)
            tab.reload()
            at(tab, i + 1)
            decide(tab, i)
        at(tab, 11)

        tab.reload()  # in the middle of an item that is marked and not saved
        at(tab, 11)
        decide(tab, 10, save=False)
        tab.reload()
        at(tab, 11)
        assert tab.locator(".mark[aria-pressed='true']").count() == 0
        for i in range(10, 15):
            at(tab, i + 1)
            decide(tab, i)
        at(tab, 16)
        page.kill()
        decide(tab, 15)
        tab.wait_for_selector("#trouble:not([hidden])")
        assert "is not saved" in tab.inner_text("#trouble")
        assert tab.inner_text("#item-title") == "Item 16 of 30"
        assert [entry for entry in seen if "ERR_CONNECTION" not in entry] == []
    assert len(read_decisions(log).work) == 15
    log.write_bytes(log.read_bytes() + b'{"n": 19, "do": "deci')  # as a kill in the middle of a write leaves it

    with served(tmp_path, *BY_REPLY, "--annotator", "ann") as page:
        with opened(chromium, page) as (tab, seen):
            for i in range(15, 30):
                at(tab, i + 1)
                decide(tab, i)
            tab.wait_for_selector("#done:not([hidden])")
            assert tab.inner_text("#done-title") == "All 30 items are decided"
            press(tab, "u")  # also from here
            at(tab, 30)
            press(tab, "Enter")
            tab.wait_for_selector("#done:not([hidden])")
            assert seen == []
        code, out, err = page.stop()
        assert (code, "30 of 30 decided" in out) == (0, True)
        assert "the last line was cut off" in err

    label(LabelOptions(str(tmp_path / "items.jsonl"), tiers=",".join(TIERS), risk_classes=",".join(RISKS),
                       export=tmp_path / "labels.jsonl", decisions=[log]))  # fmt: skip
    labels = read_labels(tmp_path / "labels.jsonl", tiers=TIERS, risk_classes=RISKS)
    assert [labels.required_name(i) for i in range(30)] == [wanted(i)[2] for i in range(30)]
    assert labels.risk_names == tuple(wanted(i)[1] for i in range(30))


def test_two_annotators_and_adjudication(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 6)
    for name, strict in (("ann", set[int]()), ("bo", {1, 4})):
        with served(tmp_path, *BY_REPLY, "--annotator", name) as page, opened(chromium, page) as (tab, seen):
            for i in range(6):
                at(tab, i + 1, 6)
                if i in strict:
                    press(tab, "x", "2", "m")
                    tab.keyboard.type("bo finds none good")
                    press(tab, "Enter")
                else:
                    press(tab, *keys_for(tab, ("mid", "top")), "2", "Enter")
            tab.wait_for_selector("#done:not([hidden])")
            assert seen == []
    files = [tmp_path / f"items.{name}.decisions.jsonl" for name in ("ann", "bo")]

    with (
        served(tmp_path, *BY_REPLY, "--annotator", "cy", "--adjudicate", *files) as page,
        opened(chromium, page) as (tab, seen),
    ):
        at(tab, 1, 2)
        assert tab.inner_text("#item-id") == "q1"
        shown = tab.inner_text("main")
        assert "None is good enough" in tab.inner_text("#both")
        letters = keys_for(tab, ("mid", "top"))
        assert f"Good enough: {letters[0]}, {letters[1]}" in tab.inner_text("#both")
        assert "bo finds none good" in shown  # a note is said as it was written
        assert not re.search(r"\bann\b|\bcheap\b|\bmid\b|\btop\b", shown)
        first = tab.locator(".opinion").first.inner_text()
        press(tab, "[", "Enter")
        at(tab, 2, 2)
        press(tab, "u")
        at(tab, 1, 2)
        press(tab, "]", "Enter")
        at(tab, 2, 2)
        press(tab, *keys_for(tab, ("cheap",)), "1", "Enter")
        tab.wait_for_selector("#done:not([hidden])")
        assert seen == []
        page.stop()
    settled = tmp_path / "items.cy.settled.jsonl"
    label(LabelOptions(str(tmp_path / "items.jsonl"), tiers=",".join(TIERS), risk_classes=",".join(RISKS),
                       export=tmp_path / "labels.jsonl", decisions=[*files, settled]))  # fmt: skip
    labels = read_labels(tmp_path / "labels.jsonl", tiers=TIERS, risk_classes=RISKS)
    second = "mid" if "None is good enough" in first else "unsolvable"
    assert [labels.required_name(i) for i in range(6)] == ["mid", second, "mid", "mid", "cheap", "mid"]
    assert labels.risk_names[4] == "low"
    assert labels.annotations is not None
    assert labels.annotations[1] == {"ann": "mid", "bo": "unsolvable"}


def test_a_finger_is_enough_at_390_pixels(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 3)
    with (
        served(tmp_path, *BY_REPLY, "--annotator", "ann") as page,
        opened(chromium, page, width=390, has_touch=True, is_mobile=True) as (tab, seen),
    ):
        for i in range(3):
            at(tab, i + 1, 3)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390
            for letter in keys_for(tab, ("top",)):
                tab.locator(".mark").nth("ABC".index(letter)).tap()
            tab.locator("#risks label").nth(0).tap()
            tab.locator("#save").tap()
        tab.wait_for_selector("#done:not([hidden])")
        tab.locator("#undo").tap()
        at(tab, 3, 3)
        tab.locator("#none").tap()
        tab.locator("#before").tap()
        at(tab, 2, 3)
        tab.locator("#after").tap()
        at(tab, 3, 3)
        tab.locator("#every").tap()
        tab.locator("#risks label").nth(1).tap()
        tab.locator("#note").tap()
        tab.keyboard.type("메모")
        tab.locator("#save").tap()
        tab.wait_for_selector("#done:not([hidden])")
        assert seen == []
    last = read_decisions(tmp_path / "items.ann.decisions.jsonl").work.standing
    assert [(d.required_tier, d.risk, d.note) for d in last] == [
        ("top", "low", ""), ("top", "low", ""), ("cheap", "high", "메모"),
    ]  # fmt: skip


def test_what_is_missing_is_asked_for_and_nothing_is_saved(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 3)
    with served(tmp_path, *BY_TIER, "--annotator", "ann") as page, opened(chromium, page) as (tab, seen):
        press(tab, "ArrowRight")  # the file gives no risk class of this one
        at(tab, 2, 3)
        press(tab, "Enter")
        assert tab.inner_text("#say") == "Choose the least tier that is good enough, or say that none is (X)."
        press(tab, "b", "Enter")
        assert tab.inner_text("#say") == "Choose the risk class."
        assert page.api("state")["n"] == 0
        press(tab, "2", "Enter")
        at(tab, 3, 3)
        press(tab, "u", "u")
        tab.wait_for_function("() => document.getElementById('say').textContent === 'There is nothing to undo.'")
        at(tab, 2, 3)
        assert seen == []
    assert [e.n for e in read_decisions(tmp_path / "items.ann.decisions.jsonl").work.standing] == []


def test_keys_under_a_korean_input_method_and_with_the_list_of_keys(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 3)
    with (
        served(tmp_path, *BY_REPLY, "--annotator", "ann", "--lang", "ko") as page,
        opened(chromium, page) as (tab, seen),
    ):
        assert tab.evaluate("document.documentElement.lang") == "ko"
        assert tab.inner_text("#item-title") == "항목 1 / 3"
        body = tab.inner_text("body")
        for word in ("Save", "Undo", "good", "Risk", "Request", "Note", "Keys", "decided"):
            assert word not in body
        # Hangul stands on the key; only its place tells the letter.
        tab.evaluate(
            "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ㅁ', code: 'KeyA', bubbles: true}))"
        )
        assert tab.locator(".mark").first.get_attribute("aria-pressed") == "true"
        press(tab, "?")
        assert tab.evaluate("document.getElementById('keys').open")
        press(tab, "b")  # the list is open: nothing is marked
        tab.locator("#single").uncheck()
        press(tab, "Escape")
        assert not tab.evaluate("document.getElementById('keys').open")
        press(tab, "b")  # single keys are off
        assert tab.locator(".mark[aria-pressed='true']").count() == 1
        assert seen == []


def test_two_windows_do_not_overwrite_each_other(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 3)
    with (
        served(tmp_path, *BY_TIER, "--annotator", "ann") as page,
        opened(chromium, page) as (one, _),
        opened(chromium, page) as (two, _),
    ):
        press(one, "a", "Enter")
        at(one, 2, 3)
        press(two, "c", "Enter")
        two.wait_for_selector("#trouble:not([hidden])")
        assert "Another window has decided" in two.inner_text("#trouble")
        at(two, 2, 3)
        assert [d.required_tier for d in read_decisions(tmp_path / "items.ann.decisions.jsonl").work.standing] == [
            "cheap"
        ]


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
