"""A model as judge: the requests that ask it, and the grade its replies give. Pure: nothing is called here."""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.errors import Fault, InputError
from evalkit.grading.grade import Grade
from evalkit.grading.items import Item
from evalkit.grading.judge_prompt import prompt_values
from evalkit.grading.rubric import Judge
from evalkit.grading.verdict import Verdict, read_verdict
from evalkit.providers.call import Failure, Reply, Request
from evalkit.providers.key import TRANSPORT_PARAMS

__all__ = ["has_verdict", "judge_grade", "requests_of"]


def requests_of(judge: Judge, item: Item, answer: str, endpoint: str | None = None) -> tuple[Request, ...]:
    """What the judge is asked about one final answer: one request, two in both orders where it is pairwise.

    Empty where the prompt would be too long. `endpoint` is the public part of the judge's address. Raises
    `InputError` where the prompt needs what the item does not have.
    """
    references = item.references
    reference = references[0] if len(references) == 1 else "\n".join(references) if references else None
    if not judge.pairwise:
        orders = [prompt_values(item, reference=reference, answer=answer)]
    elif reference is None:
        what = "a pairwise judge compares the answer with the reference, and there is none"
        raise InputError(Fault(what, "add the reference answer", id=item.id, field="reference"))
    else:
        orders = [
            prompt_values(item, reference=None, first=answer, second=reference),
            prompt_values(item, reference=None, first=reference, second=answer),
        ]
    system = () if judge.system is None else ({"role": "system", "content": judge.system},)
    params = {name: value for name, value in judge.params.items() if name not in TRANSPORT_PARAMS}
    found = []
    for values in orders:
        prompt = judge.prompt.render(values)
        if prompt is None:
            return ()
        found.append(Request(judge.model, (*system, {"role": "user", "content": prompt}), params, endpoint))
    return tuple(found)


def judge_grade(judge: Judge, replies: Sequence[Reply | Failure | None], pass_at: float) -> Grade:
    """The grade that the judge's replies to `requests_of` give, in the same order.

    Without a verdict in each of them it is a `judge_error`: no reply yet, a failed call, a verdict that is none of
    the listed ones, and, of a pairwise judge, two orders that disagree (a tie where the rubric says so).
    """
    if len(replies) != 1 + judge.pairwise:
        raise ValueError(f"The `replies` parameter must hold {1 + judge.pairwise}. Got {len(replies)} instead.")
    verdicts = [_verdict(judge, reply) for reply in replies]
    for verdict, reply in zip(verdicts, replies, strict=True):
        if verdict.score is None:
            return Grade.judge_error(verdict.reason, _said(reply))
    first = verdicts[0].score or 0.0
    if not judge.pairwise:
        return Grade.scored(first, pass_at, "judged")
    swapped = 1.0 - (verdicts[1].score or 0.0)  # in the second order the answer stands in second place
    if first == swapped:
        return Grade.scored(first, pass_at, "judged")
    if judge.tie_on_disagreement:
        return Grade.scored(0.5, pass_at, "orders_disagree")
    return Grade.judge_error("orders_disagree", f"{first:g} in one order, {swapped:g} in the other")


def has_verdict(judge: Judge, reply: Reply | Failure | None) -> bool:
    """The judge's reply is one of the verdicts that the rubric lists."""
    return _verdict(judge, reply).score is not None


def _verdict(judge: Judge, reply: Reply | Failure | None) -> Verdict:
    if reply is None:
        return Verdict(None, "judge_not_asked")
    if isinstance(reply, Failure):
        return Verdict(None, "judge_failed")
    return read_verdict(
        reply.text,
        words=judge.words,
        json_field=judge.json_field,
        scale=judge.scale,
        booleans=judge.scale is None and not judge.pairwise,
        fenced_ok=judge.fenced_ok,
        finish_reason=reply.finish_reason,
        reasoning=reply.reasoning,
        tags=judge.think_tags,
    )


def _said(reply: Reply | Failure | None) -> str:
    """What is kept beside a judgement that failed: the raw reply."""
    if isinstance(reply, Failure):
        return f"{reply.kind.value}: {reply.message}"
    return "" if reply is None else reply.text or ""
