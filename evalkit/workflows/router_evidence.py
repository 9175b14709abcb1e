"""What the evidence of a run does not cover about its routers, in sentences for the approver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalkit.errors import visible
from evalkit.workflows.routers_result import checked_for_leaks

if TYPE_CHECKING:
    from evalkit.workflows.route_sweep import Inputs

__all__ = ["router_sentences"]


def router_sentences(inputs: Inputs) -> list[str]:
    """Of the router that is shown, `inputs.given[0]`: what it was trained on, of how many it is, what leaked."""
    study, router = inputs.study, inputs.given[0].router
    out: list[str] = []
    if len(study.routers) > 1:
        out.append(
            f"Router {router.name} is the best of {len(study.routers)} on these items; they share the error rate, "
            f"1/{study.shared} each. Gains over the others are apparent: the choice was made on these items."
        )
    elif router.name:
        out.append(
            f"Router {router.name} is one of several in the study and was picked to be judged alone; it spends "
            f"1/{study.shared} of the error rate."
        )
    if router.decisions is not None and router.trained_on is None:
        out.append(
            "The study does not say what the judged policy was made from (router.trained_on): if from these "
            "items, its certificate is void."
        )
    if router.trained_on == "cross_fitted":
        out.append(
            "Approximate: cross-fitted. The scores come from fold models, so the bounds are not certificates."
        )
    elif router.trained_on == "other_items" and checked_for_leaks(router):
        out.append(
            "The router was trained on labels that were compared with the judged items by id, prompt and group; "
            "what else it was tuned on is not checked here."
        )
    elif router.trained_on == "other_items":
        out.append(
            "The study states that the router was trained and tuned on other items; this is not checked here."
        )
    if inputs.left_out:
        count = len(inputs.left_out)
        items = "1 labelled item was" if count == 1 else f"{count:,} labelled items were"
        whose = ", ".join(visible(name, 60) for name in inputs.leaking)
        out.append(
            f"{items} left out for all routers, being in the training labels of {whose} or in one conversation "
            "with such an item: the certificate is about traffic that is like what is left."
        )
    return out
