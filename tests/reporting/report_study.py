"""A small invented study to report on, made by hand: its figures are counted here item by item."""

from __future__ import annotations

import copy
import functools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

Result = dict[str, Any]
Item = dict[str, Any]

RISKS: tuple[tuple[str, float, float | None, str, float], ...] = (
    ("low", 0.05, 0.20, "estimate", 0.55),
    ("medium", 0.40, 0.15, "bound", 0.25),
    ("critical", 40.0, 0.06, "bound", 0.20),
)
PRICE = {"cheap": 0.0004, "mid": 0.0021, "frontier": 0.0068, "reasoning": 0.0214, "top": 0.0115}
SKILL = {"cheap": 0.0, "mid": 0.35, "frontier": 0.65, "reasoning": 0.8, "top": 0.75}
PROMPTS = (
    "My parcel shows delivered but nothing is here. Which queue should handle this: billing, delivery or other?",
    "카드가 해외에서 결제되었다는 문자를 받았습니다. 저는 결제한 적이 없습니다. 지금 무엇을 해야 하나요?",
    "Read the policy above. A customer returns an opened headset after 35 days with a fault. Answer yes or no.",
    "What does this print?\nxs = [3, 1, 2]\nxs.sort(reverse=True)\nprint(xs[0] * len(xs))",
    "An order of 3 cables at 12.50 and one hub at 49.90 has a 10 % coupon. What is the total in euros?",
)


def cp_upper(k: float, n: float, confidence: float = 0.95) -> float:
    """One-sided exact upper bound, from the regularised incomplete beta function by bisection."""
    from scipy.stats import beta

    return 1.0 if k >= n else float(beta.ppf(confidence, k + 1, n - k))


def _items(tiers: Sequence[str], n: int, seed: int) -> list[Item]:
    rng = random.Random(seed)
    items: list[Item] = []
    for i in range(n):
        risk = rng.choices([r[0] for r in RISKS], [r[4] for r in RISKS])[0]
        hardness = rng.random()
        required = next(
            (j for j, tier in enumerate(tiers) if hardness < 0.62 + 0.36 * SKILL[tier] / 0.8), len(tiers)
        )
        noise = rng.gauss(0, 0.07)
        items.append(
            {
                "id": f"q{i + 1:05d}",
                "risk": risk,
                "required": required,
                "score": round(min(0.999, max(0.001, hardness * 0.9 + noise)), 6),
                "weight": 1.0,
                "prompt": PROMPTS[i % len(PROMPTS)],
                "answered": rng.random() > 0.006,
                "cost": {tier: PRICE[tier] * rng.uniform(0.5, 1.6) for tier in tiers},
                "seconds": {tier: (0.4 + 4.1 * SKILL[tier]) * rng.lognormvariate(0, 0.35) for tier in tiers},
            }
        )
    return items


