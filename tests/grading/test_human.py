"""Grades of people from a file: every fault named, the median of the annotators, no grade where they split."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.grading.human import HumanGrades, read_human_grades


def write(folder: Path, text: str, name: str = "grades.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(path: Path, **more: object) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(InputError) as error:
        read_human_grades(path, **more)  # type: ignore[arg-type]
    return [(fault.line, fault.field, str(fault)) for fault in error.value.faults]


def test_truth_values_and_scores(tmp_path: Path) -> None:
    truths = read_human_grades(write(tmp_path, "id,tier,passed\na,cheap,true\nb,cheap,0\n"))
    assert truths.by_reply == {("a", "cheap", 0): {"": 1.0}, ("b", "cheap", 0): {"": 0.0}}
    scores = read_human_grades(write(tmp_path, "id,tier,sample,score,annotator\na,top,2,0.25,p1\na,top,2,1,p2\n"))
    assert scores.by_reply == {("a", "top", 2): {"p1": 0.25, "p2": 1.0}}


@pytest.mark.parametrize("column", ["tier", "arm", "candidate"])
def test_whose_reply_it_is(tmp_path: Path, column: str) -> None:
    path = write(tmp_path, f"id,{column},passed\na,cheap,true\n")
    assert list(read_human_grades(path).by_reply) == [("a", "cheap", 0)]


def test_one_candidate_needs_no_column(tmp_path: Path) -> None:
    path = write(tmp_path, "id,passed\na,true\n")
    assert list(read_human_grades(path, candidates=["cheap"]).by_reply) == [("a", "cheap", 0)]
    for candidates in (None, ["cheap", "top"]):
        assert "whose reply" in faults(path, candidates=candidates)[0][2]


def test_the_same_content_has_the_same_fingerprint(tmp_path: Path) -> None:
    csv = read_human_grades(write(tmp_path, "id,tier,passed\na,cheap,true\nb,cheap,false\n"))
    lines = '{"passed": false, "tier": "cheap", "id": "b"}\n{"id": "a", "tier": "cheap", "passed": true}\n'
    jsonl = read_human_grades(write(tmp_path, lines, "grades.jsonl"))
    assert csv.by_reply == jsonl.by_reply
    assert csv.fingerprint == jsonl.fingerprint
    other = read_human_grades(write(tmp_path, "id,tier,passed\na,cheap,true\nb,cheap,true\n"))
    assert other.fingerprint != csv.fingerprint


def test_all_faults_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "id,tier,sample,score,annotator\n"
        "a,cheap,0,1.5,p\n"
        "zz,cheap,0,1,p\n"
        "b,chap,0,1,p\n"
        "b,cheap,0.5,1,p\n"
        "b,cheap,1,,p\n"
        "b,cheap,2,1,p\n"
        "b,cheap,2,0,p\n"
        "b,,3,1,p\n"
        "b,cheap,4,yes,p\n",
    )
    found = faults(path, ids=["a", "b"], candidates=["cheap"])
    assert [(line, field) for line, field, _ in found] == [
        (2, "score"),
        (3, "id"),
        (4, "tier"),
        (5, "sample"),
        (6, "score"),
        (8, "id"),
        (9, "tier"),
        (10, "score"),
    ]
    assert "p" in found[5][2]
    assert "graded this reply already" in found[5][2]


@pytest.mark.parametrize(
    ("text", "what"),
    [("id,tier\na,cheap\n", "column of grades"), ("tier,passed\ncheap,true\n", '"id"'),
     ("id,tier,passed\na,cheap,yes\n", "neither true nor false"), ("id,tier,passed\na,cheap,\n", "blank")],
)  # fmt: skip
def test_files_without_grades(tmp_path: Path, text: str, what: str) -> None:
    assert any(what in message for _, _, message in faults(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("scores", "pass_at", "grade"),
    [([1.0], 1.0, 1.0), ([1.0, 0.0], 1.0, None), ([1.0, 1.0, 0.0], 1.0, 1.0), ([0.0, 0.0, 1.0], 1.0, 0.0),
     ([0.6, 0.8], 0.5, 0.7), ([0.4, 0.8], 0.5, None), ([0.1, 0.4, 0.8, 0.9], 0.5, None), ([], 1.0, None)],
)  # fmt: skip
def test_several_annotators(scores: list[float], pass_at: float, grade: float | None) -> None:
    human = HumanGrades("g", {("a", "c", 0): {f"p{i}": score for i, score in enumerate(scores)}})
    assert human.grade_of("a", "c", 0, pass_at=pass_at) == (None if grade is None else pytest.approx(grade))
    assert human.grade_of("b", "c") is None


@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=7), pass_at=st.floats(0.01, 1))
def test_the_grade_is_that_of_the_majority(scores: list[float], pass_at: float) -> None:
    human = HumanGrades("g", {("a", "c", 0): {f"p{i}": score for i, score in enumerate(scores)}})
    passing = sum(score >= pass_at for score in scores)
    grade = human.grade_of("a", "c", pass_at=pass_at)
    if 2 * passing == len(scores):
        assert grade is None
    else:
        assert grade is not None
        assert (grade >= pass_at) == (2 * passing > len(scores))
