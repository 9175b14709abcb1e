"""The gates of a policy, held against what its runs recorded. Pure; `created_at` is what ages are counted to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from evalkit.gates import Gate, Status
from evalkit.signoff.baseline import baseline_gates
from evalkit.signoff.model import RunFacts, SignoffGate, gate_of_row
from evalkit.signoff.policy import Policy
from evalkit.statistics.bounds import missing_n, upper_bound
from evalkit.statistics.rounding import clean

__all__ = ["all_gates", "policy_gates", "run_gates"]

_RERUN = "name the policy in the study (policy: ...) and run it again"
_NO_ROUTING = "no routing run of this sign-off has this class; add a run that judges it"
_NO_LADDER = "no reasoning-budget run of this sign-off has this class; add a run that judges it"
_TOLERANCE = 1e-12


def all_gates(policy: Policy, runs: Sequence[RunFacts], created_at: str) -> list[SignoffGate]:
    """Every gate of the sign-off: those of the runs, then what the policy asks for besides."""
    return [gate for run in runs for gate in run_gates(run)] + policy_gates(policy, tuple(runs), created_at)


def run_gates(run: RunFacts) -> list[SignoffGate]:
    """The gates of a run as it recorded them."""
    found = []
    for row in run.result["gates"]:
        gate = gate_of_row(row)
        kind = run.cost_kind if gate.name in {"cost_per_request", "cost_known"} else "measured"
        found.append(SignoffGate(f"{run.id}:{gate.name}", run.id, gate, kind))
    return found


def policy_gates(policy: Policy, runs: tuple[RunFacts, ...], created_at: str) -> list[SignoffGate]:
    """What the policy asks for beyond the gates that the runs judged themselves.

    A limit of the policy that a run judged at least as strictly is that run's gate; one that it judged looser or
    not at all is open, since a threshold that was chosen without it cannot be certified for it afterwards. What
    the policy asks for and nobody measured is open too.
    """
    found = [gate for run in runs for gate in _about_run(policy, run)]
    found += _limits(policy, runs)
    found += baseline_gates(policy, runs)
    for run in runs:
        found += _judge(policy, run)
        found += _labels(policy, run, created_at)
        found += _prices(policy, run, created_at)
    expires = policy.release.get("expires")
    if isinstance(expires, str):
        over = created_at[:10] > expires
        text = f"Sign-off not expired: the policy lets it hold until {expires}"
        text += "; that day is over. Write a later date into a new version of the policy" if over else ""
        status = Status.NOT_STATABLE if over else Status.CERTIFIED
        found.append(
            SignoffGate("sign_off_expiry", None, _fact("sign_off_expiry", "Sign-off not expired", status, text))
        )
    return found


def _about_run(policy: Policy, run: RunFacts) -> Iterator[SignoffGate]:
    """What a run has to be before its gates count: under this policy, computed again, within its attempts."""
    label = "Policy fixed before the run"
    recorded = run.provenance.get("policy")
    hashed = recorded.get("sha256") if isinstance(recorded, Mapping) else None
    if hashed == policy.sha256:
        status, text = Status.CERTIFIED, f"{label}: the run recorded this very policy"
    elif hashed is None:
        status, text = Status.NOT_STATABLE, f"{label}: the run recorded none; {_RERUN}, on fresh labels"
    else:
        what = f"the run recorded another one ({str(hashed)[:12]}, here {policy.sha256[:12]})"
        status, text = Status.NOT_STATABLE, f"{label}: {what}; sign off under that one, or run on fresh labels"
    yield SignoffGate(f"{run.id}:policy_before_run", run.id, _fact("policy_before_run", label, status, text))
    label = "Evidence can be recomputed"
    if run.evidence == "recomputed":
        status, text = Status.CERTIFIED, f"{label}: every figure was computed again from the bundle"
        if run.hidden_in:
            text += f"; keys or passwords are hidden in its {', '.join(run.hidden_in)}"
    else:
        status, text = Status.NOT_STATABLE, f"{label}: {run.evidence}"
    yield SignoffGate(f"{run.id}:evidence", run.id, _fact("evidence", label, status, text))
    if policy.attempts_max is not None:
        this, most = run.result["looks"]["this"], policy.attempts_max
        text = f"Looks at the labels: this was look {this} (at most {most})"
        held = isinstance(this, int) and this <= most
        text += "" if held else "; label a fresh sample"
        status = Status.CERTIFIED if held else Status.INSUFFICIENT
        if held and run.result["looks"].get("recorded") is False:
            status = Status.NOT_STATABLE
            text = "Looks at the labels: they cannot be counted, the record beside the labels could not be written"
            text += "; run it where it can"
        gate = _fact("attempts", "Looks at the labels", status, text, limit=most, observed=this, unit="attempts")
        yield SignoffGate(f"{run.id}:attempts", run.id, gate)
    if policy.limits.min_answered_share is not None:
        yield _answered(policy.limits.min_answered_share, run)


def _answered(limit: float, run: RunFacts) -> SignoffGate:
    shown, label = run.shown, "Answered share"
    lower, upper = shown.get("pass_rate_lower"), shown.get("pass_rate_upper")
    n = run.result["counts"]["items"]
    if lower is None or upper is None:
        gate = _measure(
            "answered_share", label, Status.NOT_STATABLE, f"{label}: there are no outcomes", limit, "min"
        )
        return SignoffGate(f"{run.id}:answered_share", run.id, gate)
    seen = 1.0 - (upper - lower)
    text = f"{label}: {100 * seen:.2f} % of requests were answered (limit {100 * limit:g} %)"
    held = seen >= limit - _TOLERANCE
    if not held:
        text += "; put the cause of the errors right and collect these outcomes again"
    status = Status.ESTIMATE if held else Status.INSUFFICIENT
    gate = _measure(
        "answered_share", label, status, text, limit, "min", observed=clean(seen), n=float(n), n_is="items"
    )
    return SignoffGate(f"{run.id}:answered_share", run.id, gate)


def _limits(policy: Policy, runs: tuple[RunFacts, ...]) -> list[SignoffGate]:
    """The policy's limits that no run judged as strictly as it asks."""
    found: list[SignoffGate] = []
    routing, ladders = [r for r in runs if r.is_routing], [r for r in runs if not r.is_routing]
    for name, rule in policy.risk.items():
        for limit, key, label, those, lacking in (
            (rule.max_under_route, "under_route", f"Under-routing, {name}", routing, _NO_ROUTING),
            (rule.max_failure, "risk_failure", f"Failures, {name}", ladders, _NO_LADDER),
        ):
            if limit is None:
                continue
            having = [run for run in those if name in run.classes]
            wanted = _Wanted(f"{key}:{name}", label, limit, "max", "share", rule.gate_on == "bound")
            for run in having:
                found += wanted.uncovered(run)
            if not having:
                found.append(SignoffGate(wanted.name, None, wanted.gate(f"{label}: {lacking}")))
    limits = policy.limits
    for value, wanted_name, label, side, unit, those in (
        (limits.min_pass_rate, "pass_rate", "Pass rate", "min", "share", list(runs)),
        (limits.max_cost_per_request, "cost_per_request", "Cost per request", "max", "usd", list(runs)),
        (limits.p95_task_seconds, "p95_task", "p95 task time", "max", "s", list(runs)),
        (limits.max_escalation, "escalation", "Escalation rate", "max", "share", routing),
    ):
        if value is None:
            continue
        wanted = _Wanted(wanted_name, label, value, side, unit, certified=False)
        for run in those:
            found += wanted.uncovered(run)
        if not those:
            found.append(
                SignoffGate(wanted_name, None, wanted.gate(f"{label}: no run of this sign-off judges it"))
            )
    return found


