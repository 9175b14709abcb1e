"""The page on rubrics says what is true: its examples are read, and it names every key, kind and reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalkit.grading import CheckKind, Decider, Item, read_rubric
from evalkit.grading.human import HUMAN_SCHEMA
from evalkit.grading.judge_prompt import _FILTERS, JudgePrompt
from evalkit.grading.judge_section import _KEYS as JUDGE_KEYS
from evalkit.grading.read_rubric import _KEYS


@pytest.fixture(scope="module")
def page(repo: Path) -> str:
    return (repo / "docs" / "rubrics.md").read_text(encoding="utf-8")


def test_every_example_is_a_rubric(page: str, tmp_path: Path) -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "grades.csv").touch()
    for text in examples:
        path = tmp_path / "rubric.yaml"
        path.write_text(text, encoding="utf-8")
        rubric = read_rubric(path)
    assert rubric.grader_for(Item("a")) is Decider.CONTRACT


def test_every_word_is_explained(page: str) -> None:
    words = [*_KEYS, *JUDGE_KEYS, *CheckKind, *Decider, *_FILTERS, *JudgePrompt("").names]
    words += [*JudgePrompt("", pairwise=True).names, *HUMAN_SCHEMA.required, *HUMAN_SCHEMA.optional, "python"]
    assert [word for word in words if f"`{word}`" not in page] == []
    reasons = re.findall(r'(?:ContractError|contract_fail)\("(\w+)"', "".join(
        (Path(__file__).parents[2] / "evalkit" / "grading" / name).read_text(encoding="utf-8")
        for name in ("json_text.py", "contract.py")
    ))  # fmt: skip
    assert reasons
    assert [reason for reason in reasons if f"`{reason}`" not in page] == []
