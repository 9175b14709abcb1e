"""The runs that a study declares, against those that its outcomes have."""

from __future__ import annotations

from evalkit.errors import Fault, InputError
from evalkit.outcomes.table import Outcomes
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["refuse_unmet_samples"]


def refuse_unmet_samples(
    study: RoutingStudy | ReasoningStudy, outcomes: Outcomes, *, items: str = "task", tiers: str = "an arm"
) -> None:
    """A study whose outcomes nowhere have the runs that it declares was not run as it says: raises InputError.

    items, tiers: what the message calls what is run, and what runs it.
    """
    most = int(outcomes.present.sum(axis=2).max(initial=0))
    if study.samples is not None and 0 < most < study.samples:
        what = f"is {study.samples}, and no {items} has more than {most} run{'s' if most > 1 else ''} of {tiers}"
        fix = f"record the runs that are missing, or write samples: {most} where no more were made"
        raise InputError(Fault(what, fix, file=str(study.path), field="samples"))
