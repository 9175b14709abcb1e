"""What a reasoning-budget study says, checked: frozen values with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from evalkit.study.calls import Calls
from evalkit.study.models import GateOn, LabelsKind, MissingOutcomes, Source

__all__ = ["EFFORTS", "Arm", "ArmLimits", "Client", "Effort", "Fallback", "ReasoningRisk", "ReasoningStudy"]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
Client = Literal["litellm", "other"]


@dataclass(frozen=True, slots=True)
class Fallback:
    """Where what an arm declines goes: another arm of the study, or outside of it at a stated cost and time."""

    arm: str | None = None
    cost_usd: Decimal = Decimal(0)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to answer. The budget that was asked for is `budget_tokens`, `effort` or `steps`; `sent` is the body
    that reached the provider, without its messages, where it was recorded. `instructions` has the text of each of
    the `steps` where the study writes them: a replay needs them. `secrets` are as in a `Tier`.

    vote: the majority of so many runs of the arm `of`, at once or one by one. loop: runs of the arm `of` again, at
    most so often, until the reply keeps its contract; a check costs `check_usd` and `check_seconds`. declines_as:
    the statuses by which the arm declines; then `fallback` says where such a task goes.
    """

    name: str
    model: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    cost_usd: Decimal | None = None
    budget_tokens: int | None = None
    effort: Effort | None = None
    max_tokens: int | None = None
    steps: tuple[str, ...] = ()
    of: str | None = None
    vote: int | None = None
    at_once: bool = True
    loop: int | None = None
    check_usd: Decimal = Decimal(0)
    check_seconds: float = 0.0
    declines_as: tuple[str, ...] = ()
    fallback: Fallback | None = None
    sent: Mapping[str, object] | None = None
    instructions: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def recorded(self) -> bool:
        """The arm has outcomes of its own; the others are made of another arm's runs."""
        return self.of is None

    @property
    def requested(self) -> str | None:
        """The budget that was asked for, in words; None where the study states none."""
        said = []
        if self.budget_tokens is not None:
            said.append(f"{self.budget_tokens:,} tokens")
        if self.effort is not None:
            said.append(f"{self.effort} effort")
        if self.steps:
            said.append(f"{len(self.steps)} step{'s' if len(self.steps) > 1 else ''}")
        if self.vote is not None:
            said.append(f"majority of {self.vote} runs of {self.of}")
        if self.loop is not None:
            said.append(f"up to {self.loop} runs of {self.of}")
        return ", ".join(said) or None


@dataclass(frozen=True, slots=True)
class ReasoningRisk:
    """One risk class: the largest share of its tasks that may fail; None: no limit."""

    max_failure: float | None = None
    gate_on: GateOn = "bound"


@dataclass(frozen=True, slots=True)
class ArmLimits:
    """Limits on an arm: fractions, USD, seconds. None where there is none."""

    min_pass_rate: float | None = None
    max_cost_per_request: float | None = None
    p95_task_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ReasoningStudy:
    """A reasoning-budget study; the declared order of its arms is the budget order.

    value_per_point_usd: what one quality point (.01 of pass rate) is worth per request. smallest_worthwhile_gain:
    in points. samples: runs of each task that the study means to have; a missing one counts as unanswered. client:
    what sent the requests, as far as known. `fingerprint` hashes what the study says, not how it is written.
    """

    name: str
    path: Path
    base: Path
    labels: Source
    arms: tuple[Arm, ...]
    risk: Mapping[str, ReasoningRisk] = field(default_factory=dict)
    kind: Literal["reasoning-budget"] = "reasoning-budget"
    description: str | None = None
    labels_kind: LabelsKind = "human"
    outcomes: Source | None = None
    prices: Path | None = None
    rubric: Path | None = None
    policy: Path | None = None
    missing_outcomes: MissingOutcomes = "error"
    pass_at: float = 1.0
    limits: ArmLimits = field(default_factory=ArmLimits)
    value_per_point_usd: float | None = None
    smallest_worthwhile_gain: float | None = None
    samples: int | None = None
    client: Client = "other"
    confidence: float = 0.95
    looks: int = 1
    seed: int = 0
    bootstrap_replicates: int = 2000
    calls: Calls = field(default_factory=Calls)
    fingerprint: str = ""
    notices: tuple[str, ...] = ()

    @property
    def tiers(self) -> tuple[Arm, ...]:
        """The arms that have outcomes of their own, in declared order."""
        return tuple(arm for arm in self.arms if arm.recorded)

    @property
    def risk_classes(self) -> tuple[str, ...]:
        """Names of the risk classes in declared order."""
        return tuple(self.risk)
