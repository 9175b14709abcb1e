"""Whether the pass rate stays within a margin of production's, on the same items. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from evalkit.gates import Gate, Status
from evalkit.signoff.model import Paired, RunFacts, SignoffGate
from evalkit.signoff.policy import Baseline, Policy
from evalkit.statistics.bounds import effective_n, upper_bound
from evalkit.statistics.paired import paired_difference
from evalkit.statistics.paired_score import score_lower
from evalkit.statistics.paired_walk import paired_loss_upper, steps_within
from evalkit.statistics.rounding import clean

__all__ = ["baseline_gates", "difference_bounds", "goes_with", "non_inferiority"]

NAME = "non_inferiority"


def difference_bounds(paired: Paired, delta: float) -> tuple[float, float | None, float | None, float]:
    """(mean, lower, upper, n) of a paired difference of pass rates, each bound one-sided at `delta`.

    `lower = min(t_lo, p - CPupper(ceil(q n), n, delta), score(p n, q n, n, delta))`, `upper` the same with p and q
    exchanged and the sign turned: p, q the weighted sums of positive and negative differences, t with G - 1 over
    groups, n the number of items that carry the weights, divided by the largest group. Clopper-Pearson guards the
    t interval, which collapses where few items differ, and the score bound its variance, which is too small where
    few are lost. Bounds are None for fewer than two groups. ValueError without weight.
    """
    d, w = paired.differences, paired.weight
    whole = paired_difference(d, w, paired.group, confidence=1 - 2 * delta)
    if whole.mean is None:
        raise ValueError("The `paired` parameter of `difference_bounds` must have weight. Got none instead.")
    n = effective_n(w)
    if paired.group is not None:
        n /= int(np.bincount(paired.group[w > 0]).max())
    share = w / w.sum()
    gained, broken = float(share @ np.maximum(d, 0.0)), float(share @ np.maximum(-d, 0.0))
    if whole.lower is None or whole.upper is None:
        return whole.mean, None, None, n

    def least(up: float, down: float) -> float:
        most = upper_bound(min(float(math.ceil(down * n - 1e-9)), n), n, 1 - delta) or 1.0
        return min(up - most, score_lower(up * n, down * n, n, delta))

    return whole.mean, min(whole.lower, least(gained, broken)), max(whole.upper, -least(broken, gained)), n


def non_inferiority(paired: Paired, *, against: str, margin: float, delta: float | None, searched: bool) -> Gate:
    """The gate: the pass rate falls by at most `margin` (a share) against the baseline `against`.

    Passes where the lower bound is at or above -margin; fails where the upper bound is below it; else it is open.
    searched: the point was chosen on these items, which this bound does not account for. Then a pass is a
    certificate only where every point of its path from all-strongest keeps the margin by the exact bound
    (`statistics.paired_walk`), else an estimate, and always where `paired.approximate`
    says why. delta None: this look certifies nothing.
    """
    label = f"Pass rate against {against}"
    level = 0.05 if delta is None else delta
    mean, lower, upper, n = difference_bounds(paired, level)
    groups = paired.group is not None
    seen = f"{label}: {100 * mean:+.2f} points on the same items"
    text = (
        f"{seen}, at worst {'n/a' if lower is None else f'{100 * lower:+.2f}'} (limit {-100 * margin:+g} points)"
    )
    missing: int | None = None
    basis = "bound"
    if lower is None or upper is None:
        status, text = Status.NOT_STATABLE, f"{seen}: too few {'conversations' if groups else 'items'} for a bound"
    elif upper < -margin:
        status, text = Status.VIOLATED, f"{text}; it falls by at least {-100 * upper:.2f} points"
    elif delta is None:
        status = Status.INSUFFICIENT
        text = f"{text}; this look was not declared in advance, so it certifies nothing"
    elif lower >= -margin:
        status = Status.CERTIFIED
        exact = _along_the_path(paired, margin, delta) if searched else lower
        why = paired.approximate or ("the threshold was chosen on these items" if exact is None else None)
        if why is not None or exact is None:
            status, basis = Status.ESTIMATE, "estimate"
            text = f"{text}; {why}, which the bound leaves out"
        elif searched:
            lower = min(lower, exact)
            text = (
                f"{seen}, at worst {100 * lower:+.2f} (limit {-100 * margin:+g} points), exact and at every point "
                "of the path from all-strongest to the threshold"
            )
    else:
        status = Status.INSUFFICIENT
        if mean > -margin:
            missing = max(1, math.ceil(n * (((mean - lower) / (mean + margin)) ** 2 - 1)))
            text = f"{text}; about {missing:,} more items at this rate would settle it"
        else:
            text = f"{text}; more items will not help at this rate"
    return Gate(
        name=NAME,
        label=label,
        limit=-100 * margin,
        limit_is="min",
        unit="points",
        observed=clean(100 * mean),
        bound=None if lower is None else clean(100 * lower),
        k=None,
        n=clean(n),
        n_is="items" if not groups and abs(n - len(paired.weight)) < 1e-9 else "effective requests",
        status=status,
        missing_n=missing,
        message=text,
        basis=basis,
        confidence=1 - level,
    )


def _along_the_path(paired: Paired, margin: float, delta: float) -> float | None:
    """The exact lower bound at the searched point, where all points of its path keep the margin; else None."""
    walk = paired.walk
    if walk is None or not len(walk.broken) or walk.n <= 0:
        return None
    if steps_within(walk.broken, walk.gained, walk.n, margin, delta) < len(walk.broken):
        return None
    return -float(paired_loss_upper(walk.broken[-1:], walk.gained[-1:], walk.n, delta)[0])


def baseline_gates(policy: Policy, runs: tuple[RunFacts, ...]) -> Iterator[SignoffGate]:
    """A gate for each run and baseline that goes with it; an open one where no run can be held against it."""
    baseline = policy.baseline
    if baseline is None:
        return
    for arm in baseline.arms or ("today",):
        fitting = [run for run in runs if _fits(arm, run)]
        for run in fitting:
            yield SignoffGate(f"{run.id}:{NAME}:{arm}", run.id, _of_run(arm, run, baseline))
        if not fitting:
            what = "a run of today" if arm == "today" else arm
            text = f"Pass rate against {what}: no run of this sign-off can be held against it"
            yield SignoffGate(f"{NAME}:{arm}", None, _open(what, text, baseline))


def goes_with(baseline: Baseline, run: RunFacts) -> bool:
    """Whether some baseline of the policy is one that this run can be held against."""
    return any(_fits(arm, run) for arm in baseline.arms or ("today",))


def _fits(arm: str, run: RunFacts) -> bool:
    """`always:<tier>` is a router's, another arm a ladder's that has it; today's run is of the same kind."""
    if arm == "today":
        return "today" in run.paired or "today" in run.paired_missing
    if arm.startswith("always:"):
        return run.is_routing
    return not run.is_routing and any(row["name"] == arm for row in run.result["arms"])