def _point(
    items: list[Item], tiers: Sequence[str], route: Callable[[Item], int], thresholds: list[float], name: str
) -> Result:
    n, k_tiers = len(items), len(tiers)
    loss_of = {r[0]: r[1] for r in RISKS}
    shape = lambda: [[0] * k_tiers for _ in range(k_tiers + 1)]  # noqa: E731
    confusion, usd = shape(), [[0.0] * k_tiers for _ in range(k_tiers + 1)]
    by_risk = {r[0]: {"needs": 0, "under_route_count": 0, "confusion": shape()} for r in RISKS}
    cost = loss = passed = saving_unsolvable = 0.0
    under = over = escalated = answered = right = 0
    times = []
    for item in items:
        to, required, risk = route(item), item["required"], item["risk"]
        confusion[required][to] += 1
        by_risk[risk]["confusion"][required][to] += 1
        paid = item["cost"][tiers[to]] + 0.0001
        cost += paid
        escalated += to > 0
        answered += item["answered"]
        times.append(item["seconds"][tiers[to]] + 0.02)
        solvable = required < k_tiers
        if solvable and required > 0:
            by_risk[risk]["needs"] += 1
        if solvable and to < required:
            under += 1
            by_risk[risk]["under_route_count"] += 1
            usd[required][to] += loss_of[risk]
            loss += loss_of[risk]
        extra = to > required if solvable else to > 0
        if extra:
            over += 1
            more = item["cost"][tiers[to]] - item["cost"][tiers[required if solvable else 0]]
            usd[required][to] += more
            loss += more
        if not solvable:
            saving_unsolvable += item["cost"][tiers[-1]] - paid
        right += solvable and to == required
        passed += item["answered"] and solvable and to >= required
    needs = sum(part["needs"] for part in by_risk.values())
    for part in by_risk.values():
        rate = part["under_route_count"] / part["needs"] if part["needs"] else None
        part["under_route_rate"] = rate
        if rate is None:
            part["under_route_rate_reason"] = "0 needs"
        part["under_route_upper_bound"] = (
            cp_upper(part["under_route_count"], part["needs"]) if part["needs"] else None
        )
    strongest = sum(item["cost"][tiers[-1]] for item in items)
    weight = {r[0]: r[1] for r in RISKS}
    solvable_weight = sum(weight[i["risk"]] for i in items if i["required"] < k_tiers)
    under_weight = sum(weight[i["risk"]] for i in items if route(i) < i["required"] < k_tiers)
    times.sort()
    spread = lambda p: 1.96 * math.sqrt(max(p * (1 - p), 1e-9) / n)  # noqa: E731
    low = passed / n
    solvable_n = sum(item["required"] < k_tiers for item in items)
    return {
        "name": name,
        "thresholds": thresholds,
        "escalation_rate": escalated / n,
        "under_route_count": under,
        "under_route_rate": under / needs if needs else None,
        "risk_weighted_under_route": under_weight / solvable_weight,
        "unnecessary_escalation_count": over,
        "contract_failure_count": 0,
        "routing_loss_usd": loss,
        "routing_loss_corrected_usd": loss * 1.2,
        "expected_total_usd": cost + sum(sum(usd[r][c] for c in range(min(r, k_tiers))) for r in range(k_tiers)),
        "cost_usd_total": cost,
        "cost_usd_per_request": cost / n,
        "saving_usd_vs_strongest": strongest - cost,
        "saving_on_unsolvable_usd": saving_unsolvable,
        "pass_rate": passed / answered,
        "pass_rate_lower": low,
        "pass_rate_upper": (passed + n - answered) / n,
        "p95_task_s": times[math.ceil(0.95 * n) - 1],
        "p95_task_n": n,
        "p95_task_censored": 0,
        "p95_task_note": None,
        "by_risk": by_risk,
        "confusion": confusion,
        "confusion_weighted": [[float(v) for v in row] for row in confusion],
        "confusion_loss_usd": usd,
        "accuracy": right / solvable_n,
        "intervals": {
            "pass_rate_lower": [max(0.0, low - spread(low)), min(1.0, low + spread(low))],
            "cost_usd_per_request": [cost / n * 0.965, cost / n * 1.035],
            "expected_total_usd": [0.8 * cost, 1.6 * cost + loss],
        },
    }


def _cuts(t: float, k_tiers: int) -> list[float]:
    return [round(1 - (1 - t) * 0.5**j, 6) for j in range(k_tiers - 1)]


def _route(cuts: list[float]) -> Callable[[Item], int]:
    return lambda item: sum(item["score"] >= cut for cut in cuts)


def under_route_gate(
    point: Result, risk: tuple[str, float, float | None, str, float], *, fixed: bool = False
) -> Result:
    name, _, limit, basis, _ = risk
    assert limit is not None
    part = point["by_risk"][name]
    k, n, bound = part["under_route_count"], part["needs"], part["under_route_upper_bound"]
    status = "certified" if bound is not None and bound <= limit else "insufficient"
    if fixed and k / n > limit * 1.6:
        status = "violated"
    if basis == "estimate" and k / n <= limit:
        status = "estimate"
    missing = None
    if status == "insufficient" and k / n < limit:
        missing = next(m for m in range(1, 100000) if cp_upper(k, n + m) <= limit)
    return {
        "name": f"under_route:{name}",
        "label": f"Under-routing, {name} risk",
        "limit": limit,
        "limit_is": "max",
        "unit": "share",
        "observed": k / n,
        "upper_bound": bound,
        "k": k,
        "n": n,
        "n_is": "needs",
        "status": status,
        "missing_n": missing,
        "message": None if missing or status != "insufficient" else "more labels will not help at this rate",
        "basis": basis,
        "confidence": 0.95,
    }


