"""A study held to its gate policy: of two limits the stricter one holds, before anything is judged."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evalkit.errors import Fault, InputError
from evalkit.signoff.policy import Policy
from evalkit.study.models import Limits, RoutingStudy
from evalkit.study.reasoning_models import ArmLimits, ReasoningStudy

__all__ = ["LimitChange", "held_to"]

AnyStudy = TypeVar("AnyStudy", RoutingStudy, ReasoningStudy)


@dataclass(frozen=True, slots=True)
class LimitChange:
    """A limit of the study that the policy made stricter; `before` None: the study had none."""

    field: str
    before: float | str | None
    after: float | str

    def as_json(self) -> dict[str, Any]:
        """The change as plain values."""
        before = {"before": self.before} if self.before is not None else {"before": "no limit"}
        return {"field": self.field, **before, "after": self.after}


def held_to(study: AnyStudy, policy: Policy) -> tuple[AnyStudy, tuple[LimitChange, ...]]:
    """The study with the stricter of its own and the policy's limits, and what that changed.

    A class of the policy that the study lacks changes nothing here; the sign-off leaves it open. The fingerprint
    of the study follows the limits, since other limits are another look at the labels. Raises InputError where a
    limit of the policy cannot be judged on what the study says.
    """
    changes: list[LimitChange] = []
    risk: dict[str, Any] = {}
    key = "max_under_route" if isinstance(study, RoutingStudy) else "max_failure"
    for name, own in study.risk.items():
        rule = policy.risk.get(name)
        limit = None if rule is None else getattr(rule, key)
        if rule is None or limit is None:
            risk[name] = own
            continue
        mine = getattr(own, key)
        after = _least(mine, limit)
        gate_on = rule.gate_on if mine is None or rule.gate_on == "bound" else own.gate_on
        if after != mine:
            changes.append(LimitChange(f"risk.{name}.{key}", mine, after))
        if mine is not None and gate_on != own.gate_on:
            changes.append(LimitChange(f"risk.{name}.gate_on", own.gate_on, gate_on))
        made: Any = replace
        risk[name] = made(own, **{key: after, "gate_on": gate_on})
    limits, tightened = study.limits, policy.limits
    new: dict[str, float] = {}
    for field in ("min_pass_rate", "max_cost_per_request", "p95_task_seconds", "max_escalation"):
        asked = getattr(tightened, field)
        if asked is None or not hasattr(limits, field):
            continue
        mine = getattr(limits, field)
        after = max(asked, mine or 0.0) if field == "min_pass_rate" else _least(mine, asked)
        if after != mine:
            changes.append(LimitChange(f"limits.{field}", mine, after))
            new[field] = after
    _refuse_unknown_seconds(study, policy, new)
    if not changes:
        return study, ()
    held: Any = replace(study, risk=risk, limits=_with(limits, new))
    said = json.dumps([study.fingerprint, [change.as_json() for change in changes]], sort_keys=True)
    held = replace(held, fingerprint=hashlib.sha256(said.encode()).hexdigest())
    return held, tuple(changes)


def _with(limits: Limits | ArmLimits, new: dict[str, float]) -> Any:
    made: Any = replace
    return made(limits, **new)


def _least(mine: float | None, asked: float) -> float:
    return asked if mine is None else min(mine, asked)


def _refuse_unknown_seconds(study: RoutingStudy | ReasoningStudy, policy: Policy, new: dict[str, float]) -> None:
    """As for a limit of the study itself: no limit on time where the router's own time is not stated."""
    if "p95_task_seconds" not in new or not isinstance(study, RoutingStudy):
        return
    silent = [router for router in study.all_routers if router.seconds is None]
    if silent:
        what = f"is required where {policy.file} sets limits.p95_task_seconds"
        fix = "write the seconds that routing adds to a request; write 0 if none"
        field = f"routers.{silent[0].name}.seconds" if study.routers else "router.seconds"
        raise InputError(Fault(what, fix, file=str(study.path), field=field))
