"""The labelling page as people use it: a real process, a real browser, keys and fingers, kills and reloads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from labelling_browser import BY_REPLY, BY_TIER, RISKS, TIERS, at, keys_for, opened, press, served, written

from evalkit.labelling.log_file import read_decisions
from evalkit.labels.read import read_labels
from evalkit.workflows.label_page import LabelOptions, label

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from playwright.sync_api import Page as Tab

pytestmark = pytest.mark.browser


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
        killed = ("ERR_CONNECTION", "ERR_CONTENT_LENGTH_MISMATCH")  # before a reply, or in the middle of one
        assert [entry for entry in seen if not any(error in entry for error in killed)] == []
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


def test_what_was_chosen_and_not_saved_is_there_when_one_comes_back(chromium: Browser, tmp_path: Path) -> None:
    written(tmp_path, 3)
    with served(tmp_path, *BY_REPLY, "--annotator", "ann") as page, opened(chromium, page) as (tab, seen):
        press(tab, "b", "1", "m")
        tab.keyboard.type("half a thought")
        press(tab, "Escape", "ArrowRight")
        at(tab, 2, 3)
        assert tab.input_value("#note") == ""
        press(tab, "x", "2", "Enter")
        at(tab, 3, 3)
        press(tab, "u")  # shows item 2, and what is kept of item 1 stays
        at(tab, 2, 3)
        press(tab, "ArrowLeft")
        at(tab, 1, 3)
        assert tab.input_value("#note") == "half a thought"
        assert tab.locator(".mark").nth(1).get_attribute("aria-pressed") == "true"
        assert tab.locator("#risks input").nth(0).is_checked()
        assert tab.inner_text("#item-state") == "Chosen before, not saved yet."
        assert page.api("state")["done"] == 0
        press(tab, "Enter")
        at(tab, 2, 3)
        press(tab, "ArrowLeft")
        at(tab, 1, 3)
        assert tab.inner_text("#item-state") == "Decided; saving again replaces it."
        assert seen == []
    [saved] = read_decisions(tmp_path / "items.ann.decisions.jsonl").work.standing
    assert (saved.risk, saved.note, saved.good) == ("low", "half a thought", (1,))
