"""From a reply to an outcome, in the order that is promised; and nothing but the final answer is graded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import InputError
from evalkit.grading import Grade, GradeStatus, Item, Rubric, final_text, grade_cell, grade_with
from evalkit.grading.human import HumanGrades
from evalkit.outcomes.status import ANSWERED, Status
from evalkit.providers.call import Failure, FailureKind, Reply

Make = Callable[..., Rubric]
ITEM = Item("a", prompt="2 + 2?", reference="4", category="sums")


@pytest.fixture(scope="module")
def number(rubric_of: Make) -> Rubric:
    return rubric_of("check: {kind: number}\n")


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failed_call_is_never_wrong(number: Rubric, kind: FailureKind) -> None:
    graded = grade_cell(number, ITEM, "cheap", Failure(kind, "what happened", text="4"))
    if kind is FailureKind.REFUSAL:
        assert (graded.status, graded.error) == ("provider_refusal", None)
    else:
        assert (graded.status, graded.error) == ("error", f"{kind.value}: what happened")
    assert graded.passed is graded.score is graded.answer is None


@pytest.mark.parametrize(
    ("reply", "served", "status"),
    [
        (Reply("4", "stop"), True, "ok"),
        (Reply("5", "stop"), True, "wrong"),
        (Reply("four", "stop"), True, "contract_fail"),
        (Reply("", "stop"), True, "contract_fail"),
        (Reply(None, "tool_calls"), True, "contract_fail"),
        (Reply("4", "stop"), False, "served_by_other_model"),
        (Reply("four", "stop"), False, "served_by_other_model"),
        (Reply("4", "length"), True, "truncated"),
        (Reply("4", "length"), False, "truncated"),
        (Reply("<think>4", "stop"), False, "no_final_answer"),
        (Reply("<think>4", "length"), True, "budget_exhausted"),
        (Reply("4", "content_filter"), False, "provider_refusal"),
        (Reply("4", "error"), True, "error"),
    ],
)
def test_the_order(number: Rubric, reply: Reply, served: bool, status: str) -> None:
    graded = grade_cell(number, ITEM, "cheap", reply, served_as_requested=served)
    assert graded.status == status
    answered = Status(status) in ANSWERED
    assert (graded.score is not None, graded.passed is not None) == (answered, answered)
    assert (graded.error is not None) == (status == "error")


def test_the_contract_comes_before_the_check(rubric_of: Make) -> None:
    text = "check: {kind: json, fields: {a: number}}\ncontract: {json: fenced_ok, schema: {required: [b]}}\n"
    rubric, item = rubric_of(text), Item("a", reference='{"a": 1}')
    assert grade_cell(rubric, item, "c", Reply('{"a": 1}', "stop")).reason == "missing_field"
    loose = rubric_of(text.replace("[b]", "[a]"))
    assert grade_cell(loose, item, "c", Reply('```json\n{"a": 1}\n```', "stop")).status == "ok"
    assert grade_cell(loose, item, "c", Reply('```json\n{"a": 2}\n```', "stop")).status == "wrong"


def test_several_references_are_several_right_answers(rubric_of: Make) -> None:
    rubric, item = rubric_of("check: {kind: exact}\n"), Item("a", reference=["Seoul", "서울"])
    assert [grade_with(rubric, item, text).status.value for text in ("서울", "Seoul", "Busan", "")] == [
        "ok",
        "ok",
        "wrong",
        "contract_fail",
    ]


def test_the_answer_in_a_reply(rubric_of: Make) -> None:
    rubric = rubric_of("answer_pattern: 'ANSWER: ([A-D])'\ncheck: {kind: choice, options: [A, B, C, D]}\n")
    item = Item("a", reference="B")
    for text, reason in {
        "I weigh A and B. ANSWER: B": "equal",
        "ANSWER: B. As I said, ANSWER: B": "equal",
        "ANSWER: A": "differs",
        "B": "no_answer_found",
        "ANSWER: E": "no_answer_found",
        "ANSWER: A or rather ANSWER: B": "several_answers",
    }.items():
        assert grade_with(rubric, item, text).reason == reason


def test_what_cannot_be_graded_is_named_and_not_guessed(number: Rubric, rubric_of: Make) -> None:
    with pytest.raises(InputError, match="id b"):
        grade_cell(number, Item("b"), "cheap", Reply("4", "stop"))
    with pytest.raises(InputError, match="metadata"):
        grade_cell(rubric_of("check: {from: item}\n"), ITEM, "cheap", Reply("4", "stop"))
    # A call that gave no answer needs no grader.
    assert grade_cell(number, Item("b"), "cheap", Failure(FailureKind.TIMEOUT, "late")).status == "error"


def test_grades_of_people(rubric_of: Make) -> None:
    rubric = rubric_of("human: {path: grades.csv}\n", grades_csv="id,passed\n")
    human = HumanGrades("grades.csv", {("a", "cheap", 0): {"": 1.0}, ("a", "cheap", 1): {"": 0.0}})

    def status(candidate: str, sample: int, text: str = "four") -> str:
        return grade_cell(rubric, ITEM, candidate, Reply(text, "stop"), human=human, sample=sample).status

    assert (status("cheap", 0), status("cheap", 1), status("cheap", 2), status("top", 0)) == (
        "ok",
        "wrong",
        "judge_error",
        "judge_error",
    )
    assert status("cheap", 0, "") == "contract_fail"


def test_every_status_is_one_of_the_outcome_table() -> None:
    assert {status.value for status in GradeStatus} <= {status.value for status in Status}


CODE = """
SEEN = []
def right(answer, item):
    SEEN.append(answer)
    return answer.strip() == item.reference
