"""Paired differences between two runs, each with its interval. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.signoff.compare_pairs import Floats, Pairs, losses_by_risk
from evalkit.signoff.run_folder import Run, RunItem
from evalkit.statistics.cost_effectiveness import net_benefit
from evalkit.statistics.paired import mcnemar_exact, paired_difference
from evalkit.statistics.percentiles import percentile
from evalkit.statistics.rounding import clean

__all__ = ["difference_rows"]


def difference_rows(
    base: Run, candidate: Run, pairs: Pairs, confidence: float, costs: str | None
) -> list[dict[str, Any]]:
    """A row for each figure that both runs have: base, candidate and the paired difference with its interval.

    `costs`: why costs must not be compared, or None. Where a figure cannot be had its numbers are None, with the
    reason in the row.
    """
    router = candidate.kind == "route-sweep"
    every = np.arange(len(pairs.both))
    out = [_share("pass_rate", "Passed", pairs, every, lambda item: item.passed, confidence, higher_is=True)]
    if router:
        out.append(_share("escalation", "Escalated", pairs, every, _escalated, confidence, higher_is=None))
    if costs is None:
        out.append(_usd("cost_per_request", "Cost per request", pairs, lambda item: item.cost_usd, confidence))
    else:
        out.append(_unknown("cost_per_request", "Cost per request", "usd", len(every), costs))
    out += _times(pairs, confidence)
    no_need = {candidate.document["tiers"][0]["name"], "unsolvable", None} if router else set()
    for row in candidate.document["risk_classes"]:
        risk = row["name"]
        if router:
            at = pairs.where(lambda item, risk=risk: item.risk == risk and item.required not in no_need)  # type: ignore[misc]
            name, label, value = f"under_route:{risk}", f"Under-routed, of the needs of {risk}", _under_routed
        else:
            at = pairs.where(lambda item, risk=risk: item.risk == risk)  # type: ignore[misc]
            name, label, value = f"risk_failure:{risk}", f"Failed, of the tasks of {risk}", _failed
        out.append(_share(name, label, pairs, at, value, confidence, weighted=False))
    if router:
        losses = losses_by_risk(candidate)

        def lost(item: RunItem) -> float:
            return losses.get(item.risk or "", 0.0) if item.under_routed else 0.0

        out.append(_usd("under_route_loss", "Under-route loss per request", pairs, lost, confidence))
    return out


def _share(
    figure: str,
    label: str,
    pairs: Pairs,
    at: NDArray[np.intp],
    value: Callable[[RunItem], float | None],
    confidence: float,
    *,
    higher_is: bool | None = False,
    weighted: bool = True,
) -> dict[str, Any]:
    """A difference of two shares. Its interval is the t interval of the paired differences, and never narrower
    than exact bounds on what was gained and lost allow (`net_benefit` with value 1 and no cost): where no item
    differs the t interval would have no width."""
    values = _values(pairs, at, value)
    if isinstance(values, str):
        return _unknown(figure, label, "share", len(at), values)
    then, now = values
    weights = pairs.weights[at] if weighted else None
    groups = None if pairs.groups is None else pairs.groups[at]
    seen = net_benefit(now - then, np.zeros(len(at)), 1.0, (1 - confidence) / 2, weights=weights, groups=groups)
    binary = bool(np.isin(then, (0, 1)).all() and np.isin(now, (0, 1)).all())
    lost, won = int((then > now).sum()), int((then < now).sum())
    out = _row(figure, label, "share", _mean(then, weights), _mean(now, weights), seen.n)
    lower, upper = (seen.lower, seen.upper) if pairs.groups_known else (None, None)
    out |= _ends(seen.value, lower, upper, higher_is)
    out |= {"rose": won, "fell": lost}
    testable = binary and groups is None and pairs.groups_known
    out["mcnemar_p"] = clean(mcnemar_exact(lost, won)) if testable else None
    return out


def _usd(
    figure: str, label: str, pairs: Pairs, value: Callable[[RunItem], float | None], confidence: float
) -> dict[str, Any]:
    at = np.arange(len(pairs.both))
    values = _values(pairs, at, value)
    if isinstance(values, str):
        return _unknown(figure, label, "usd", len(at), values)
    then, now = values
    seen = paired_difference(now - then, pairs.weights, pairs.groups, confidence)
    out = _row(figure, label, "usd", _mean(then, pairs.weights), _mean(now, pairs.weights), seen.n)
    lower, upper = (seen.lower, seen.upper) if pairs.groups_known else (None, None)
    return out | _ends(seen.mean, lower, upper, False)


def _times(pairs: Pairs, confidence: float) -> list[dict[str, Any]]:
    """The mean task time with its interval, and the 95th percentile without one, of the items that both answered
    in a known time."""
    at = np.array(
        [i for i, pair in enumerate(pairs.both) if None not in (pair[0].task_s, pair[1].task_s)], np.intp
    )
    named = (("task_time", "Task time"), ("p95_task", "p95 task time"))
    values = _values(pairs, at, lambda item: item.task_s)
    if isinstance(values, str):
        return [
            _unknown(figure, label, "s", len(at), "no paired item has a time in both") for figure, label in named
        ]
    (then, now), weights = values, pairs.weights[at]
    groups = None if pairs.groups is None else pairs.groups[at]
    seen = paired_difference(now - then, weights, groups, confidence)
    lower, upper = (seen.lower, seen.upper) if pairs.groups_known else (None, None)
    mean = _row(*named[0], "s", _mean(then, weights), _mean(now, weights), seen.n)
    before, after = (percentile(each, 0.95, weights) for each in (then, now))
    assert before is not None
    assert after is not None
    p95 = _row(*named[1], "s", clean(before), clean(after), seen.n) | _ends(after - before, None, None, False)
    return [
        mean | _ends(seen.mean, lower, upper, False),
        p95 | {"reason": "no interval is computed for a difference of percentiles"},
    ]


def _values(
    pairs: Pairs, at: NDArray[np.intp], value: Callable[[RunItem], float | None]
) -> tuple[Floats, Floats] | str:
    """(base, candidate) of the pairs at these positions, or why the figure cannot be had."""
    if not len(at):
        return "no paired item"
    pairs_at = [pairs.both[i] for i in at]
    columns = [[value(pair[side]) for pair in pairs_at] for side in (0, 1)]
    missing = [sum(v is None for v in column) for column in columns]
    if any(missing):
        said = " and ".join(f"{k:,} in {who}" for k, who in zip(missing, ("base", "candidate"), strict=True) if k)
        return f"not known for {said}"
    if not pairs.weights[at].any():
        return "no paired item has weight"
    return np.array(columns[0], dtype=np.float64), np.array(columns[1], dtype=np.float64)


def _mean(values: Floats, weights: Floats | None) -> float:
    return clean(float(np.average(values, weights=weights)))


def _row(figure: str, label: str, unit: str, base: float, candidate: float, n: int) -> dict[str, Any]:
    return {"figure": figure, "label": label, "unit": unit, "base": base, "candidate": candidate, "n": n}


def _ends(mean: float | None, lower: float | None, upper: float | None, higher_is: bool | None) -> dict[str, Any]:
    """The difference with its interval, and which run it favours: neither, unless the interval leaves 0 out and
    more or less of the figure is good in itself."""
    better = None
    apart = lower is not None and upper is not None and (lower > 0 or upper < 0)
    if lower is not None and apart and higher_is is not None:
        better = "candidate" if (lower > 0) == higher_is else "base"
    reason = None if lower is not None else "fewer than two independent items, or their groups are not known"
    return {
        "difference": None if mean is None else clean(mean),
        "lower": None if lower is None else clean(lower),
        "upper": None if upper is None else clean(upper),
        "better": better,
        "reason": reason,
    }


def _unknown(figure: str, label: str, unit: str, n: int, reason: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("base", "candidate", "difference", "lower", "upper", "better"))
    return {"figure": figure, "label": label, "unit": unit, **row, "n": n, "reason": reason}


def _escalated(item: RunItem) -> float | None:
    return None if item.escalated is None else float(item.escalated)


def _under_routed(item: RunItem) -> float | None:
    return None if item.under_routed is None else float(item.under_routed)


def _failed(item: RunItem) -> float | None:
    """A task fails its risk class if any of its runs fails."""
    return None if item.passed is None else float(item.passed < 1)