def _of_run(arm: str, run: RunFacts, baseline: Baseline) -> Gate:
    against = "today's policy" if arm == "today" else arm.replace("always:", "always ")
    paired = run.paired.get(arm)
    if paired is None or not float(paired.weight.sum()) > 0:
        why = run.paired_missing.get(arm, "no items with weight")
        return _open(against, f"Pass rate against {against}: not measured, {why}", baseline)
    delta = run.result["looks"]["delta"]
    if delta is not None:
        if run.is_routing:
            delta /= _shared_by(run, delta)
        else:
            delta = run.result.get("arm_level") or delta / max(len(run.result["arms"]), 1)
    if delta is not None:
        delta /= paired.baseline_of
    searched = run.is_routing and not run.fixed
    return non_inferiority(paired, against=against, margin=baseline.margin, delta=delta, searched=searched)


def _shared_by(run: RunFacts, delta: float) -> int:
    """How many the best was chosen from (routers, policies), by the part of `delta` that the gates spent."""
    spent = [1.0 - row["confidence"] for row in run.result["gates"] if row["confidence"] is not None]
    return max(1, round(delta / max(spent))) if spent and max(spent) > 0 else 1


def _open(against: str, text: str, baseline: Baseline) -> Gate:
    return Gate(
        name=NAME,
        label=f"Pass rate against {against}",
        limit=-100 * baseline.margin,
        limit_is="min",
        unit="points",
        observed=None,
        bound=None,
        k=None,
        n=None,
        n_is="items",
        status=Status.NOT_STATABLE,
        missing_n=None,
        message=text,
        basis="bound",
        confidence=None,
    )
