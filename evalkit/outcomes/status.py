"""What became of one request: the statuses, which of them are answers, and their codes in arrays."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ABSENT", "ANSWERED", "STATUSES", "Status", "status_code"]


class Status(StrEnum):
    """The outcome of one sample. `ok` passes; `wrong` and `contract_fail` fail; the others are unanswered."""

    OK = "ok"
    WRONG = "wrong"
    CONTRACT_FAIL = "contract_fail"
    TRUNCATED = "truncated"
    BUDGET_EXHAUSTED = "budget_exhausted"
    NO_FINAL_ANSWER = "no_final_answer"
    PROVIDER_REFUSAL = "provider_refusal"
    SERVED_BY_OTHER_MODEL = "served_by_other_model"
    JUDGE_ERROR = "judge_error"
    ERROR = "error"


STATUSES: tuple[Status, ...] = tuple(Status)
"""Position = code in the arrays."""

ANSWERED = frozenset({Status.OK, Status.WRONG, Status.CONTRACT_FAIL})
"""The statuses of a request that was answered and graded."""

ABSENT = -1
"""The code where there is no row."""


def status_code(status: Status) -> int:
    """The code of `status` in the arrays."""
    return STATUSES.index(status)