"""


@given(thought=st.text(), answer=st.text(), channel=st.booleans())
def test_reasoning_never_reaches_a_grader(python: Any, thought: str, answer: str, channel: bool) -> None:
    rubric, seen = python
    secret = "SECRET" + thought.replace("</think>", "")
    tidy = answer.replace("<think>", "").replace("</think>", "")
    seen.clear()
    reply = Reply(tidy, "stop", secret) if channel else Reply(f"<think>{secret}</think>{tidy}", "stop")
    graded = grade_cell(rubric, ITEM, "c", reply)
    assert all("SECRET" not in text for text in seen)
    assert "SECRET" not in (graded.answer or "")
    assert "SECRET" not in graded.detail
    assert graded.passed is not True or tidy.strip() == "4"


@pytest.fixture(scope="module")
def python(rubric_of: Make) -> Any:
    rubric = rubric_of("check: {kind: python, function: 'checks:right'}\n", checks_py=CODE)
    grade_with(rubric, ITEM, "4")
    from evalkit.grading.entry_point import _load

    return rubric, _load("checks:right", str(rubric.path.parent)).__globals__["SEEN"]


@given(
    text=st.text() | st.sampled_from(["4", " 4 ", "4.0", "four", "4 4", "yes", "Yes.", '{"a": 4}', "answer: 4"])
)
def test_a_pass_is_a_pass_of_the_check_that_was_asked_for(checks: dict[str, Rubric], text: str) -> None:
    """By what each check promises, written apart from its code."""
    reply = Reply(text, "stop")
    answer = final_text(text)
    passed = {name: grade_cell(rubric, ITEM, "c", reply).passed is True for name, rubric in checks.items()}
    if answer is None:
        assert not any(passed.values())
        return
    assert passed["exact"] == (answer.strip() == "4")
    assert passed["regex"] == (answer.strip() in {"yes", "no"})
    assert not passed["contract"] or answer.strip()[:1] in '{["tfn-0123456789'
    assert not passed["number"] or "4" in answer
    assert not passed["contains"] or "4" in answer
    assert not passed["judge"]
    assert not passed["human"]


@pytest.fixture(scope="module")
def checks(rubric_of: Make) -> dict[str, Rubric]:
    texts = {
        "exact": "check: {kind: exact}\n",
        "number": "check: {kind: number}\n",
        "contains": "check: {kind: contains}\n",
        "regex": "check: {kind: regex, pattern: 'yes|no'}\n",
        "contract": "contract: {json: strict}\n",
        "judge": "judge: {model: m, prompt: '{{ answer }}', words: {A: pass, B: fail}}\n",
        "human": "human: {path: grades.csv}\n",
    }
    return {name: rubric_of(text, grades_csv="id\n") for name, text in texts.items()}


class TestPython:
    def of(self, rubric_of: Make, body: str, answer: str = "x") -> Grade:
        code = f"from evalkit.grading import Grade, GradeStatus\ndef f(answer, item):\n    {body}\n"
        rubric = rubric_of("pass_at: 0.5\ncheck: {kind: python, function: 'checks:f'}\n", checks_py=code)
        return grade_with(rubric, ITEM, answer)

    @pytest.mark.parametrize(
        ("body", "status", "score"),
        [
            ("return True", "ok", 1.0),
            ("return False", "wrong", 0.0),
            ("return 0.5", "ok", 0.5),
            ("return 0.49", "wrong", 0.49),
            ("return 1", "ok", 1.0),
            ("return Grade.contract_fail('too_long')", "contract_fail", 0.0),
            ("return answer == 'x' and item.reference == '4' and item.prompt == '2 + 2?'", "ok", 1.0),
        ],
    )
    def test_what_it_may_return(self, rubric_of: Make, body: str, status: str, score: float) -> None:
        grade = self.of(rubric_of, body)
        assert (grade.status.value, grade.score) == (status, score)

    @pytest.mark.parametrize(
        ("body", "named"),
        [
            ("return None", "None"),
            ("return 'yes'", "yes"),
            ("return 1.5", "1.5"),
            ("return -1", "-1"),
            ("return float('nan')", "nan"),
            ("return [True]", "True"),
            ("return Grade(GradeStatus.OK, 1.0, False, 'odd')", "odd"),
            ("return Grade(GradeStatus.OK, 7.0, True, 'odd')", "odd"),
            ("return Grade(GradeStatus.JUDGE_ERROR, 1.0, True, 'odd')", "odd"),
            ("raise KeyError('gone')", "KeyError"),
            ("raise SystemExit(0)", "SystemExit"),
            ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
            ("return 1 / 0", "ZeroDivisionError"),
            ("assert False", "AssertionError"),
            ("return f(answer, item)", "RecursionError"),
        ],
    )
    def test_what_goes_wrong_in_it_is_never_a_wrong_answer(self, rubric_of: Make, body: str, named: str) -> None:
        grade = self.of(rubric_of, body)
        assert (grade.status.value, grade.score, grade.passed) == ("judge_error", None, None)
        assert named in grade.detail

    def test_it_sees_no_empty_answer_and_no_fence(self, rubric_of: Make) -> None:
        assert self.of(rubric_of, "return True", " ").reason == "empty"

    def test_an_installed_module(self, rubric_of: Make) -> None:
        rubric = rubric_of("check: {kind: python, function: 'operator:eq'}\n")
        assert grade_with(rubric, ITEM, "4").status.value == "wrong"