def base(tiers: tuple[str, ...] = ("cheap", "top"), n: int = 900, at: float = 0.45, seed: int = 7) -> Result:
    """A study under `tiers`, routed at the threshold `at`, not yet judged."""
    return copy.deepcopy(_base(tiers, n, at, seed))


@functools.cache
def _base(tiers: tuple[str, ...], n: int, at: float, seed: int) -> Result:
    items = _items(tiers, n, seed)
    k_tiers = len(tiers)
    steps = sorted({0.0, 0.999001, at, *(round(0.02 * j, 4) for j in range(1, 50))})
    points = [
        _point(items, tiers, _route(_cuts(t, k_tiers)), _cuts(t, k_tiers), f"t{i}") for i, t in enumerate(steps)
    ]
    candidate = copy.deepcopy(points[steps.index(at)])
    candidate["name"] = "candidate"
    alone = {
        f"always:{t}": _point(items, tiers, lambda _i, j=j: j, [], f"always:{t}") for j, t in enumerate(tiers)
    }
    oracle = _point(
        items, tiers, lambda i: i["required"] % k_tiers if i["required"] < k_tiers else 0, [], "oracle"
    )
    lookup = _point(items, tiers, lambda i: k_tiers - 1 if i["risk"] == "critical" else 0, [], "category_lookup")
    mix = copy.deepcopy(candidate) | {"name": "random_mix", "thresholds": []}
    for key in ("pass_rate", "pass_rate_lower", "pass_rate_upper"):
        mix[key] = candidate[key] - 0.06
    mix["intervals"]["pass_rate_lower"] = [v - 0.06 for v in mix["intervals"]["pass_rate_lower"]]
    mix["expected_total_usd"] = candidate["expected_total_usd"] * 2.1
    answered = sum(item["answered"] for item in items)
    route = _route(_cuts(at, k_tiers))
    worst = sorted(
        (i for i in items if route(i) < i["required"] < k_tiers),
        key=lambda i: (-{r[0]: r[1] for r in RISKS}[i["risk"]], i["id"]),
    )
    loss_of = {r[0]: r[1] for r in RISKS}
    return {
        "schema": "evalkit.route-sweep/1",
        "study": "helpdesk-example",
        "description": "Which help-desk requests may stay on the cheap model. All figures are invented.",
        "evalkit_version": "0.1.0",
        "verdict": {
            "decision": "insufficient_evidence",
            "reasons": [],
            "uncertified": ["low"],
            "headline": "",
            "next_step": "",
        },
        "policy": "direct",
        "policies_compared": None,
        "rule": "score >= threshold goes up",
        "tiers": [
            {"name": t, "model": f"demo/{t}-1", "params": {"max_tokens": 64, "temperature": 0}} for t in tiers
        ],
        "risk_classes": [
            {"name": r[0], "under_route_loss_usd": r[1], "max_under_route": r[2], "gate_on": r[3], "weight": r[1]}
            for r in RISKS
        ],
        "counts": {
            "items": n,
            "answered": answered,
            "unanswered": n - answered,
            "unsolvable": sum(i["required"] == k_tiers for i in items),
            "needs": sum(0 < i["required"] < k_tiers for i in items),
            "samples": 1,
            "groups": None,
            "weight_zero": 0,
        },
        "selected": None,
        "candidate": candidate,
        "judged": None,
        "t_hi": _cuts(at + 0.03, k_tiers)[0],
        "t_lo": 0.06,
        "thresholds_evaluated": n + 1,
        "points": points,
        "baselines": {**alone, "random_mix": mix, "category_lookup": lookup, "oracle": oracle},
        "by_tier": [_by_tier(t, j, items, route, candidate) for j, t in enumerate(tiers)],
        "cost_matrix_usd": _cost_matrix(items, tiers),
        "gates": [
            *(under_route_gate(candidate, r) for r in RISKS),
            _pass_gate(candidate, n),
            {
                "name": "cost_per_request",
                "label": "Cost per request, mean",
                "limit": 0.012,
                "limit_is": "max",
                "unit": "usd",
                "observed": candidate["cost_usd_per_request"],
                "upper_bound": None,
                "upper_bound_reason": "a mean has no exact bound",
                "k": None,
                "n": n,
                "n_is": "items",
                "status": "estimate",
                "missing_n": None,
                "message": None,
                "basis": "estimate",
                "confidence": 0.95,
            },
        ],
        "stop_rules": [
            {
                "name": "router_not_shown_to_separate",
                "applies": True,
                "on_trigger": "insufficient_evidence",
                "triggered": False,
                "detail": "AUC .86, interval .83 to .89",
            },
            {
                "name": "quality_overlaps",
                "triggered": False,
                "detail": "strongest passes 31.2 points more, at least 28.0",
            },
            {
                "name": "escalates_nearly_everything",
                "triggered": False,
                "detail": "47.1 % escalated, at least 44.3 %",
            },
            {
                "name": "no_gain_over_best_fixed_arm",
                "triggered": False,
                "detail": "gains $0.62 per 1,000 over always top, at least $0.21",
            },
        ],
        "comparisons": [
            {
                "against": "always:top",
                "what": "expected_total_usd",
                "difference": -0.00241,
                "lower": -0.0033,
                "upper": -0.00152,
                "n": n,
                "better": True,
            },
            {
                "against": "always:cheap",
                "what": "expected_total_usd",
                "difference": -0.3105,
                "lower": -0.402,
                "upper": -0.219,
                "n": n,
                "better": True,
            },
            {
                "against": "random_mix",
                "what": "pass_rate",
                "difference": 0.06,
                "lower": 0.031,
                "upper": 0.089,
                "n": n,
                "better": True,
            },
            {
                "against": "category_lookup",
                "what": "expected_total_usd",
                "difference": -0.0012,
                "lower": -0.0049,
                "upper": 0.0025,
                "n": n,
                "better": None,
            },
        ],
        "separation": {
            "auc": 0.8612,
            "lower": 0.8301,
            "upper": 0.8904,
            "n_needs": 240,
            "n_other": 640,
            "detail": None,
        },
        "cross_fitted": {"routing_loss_usd": 9.13, "lower": 4.2, "upper": 14.06, "folds": 10, "detail": None},
        "routing_loss_upper_usd": 61.2,
        "guarantee": (
            "If these labels are a random sample of the traffic and are right, a study run this way selects a "
            "threshold that breaks any certified under-route limit in at most 5 % of studies, all risk classes "
            "together; the certified escalation and latency limits, separately, in at most 5 %; all together in "
            "at most 10 %."
        ),
        "looks": {"declared": 1, "this": 1, "delta": 0.05},
        "diagnostics": [],
        "notices": ["2 rows of labels.jsonl have weight 0 and count in no rate of requests"],
        "evidence_limits": [
            "Labels are author labels by a written rule; nobody audited them.",
            "Items are single requests in English and Korean; nothing is known of conversations.",
            "Prices are assumed.",
        ],
        "worst_items": [
            {
                "id": i["id"],
                "category": ("classification", "fraud", "policy", "code", "arithmetic")[int(i["id"][1:]) % 5],
                "risk": i["risk"],
                "required_tier": tiers[i["required"]],
                "routed_tier": tiers[route(i)],
                "score": i["score"],
                "loss_usd": loss_of[i["risk"]],
                "flags": ["under_route"],
                "prompt": i["prompt"],
                "reply": "delivery",
                "model": f"demo/{tiers[route(i)]}-1",
                "status": "wrong",
                "reference": "billing",
            }
            for i in worst[:60]
        ],
        "worst_items_total": len(worst),
        "items_file": "items.jsonl.gz",
        "provenance": {
            "started_at": "2026-11-30T20:01:02+00:00",
            "finished_at": "2026-11-30T20:01:09+00:00",
            "seed": 7,
            "study_file": "study.yaml",
            "study_hash": "sha256:" + "3f9c1d7a" * 8,
            "labels": {"file": "labels.jsonl", "hash": "sha256:" + "a41be00c" * 8, "kind": "author_rule"},
            "outcomes": {"file": "outcomes.jsonl", "hash": "sha256:" + "9d2e4c10" * 8},
            "scores": {"file": "scores.csv", "hash": "sha256:" + "51b77fa2" * 8, "trained_on": "other_items"},
            "prices": {
                "file": "prices.yaml",
                "hash": "sha256:" + "7e11ab2c" * 8,
                "kind": "assumed",
                "as_of": "2026-11-30",
            },
            "models": {t: {"requested": f"demo/{t}-1", "served": [f"demo/{t}-1-2026-11"]} for t in tiers},
            "dependencies": {"numpy": "2.4.6", "scipy": "1.17.1", "jinja2": "3.1.6"},
            "python": "3.11.9",
            "looks_file": "labels.looks.json",
            "numbers": {
                "pass rates": "measured",
                "cost": "assumed",
                "under-route loss": "assumed",
                "latency": "measured",
            },
        },
    }


