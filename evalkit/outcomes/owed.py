"""Runs that should be there and are not: a log that drops what failed looks like one with fewer samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evalkit.errors import visible
from evalkit.outcomes.status import Status, status_code
from evalkit.outcomes.table import Outcomes

__all__ = ["absent_note", "owed_runs", "with_owed"]

Bools = npt.NDArray[np.bool_]


def owed_runs(present: Bools, samples: int | None) -> tuple[Bools, int]:
    """((N, S) runs of a candidate with those that should be there and are not, how many of these).

    Each item owes the runs that the study declares, else as many as the item of this candidate with the most. A
    log that drops failed runs looks just like that, so that a run that is not there counts as unanswered, at a
    cost that is not known. Items without any run stay as they are: they count as unanswered anyway.
    """
    count = present.sum(axis=1)
    owed = int(count.max(initial=0)) if samples is None else min(samples, present.shape[1])
    short = np.where(count > 0, np.maximum(owed - count, 0), 0)
    free = ~present
    return np.asarray(present | (free & (np.cumsum(free, axis=1) <= short[:, None]))), int(short.sum())


def absent_note(name: str, absent: int, samples: int | None, *, noun: str, items: str) -> str:
    """What to say of the runs of a candidate that should be there and are not.

    noun: what the candidate is, a tier or an arm; items: what it was to run, in the plural.
    """
    some = f"{noun} {visible(name, 60)}: {absent:,} run{' is' if absent == 1 else 's are'} missing"
    if samples is not None:
        return (
            f"{some} of samples: {samples}, and count as unanswered, at an unknown cost: a log may have dropped "
            "what failed. Record them, or lower samples where no more were made"
        )
    return (
        f"{some} against its {items} with the most runs, and count as unanswered, at an unknown cost: a log may "
        "have dropped what failed. Record them, or write samples: with the runs that every "
        f"{items[:-1]} was to have"
    )


def with_owed(outcomes: Outcomes, samples: int | None) -> Outcomes:
    """The outcomes with each run that should be there and is not as an error, and a notice for each tier of these.

    Without them an item whose failed runs were dropped would pass by the runs that are left.
    """
    status = outcomes.status.copy()
    said = []
    for j, name in enumerate(outcomes.tiers):
        owed, absent = owed_runs(outcomes.present[:, j], samples)
        if absent:
            status[:, j][owed & (status[:, j] < 0)] = status_code(Status.ERROR)
            said.append(absent_note(name, absent, samples, noun="tier", items="items"))
        elif (note := _uneven_note(name, outcomes.present[:, j], samples)) is not None:
            said.append(note)
    if not said:
        return outcomes
    return replace(outcomes, status=status, samples=(status >= 0).sum(axis=2), notices=(*outcomes.notices, *said))


def _uneven_note(name: str, present: Bools, samples: int | None) -> str | None:
    """What to say of a tier of which some items have more runs than the study asks for, and others do not."""
    count = present.sum(axis=1)
    some = count[count > 0]
    if samples is None or not len(some) or int(some.min()) == int(some.max()):
        return None
    return (
        f"tier {visible(name, 60)}: its items have {int(some.min()):,} to {int(some.max()):,} runs, and the study "
        f"asks for {samples:,} (samples): if the log dropped runs that failed, its pass rate is too good"
    )