class _Wanted:
    """One limit of the policy. `certified`: an estimate does not do."""

    def __init__(self, name: str, label: str, limit: float, side: str, unit: str, certified: bool) -> None:
        self.name, self.label, self.limit, self.side, self.unit, self.certified = (
            name,
            label,
            limit,
            side,
            unit,
            certified,
        )

    def gate(self, text: str) -> Gate:
        return _measure(self.name, self.label, Status.NOT_STATABLE, text, self.limit, self.side, unit=self.unit)

    def uncovered(self, run: RunFacts) -> list[SignoffGate]:
        """An open gate where the run's own gate does not answer for the policy's limit."""
        rows = [row for row in run.result["gates"] if row["name"] == self.name]
        text = None
        if not rows:
            text = f"{self.label}: the policy limits it to {self.limit:g} and the run judged no limit; {_RERUN}"
        for row in rows:
            limit = row["limit"]
            strict = limit is not None and (limit <= self.limit if self.side == "max" else limit >= self.limit)
            if not strict:
                judged = "none" if limit is None else f"{limit:g}"
                text = f"{self.label}: the run judged a looser limit ({judged}, here {self.limit:g}); {_RERUN}"
            elif self.certified and row["status"] == Status.ESTIMATE.value:
                text = f"{self.label}: the policy asks for a bound, and the run judged the estimate; {_RERUN}"
        if text is None:
            return []
        return [SignoffGate(f"{run.id}:policy:{self.name}", run.id, self.gate(text))]


