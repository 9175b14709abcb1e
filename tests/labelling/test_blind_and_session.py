"""What the page is told and may decide: nothing tells a reply's tier, and the marks give the required tier."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelling_files import RISKS, TIERS, header, items_of, jsonl, letters_of, opened, replies_of, session_of

from evalkit.errors import InputError
from evalkit.labelling.adjudicate import Annotator, check_items, conflicts
from evalkit.labelling.blind import least_good, shown_order
from evalkit.labelling.items import read_items, read_replies
from evalkit.labelling.log_file import read_decisions
from evalkit.labelling.session import Refused, Session, Stale
from evalkit.labelling.shown import text


def decide(session: Session, k: int, tiers: Any, **more: Any) -> dict[str, Any]:
    sent = {"index": k, "after": session.file.work.n, "risk": "low", "note": ""} | more
    if session.replies is None:
        return session.decide({"tier": tiers} | sent)
    return session.decide({"good": letters_of(session, k, tiers)} | sent)


# Blinding


@given(st.integers(0, 9), st.text(max_size=9), st.text(max_size=9), st.lists(st.sampled_from(["a", "b", "", None]),
       min_size=1, max_size=6))  # fmt: skip
def test_every_reply_stands_behind_one_letter_and_equal_ones_behind_the_same(
    seed: int, annotator: str, item: str, replies: list[str | None]
) -> None:
    tiers = [f"t{i}" for i in range(len(replies))]
    shown = shown_order(seed, annotator, item, tiers, replies)
    by_tier = dict(zip(tiers, replies, strict=True))
    flat = [tier for group in shown for tier in group]
    assert sorted(flat) == [tier for tier in tiers if by_tier[tier]]
    assert [len({by_tier[tier] for tier in group}) for group in shown] == [1] * len(shown)
    assert len({by_tier[group[0]] for group in shown}) == len(shown)
    assert shown == shown_order(seed, annotator, item, tiers, replies)


def test_the_order_says_nothing_of_the_tiers() -> None:
    # 6,000 items: each of the six orders is expected 1,000 times, with a standard deviation of 29.
    seen = Counter(shown_order(3, "ann", f"q{i}", TIERS, ["x", "y", "z"]) for i in range(6000))
    assert set(seen) == {tuple((tier,) for tier in order) for order in permutations(TIERS)}
    assert all(abs(count - 1000) < 130 for count in seen.values())
    same = sum(
        shown_order(3, "ann", f"q{i}", TIERS, ["x", "y", "z"])
        == shown_order(3, "bo", f"q{i}", TIERS, ["x", "y", "z"])
        for i in range(6000)
    )
    assert abs(same - 1000) < 130


@pytest.mark.parametrize(
    ("good", "tier"),
    [((), "unsolvable"), ((0,), "top"), ((0, 1), "cheap"), ((2,), "mid"), ((1,), "cheap"), ((0, 2), "mid")],
)
def test_the_required_tier_is_the_least_whose_reply_is_good_enough(good: tuple[int, ...], tier: str) -> None:
    assert least_good(TIERS, [["top"], ["cheap"], ["mid"]], good) == tier


def test_one_mark_on_equal_replies_is_on_the_least_of_their_tiers() -> None:
    assert least_good(TIERS, [["top"], ["cheap", "mid"]], {1}) == "cheap"


def test_no_answer_before_the_decision_names_a_tier(tmp_path: Path) -> None:
    items = items_of(tmp_path)
    replies = replies_of(tmp_path, items, dict(zip(TIERS, ["one", "two", "three"], strict=True)))
    session = Session(items, replies, opened(tmp_path / "ann.jsonl", header()))
    told = json.dumps([session.state(), *(session.item(k) for k in range(4))])
    assert not any(f'"{tier}"' in told for tier in TIERS)
    answer = session.decide({"index": 0, "after": 0, "good": ["A"], "risk": "low", "note": ""})
    told = json.dumps([answer, session.item(0), session.state()])
    assert not any(f'"{tier}"' in told for tier in TIERS)


# Deciding


def test_a_decision_is_on_disk_with_what_was_shown_when_it_is_answered(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    answer = decide(session, 1, ["mid", "top"], risk="high", note="  neither\nnor ")
    assert answer == {"total": 4, "done": 1, "n": 1, "undo": True, "next": 2}
    [saved] = read_decisions(tmp_path / "ann.jsonl").work.standing
    assert (saved.id, saved.required_tier, saved.risk, saved.note) == ("q1", "mid", "high", "neither\nnor")
    assert saved.good_tiers == {"mid", "top"}
    assert saved.shown is not None
    assert sorted(saved.shown) == [("cheap",), ("mid",), ("top",)]
    assert (saved.item, saved.replies) == (session.items.asked(1), session.replies and session.replies.answered(1))
    assert session.item(1)["decision"] == {
        "risk": "high", "note": "neither\nnor", "good": letters_of(session, 1, ["mid", "top"]),
    }  # fmt: skip


def test_a_tier_that_gave_no_reply_is_never_required(tmp_path: Path) -> None:
    items = items_of(tmp_path)
    replies = replies_of(tmp_path, items, {"cheap": " \n", "mid": "yes", "top": "yes"})
    session = Session(items, replies, opened(tmp_path / "ann.jsonl", header()))
    shown = session.item(0)
    assert (shown["silent"], shown["replies"]) == (1, [{"letter": "A", "text": "yes"}])
    session.decide({"index": 0, "after": 0, "good": ["A"], "risk": "low", "note": ""})
    assert session.file.work.standing[0].required_tier == "mid"


def test_the_tier_is_chosen_by_name_where_there_are_no_replies(tmp_path: Path) -> None:
    session = session_of(tmp_path, by="tier")
    assert "replies" not in session.item(0)
    decide(session, 0, "mid")
    decide(session, 1, "unsolvable")
    assert [d.required_tier for d in session.file.work.standing] == ["mid", "unsolvable"]
    with pytest.raises(Refused, match="tier is not one of the study"):
        decide(session, 2, "huge")


@given(st.lists(st.one_of(st.just(-1), st.integers(0, 3)), max_size=25))
def test_undo_goes_back_any_number_of_steps(tmp_path_factory: pytest.TempPathFactory, moves: list[int]) -> None:
    session = session_of(tmp_path_factory.mktemp("undo"), by="tier")
    stack: list[tuple[int, str]] = []
    for n, move in enumerate(moves):
        if move >= 0:
            tier = TIERS[n % 3]
            decide(session, move, tier)
            stack.append((move, tier))
        elif stack:
            k, tier = stack.pop()
            answer = session.undo({"after": session.file.work.n})
            assert (answer["index"], answer["undone"]["tier"]) == (k, tier)
        else:
            with pytest.raises(Refused, match="nothing to undo"):
                session.undo({"after": session.file.work.n})
        decided = {k for k, _ in stack}
        state = session.state()
        assert state["done"] == len(decided)
        open_ = [k for k in range(4) if k not in decided]
        start = stack[-1][0] + 1 if stack else 0
        wanted = next((k for k in open_ if k >= start), open_[0] if open_ else None)
        assert state["next"] == wanted
    session.file.close()
    again = Session(session.items, None, opened(session.file.path, header(by="tier")))
    assert again.state() == session.state()


def test_a_window_that_does_not_know_the_last_decision_changes_nothing(tmp_path: Path) -> None:
    session = session_of(tmp_path, by="tier")
    decide(session, 0, "mid")
    with pytest.raises(Stale):
        decide(session, 1, "mid", after=0)
    with pytest.raises(Stale):
        session.undo({"after": 0})
    assert session.file.work.n == 1


@pytest.mark.parametrize(
    "change",
    [{"index": 4}, {"index": -1}, {"index": True}, {"index": "0"}, {"risk": "no"}, {"risk": ["low"]}, {"note": 1},
     {"note": "x" * 2001}, {"good": ["D"]}, {"good": ["A", "A"]}, {"good": "A"}, {"good": [""]}, {"good": ["a"]},
     {"tier": "cheap"}, {"after": "0"}, {"after": True}],
)  # fmt: skip
def test_what_is_no_decision_is_refused_and_nothing_is_written(tmp_path: Path, change: dict[str, Any]) -> None:
    session = session_of(tmp_path)
    before = session.file.path.read_bytes()
    with pytest.raises(Refused):
        session.decide({"index": 0, "after": 0, "good": ["A"], "risk": "low", "note": ""} | change)
    assert session.file.path.read_bytes() == before


# What is read


def test_a_label_that_is_there_already_is_not_shown(tmp_path: Path) -> None:
    items = items_of(tmp_path, required_tier="mid", labels={"bo": "mid"}, risk="high", reference="yes")
    session = Session(items, None, opened(tmp_path / "ann.jsonl", header(by="tier")))
    told = session.item(0)
    assert (told["risk"], told["reference"], told["decision"]) == ("high", "yes", None)
    assert "mid" not in json.dumps(told)


def test_messages_are_shown_as_turns_and_what_is_no_text_by_its_type(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "what is this?"}, {"type": "image_url"}]},
            {"role": "assistant", "content": None, "tool_calls": [{}]},
        ]}
    ]  # fmt: skip
    items = read_items(jsonl(tmp_path / "i.jsonl", rows), risk_classes=RISKS)
    session = Session(items, None, opened(tmp_path / "ann.jsonl", header(by="tier")))
    assert session.item(0)["turns"] == [
        {"role": "system", "text": "be brief"},
        {"role": "user", "text": "what is this?\n[image_url]"},
        {"role": "assistant", "text": "[tool_calls]"},
    ]


def test_characters_that_are_not_seen_are_shown_and_scripts_keep_their_joiners(tmp_path: Path) -> None:
    hidden = "safe\u202e\U000e0041\x1b[31m\u200b tab\there\r\nnext"
    rows = [{"id": "\u202eevil", "prompt": hidden, "category": "a\nb"}, {"id": "b", "prompt": "می‌خواهم 👩‍💻"}]
    items = read_items(jsonl(tmp_path / "i.jsonl", rows), risk_classes=RISKS)
    session = Session(items, None, opened(tmp_path / "ann.jsonl", header(by="tier")))
    told = session.item(0)
    assert told["turns"][0]["text"] == "safe[U+202E][U+E0041][U+001B][31m[U+200B] tab\there\nnext"
    assert (told["id"], told["category"]) == ("\\u202eevil", "a\\nb")
    assert session.item(1)["turns"][0]["text"] == "می‌خواهم 👩‍💻"


# What Unicode 16 has as ignorable (Default_Ignorable_Code_Point): drawn as nothing, so that text can hide in it.
IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


def test_nothing_can_hide_in_characters_that_are_drawn_as_nothing() -> None:
    for first, last in IGNORABLE:
        for code in range(first, last + 1):
            shown = text(f"a{chr(code) * 2}b")
            assert f"[U+{code:04X}]" in shown, f"two of U+{code:04X} stay unseen"
    for used in (
        "\U0001f468\u200d\U0001f469",
        "\u2764\ufe0f\u200d\U0001f525",
        "\u845b\U000e0100",
        "\u0645\u06cc\u200c\u062e",
        "\ud55c\uae00",
    ):
        assert text(used) == used, "a joiner or selector that is needed is taken out"


def test_every_fault_of_the_items_is_told_at_once(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "prompt": "x"}, {"id": "a", "prompt": "y"}, {"id": "b", "prompt": ""},
        {"id": "c", "prompt": "z", "risk": "huge"}, {"id": "d", "messages": "hello"},
    ]  # fmt: skip
    with pytest.raises(InputError) as error:
        read_items(jsonl(tmp_path / "i.jsonl", rows), risk_classes=RISKS)
    said = str(error.value)
    for part in (
        "also stands on",
        "field prompt: is blank",
        '"huge" is not a risk class',
        "is not a list of messages",
    ):
        assert part in said


def test_of_several_samples_the_first_is_shown_even_where_it_holds_no_reply(tmp_path: Path) -> None:
    items = items_of(tmp_path, 1)
    rows = [
        {"id": "q0", "tier": "cheap", "sample": 1, "reply": "second"},
        {"id": "q0", "tier": "cheap", "sample": 0},
        {"id": "q0", "tier": "top", "sample": 4, "reply": "only"},
        {"id": "other", "tier": "top", "sample": 0, "reply": "left out"},
    ]
    replies = read_replies(jsonl(tmp_path / "r.jsonl", rows), items=items, tiers=TIERS)
    assert replies.of(0) == [None, None, "only"]
    assert any("the first is shown" in note for note in replies.notices)
    assert any("other" in note for note in replies.notices)


def test_a_cell_that_stands_twice_is_a_fault(tmp_path: Path) -> None:
    items = items_of(tmp_path, 1)
    rows = [{"id": "q0", "tier": "mid", "reply": text} for text in ("a", "b")]
    with pytest.raises(InputError, match=r'row 2 \(id q0\), field id: "q0", tier "mid" stands on another row too'):
        read_replies(jsonl(tmp_path / "r.jsonl", rows), items=items, tiers=TIERS)


def test_decisions_on_what_was_changed_since_are_not_gone_on_with(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    decide(session, 0, ["mid"])
    decide(session, 1, ["mid"])
    one = Annotator("ann.jsonl", session.file.header, session.file.work)
    check_items(one, session.items, session.replies)
    more = items_of(tmp_path, 9)  # items may be added
    check_items(one, more, replies_of(tmp_path, more))
    rows = [{"id": "q0", "prompt": "another question"}, {"id": "q2", "prompt": "question 2"}]
    other = read_items(jsonl(tmp_path / "other.jsonl", rows), risk_classes=RISKS)
    with pytest.raises(InputError) as error:
        check_items(one, other, None)
    assert "id q0: asks something else" in str(error.value)
    assert "id q1: is decided, and" in str(error.value)
    of_another_log = read_items(jsonl(tmp_path / "log.jsonl", [{"id": "z", "prompt": "?"}]), risk_classes=RISKS)
    with pytest.raises(InputError, match=r"decides no item of .*log.jsonl") as error:
        check_items(one, of_another_log, None)
    assert len(error.value.faults) == 1
    changed = replies_of(tmp_path, session.items, dict.fromkeys(TIERS, "new"))
    with pytest.raises(InputError, match="has other replies than when it was decided"):
        check_items(one, session.items, changed)


# Two annotators


def test_a_conflict_is_shown_in_the_letters_of_who_settles_it_and_without_names(tmp_path: Path) -> None:
    ann, bo = (session_of(tmp_path, annotator=name) for name in ("ann", "bo"))
    decide(ann, 0, ["cheap", "mid", "top"])
    decide(bo, 0, ["mid"], note="bo's own words")
    for one in (ann, bo):
        decide(one, 1, ["top"])
    decide(ann, 2, ["top"])
    decide(bo, 2, ["top"], risk="high")
    decide(ann, 3, ["top"])  # bo has not decided it
    found = conflicts(ann.file.work, bo.file.work, ann.items.ids)
    assert list(found) == ["q0", "q2"]
    file = opened(tmp_path / "cy.jsonl", header("cy", adjudicates=("ann", "bo")))
    cy = Session(ann.items, ann.replies, file, queue=[0, 2], conflicts=found)
    assert cy.state() == {"total": 2, "done": 0, "n": 0, "undo": False, "next": 0}
    said = cy.item(0)["said"]
    assert sorted(said, key=lambda d: len(d["good"])) == [
        {"good": letters_of(cy, 0, ["mid"]), "risk": "low", "note": "bo's own words"},
        {"good": ["A", "B", "C"], "risk": "low", "note": ""},
    ]
    told = {k: v for k, v in cy.item(0).items() if k != "replies"}
    assert not any(f'"{name}"' in json.dumps(told) for name in ("ann", "bo", *TIERS))
    turned = [c.in_order(seed)[0] is c.first for c in found.values() for seed in range(200)]
    assert 150 < sum(turned) < 250
