"""Outcomes that another model answered than the one that was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from evalkit.errors import visible
from evalkit.outcomes.status import ANSWERED, STATUSES, Status
from evalkit.outcomes.table import ErrorsSeen, Outcomes
from evalkit.providers.served import same_model

__all__ = ["Asked", "as_asked"]


class Asked(Protocol):
    """A tier or an arm: what it is called, and the model that it asks for."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def model(self) -> str | None:
        """The model that it asks for; None where the study does not say."""


def as_asked(outcomes: Outcomes, asked: Sequence[Asked], aliases: Mapping[str, Collection[str]]) -> Outcomes:
    """The outcomes with what another model answered as `served_by_other_model`, and a notice for each such model.

    A good reply of a fallback is no reply of the model that is judged: it counts as unanswered, at its own cost.
    `asked` in the order of the outcomes' tiers; where one names no model, or a row does not, nothing is held
    against it. A replay tells the same way.
    """
    status = outcomes.status.copy()
    good = np.isin(status, [STATUSES.index(s) for s in ANSWERED])
    said, first, counts = [], None, 0
    for k, tier in enumerate(asked):
        for code, served in enumerate(outcomes.model[k]):
            if tier.model is None or same_model(tier.model, served, aliases):
                continue
            other = good[:, k] & (outcomes.model_code[:, k] == code)
            count = int(other.sum())
            if not count:
                continue
            status[:, k][other] = STATUSES.index(Status.SERVED_BY_OTHER_MODEL)
            first, counts = first or served, counts + count
            said.append(
                f"{visible(tier.name, 60)}: {count:,} of its outcomes are of {visible(served, 100)} and not of "
                f"{visible(tier.model, 100)}: they count as unanswered, at their own cost. Where that is another "
                f"name of the model, write aliases: {{{visible(tier.model, 100)}: [{visible(served, 100)}]}}"
            )
    if not said:
        return outcomes
    answered = np.isin(status, [STATUSES.index(s) for s in ANSWERED])
    return replace(
        outcomes,
        status=status,
        passed=outcomes.passed & answered,
        answered=answered,
        score=np.where(answered, outcomes.score, np.nan),
        errors=_with(outcomes.errors, counts, first),
        notices=(*outcomes.notices, *said),
    )


def _with(errors: Sequence[ErrorsSeen], count: int, first: str | None) -> tuple[ErrorsSeen, ...]:
    """The unanswered by status, with `count` more that another model answered."""
    kind = Status.SERVED_BY_OTHER_MODEL
    before = next((e for e in errors if e.status is kind), ErrorsSeen(kind, 0, first, count))
    now = replace(before, count=before.count + count)
    return (*(e for e in errors if e.status is not kind), now)
