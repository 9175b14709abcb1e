"""The arrays a routing analysis works on, and the settings it works under."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AuditCounts",
    "ClassLimit",
    "Floats",
    "LabelAudit",
    "Limits",
    "RoutingData",
    "Settings",
    "rescaled",
]

Floats = NDArray[np.float64]


def rescaled(weight: Floats) -> Floats:
    """Traffic weights rescaled to mean 1, so that totals are N times the figure per request."""
    total = float(weight.sum())
    if not total > 0:
        raise ValueError("The `weight` parameter of `rescaled` must have a positive sum. Got 0 instead.")
    if np.ptp(weight) == 0:
        return np.ones(len(weight))
    return np.asarray(weight * (len(weight) / total), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """A second look at items of one risk class that are labelled with the cheapest tier.

    cheap_labels: items with that label which stay below the strongest tier at the audited point; a random sample
    of `audited` was judged again, and `missed` need more than the tier that they are sent to. scale: the largest
    weight among them over the largest among the needs, at least 1. Of need_labels items labelled as needs,
    needs_audited (0: none) were judged again too, and needs_wrong are no need, or one of a stronger tier.
    """

    cheap_labels: int
    audited: int
    missed: int
    scale: float = 1.0
    need_labels: int = 0
    needs_audited: int = 0
    needs_wrong: int = 0


@dataclass(frozen=True)
class LabelAudit:
    """An audit of the labels at one point: `classes` in declared order, `tier` (N,) where each item was sent."""

    classes: tuple[AuditCounts, ...]
    tier: NDArray[np.int8]


@dataclass(frozen=True)
class RoutingData:
    """N items, K tiers (least capable first), S samples.

    required (N,): index of the least tier that is good enough; K means unsolvable.
    risk (N,): index of the risk class.
    weight (N,): traffic weight, mean 1.
    demand: (N,) one score for all tiers, or (N, K - 1) one a tier; larger means a stronger tier is asked for;
        +inf always goes up, -inf never does; None where decisions were given instead of scores.
    tier_cost_usd (N, K): mean over samples, NaN unknown. passed, answered, contract_failed (N, K): shares of
        samples. All four are None where no outcomes are at hand.
    task_s (N, K, S): seconds a sample took, NaN unknown; replied (N, K, S): it was answered; sampled (N, K, S):
        that sample exists (None: all do).
    verifier_usd (N, K - 1): what judging that tier's reply costs, where the scores say so; else None.
    group (N,): code of the conversation or cluster, 0..G-1; None where every item is its own.
    category (N,): code of the category, -1 none. direction (N,): items that only choose the direction of a
        path over several thresholds (used with three or more tiers). audit: of the labels, None where none
        was made; its counts are of the items that certify.
    """

    tiers: tuple[str, ...]
    risk_classes: tuple[str, ...]
    required: NDArray[np.int8]
    risk: NDArray[np.int16]
    weight: Floats
    demand: Floats | None = None
    tier_cost_usd: Floats | None = None
    passed: Floats | None = None
    answered: Floats | None = None
    contract_failed: Floats | None = None
    task_s: Floats | None = None
    replied: NDArray[np.bool_] | None = None
    sampled: NDArray[np.bool_] | None = None
    verifier_usd: Floats | None = None
    group: NDArray[np.int64] | None = None
    category: NDArray[np.int32] | None = None
    direction: NDArray[np.bool_] | None = None
    audit: LabelAudit | None = None

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.required)

    @property
    def k(self) -> int:
        """Number of tiers."""
        return len(self.tiers)

    @property
    def solvable(self) -> NDArray[np.bool_]:
        """(N,) some tier is good enough."""
        return np.asarray(self.required < self.k)

    @property
    def needs(self) -> NDArray[np.bool_]:
        """(N,) the required tier is above the cheapest."""
        return np.asarray((self.required > 0) & (self.required < self.k))

    def subset(self, mask: NDArray[np.bool_]) -> RoutingData:
        """The items of `mask`, with their weights rescaled to mean 1; `direction` is dropped."""

        def cut(array: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if array is None else array[mask]

        return replace(
            self,
            required=self.required[mask],
            risk=self.risk[mask],
            weight=rescaled(self.weight[mask]),
            demand=cut(self.demand),
            tier_cost_usd=cut(self.tier_cost_usd),
            passed=cut(self.passed),
            answered=cut(self.answered),
            contract_failed=cut(self.contract_failed),
            task_s=cut(self.task_s),
            replied=cut(self.replied),
            sampled=cut(self.sampled),
            verifier_usd=cut(self.verifier_usd),
            group=cut(self.group),
            category=cut(self.category),
            direction=None,
            audit=None if self.audit is None else replace(self.audit, tier=self.audit.tier[mask]),
        )


@dataclass(frozen=True)
class ClassLimit:
    """What one risk class costs and may do. `limit` None: the class has no gate."""

    under_route_loss_usd: float
    limit: float | None
    on_estimate: bool = False
    weight: float = 1.0


@dataclass(frozen=True)
class Limits:
    """Limits of the whole study; None where there is none."""

    min_pass_rate: float | None = None
    max_cost_per_request_usd: float | None = None
    p95_task_s: float | None = None
    max_escalation: float | None = None


@dataclass(frozen=True)
class Settings:
    """How to judge. `delta` is the error rate this look may spend on each side; None: nothing is certified
    any more (more looks than declared). `policy` is direct or cascade. `certifiable` False: the scores are
    cross-fitted, so what would be certified is approximate. `chosen_from`: of how many routers and policies this
    is one, where the best of several routers is chosen."""

    classes: tuple[ClassLimit, ...]
    limits: Limits = field(default_factory=Limits)
    policy: str = "direct"
    router_cost_usd: float = 0.0
    router_s: float = 0.0
    contract_failure_cost_usd: float = 0.0
    delta: float | None = 0.05
    confidence: float = 0.95
    seed: int = 0
    certifiable: bool = True
    near_total_escalation: float = 0.95
    bootstrap_replicates: int = 2000
    direction_is_up: bool = True
    max_points: int = 512
    chosen_from: int = 1

    @property
    def stop_confidence(self) -> float:
        """Confidence of the stop rules that the best of several routers could pass by chance: Bonferroni."""
        return self.confidence if self.chosen_from == 1 else 1.0 - (1.0 - self.confidence) / self.chosen_from
