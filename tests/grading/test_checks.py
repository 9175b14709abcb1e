"""The text checks: exact, choice, contains, boolean."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.grading import Boolean, Choice, Contains, Exact, GradeStatus

OK, WRONG, BROKEN = GradeStatus.OK, GradeStatus.WRONG, GradeStatus.CONTRACT_FAIL
VERDICTS = Choice(("CORRECT", "INCORRECT"))
texts = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("answer", "reference", "status"),
    [
        ("KT-4410", "KT-4410", OK),
        ("  KT-4410\n", "KT-4410", OK),
        ("kt-4410", "KT-4410", WRONG),
        ("KT-4410.", "KT-4410", WRONG),
        (unicodedata.normalize("NFD", "환불"), "환불", OK),
        ("Cafe\u0301", "Caf\u00e9", OK),
        ("007", "7", WRONG),
        ("TRUE", "true", WRONG),
        (" \n", "x", BROKEN),
    ],
)
def test_exact(answer: str, reference: str, status: GradeStatus) -> None:
    assert Exact().grade(answer, reference).status is status


@pytest.mark.parametrize(
    ("answer", "reference", "status", "reason"),
    [
        ("CORRECT", "CORRECT", OK, "equal"),
        ("correct.", "CORRECT", OK, "equal"),
        ("**Correct**", "CORRECT", OK, "equal"),
        ("`“correct”`", "CORRECT", OK, "equal"),
        ("INCORRECT", "CORRECT", WRONG, "differs"),
        ("CORRECT", "INCORRECT", WRONG, "differs"),
        ("not correct", "CORRECT", BROKEN, "not_an_option"),
        ("CORRECT, I think", "CORRECT", BROKEN, "not_an_option"),
        ("CORRECT INCORRECT", "CORRECT", BROKEN, "not_an_option"),
        ("CORREC", "CORRECT", BROKEN, "not_an_option"),
        ("CORRECT\u200b", "CORRECT", BROKEN, "not_an_option"),
        ("", "CORRECT", BROKEN, "empty"),
        ("...", "CORRECT", BROKEN, "not_an_option"),
    ],
)
def test_choice_is_a_whole_word(answer: str, reference: str, status: GradeStatus, reason: str) -> None:
    grade = VERDICTS.grade(answer, reference)
    assert (grade.status, grade.reason) == (status, reason)


def test_choice_in_korean() -> None:
    check = Choice(("환불", "교환", "환불 거절"))
    assert check.grade("환불.", "환불").passed is True
    assert check.grade("환불 거절", "환불").status is WRONG
    assert check.grade("환불입니다", "환불").status is BROKEN
    assert check.grade(unicodedata.normalize("NFD", "교환"), "교환").passed is True


@given(answer=texts)
def test_choice_passes_only_the_reference_with_marks_around_it(answer: str) -> None:
    if VERDICTS.grade(answer, "CORRECT").passed:
        letters = "".join(ch for ch in answer if ch.isalnum())
        assert letters.casefold() == "correct"


@given(answer=texts, around=st.text(alphabet=" \t\n.,:;!?*\"'`()[]"))
def test_choice_ignores_marks_around(answer: str, around: str) -> None:
    assert VERDICTS.grade(around + answer + around, "CORRECT").passed == VERDICTS.grade(answer, "CORRECT").passed


@pytest.mark.parametrize(
    ("answer", "reference", "found"),
    [
        ("The verdict is CORRECT.", "CORRECT", True),
        ("The verdict is INCORRECT.", "CORRECT", False),
        ("INCORRECT? No: CORRECT", "CORRECT", True),
        ("CORRECTED", "CORRECT", False),
        ("x_CORRECT", "CORRECT", False),
        ("It is 15 days", "15", True),
        ("It is 150 days", "15", False),
        ("It is 115 days", "15", False),
        ("It is 1.15 days", "15", False),
        ("It is 15.5 days", "15", False),
        ("It is 15,000", "15", False),
        ("It is 15.", "15", True),
        ("It is -15", "15", False),
        ("order-15", "15", True),
        ("15일 안에", "15", True),
        ("환불은 서울에서 합니다", "서울", True),
        ("남서울에서 합니다", "서울", False),
        ("비정상입니다", "정상", False),
        ("résumé", "resume", False),
        ("cafe\u0301s", "cafe", False),
    ],
)
def test_contains_is_a_word_of_its_own(answer: str, reference: str, found: bool) -> None:
    grade = Contains().grade(answer, reference)
    assert grade.status is (OK if found else WRONG)


@given(
    answer=st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    reference=st.text("ab1 가", min_size=1, max_size=4).filter(str.strip),
)
def test_contains_never_passes_without_the_text(answer: str, reference: str) -> None:
    if Contains().grade(answer, reference).passed:
        assert unicodedata.normalize("NFC", reference).strip() in unicodedata.normalize("NFC", answer)


@pytest.mark.parametrize(
    ("answer", "reference", "status"),
    [
        ("yes", "TRUE", OK),
        ("TRUE", "TRUE", OK),
        ("no", "TRUE", WRONG),
        ("no", "FALSE", OK),
        ("true", "TRUE", BROKEN),
        ("False", "FALSE", BROKEN),
        ("", "FALSE", BROKEN),
    ],
)
def test_boolean_knows_only_its_declared_spellings(answer: str, reference: str, status: GradeStatus) -> None:
    check = Boolean(("TRUE", "yes"), ("FALSE", "no"))
    assert check.grade(answer, reference).status is status


@pytest.mark.parametrize("check", [Exact(), Contains(), VERDICTS, Boolean(("yes",), ("no",))])
@given(answer=texts)
def test_every_answer_gets_a_whole_grade(check: Exact, answer: str) -> None:
    reference = {"choice": "CORRECT", "boolean": "yes"}.get(check.kind, "x")
    grade = check.grade(answer, reference)
    assert grade.score == (1.0 if grade.passed else 0.0)
    assert grade.passed is (grade.status is OK)
    assert grade.reason.isidentifier()


@pytest.mark.parametrize(
    ("check", "reference"),
    [(Exact(), " "), (Contains(), "\n"), (VERDICTS, "right"), (Boolean(("yes",), ("no",)), "Yes")],
)
def test_a_reference_that_no_answer_can_meet_is_a_fault(check: Exact, reference: str) -> None:
    fault = check.reference_fault(reference)
    assert fault is not None
    assert fault.fix