def _judge(policy: Policy, run: RunFacts) -> Iterator[SignoffGate]:
    """Agreement of the judge with people, and how often it gave no verdict."""
    found = run.provenance.get("judge")
    judge: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    if policy.judge_min_agreement is not None:
        gate = _agreement(judge, policy.judge_min_agreement)
        yield SignoffGate(f"{run.id}:judge_agreement", run.id, gate)
    limit = policy.judge_max_unparseable
    if limit is not None:
        label, seen = "Judge replies that could not be read", judge.get("unparseable_share")
        status, text = Status.NOT_STATABLE, f"{label}: not measured, the run records no judge"
        if seen is not None:
            status = Status.ESTIMATE if seen <= limit + _TOLERANCE else Status.INSUFFICIENT
            text = f"{label}: {100 * seen:.2f} % (limit {100 * limit:g} %)"
            text += "" if status is Status.ESTIMATE else "; correct the judge's prompt and grade again"
        n = judge.get("replies")
        gate = _measure(
            "judge_unparseable", label, status, text, limit, "max", observed=seen, n=n, n_is="judgements"
        )
        yield SignoffGate(f"{run.id}:judge_unparseable", run.id, gate)


def _agreement(judge: Mapping[str, Any], limit: float) -> Gate:
    """An exact bound on the share of replies on which judge and people agree, counted by items."""
    label = "Judge agreement with people"
    quality = judge.get("quality")
    agreement = quality.get("agreement") if isinstance(quality, Mapping) else None
    if not isinstance(quality, Mapping) or not isinstance(agreement, Mapping) or not agreement.get("n"):
        text = f"{label}: not measured; grade a sample of the replies by hand (human grades) and run again"
        return _measure("judge_agreement", label, Status.NOT_STATABLE, text, limit, "min", n_is="judgements")
    rate = agreement["agreed"] / agreement["n"]
    n = float(min(agreement["n"], quality.get("items") or agreement["n"]))
    k = (1.0 - rate) * n
    bound = 1.0 - (upper_bound(k, n, 0.95) or 1.0)
    text = (
        f"{label}: {100 * rate:.1f} %, at least {100 * bound:.1f} % with 95 % confidence (limit {100 * limit:g} %)"
    )
    more = None
    status = Status.CERTIFIED
    if bound < limit:
        status = Status.INSUFFICIENT
        more = missing_n(k, n, 1.0 - limit, 0.05) if limit < 1 else None
        text += f"; {more:,} more that agree would settle it" if more else "; more will not help at this rate"
    figures: dict[str, Any] = {"observed": clean(rate), "bound": clean(bound), "n": n, "n_is": "judgements"}
    return _measure(
        "judge_agreement",
        label,
        status,
        text,
        limit,
        "min",
        missing=more,
        basis="bound",
        confidence=0.95,
        **figures,
    )


