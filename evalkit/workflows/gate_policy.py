"""The gate policy that a study names, applied before anything is judged."""

from __future__ import annotations

from typing import Any, TypeVar

from evalkit.signoff.policy import read_policy
from evalkit.signoff.policy_limits import held_to
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["under_policy"]

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
