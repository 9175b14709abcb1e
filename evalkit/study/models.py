"""What a routing study says, checked: frozen values with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from evalkit.study.calls import Calls

__all__ = [
    "Direction",
    "GateOn",
    "LabelsKind",
    "Leaks",
    "Limits",
    "MissingOutcomes",
    "MissingScores",
    "Policy",
    "Risk",
    "Router",
    "RouterKind",
    "RouterSpec",
    "RoutingStudy",
    "Source",
    "Tier",
    "TrainedOn",
]

LabelsKind = Literal["human", "author_rule", "derived", "model"]
MissingOutcomes = Literal["error", "unanswered"]
Policy = Literal["direct", "cascade", "both"]
Direction = Literal["needs_stronger", "cheap_is_enough"]
TrainedOn = Literal["other_items", "cross_fitted", "these_items", "untrained"]
MissingScores = Literal["escalate", "cheapest"]
RouterKind = Literal["rules", "classifier", "semantic", "python"]
Leaks = Literal["error", "drop"]
GateOn = Literal["bound", "estimate"]


@dataclass(frozen=True, slots=True)
class Source:
    """A table the study names: a file (`path`, resolved against the study's folder) or `hf`, a Hub address.

    `written` is the name as the study gives it. `columns` maps evalkit's column names to the file's own.
    """

    written: str
    path: Path | None = None
    hf: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None

    @property
    def address(self) -> str:
        """What a reader of the table opens: the path as text, or the Hub address."""
        return str(self.path) if self.path is not None else str(self.hf)


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier, least capable first. `cost_usd` is assumed per request where outcomes carry no cost.

    In `params` every literal secret is replaced by `[hidden]`; `secrets` holds them by their path there, for the
    call alone: they are never shown, stored or hashed.
    """

    name: str
    model: str | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    cost_usd: Decimal | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class RouterSpec:
    """A router that evalkit runs itself to score the items; `written` is what the study says of it.

    rules: `path` is a YAML file of rules. classifier, semantic: `path` is what `evalkit router fit` wrote, None
    where it is fitted across folds of the judged items (`trained_on: cross_fitted`). python: `function` is
    "module:function". `options` are the kind's own settings.
    """

    kind: RouterKind
    written: str
    path: Path | None = None
    function: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Router:
    """Where the score or the decision of each item comes from, what it means and what it costs.

    `cost_usd` and `seconds` are per request (router in direct; verifier and router per verified reply in
    cascade); `seconds` None is unknown. `routers` is how many routers were tried: they share the error rate.
    `thresholds` are in the user's units; None means that the sweep looks for them. `spec` stands in place of a
    file of scores. `train` are the labels it is or was trained on; items that are there too are `leaks`. `name` is
    empty where the study has one router only.
    """

    cost_usd: Decimal
    policy: Policy = "direct"
    scores: Source | None = None
    higher_means: Direction | None = None
    trained_on: TrainedOn | None = None
    seconds: float | None = None
    thresholds: tuple[float, ...] | None = None
    decisions: Source | None = None
    missing_scores: MissingScores | None = None
    probability: bool = False
    routers: int = 1
    name: str = ""
    spec: RouterSpec | None = None
    train: Source | None = None
    leaks: Leaks = "error"

    @property
    def policies(self) -> int:
        """How many policies of it are judged, of which the better is chosen."""
        return 2 if self.policy == "both" else 1

    @property
    def rule(self) -> str:
        """The rule that every threshold of this study stands beside."""
        if self.higher_means == "needs_stronger":
            return "score >= threshold goes up"
        if self.higher_means == "cheap_is_enough":
            return "score < threshold goes up"
        return "as the decisions say"


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk class: USD lost by one under-routed request, and the largest share of its needs that may be."""

    under_route_loss: float
    max_under_route: float | None = None
    gate_on: GateOn = "bound"
    weight: float = 1.0

    @property
    def certified(self) -> bool:
        """The class has a limit that the exact bound must meet."""
        return self.max_under_route is not None and self.gate_on == "bound"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the whole study: fractions, USD, seconds. None where there is none."""

    min_pass_rate: float | None = None
    max_cost_per_request: float | None = None
    p95_task_seconds: float | None = None
    max_escalation: float | None = None


@dataclass(frozen=True, slots=True)
class RoutingStudy:
    """A routing study. `fingerprint` hashes what it says, not how it is written; secrets are no part of it.

    `audit` is what `evalkit labels audit` wrote. `routers` are all routers of a study that compares several, of
    which `router` is the first; empty where there is one. `samples` are the runs of each item that the study means
    to have: one that is missing counts as unanswered; None where it does not say.
    """

    name: str
    path: Path
    base: Path
    labels: Source
    tiers: tuple[Tier, ...]
    router: Router
    risk: Mapping[str, Risk]
    kind: Literal["routing"] = "routing"
    description: str | None = None
    labels_kind: LabelsKind = "human"
    outcomes: Source | None = None
    prices: Path | None = None
    rubric: Path | None = None
    policy: Path | None = None
    missing_outcomes: MissingOutcomes = "error"
    pass_at: float = 1.0
    contract_failure_cost: float = 0.0
    limits: Limits = field(default_factory=Limits)
    confidence: float = 0.95
    looks: int = 1
    seed: int = 0
    near_total_escalation: float = 0.95
    bootstrap_replicates: int = 2000
    calls: Calls = field(default_factory=Calls)
    fingerprint: str = ""
    notices: tuple[str, ...] = ()
    routers: tuple[Router, ...] = ()
    audit: Path | None = None
    samples: int | None = None

    @property
    def all_routers(self) -> tuple[Router, ...]:
        """The routers to judge, one or several."""
        return self.routers or (self.router,)

    @property
    def shared(self) -> int:
        """How many share the error rate, of which the best is chosen: policies of all routers that were tried."""
        return sum(router.routers * router.policies for router in self.all_routers)

    @property
    def tier_names(self) -> tuple[str, ...]:
        """Names of the tiers, least capable first."""
        return tuple(tier.name for tier in self.tiers)

    @property
    def risk_classes(self) -> tuple[str, ...]:
        """Names of the risk classes in declared order."""
        return tuple(self.risk)
