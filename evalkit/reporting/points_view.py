"""Operating points as rows of text: the figures of a threshold, a baseline or a set of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from . import numbers, text
from .verdict import Result

__all__ = [
    "Chosen",
    "PointRow",
    "chosen",
    "figure",
    "pass_rate_sentence",
    "point_label",
    "point_row",
    "policy_rows",
    "threshold_steps",
    "thresholds",
]

Point = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The operating point that the report is about, and what it is called."""

    point: Point
    word: str
    note: str


@dataclass(frozen=True, slots=True)
class PointRow:
    """One operating point in words; money is per 1,000 requests."""

    label: str
    thresholds: str
    cuts: tuple[str, ...]
    chosen: bool
    total: str
    cost: str
    cost_interval: str
    passed: str
    passed_interval: str
    range: str
    escalated: str
    under: str
    weighted: str
    loss: str
    p95: str
    unnecessary: str
    contract: str


def chosen(result: Result) -> Chosen | None:
    """The selected point, else the judged one, else the candidate, else what is shown for orientation; or None."""
    if result.get("selected"):
        return Chosen(result["selected"], "selected", "selected: it passes every gate")
    if result.get("judged"):
        fixed = "today's decisions" if result.get("policy") == "decisions" else "threshold fixed in advance"
        return Chosen(result["judged"], "judged", f"{fixed}, judged as it is")
    if result.get("candidate"):
        return Chosen(
            result["candidate"],
            "candidate",
            "candidate: least expected total under the observed limits; shown for orientation, not recommended",
        )
    if result.get("shown"):
        return Chosen(
            result["shown"], "shown", "no point meets the limits; these figures are for orientation only"
        )
    return None


def figure(source: Point, key: str, how: Any, *args: Any, **more: Any) -> str:
    """One figure of a point by the format `how`, with the reason that stands beside an unknown one."""
    reason = source.get(f"{key}_reason")
    return str(how(source.get(key), *args, reason=text.line(reason) if reason else None, **more))


def thresholds(values: Sequence[Any] | None, tiers: Sequence[str]) -> str:
    """Thresholds at full precision; with several, each with the step it guards."""
    cuts = threshold_steps(values, tiers)
    return ", ".join(f"{step} at {cut}" if step else cut for cut, step in cuts) or "none"


def threshold_steps(values: Sequence[Any] | None, tiers: Sequence[str]) -> list[tuple[str, str]]:
    """(threshold at full precision, the step it guards) for each; no step is named where there is only one."""
    cuts = [numbers.threshold(value) for value in values or []]
    if len(cuts) < 2 or len(cuts) != len(tiers) - 1:
        return [(cut, "") for cut in cuts]
    return [
        (cut, f"{text.line(a, 24)} to {text.line(b, 24)}")
        for cut, (a, b) in zip(cuts, pairwise(tiers), strict=True)
    ]


def point_label(name: str) -> str:
    """The name of a baseline in words."""
    known = {
        "random_mix": "random mix at the same cost",
        "category_lookup": "look-up by category",
        "oracle": "oracle (not attainable)",
        "direct": "direct policy",
        "cascade": "cascade policy",
    }
    if name.startswith("always:"):
        return f"always {text.line(name.removeprefix('always:'))}"
    return known.get(name) or text.words(name)


def policy_rows(result: Result) -> list[PointRow]:
    """The chosen point first, then every baseline in the given order."""
    rows = []
    now = chosen(result)
    if now:
        rows.append(point_row(now.point, now.word, result, chosen=True))
    for name, point in (result.get("baselines") or {}).items():
        if point:
            rows.append(point_row(point, point_label(name), result))
    return rows


def point_row(point: Point, label: str, result: Result, *, chosen: bool = False) -> PointRow:
    """One point; denominators come from the counts of the study."""
    counts = result["counts"]
    n, needs = counts.get("items"), counts.get("needs")
    ends = point.get("intervals") or {}
    passed = ends.get("pass_rate_lower")
    if passed is None and point.get("pass_rate") == point.get("pass_rate_lower"):
        passed = ends.get("pass_rate")
    cost = ends.get("cost_usd_per_request")
    return PointRow(
        label=label,
        thresholds=thresholds(point.get("thresholds"), [tier["name"] for tier in result["tiers"]]),
        cuts=tuple(numbers.threshold(cut) for cut in point.get("thresholds") or []),
        chosen=chosen,
        total=_thousand(point, "expected_total_usd", n),
        cost=_thousand(point, "cost_usd_per_request", 1),
        cost_interval=""
        if not cost
        else f"{numbers.per_thousand(cost[0], 1)} to {numbers.per_thousand(cost[1], 1)}",
        passed=figure(point, "pass_rate_lower", numbers.percent),
        passed_interval="" if not passed else numbers.interval(passed[0], passed[1], "share"),
        range=numbers.interval(point.get("pass_rate_lower"), point.get("pass_rate_upper"), "share"),
        escalated=figure(point, "escalation_rate", numbers.percent),
        under=_under(point, needs),
        weighted=figure(point, "risk_weighted_under_route", numbers.percent),
        loss=_thousand(point, "routing_loss_usd", n),
        p95=_p95(point),
        unnecessary=figure(point, "unnecessary_escalation_count", numbers.count),
        contract=figure(point, "contract_failure_count", numbers.count),
    )


def pass_rate_sentence(point: Point, counts: Mapping[str, Any]) -> str:
    """All three pass rates in one sentence, with what was not answered; the lower one is the one that is gated."""
    n = counts.get("items")
    unanswered = point.get("unanswered_count", counts.get("unanswered"))
    answered = point.get("answered_count")
    passed = point.get("passed_count")
    rate = figure(point, "pass_rate", numbers.percent)
    if passed is not None and answered is not None:
        head = f"{numbers.count(passed)} of {numbers.count(answered)} answered passed ({rate})"
    else:
        head = f"{rate} of the answered passed"
    ends = numbers.interval(point.get("pass_rate_lower"), point.get("pass_rate_upper"), "share")
    return f"{head}, {numbers.of(unanswered, n)} unanswered, {ends} of all. Gates take the lower."


def _thousand(point: Point, key: str, n: Any) -> str:
    reason = point.get(f"{key}_reason")
    return numbers.per_thousand(point.get(key), n, reason=text.line(reason) if reason else None)


def _under(point: Point, needs: Any) -> str:
    k, rate = point.get("under_route_count"), point.get("under_route_rate")
    if needs == 0:
        return numbers.na("0 items need more than the cheapest tier")
    reason = point.get("under_route_count_reason") or point.get("under_route_rate_reason")
    return numbers.of(k, needs, rate, reason=text.line(reason) if reason else None)


def _p95(point: Point) -> str:
    note, reason = point.get("p95_task_note"), point.get("p95_task_s_reason")
    return numbers.percentile(
        point.get("p95_task_s"),
        95,
        point.get("p95_task_n"),
        censored=point.get("p95_task_censored"),
        note=text.line(note) if note else None,
        reason=text.line(reason) if reason else None,
    )
