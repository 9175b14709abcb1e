"""Takes the reasoning off a reply, so that no check ever sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["THINK_TAGS", "final_text"]

THINK_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)


def final_text(
    reply: str, *, tags: Sequence[tuple[str, str]] = THINK_TAGS, reasoning: str | None = None
) -> str | None:
    """The final answer in `reply`, or None where the reply holds reasoning and no answer.

    Reasoning is what stands between a pair of `tags` at the start of the reply, and whatever comes before an
    orphan closing tag (templates often swallow the opening one). A tag that is mentioned later in the text is
    text. A block that is never closed has no answer after it. `reasoning` is what the provider sent in a
    channel of its own: an empty reply beside it is no answer either; an empty reply alone is returned as it is,
    for the check to judge.

    >>> final_text("<think>high? no</think> low")
    'low'
    >>> final_text("<think>high, I th") is None
    True
    """
    opening = dict(tags)
    closing = {close_tag for _, close_tag in tags}
    marks = sorted({*opening, *closing}, key=len, reverse=True)
    answer_at, waiting_for = 0, None
    for mark in re.finditer("|".join(map(re.escape, marks)), reply) if marks else ():
        tag = mark.group()
        if waiting_for is not None:
            if tag == waiting_for:
                answer_at, waiting_for = mark.end(), None
        elif tag in closing:
            answer_at = mark.end()
        elif not reply[answer_at : mark.start()].strip():
            waiting_for = opening[tag]
        else:
            break  # An opening tag inside the answer is text, and so is all that follows.
    if waiting_for is not None:
        return None
    answer = reply[answer_at:].strip()
    if not answer and (answer_at or (reasoning or "").strip()):
        return None
    return answer if answer_at else reply
