"""Which arms send the same request: as recorded, as written, or as a known client makes of what is written.

Effort words and token budgets are mapped by the client, provider by provider, and several of them become the same
request. The maps below are data with their source; they are used only where a study says that this client sent its
requests, and never change what a study asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalkit.study.reasoning_models import Arm, Client

__all__ = ["MAP_SOURCE", "Same", "expected_wire", "min_budget", "same_requests"]

MAP_SOURCE = "LiteLLM 1.110.2, read from its request transformations in November 2026"
"""Where the maps below come from."""

ANTHROPIC_MIN_BUDGET = 1024
"""The least thinking budget that Anthropic takes."""

_CLAUDE_BUDGETS: Mapping[str, int | None] = {
    "none": None,
    "minimal": 1024,
    "low": 1024,
    "medium": 2048,
    "high": 4096,
    "xhigh": 8192,
    "max": 16384,
}
_CLAUDE_EFFORTS: Mapping[str, str | None] = {
    "none": None,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_CLAUDE_STEPS = ((8192, "xhigh"), (4096, "high"), (2048, "medium"), (0, "low"))
_GEMINI_LEVELS: Mapping[str, str] = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
}
_GEMINI_BUDGETS: Mapping[str, int] = {"none": 0, "low": 1024, "medium": 2048, "high": 4096}


@dataclass(frozen=True, slots=True)
class Same:
    """Arms that sent one request: `kept` (the first declared) and the others, and how that is known."""

    kept: str
    others: tuple[str, ...]
    how: str


def min_budget(model: str | None) -> int | None:
    """The least thinking budget of the model's provider, where it is known."""
    return ANTHROPIC_MIN_BUDGET if model is not None and _claude(model) is not None else None


def expected_wire(arm: Arm) -> tuple[object, str | None]:
    """(what LiteLLM sends of effort and budget, what is to be said of it). Unknown models send what is asked."""
    model = arm.model or ""
    asked = {"effort": arm.effort, "budget_tokens": arm.budget_tokens}
    version = _claude(model)
    if version is not None:
        return _claude_wire(arm, version, bedrock=model.startswith("bedrock/"))
    if re.search(r"gemini-3", model) and (arm.budget_tokens is not None or arm.effort is not None):
        if arm.budget_tokens is not None:
            return {}, "its token budget is dropped by the client for this model"
        level = _GEMINI_LEVELS.get(arm.effort or "")
        return ({"thinkingLevel": level}, None) if level else (asked, None)
    if re.search(r"gemini-2\.5", model) and arm.effort is not None and arm.effort in _GEMINI_BUDGETS:
        return {"thinkingBudget": _GEMINI_BUDGETS[arm.effort]}, None
    if re.search(r"gemini-2\.5", model) and arm.budget_tokens is not None:
        return {"thinkingBudget": arm.budget_tokens}, None
    if "deepseek" in model and arm.budget_tokens is not None:
        return {}, "its token budget is dropped by the client for this model"
    return {k: v for k, v in asked.items() if v is not None}, None


def same_requests(arms: Sequence[Arm], client: Client) -> tuple[list[Same], list[str]]:
    """(arms that are one on the wire, notices). Arms made of other arms' runs are left alone.

    Recorded bodies decide where every arm of a pair has one; else what is written, and for the client `litellm`
    what it makes of that. Where the client is not named and LiteLLM would send one request, a notice says so and
    nothing is merged.
    """
    own = [arm for arm in arms if arm.recorded]
    merged = _groups(own, client)
    notices = []
    if client == "other":
        certain = {name for same in merged for name in (same.kept, *same.others)}
        for same in _groups([a for a in own if a.sent is None and a.name not in certain], "litellm"):
            notices.append(
                f"arms {_names(same)}: {same.how}; if LiteLLM sent them they are one arm. Write client: litellm, "
                "or record the body that was sent"
            )
    return merged, notices


def _groups(arms: Sequence[Arm], client: Client) -> list[Same]:
    found: dict[str, list[Arm]] = {}
    for arm in arms:
        found.setdefault(_key(arm, client), []).append(arm)
    out = []
    for group in found.values():
        if len(group) < 2:
            continue
        kept, *others = group
        asked = "; ".join(f"{arm.name} asks for {_asked(arm)}" for arm in group)
        if kept.sent is not None:
            how = f"{asked}, and the bodies that were sent are identical"
        elif client == "litellm":
            how = f"{asked}, and the client sends the same request ({MAP_SOURCE})"
        else:
            how = f"{asked}: the same request"
        out.append(Same(kept.name, tuple(arm.name for arm in others), how))
    return out


def _key(arm: Arm, client: Client) -> str:
    declines = [list(arm.declines_as), None if arm.fallback is None else arm.fallback.arm]
    steps = [list(arm.steps), list(arm.instructions)]  # equal names with other instructions are other requests
    if arm.sent is not None:
        # A body that names no model went to the model of its arm.
        model = None if "model" in arm.sent else arm.model
        return _text(["sent", model, arm.sent, steps, declines])
    params = {k: v for k, v in arm.params.items() if k not in {"thinking", "reasoning_effort"}}
    wire: object = {"effort": arm.effort, "budget_tokens": arm.budget_tokens}
    if client == "litellm":
        wire = expected_wire(arm)[0]
    # An arm without a model says too little to be called the same as another.
    name = arm.name if arm.model is None else None
    return _text(["asked", name, arm.model, params, arm.max_tokens, wire, steps, declines])


def _asked(arm: Arm) -> str:
    if arm.effort is not None:
        return f"reasoning_effort {arm.effort}"
    if arm.budget_tokens is not None:
        return f"budget_tokens {arm.budget_tokens}"
    return f"the steps {', '.join(arm.steps)}" if arm.steps else "no budget"


def _names(same: Same) -> str:
    return ", ".join([same.kept, *same.others])


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)


def _claude(model: str) -> tuple[int, int] | None:
    """(major, minor) of a Claude model by its name, in either order of family and version; None for others."""
    if "claude" not in model:
        return None
    new = re.search(r"claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)", model)
    if new:
        return int(new[1]), int(new[2] or 0)
    old = re.search(r"claude-(\d)(?:[.-](\d{1,2}))?(?!\d)", model)
    return (int(old[1]), int(old[2] or 0)) if old else (0, 0)


def _claude_wire(arm: Arm, version: tuple[int, int], *, bedrock: bool) -> tuple[object, str | None]:
    budget, effort = arm.budget_tokens, arm.effort
    if version < (4, 6):
        if effort is not None:
            budget = _CLAUDE_BUDGETS[effort]
        if budget is not None and bedrock and 0 < budget < ANTHROPIC_MIN_BUDGET:
            return {"budget_tokens": ANTHROPIC_MIN_BUDGET}, "Bedrock raises its budget to 1024 without a word"
        return ({"budget_tokens": budget} if budget else {}), None
    if effort is not None:
        word = _CLAUDE_EFFORTS[effort]
        return ({"effort": word} if word else {}), None
    if budget is None:
        return {}, None
    if version == (4, 6):
        return {"budget_tokens": budget}, None
    word = next(word for least, word in _CLAUDE_STEPS if budget >= least)
    return {"effort": word}, f"its token budget becomes {word} effort on the wire"
