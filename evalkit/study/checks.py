"""What several sections of a routing study say together, and what must not be certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalkit.errors import Fault, visible
from evalkit.study.fields import Section
from evalkit.study.models import Limits, Risk, Router, Tier
from evalkit.study.sections import Read
from evalkit.study.thresholds import threshold_problems

__all__ = ["check_replay", "check_risk", "check_router", "weight_notices"]


def check_risk(top: Section, risk: Mapping[str, Read[Risk]]) -> None:
    """The costliest classes are gated on the exact bound, so that at least one class is; some weight counts."""
    if not risk:
        return
    highest = max(entry.value.under_route_loss for entry in risk.values())
    for value, section in risk.values():
        if value.under_route_loss < highest or value.certified:
            continue
        loss = f"{value.under_route_loss:g} USD is the highest under_route_loss"
        if value.max_under_route is None:
            fix = "write the largest share of its needs that may be under-routed"
            section.fault("max_under_route", f"is missing, and {loss}: such a class needs a certified limit", fix)
        else:
            section.fault("gate_on", f"is estimate, and {loss}: such a class must be certified", "write bound")
    if not any(entry.value.weight > 0 for entry in risk.values()):
        top.fault("risk", "has no class with a weight above 0", "write an under_route_loss or a weight above 0")


def weight_notices(risk: Mapping[str, Read[Risk]]) -> list[str]:
    """A class of weight 0 is taken, and said to be."""
    return [
        str(
            Fault(
                f"risk class {visible(name)} has weight 0, so risk_weighted_under_route leaves it out",
                "none is needed where that is meant",
                file=section.report.file,
                line=section.line("weight"),
                field=section.where("weight"),
            )
        )
        for name, (value, section) in risk.items()
        if value.weight == 0
    ]


def check_router(
    router: Read[Router], tiers: Sequence[Tier], risk: Mapping[str, Read[Risk]], limits: Limits
) -> None:
    """No certificate from a router that saw the items; thresholds that fit; no latency limit on a guess."""
    value, section = router
    certified = [name for name, entry in risk.items() if entry.value.certified]
    if value.trained_on == "these_items" and certified:
        classes = ", ".join(visible(name) for name in certified)
        what = f"is these_items, and {classes} must meet a certified limit: the router has seen the answers"
        section.fault("trained_on", what, "score these items with a router trained on others, or cross-fitted")
    if value.thresholds is not None and len(tiers) >= 2:
        problems = threshold_problems(
            value.thresholds,
            [tier.name for tier in tiers],
            value.higher_means,
            single_score=value.policy != "cascade",
            probability=value.probability,
        )
        for what, fix in problems:
            section.fault("thresholds", what, fix)
    if limits.p95_task_seconds is not None and not section.has("seconds"):
        what = "is required where limits.p95_task_seconds is set"
        section.fault("seconds", what, "write the seconds that routing adds to a request; write 0 if none")


def check_replay(top: Section, tiers: Sequence[Tier], routers: Sequence[Router]) -> None:
    """Without recorded outcomes the models have to be called and their replies graded.

    Points fixed in advance (thresholds or decisions) can be judged on their under-routing alone.
    """
    fixed = bool(routers) and all(r.thresholds is not None or r.decisions is not None for r in routers)
    if top.has("outcomes") or (fixed and not top.has("rubric")):
        return
    without = [tier.name for tier in tiers if tier.model is None]
    if without:
        names = ", ".join(visible(name) for name in without)
        what = f"is missing, and these tiers name no model to call: {names}"
        top.fault("outcomes", what, "name the file of recorded outcomes, or write model: for each tier")
    if not top.has("rubric"):
        what = "is missing, and without outcomes the replies have to be graded"
        fix = "name the file of recorded outcomes under outcomes (it may come after labels, routers), or a rubric"
        top.fault("rubric", what, fix)
