"""What each verifier says of the replies of one tier. Pure: nothing is called here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.grading.cell import grade_cell
from evalkit.grading.final_answer import final_text
from evalkit.grading.items import Item
from evalkit.grading.rubric import Decider, Rubric
from evalkit.grading.same_answer import answer_key
from evalkit.providers.call import Failure, Reply
from evalkit.routers.verifiers.replies import ReplyRow, TierReplies

__all__ = [
    "Floats",
    "TierScores",
    "answered",
    "by_judge",
    "by_rubric",
    "check_rubric",
    "log_probability",
    "self_consistency",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TierScores:
    """score (N,): NaN where there is none. usd (N,): what the verification of a reply cost, NaN unknown."""

    tier: str
    score: Floats
    usd: Floats

    @property
    def missing(self) -> int:
        """Items without a score."""
        return int(np.isnan(self.score).sum())


def self_consistency(replies: TierReplies) -> TierScores:
    """The share of an item's k samples that give the most frequent answer (`answer_key`, reasoning taken off).

    A sample without an answer agrees with none and stays among the k. The other k - 1 samples are what verifying
    costs. Wang et al. 2023 (self-consistency); an item with one sample has no score.
    """
    score, usd = _empty(replies), _empty(replies)
    for i, rows in enumerate(replies.rows):
        if len(rows) < 2:
            continue
        answers = [_answer(row) for row in rows]
        known = Counter(answer_key(answer) for answer in answers if answer is not None)
        if known:
            score[i] = max(known.values()) / len(rows)
        costs = [row.cost_usd for row in rows]
        if all(cost is not None for cost in costs):
            total = sum(Decimal(repr(cost)) for cost in costs if cost is not None)
            usd[i] = float(total * (len(rows) - 1) / len(rows))
    return TierScores(replies.tier, score, usd)


def log_probability(replies: TierReplies) -> TierScores:
    """The mean log-probability of the tokens of the first sample, as it was recorded; it costs nothing more."""
    score = _empty(replies)
    for i in range(len(replies.rows)):
        row = replies.first(i)
        if row is not None and row.text is not None and row.mean_logprob is not None:
            score[i] = row.mean_logprob
    return TierScores(replies.tier, score, np.zeros(len(score)))


def check_rubric(rubric: Rubric, items: Sequence[Item], *, judged: bool) -> None:
    """Raises `InputError` where the rubric grades some item in a way that this verifier does not: by a judge or
    without one, by people, or by an answer that has to be known."""
    wrong: dict[str, str] = {}
    for item in items:
        grader = rubric.grader_for(item)
        if grader is Decider.HUMAN:
            wrong.setdefault("is graded by people, who are not asked in production", item.id)
        elif judged != (grader is Decider.JUDGE):
            what = "is graded by no judge" if judged else "is graded by a judge: take --verifier judge"
            wrong.setdefault(what, item.id)
    if wrong:
        fix = "name a rubric that needs neither a reference nor people, with --rubric"
        raise InputError([Fault(what, fix, file=str(rubric.path), id=name) for what, name in wrong.items()])


def by_rubric(rubric: Rubric, items: Sequence[Item], replies: TierReplies) -> TierScores:
    """The rubric's score of the first sample, 0 to 1; it costs nothing more."""
    score = _empty(replies)
    for i, item in enumerate(items):
        reply = answered(replies.first(i))
        if reply is not None:
            found = grade_cell(rubric, item, replies.tier, reply).score
            score[i] = np.nan if found is None else found
    return TierScores(replies.tier, score, np.zeros(len(score)))


def by_judge(
    rubric: Rubric,
    items: Sequence[Item],
    replies: TierReplies,
    judged: Mapping[str, tuple[Sequence[Reply | Failure | None], Decimal | None]],
) -> TierScores:
    """The judge's score of the first sample, 0 to 1. judged: by id, what the judge answered and what that cost."""
    score, usd = _empty(replies), _empty(replies)
    for i, item in enumerate(items):
        reply = answered(replies.first(i))
        if reply is None:
            continue
        said, cost = judged.get(item.id, ((), Decimal(0)))  # a broken contract spares the judge
        found = grade_cell(rubric, item, replies.tier, reply, said).score
        score[i] = np.nan if found is None else found
        usd[i] = np.nan if cost is None else float(cost)
    return TierScores(replies.tier, score, usd)


def answered(row: ReplyRow | None) -> Reply | None:
    """The reply of a row as something to grade."""
    return None if row is None or row.text is None else Reply(text=row.text, finish_reason="stop")


def _answer(row: ReplyRow) -> str | None:
    return None if row.text is None else final_text(row.text)


def _empty(replies: TierReplies) -> Floats:
    return np.full(len(replies.rows), np.nan)
