"""Rules: first match, strict reading, and texts and patterns made to hurt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.routers.items import Requests
from evalkit.routers.rules import Rules, read_rules

RULES = r"""
rules:
  - {name: contracts, category: [legal, billing], score: 1}
  - {name: code, patterns: ['(?i)stack ?trace', 'Exception in'], min_characters: 20, score: 0.8}
  - {name: greeting, max_characters: 12, not_patterns: '\d', score: 0}
otherwise: 0.3
"""


def rules(folder: Path, text: str) -> Rules:
    path = folder / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    return read_rules(path)


def requests(*pairs: tuple[str, str | None]) -> Requests:
    n = len(pairs)
    return Requests(tuple(t for t, _ in pairs), tuple(c for _, c in pairs), (True,) * n, (None,) * n)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as raised:
        rules(folder, text)
    return [str(fault) for fault in raised.value.faults]


def test_the_first_rule_that_is_met_gives_the_score(tmp_path: Path) -> None:
    found = rules(tmp_path, RULES)
    asked = requests(
        ("Exception in thread main, line 4", "legal"),
        ("Exception in thread main, line 4", "code"),
        ("Exception in", None),  # too short for the second; the third takes it: 12 characters
        ("a STACKTRACE of many lines", None),
        ("hello", None),
        ("hello 7", None),
        ("", "other"),
    )
    assert found.score(asked).tolist() == [1, 0.8, 0, 0.8, 0, 0.3, 0]
    assert found.first(asked).tolist() == [0, 1, 2, 1, 2, 3, 2]


def test_text_is_compared_in_normal_form_c(tmp_path: Path) -> None:
    found = rules(tmp_path, "rules: [{patterns: '계약', score: 1}, {category: 계정, score: 2}]\notherwise: 0\n")
    import unicodedata

    asked = requests(
        (unicodedata.normalize("NFD", "이 계약을 해지"), None), ("x", unicodedata.normalize("NFD", "계정"))
    )
    assert found.score(asked).tolist() == [1, 2]


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "([a-zA-Z]+)*$", "(.*a){25}$", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_patterns_and_texts_made_to_backtrack_end(tmp_path: Path, pattern: str) -> None:
    found = rules(tmp_path, f"rules: [{{patterns: '{pattern}', score: 1}}]\notherwise: 0\n")
    # A backtracking engine takes longer than the age of the universe over these.
    assert found.score(requests(("a" * 100_000 + "!", None), ("b" * 5_000, None))).shape == (2,)


def test_hostile_prompts_are_scored(tmp_path: Path) -> None:
    from evalkit.routers.items import sound_text

    found = rules(tmp_path, "rules: [{patterns: 'needle', score: 1}]\notherwise: 0\n")
    texts = ["\0needle", sound_text("\ud800needle"), "", "x" * 1_000_000 + "needle", "한국어 needle", "need\0le"]
    assert found.score(requests(*((t, None) for t in texts))).tolist() == [1, 1, 0, 1, 1, 0]


def test_every_fault_is_named_with_its_line(tmp_path: Path) -> None:
    text = """rules:
  - {category: legal}
  - {score: 1}
  - {patterns: '(', score: 1}
  - {patterns: '(?=x)y', score: 1}
  - {patterns: '(a)\\1', score: 1}
  - {min_characters: 9, max_characters: 3, score: 1}
  - {categroy: legal, score: 1}
  - {category: [legal, 7], score: high}
  - nonsense
  - {min_characters: -1, score: .nan}
"""
    found = faults(tmp_path, text)
    starts = [line.split("rules.yaml:")[1].split(":")[0] for line in found]
    assert {int(at) for at in starts} == {1, *range(2, 12)}
    assert any("rules[0].score: is required" in line for line in found)
    assert any("rules[1]: has no condition" in line for line in found)
    assert any("otherwise: is required" in line for line in found)
    assert any("rules[6].categroy: is not a known key. Fix: write category" in line for line in found)
    assert any("rules[7].category[1]: is 7, not text" in line for line in found)


def test_a_rule_that_is_never_reached_is_a_fault(tmp_path: Path) -> None:
    found = faults(tmp_path, "rules:\n  - {category: a, score: 1}\n  - {category: a, score: 0}\notherwise: 0\n")
    assert len(found) == 1
    assert "rules.yaml:3: field rules[1]: has the conditions of rules[0]" in found[0]


@pytest.mark.parametrize(
    "text", ["rules: []\notherwise: 0\n", "rules: 3\notherwise: 0\n", "- a\n", "otherwise: 1\n"]
)
def test_no_rules_are_a_fault(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text)


def test_the_fingerprint_is_of_what_the_rules_say(tmp_path: Path) -> None:
    one = rules(tmp_path, "rules:\n  - {name: a, category: [legal, fees], score: 0.50}\notherwise: 0\n")
    same = rules(tmp_path, "# a comment\notherwise: 0.0\nrules: [{score: 0.5, category: [fees, legal]}]\n")
    other = rules(tmp_path, "rules:\n  - {name: a, category: [legal, fees], score: 0.51}\notherwise: 0\n")
    assert one.fingerprint == same.fingerprint != other.fingerprint


@given(order=st.permutations(range(7)))
def test_the_score_of_a_request_does_not_depend_on_the_others(order: list[int]) -> None:
    import tempfile

    texts = ["stack trace of many lines", "hello", "hello 7", "", "Exception in thread one", "x" * 99, "legal"]
    categories = [None, "legal", None, "billing", "other", None, None]
    with tempfile.TemporaryDirectory() as folder:
        found = rules(Path(folder), RULES)
    whole = found.score(requests(*zip(texts, categories, strict=True)))
    mixed = found.score(requests(*((texts[i], categories[i]) for i in order)))
    assert np.array_equal(mixed, whole[order])
