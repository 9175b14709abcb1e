"""The gate policy that a study names, applied before anything is judged."""

from __future__ import annotations

from typing import Any, TypeVar

from evalkit.signoff.policy import read_policy
from evalkit.signoff.policy_limits import held_to
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["planned_under_policy", "under_policy"]

AnyStudy = TypeVar("AnyStudy", RoutingStudy, ReasoningStudy)


def under_policy(study: AnyStudy) -> tuple[AnyStudy, dict[str, Any] | None]:
    """The study with the stricter limits, and what result.json records of the policy; None where it names none.

    Raises InputError with every fault of the policy.
    """
    if study.policy is None:
        return study, None
    policy = read_policy(study.policy)
    held, changes = held_to(study, policy)
    recorded = {
        "file": policy.file,
        "sha256": policy.sha256,
        "gates_sha256": policy.gates_fingerprint,
        "stricter": [one.as_json() for one in changes],
    }
    return held, recorded


def planned_under_policy(study: AnyStudy) -> tuple[AnyStudy, tuple[str, ...]]:
    """The study as it is going to be judged, for a plan; and notices: the limits that its policy makes stricter,
    or that there is no such file yet.

    Raises InputError with every fault of the policy.
    """
    if study.policy is None:
        return study, ()
    if not study.policy.exists():
        return study, (
            f"{study.policy.name}: there is no such policy yet; these are the limits of the study alone",
        )
    held, recorded = under_policy(study)
    changes = [] if recorded is None else recorded["stricter"]
    return held, tuple(
        f"{study.policy.name}: {one['field']} is {one['after']} (study: {one['before']})" for one in changes
    )
