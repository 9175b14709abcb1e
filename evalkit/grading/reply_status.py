"""What became of a reply before anybody grades it: an answer, a cut one, or a budget that thinking used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.grading.final_answer import THINK_TAGS, final_text

__all__ = ["ReplyStatus", "reply_status"]

_LENGTH = {"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"}
_FILTER = {"content_filter", "refusal", "SAFETY", "safety"}


@dataclass(frozen=True, slots=True)
class ReplyStatus:
    """`status` of the outcome table where the reply is no answer to grade, None where it is; `answer` is what a
    check may see. `notice` says what to know of it: how to give room, or that a cap did not hold."""

    status: str | None
    answer: str | None
    notice: str | None = None


def reply_status(
    content: str | None,
    finish_reason: str | None,
    *,
    reasoning: str | None = None,
    reasoning_tokens: int | None = None,
    output_tokens: int | None = None,
    max_tokens: int | None = None,
    tags: Sequence[tuple[str, str]] = THINK_TAGS,
) -> ReplyStatus:
    """The status of one reply from its text, why it ended, and its counts.

    No answer after thinking: `budget_exhausted` where the cap ended it, or where thinking used tokens and nothing
    else came; `no_final_answer` where the reply ended by itself inside its thinking. Visible text that was cut is
    `truncated`. `reasoning` is what came in a channel of its own. A cap that did not hold is only a notice.

    >>> reply_status("", "length", reasoning_tokens=199).status
    'budget_exhausted'
    >>> reply_status("The three steps are: first", "length").status
    'truncated'
    """
    if finish_reason in _FILTER:
        return ReplyStatus("provider_refusal", None)
    text = content or ""
    answer = final_text(text, tags=tags, reasoning=reasoning)
    cut = finish_reason in _LENGTH
    thought = bool(reasoning_tokens) or bool((reasoning or "").strip())
    if answer is None or not answer.strip():
        if cut or (thought and not text.strip()):
            return ReplyStatus("budget_exhausted", None, "thinking used the whole budget: raise max_tokens")
        if answer is None:
            return ReplyStatus("no_final_answer", None)
    if cut:
        return ReplyStatus("truncated", None, "the answer was cut: raise max_tokens")
    notice = None
    if max_tokens is not None and output_tokens is not None and output_tokens > max_tokens:
        notice = f"{output_tokens} completion tokens for a cap of {max_tokens}: the cap did not hold"
    return ReplyStatus(None, answer, notice)