def _labels(policy: Policy, run: RunFacts, created_at: str) -> Iterator[SignoffGate]:
    found = run.provenance.get("labels")
    labels: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    limit = policy.labels_min_alpha
    if limit is not None:
        agreement = labels.get("agreement")
        gate = _alpha(agreement if isinstance(agreement, Mapping) else {}, limit)
        yield SignoffGate(f"{run.id}:label_agreement", run.id, gate)
    if policy.labels_max_age_days is not None:
        labelled = labels.get("labelled")
        oldest = labelled.get("oldest") if isinstance(labelled, Mapping) else None
        missing = "not recorded; write labelled_at (YYYY-MM-DD) into each row's metadata"
        gate = _age("label_age", "Age of the labels", oldest, policy.labels_max_age_days, created_at, missing)
        yield SignoffGate(f"{run.id}:label_age", run.id, gate)
    if policy.labels_max_missed is not None and run.is_routing:
        gate = _missed_needs(run.result.get("label_audit"), policy.labels_max_missed)
        yield SignoffGate(f"{run.id}:missed_needs", run.id, gate)


def _missed_needs(audit: object, limit: float) -> Gate:
    """The share of true needs that are labelled with the cheapest tier, in the class with the greatest bound."""
    label = "Needs that the labels miss"
    rows = audit.get("classes") if isinstance(audit, Mapping) else None
    delta = audit.get("delta") if isinstance(audit, Mapping) else None
    sound = isinstance(delta, float) and isinstance(rows, list) and bool(rows) and all(_audit_row(r) for r in rows)
    if not sound or not isinstance(delta, float) or not isinstance(rows, list):
        text = f"{label}: not measured; draw an audit with evalkit labels audit, and name it in the study (audit:)"
        return _measure("missed_needs", label, Status.NOT_STATABLE, text, limit, "max", n_is="audited items")
    unknown = [str(row["risk"]) for row in rows if row["missed_share_upper"] is None]
    if unknown:
        text = f"{label}: {', '.join(unknown)} has no need, so a share of them cannot be stated; label more of it"
        return _measure("missed_needs", label, Status.NOT_STATABLE, text, limit, "max", n_is="audited items")
    worst = max(rows, key=lambda row: float(row["missed_share_upper"]))
    bound, confidence = float(worst["missed_share_upper"]), 1.0 - delta
    text = (
        f"{label}: at most {100 * bound:.1f} % of the needs of {worst['risk']} with {100 * confidence:g} % "
        f"confidence ({worst['missed']:,} of {worst['audited']:,} audited; limit {100 * limit:g} %)"
    )
    held = bound <= limit
    if not held:
        text += "; audit more of its labels, or put them right"
    return _measure(
        "missed_needs",
        label,
        Status.CERTIFIED if held else Status.INSUFFICIENT,
        text,
        limit,
        "max",
        observed=clean(float(worst["missed_share"])),
        bound=clean(bound),
        n=float(worst["audited"]),
        n_is="audited items",
        basis="bound",
        confidence=clean(confidence),
    )


def _audit_row(row: object) -> bool:
    if not isinstance(row, Mapping) or not isinstance(row.get("risk"), str):
        return False
    counts = all(type(row.get(key)) is int for key in ("audited", "missed"))
    shares = ("missed_share", "missed_share_upper")
    return counts and all(key in row and isinstance(row[key], int | float | None) for key in shares)


