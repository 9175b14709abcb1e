"""What a judge's reply says: one of a closed set of verdicts, or nothing. Never a guess, never an exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from evalkit.grading.checks import plain
from evalkit.grading.final_answer import THINK_TAGS
from evalkit.grading.json_text import ContractError, Literal, one_value
from evalkit.grading.reply_status import reply_status

__all__ = ["Verdict", "read_verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`score` in 0..1, None where the reply holds no verdict; `reason` is then why."""

    score: float | None
    reason: str


def read_verdict(
    text: str | None,
    *,
    words: Mapping[str, float],
    json_field: str | None = None,
    scale: tuple[int, int] | None = None,
    booleans: bool = True,
    fenced_ok: bool = False,
    finish_reason: str | None = None,
    reasoning: str | None = None,
    tags: Sequence[tuple[str, str]] = THINK_TAGS,
) -> Verdict:
    """The verdict in a judge's reply.

    The reply, its reasoning taken off, is one of `words` or a number of `scale` (case, blanks around it and one
    final full stop do not count), or, with `json_field`, one JSON object whose field is a listed word, a number of
    the scale, or, with `booleans`, a real boolean. Anything else is no verdict: "not correct", 0, "false", a word
    in a sentence, a cut reply, a key that stands twice.
    """
    status = reply_status(text, finish_reason, reasoning=reasoning, tags=tags)
    if status.status is not None or status.answer is None:
        return Verdict(None, f"judge_{status.status or 'no_final_answer'}")
    answer = plain(status.answer)
    if not answer:
        return Verdict(None, "judge_empty")
    score = _of_text(answer, words, scale)
    if score is not None:
        return Verdict(score, "judged")
    if json_field is None:
        return Verdict(None, "judge_no_verdict")
    try:
        value = one_value(answer, fenced_ok=fenced_ok)
    except ContractError as broken:
        return Verdict(None, f"judge_{broken.reason}")
    if not isinstance(value, dict):
        return Verdict(None, "judge_wrong_shape")
    if json_field not in value:
        return Verdict(None, "judge_missing_field")
    score = _of_value(value[json_field], words, scale, booleans)
    return Verdict(None, "judge_no_verdict") if score is None else Verdict(score, "judged")


def _of_text(text: str, words: Mapping[str, float], scale: tuple[int, int] | None) -> float | None:
    folded = text.removesuffix(".").strip().casefold()
    for word, score in words.items():
        if folded == plain(word).casefold():
            return score
    return (
        _on_scale(Decimal(folded), scale) if folded.isascii() and folded.isdigit() and len(folded) < 10 else None
    )


def _of_value(
    value: object, words: Mapping[str, float], scale: tuple[int, int] | None, booleans: bool
) -> float | None:
    if isinstance(value, bool):
        return float(value) if booleans else None
    if isinstance(value, Literal):
        return _on_scale(value.value, scale)
    return _of_text(plain(value), words, None) if isinstance(value, str) else None


def _on_scale(value: Decimal, scale: tuple[int, int] | None) -> float | None:
    if scale is None or not scale[0] <= value <= scale[1] or value != value.to_integral_value():
        return None
    return float((value - scale[0]) / (scale[1] - scale[0]))
