"""Leaks: what stands in training and judged items is found, however it is dressed, and nothing else."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from router_cases import labels_of

from evalkit.labels.labelset import LabelSet
from evalkit.routers.leaks import NEAR, Leak, alike, find_leaks, leak_fault
from evalkit.routers.sketches import MOST_HASHES, sketch_of, sketches_of, whole_hash, zero_bits

QUESTION = (
    "A customer ordered two pairs of shoes in March, returned one of them damaged in April, and now asks whether "
    "the second pair can still be returned although the box was thrown away. What does the policy say?"
)
OTHER = (
    "Our delivery van broke down near the depot this morning. Please write a short and friendly message to the "
    "eleven households whose parcels will arrive a day late, without a reason that sounds like an excuse."
)


def items(prompts: list[str | None], prefix: str = "j", group: list[str | None] | None = None) -> LabelSet:
    ids = [f"{prefix}{i}" for i in range(len(prompts))]
    return labels_of(prompts, [0] * len(prompts), ids=ids, group=group)


def leaks(training: list[str | None], judged: list[str | None]) -> list[tuple[str, str, str]]:
    found = find_leaks(sketches_of(items(training, "t")), sketches_of(items(judged)))
    return [(leak.id, leak.training, leak.kind) for leak in found]


@pytest.mark.parametrize(
    ("dressed", "kind"),
    [
        (QUESTION, "exact"),
        (f"  {QUESTION.upper()}\n\n", "exact"),
        (QUESTION.replace(" ", " \n "), "exact"),
        (f'"{QUESTION}"!!', "exact"),
        (QUESTION.replace("A", "\uff21"), "exact"),  # full width
        (QUESTION.replace("two pairs", "three pairs"), "near"),
        (QUESTION.replace(",", " -"), "near"),
        (f"Which of the following holds? {QUESTION} Explain your answer.", "near"),
        (QUESTION[: len(QUESTION) * 2 // 3], "near"),
    ],
)
def test_a_dressed_up_prompt_is_found(dressed: str, kind: str) -> None:
    assert leaks([OTHER, QUESTION], [dressed, "What time is it?"]) == [("j0", "t1", kind)]


@pytest.mark.parametrize(
    "text",
    [
        OTHER,
        "",
        "What does the policy say?",
        " ".join(reversed(QUESTION.split())),
        QUESTION[: len(QUESTION) // 4],
        f"{QUESTION} {OTHER} {OTHER[::-1]}",  # a third of it
    ],
)
def test_another_prompt_is_no_leak(text: str) -> None:
    assert leaks([QUESTION], [text]) == []


def test_arithmetic_is_told_apart() -> None:
    assert leaks(["What is 3 + 4?"], ["What is 3 * 4?", "What is 3 - 4?", "what is 3 + 4"]) == [
        ("j2", "t0", "exact")
    ]


def test_korean_prompts() -> None:
    text = (
        "지난달에 주문한 신발 두 켤레 가운데 한 켤레를 반품했는데 "
        "나머지 한 켤레도 상자 없이 반품할 수 있는지 알려 주세요"
    )
    assert leaks([text], [text.replace("두 켤레", "세 켤레"), "영업시간이 어떻게 되나요?"]) == [
        ("j0", "t0", "near")
    ]


def test_an_instruction_around_every_prompt_tells_nobody_apart() -> None:
    rng = np.random.default_rng(0)
    around = (
        "You are a helpful assistant of a large shop. Classify the message below into one of nine classes. " * 4
    )
    letters = "abcdefghijklmnopqrstuvwxyz"
    slots = [" ".join("".join(rng.choice(list(letters), 6)) for _ in range(8)) for _ in range(120)]
    training: list[str | None] = [around + slot for slot in slots[:60]]
    judged: list[str | None] = [around + slot for slot in slots[60:]]
    assert leaks(training, judged) == []
    assert leaks(training, [*judged, around + slots[7] + " x"]) == [("j60", "t7", "near")]


@pytest.mark.parametrize("length", [100, 1_000, 8_000])
def test_a_few_words_behind_a_long_instruction_are_told_apart(length: int) -> None:
    rng = np.random.default_rng(1)
    around = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz "), length))
    words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 6)) for _ in range(500)]
    asked = [" ".join(rng.choice(words, 5)) for _ in range(200)]
    training: list[str | None] = [f"{around} {words}" for words in asked[:100]]
    judged: list[str | None] = [f"{around} {words}" for words in asked[100:]]
    assert leaks(training, judged) == []
    again: list[str | None] = [*judged, f"{around}: {asked[7]} please"]
    assert leaks(training, again) == [("j100", "t7", "near")]
    assert len(set(alike(sketches_of(items(training))).tolist())) == 100


def test_what_the_system_says_is_no_part_of_a_prompt() -> None:
    system = {"role": "system", "content": "You are the assistant of a large shop. Answer in one sentence. " * 20}
    said = [[system, {"role": "user", "content": text}] for text in ("Where is my parcel?", "Can I pay by card?")]
    training = labels_of([None], [0], ids=["t0"], messages=said[:1])
    judged = labels_of([None, None, "where is my parcel"], [0, 0, 0], messages=[*said[1:], [system], None])
    found = find_leaks(sketches_of(training), sketches_of(judged))
    assert [(leak.id, leak.kind) for leak in found] == [("q2", "exact")]


def test_what_many_ask_in_the_same_words_is_still_a_leak() -> None:
    asked: list[str | None] = [f"{QUESTION} {'!' * i}" for i in range(60)]
    assert len(leaks([QUESTION], [*asked, OTHER])) == 60


def test_groups_and_ids_leak_too() -> None:
    training = items(["first turn of a talk", None, OTHER], "x", ["talk 1", None, "talk 2"])
    judged = items(["second turn of that talk", None, QUESTION], "x", ["talk 1", None, None])
    found = find_leaks(sketches_of(training), sketches_of(judged))
    assert [(leak.id, leak.training, leak.kind) for leak in found] == [("x0", "x0", "group"), ("x1", "x1", "id")]


def test_messages_are_compared_like_prompts() -> None:
    said = [[{"role": "user", "content": [{"type": "text", "text": QUESTION}, {"type": "image_url"}]}]]
    judged = labels_of([None], [0], messages=said)
    found = find_leaks(sketches_of(items([QUESTION], "t")), sketches_of(judged))
    assert [leak.kind for leak in found] == ["exact"]


def test_the_fault_names_both_sides_and_counts_the_rest() -> None:
    many = [Leak(f"j{i}", f"t{i}", "near", 0.9) for i in range(25)]
    said = str(leak_fault(many, 100, "study.yaml", "train.jsonl"))
    assert said.startswith(
        "study.yaml: field router.leaks: 25 of 100 judged items stand in what the router was trained"
    )
    assert '"j0" (near "t0", 0.90 alike)' in said
    assert "and 5 more. Fix: " in said
    assert '"j20"' not in said


def test_a_text_of_any_length_has_a_small_sketch() -> None:
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(5000)]
    text = " ".join(rng.choice(words, 200_000))
    level, hashes = sketch_of(text)
    assert level > 0
    assert MOST_HASHES // 4 < len(hashes) <= MOST_HASHES
    assert (zero_bits(hashes) >= level).all()
    # Compared at their levels, a text and one that adds a sixth to it are near.
    assert leaks([text[:9000]], [text[:10500]]) == [("j0", "t0", "near")]


def test_alike_joins_over_others() -> None:
    found = alike(sketches_of(items([QUESTION, OTHER, QUESTION.replace("two", "ten"), "z", "y"], "t",
                                    [None, "g", None, None, "g"])))  # fmt: skip
    assert found[0] == found[2]
    assert found[1] == found[4]
    assert len(set(found.tolist())) == 3


@settings(max_examples=60)
@given(text=st.text(max_size=80), other=st.text(max_size=80))
def test_every_text_leaks_into_itself(text: str, other: str) -> None:
    found = find_leaks(sketches_of(items([other, text], "t")), sketches_of(items([text])))
    assert [(leak.id, leak.kind) for leak in found] == [("j0", "exact")]
    assert all(NEAR <= leak.similarity <= 1 for leak in found)
    assert whole_hash(text) == whole_hash(f" {text}\n")


def read_mmlu(shared: Path) -> list[str]:
    prompts = []
    for path in sorted((shared / "data/routellm/mmlu").glob("mmlu_*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            prompts += [row["prompt"] for row in csv.DictReader(stream)]
    return prompts


def test_exactly_the_contaminated_prompts_of_mmlu_are_named(shared: Path) -> None:
    """The five that a public router evaluation drops, as its training data worded them, among 14,042 questions."""
    prompts = read_mmlu(shared)
    lines = (shared / "data/routellm/mmlu/contaminated_prompts.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    assert len(prompts) == 14_042
    assert len(pairs) == 5
    judged = sketches_of(items(list(prompts), "q"))
    for key, kinds in (
        ("train_prompt", ["near", "near", "near", "near", "exact"]),
        ("eval_prompt", ["exact"] * 5),
    ):
        found = find_leaks(sketches_of(items([pair[key] for pair in pairs], "t")), judged)
        assert sorted(prompts[int(leak.id[1:])] for leak in found) == sorted(pair["eval_prompt"] for pair in pairs)
        assert [leak.kind for leak in found] == kinds
        assert all(pairs[int(leak.training[1:])]["eval_prompt"] == prompts[int(leak.id[1:])] for leak in found)