def _pass_gate(point: Result, n: int) -> Result:
    k = n - round(point["pass_rate_lower"] * n)
    return {
        "name": "pass_rate",
        "label": "Pass rate",
        "limit": 0.8,
        "limit_is": "min",
        "unit": "share",
        "observed": 1 - k / n,
        "lower_bound": 1 - cp_upper(k, n),
        "k": k,
        "n": n,
        "n_is": "items",
        "status": "certified" if 1 - cp_upper(k, n) >= 0.8 else "insufficient",
        "missing_n": None,
        "message": None,
        "basis": "bound",
        "confidence": 0.95,
    }


def _by_tier(tier: str, index: int, items: list[Item], route: Callable[[Item], int], point: Result) -> Result:
    mine = [item for item in items if route(item) == index]
    times = sorted(item["seconds"][tier] for item in mine)
    rank = lambda q: times[math.ceil(q * len(times)) - 1] if times else None  # noqa: E731
    passed = sum(item["answered"] and item["required"] <= index for item in mine)
    return {
        "tier": tier,
        "share_of_traffic": len(mine) / len(items),
        "pass_rate": passed / len(mine) if mine else None,
        "pass_rate_lower": passed / len(mine) if mine else None,
        "pass_rate_upper": passed / len(mine) if mine else None,
        "cost_usd_per_request": sum(item["cost"][tier] for item in mine) / len(mine) if mine else None,
        "ttft_p50_s": None,
        "ttft_p50_s_reason": "not recorded",
        "ttft_p95_s": None,
        "ttft_p95_s_reason": "not recorded",
        "request_p50_s": rank(0.5),
        "request_p95_s": rank(0.95),
        "task_p50_s": rank(0.5),
        "task_p95_s": rank(0.95),
        "n": len(mine),
        "fallback_rate": 0.0,
        "retry_rate": 0.004,
        "unnecessary_escalations": point["unnecessary_escalation_count"] if index else 0,
        "unnecessary_escalation_seconds": 1.9 * point["unnecessary_escalation_count"] if index else 0.0,
    }


def _cost_matrix(items: list[Item], tiers: Sequence[str]) -> list[list[float | None]]:
    rows: list[list[float | None]] = []
    for required in range(len(tiers) + 1):
        mine = [item for item in items if item["required"] == required]
        rows.append([sum(i["cost"][t] for i in mine) / len(mine) if mine else None for t in tiers])
    return rows
