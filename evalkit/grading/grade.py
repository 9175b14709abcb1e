"""What a check says about one reply."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Grade", "GradeStatus"]


class GradeStatus(StrEnum):
    """The statuses a grader can give; the other ones of the outcome table come from the call itself."""

    OK = "ok"
    WRONG = "wrong"
    CONTRACT_FAIL = "contract_fail"
    NO_FINAL_ANSWER = "no_final_answer"
    JUDGE_ERROR = "judge_error"


@dataclass(frozen=True, slots=True)
class Grade:
    """The grade of one reply.

    `score` lies in 0..1; `score` and `passed` are None where there is no answer to judge. `reason` is a short
    code for counting; `detail` says more for a person to read, and may quote the reply or be as hostile as it.
    """

    status: GradeStatus
    score: float | None
    passed: bool | None
    reason: str
    detail: str = ""

    @classmethod
    def ok(cls, reason: str = "equal") -> Grade:
        """The answer is right."""
        return cls(GradeStatus.OK, 1.0, True, reason)

    @classmethod
    def wrong(cls, reason: str = "differs", detail: str = "") -> Grade:
        """The answer has the form that was asked for and is not the right one."""
        return cls(GradeStatus.WRONG, 0.0, False, reason, detail)

    @classmethod
    def contract_fail(cls, reason: str, detail: str = "") -> Grade:
        """The answer does not have the form that was asked for."""
        return cls(GradeStatus.CONTRACT_FAIL, 0.0, False, reason, detail)

    @classmethod
    def no_final_answer(cls, reason: str) -> Grade:
        """The reply never left its reasoning: nothing to judge."""
        return cls(GradeStatus.NO_FINAL_ANSWER, None, None, reason)

    @classmethod
    def judge_error(cls, reason: str, detail: str = "") -> Grade:
        """The judge, or the user's own code, gave no verdict: it says nothing about the answer."""
        return cls(GradeStatus.JUDGE_ERROR, None, None, reason, detail)

    @classmethod
    def scored(cls, score: float, pass_at: float, reason: str, detail: str = "") -> Grade:
        """A score in 0..1, which passes from `pass_at` on."""
        passed = score >= pass_at
        return cls(GradeStatus.OK if passed else GradeStatus.WRONG, score, passed, reason, detail)
