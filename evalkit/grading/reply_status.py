"""What became of a reply before anybody grades it: an answer, a cut one, or a budget that thinking used up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.grading.final_answer import THINK_TAGS, final_text
from evalkit.providers.responses import INTERRUPTED

__all__ = ["ReplyStatus", "reply_status"]

# Compared without case. The words of OpenAI, Anthropic, Gemini and Bedrock.
_LENGTH = {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
_FILTER = {
    "content_filter", "content_filtered", "refusal", "safety", "image_safety", "recitation", "blocklist",
    "prohibited_content", "spii", "guardrail_intervened",
}  # fmt: skip


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

    No answer after thinking: `budget_exhausted` where the cap ended it, or where thinking is known to have used
    tokens and nothing else came; `no_final_answer` where the reply ended by itself inside its thinking, or holds
    reasoning in a channel of its own (`reasoning`) and nothing else. Visible text that was cut is `truncated`. A
    reply that the provider ended with an error is an `error`. A cap that did not hold is only a notice.

    >>> reply_status("", "length", reasoning_tokens=199).status
    'budget_exhausted'
    >>> reply_status("The three steps are: first", "length").status
    'truncated'
    """
    ended = (finish_reason or "").casefold()
    if ended in _FILTER:
        return ReplyStatus("provider_refusal", None)
    if ended in INTERRUPTED:
        return ReplyStatus("error", None, "the provider ended the reply with an error")
    text = content or ""
    answer = final_text(text, tags=tags, reasoning=reasoning)
    cut = ended in _LENGTH
    if answer is None or not answer.strip():
        if cut or (reasoning_tokens and not text.strip()):
            return ReplyStatus("budget_exhausted", None, "thinking used the whole budget: raise max_tokens")
        if answer is None:
            return ReplyStatus("no_final_answer", None)
    if cut:
        return ReplyStatus("truncated", None, "the answer was cut: raise max_tokens")
    notice = None
    if max_tokens is not None and output_tokens is not None and output_tokens > max_tokens:
        notice = f"{output_tokens} completion tokens for a cap of {max_tokens}: the cap did not hold"
    return ReplyStatus(None, answer, notice)
