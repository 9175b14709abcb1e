"""From a reply to an outcome: the one place where its status is decided. Pure: re-grading calls nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalkit.errors import Fault, InputError
from evalkit.grading.checks import plain
from evalkit.grading.entry_point import PythonCheck
from evalkit.grading.grade import Grade, GradeStatus
from evalkit.grading.items import Item
from evalkit.grading.judge import judge_grade, requests_of
from evalkit.grading.reply_status import reply_status
from evalkit.grading.rubric import Decider, Grader, Rubric
from evalkit.providers.call import Failure, FailureKind, Reply, Request

if TYPE_CHECKING:
    from evalkit.grading.human import HumanGrades

__all__ = ["Graded", "grade_cell", "grade_with", "judge_requests", "requests_to_judge"]


@dataclass(frozen=True, slots=True)
class Graded:
    """The outcome of one reply: `status` is one of the outcome table, `score` and `passed` are None unless graded.

    `reason` is a short code for counting. `detail` and `notice` are for a person to read; `detail` may quote the
    reply, a judge's raw reply or an exception. `answer` is the final answer, without reasoning, None where there
    is none. `error` is what the outcome table says of a failed call. `stripped`: reasoning was taken off the text.
    """

    status: str
    score: float | None = None
    passed: bool | None = None
    reason: str = ""
    detail: str = ""
    notice: str | None = None
    answer: str | None = None
    error: str | None = None
    stripped: bool = False


def grade_cell(
    rubric: Rubric,
    item: Item,
    candidate: str,
    reply: Reply | Failure,
    judge_replies: Sequence[Reply | Failure | None] = (),
    *,
    served_as_requested: bool = True,
    judge_served_as_requested: bool = True,
    human: HumanGrades | None = None,
    sample: int = 0,
    max_tokens: int | None = None,
    output_tokens: int | None = None,
    reasoning_tokens: int | None = None,
) -> Graded:
    """The outcome of the last reply of a cell.

    In this order: a failed call is `error` (a refusal `provider_refusal`); what ended the reply decides
    `truncated`, `budget_exhausted`, `no_final_answer` and `provider_refusal`; a reply by another model than the
    one asked for is `served_by_other_model`; then the contract; then the grader of the item. `judge_replies`
    answer `requests_to_judge`, in order, None where there is no reply yet. The token counts are those of the
    reply's usage, None where unknown.

    Raises `InputError` where the rubric cannot grade the item (`rubric_faults` finds all of these beforehand).
    """
    if isinstance(reply, Failure):
        return _failed(reply)
    status = reply_status(
        reply.text,
        reply.finish_reason,
        reasoning=reply.reasoning,
        reasoning_tokens=reasoning_tokens,
        output_tokens=output_tokens,
        max_tokens=max_tokens,
        tags=rubric.think_tags,
    )
    stripped = status.answer is not None and status.answer != (reply.text or "")
    if status.status is not None:
        error = status.notice if status.status == "error" else None
        return Graded(status.status, reason=status.status, notice=status.notice, error=error, stripped=stripped)
    answer = status.answer or ""
    if not served_as_requested:
        return Graded(
            "served_by_other_model",
            reason="served_by_other_model",
            detail=reply.served_model or "",
            notice=status.notice,
            answer=answer,
            stripped=stripped,
        )
    grade = _grade(rubric, item, answer, judge_replies, candidate, sample, human, judge_served_as_requested)
    return Graded(
        grade.status.value,
        grade.score,
        grade.passed,
        grade.reason,
        grade.detail,
        status.notice,
        answer,
        None,
        stripped,
    )


def requests_to_judge(
    rubric: Rubric,
    item: Item,
    reply: Reply | Failure,
    *,
    served_as_requested: bool = True,
    endpoint: str | None = None,
) -> tuple[Request, ...]:
    """What the judge has to be asked before `grade_cell` can grade `reply`; empty where it needs no judge."""
    if isinstance(reply, Failure) or not served_as_requested:
        return ()
    status = reply_status(reply.text, reply.finish_reason, reasoning=reply.reasoning, tags=rubric.think_tags)
    return () if status.answer is None else judge_requests(rubric, item, status.answer, endpoint=endpoint)


def judge_requests(rubric: Rubric, item: Item, answer: str, *, endpoint: str | None = None) -> tuple[Request, ...]:
    """What the judge has to be asked about a final answer (reasoning taken off); empty where it needs no judge.

    None is needed where a check grades the item, the answer breaks its contract or is empty, or it is too long for
    the judge's prompt. `endpoint` is the public part of the judge's address.
    """
    if rubric.judge is None or rubric.grader_for(item) is not Decider.JUDGE:
        return ()
    seen = _visible_answer(rubric, answer)
    return () if isinstance(seen, Grade) else requests_of(rubric.judge, item, seen, endpoint)


def grade_with(
    rubric: Rubric, item: Item, answer: str, judge_replies: Sequence[Reply | Failure | None] = ()
) -> Grade:
    """The grade of a final answer (reasoning taken off); `judge_replies` answer `judge_requests`, in order."""
    return _grade(rubric, item, answer, judge_replies, "", 0, None, True)


def _failed(failure: Failure) -> Graded:
    kind = failure.kind
    if kind is FailureKind.REFUSAL:
        return Graded("provider_refusal", reason=kind.value, detail=failure.message)
    return Graded("error", reason=kind.value, error=f"{kind.value}: {failure.message}")


def _visible_answer(rubric: Rubric, answer: str) -> str | Grade:
    """What a grader sees of the answer, or the `contract_fail` that spares it the trouble."""
    if rubric.contract is not None:
        breach = rubric.contract.breach(answer)
        if breach is not None:
            return breach
        answer = rubric.contract.body(answer)
    if not plain(answer):
        return Grade.contract_fail("empty")
    if rubric.answer_pattern is None:
        return answer
    found = {plain(one) for one in rubric.answer_pattern.groups(answer)}
    if not found:
        return Grade.contract_fail("no_answer_found")
    return found.pop() if len(found) == 1 else Grade.contract_fail("several_answers")


def _grade(
    rubric: Rubric,
    item: Item,
    answer: str,
    judge_replies: Sequence[Reply | Failure | None],
    candidate: str,
    sample: int,
    human: HumanGrades | None,
    judge_served_as_requested: bool,
) -> Grade:
    grader = rubric.grader_for(item)
    seen = _visible_answer(rubric, answer)
    if isinstance(seen, Grade):
        return seen
    if grader is Decider.CONTRACT:
        return Grade.ok("contract_kept")
    if grader is Decider.JUDGE:
        if rubric.judge is None:
            raise InputError(Fault("is judge, and the rubric has no judge", "write judge:", field="check.kind"))
        if not judge_replies:
            asked = requests_of(rubric.judge, item, seen)
            return Grade.judge_error("judge_not_asked" if asked else "judge_prompt_too_long")
        if not judge_served_as_requested:
            return Grade.judge_error("judge_served_by_other_model")
        return judge_grade(rubric.judge, judge_replies, rubric.pass_at)
    if grader is Decider.HUMAN:
        given = None if human is None else human.grade_of(item.id, candidate, sample, pass_at=rubric.pass_at)
        return (
            Grade.judge_error("no_human_grade") if given is None else Grade.scored(given, rubric.pass_at, "human")
        )
    if isinstance(grader, PythonCheck):
        return grader.grade(seen, item, rubric.pass_at)
    return _best(grader, seen, item)


def _best(check: Grader, answer: str, item: Item) -> Grade:
    """The best grade over the item's references, each of which is a right answer."""
    assert not isinstance(check, Decider | PythonCheck)
    references = item.references or (("",) if check.kind.value == "regex" else ())
    if not references:
        fault = Fault("is missing", "add the right answer", line=item.line, id=item.id, field="reference")
        raise InputError(fault)
    order = (GradeStatus.OK, GradeStatus.WRONG, GradeStatus.CONTRACT_FAIL)
    return min((check.grade(answer, one) for one in references), key=lambda grade: order.index(grade.status))