def _alpha(agreement: Mapping[str, Any], limit: float) -> Gate:
    """Krippendorff's alpha, by the lower end of its interval: on few items any agreement can be chance.

    Where no two labels disagree there is no interval; then the lower end of raw agreement has to reach the limit.
    """
    label, seen, n = "Agreement of the labels", agreement.get("alpha"), agreement.get("items")
    lower, missing = agreement.get("lower"), None
    status = Status.NOT_STATABLE
    text = f"{label}: not measured; give the labels of several annotators in a column labels"
    if seen is not None:
        text = f"{label}: Krippendorff's alpha {seen:.3f} on {n:,} items"
        at_least, said = lower, "at least"
        if lower is None and agreement.get("raw") == 1:
            at_least, said = agreement.get("raw_lower"), "raw agreement at least"
        if at_least is None:
            text += f", without an interval (limit {limit:g})"
        else:
            text += f", {said} {at_least:.3f} (limit {limit:g})"
            held = at_least >= limit - _TOLERANCE
            status = Status.ESTIMATE if held else Status.INSUFFICIENT
            if not held and seen > limit:
                missing = max(1, math.ceil(n * (((seen - at_least) / (seen - limit)) ** 2 - 1)))
                text += f"; about {missing:,} more items with two annotators at this rate would settle it"
            elif not held:
                text += "; sharpen the labelling guide and label again"
    figures: dict[str, Any] = {"observed": seen, "bound": lower, "n": n, "n_is": "labels with two annotators"}
    confidence = None if lower is None else 0.95
    return _measure(
        "label_agreement",
        label,
        status,
        text,
        limit,
        "min",
        unit="alpha",
        missing=missing,
        confidence=confidence,
        **figures,
    )


def _prices(policy: Policy, run: RunFacts, created_at: str) -> Iterator[SignoffGate]:
    if policy.prices_max_age_days is None:
        return
    prices = run.provenance.get("prices")
    as_of = prices.get("as_of") if isinstance(prices, Mapping) else None
    missing = "not recorded; name a price card with as_of in the study"
    gate = _age("price_age", "Age of the prices", as_of, policy.prices_max_age_days, created_at, missing)
    yield SignoffGate(f"{run.id}:price_age", run.id, gate, "cited" if as_of else "measured")


def _age(name: str, label: str, since: object, most: int, created_at: str, missing: str) -> Gate:
    """Days from `since` to the day of the sign-off. A day to come is no age."""
    try:
        days = (date.fromisoformat(created_at[:10]) - date.fromisoformat(str(since)[:10])).days
    except ValueError:
        days = -1
    if since is None or days < 0:
        why = missing if since is None else f"the recorded day {since} has not come yet, or is none"
        return _fact(name, label, Status.NOT_STATABLE, f"{label}: {why}", limit=most, unit="days")
    held = days <= most
    text = f"{label}: {days:,} days, since {since} (at most {most:,})" + ("" if held else "; collect them again")
    status = Status.CERTIFIED if held else Status.INSUFFICIENT
    return _fact(name, label, status, text, limit=most, observed=days, unit="days")


def _fact(
    name: str,
    label: str,
    status: Status,
    text: str,
    *,
    limit: float | None = None,
    observed: float | None = None,
    unit: str = "",
) -> Gate:
    """A gate that holds or not, without chance: no bound is needed."""
    return Gate(name, label, limit, "max", unit, observed, None, None, None, "", status, None, text, "fact", None)


def _measure(
    name: str,
    label: str,
    status: Status,
    text: str,
    limit: float,
    side: str,
    *,
    unit: str = "share",
    observed: float | None = None,
    bound: float | None = None,
    n: float | None = None,
    n_is: str = "items",
    missing: int | None = None,
    basis: str = "estimate",
    confidence: float | None = None,
) -> Gate:
    return Gate(
        name, label, limit, side, unit, observed, bound, None, n, n_is, status, missing, text, basis, confidence
    )
