"""Results to report on: the invented study under each verdict, without costs or replies, and under attack."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from report_study import RISKS, Result, base, under_route_gate


def approve() -> Result:
    """Every gate is met; one class is judged on its estimate."""
    result = base(n=4000, at=0.42)
    result["selected"] = copy.deepcopy(result["candidate"]) | {"name": "selected"}
    result["verdict"] |= {
        "decision": "approve",
        "headline": "Approved with 1 uncertified class (low)",
        "reasons": ["every certified gate is met at the selected threshold"],
        "next_step": "Release with this threshold and the same rounding of scores.",
    }
    return result


def reject() -> Result:
    """A threshold fixed in advance that breaks a limit, and a stop rule."""
    result = base(n=900, at=0.66)
    result["judged"] = copy.deepcopy(result["candidate"]) | {"name": "judged"}
    result["gates"] = [under_route_gate(result["judged"], r, fixed=True) for r in RISKS] + result["gates"][3:]
    result["stop_rules"][3] |= {
        "triggered": True,
        "detail": "costs $0.12 per 1,000 more than always top, interval -$0.40 to $0.16",
    }
    result["verdict"] |= {
        "decision": "reject",
        "headline": "Critical requests are under-routed at 0.66, and there is no gain over always top",
        "reasons": ["under_route:critical is violated", "stop rule: no gain over the best fixed arm"],
        "next_step": "Lower the threshold; more labels will not change this.",
    }
    result["guarantee"] = None
    result["guarantee_reason"] = "the threshold was fixed in advance and is judged as it is"
    return result


def insufficient() -> Result:
    """Three tiers, too few critical items."""
    result = base(("cheap", "mid", "top"), n=420, at=0.34)
    result["verdict"] |= {
        "headline": "Too few critical items to certify a 6 % limit",
        "reasons": ["under_route:critical is open"],
        "next_step": "Label more critical items that need a stronger tier; the table says how many.",
    }
    result["diagnostics"] = ["Without critical the threshold would be 0.52; a diagnostic, not a candidate."]
    return result


def four_tiers() -> Result:
    """Four tiers, groups and both policies compared."""
    result = base(("cheap", "mid", "frontier", "reasoning"), n=700, at=0.3)
    result["policies_compared"] = [{"policy": "direct", "headline": "x"}, {"policy": "cascade", "headline": "y"}]
    result["counts"]["groups"] = 310
    result["shown"], result["candidate"] = result["candidate"] | {"name": "everything_up"}, None
    for gate in result["gates"][:3]:
        gate["n_is"] = "conversations"
        gate["label"] = f"Share of conversations with any under-routed turn, {gate['name'].partition(':')[2]} risk"
    result["verdict"] |= {"headline": "Two gates are open", "reasons": ["open gates"], "next_step": "Label more."}
    return result


def unknown_costs() -> Result:
    """No price for one model: every USD figure is unknown and says so."""
    result = base(n=500)
    why = "no price for demo/top-1; cost known for 310 of 500 items"

    def blank(node: Any) -> None:
        if isinstance(node, dict):
            for key in [k for k in node if ("usd" in k or k == "intervals") and not k.endswith("_reason")]:
                if key in {"under_route_loss_usd"}:
                    continue
                if key == "intervals":
                    node[key] = {k: v for k, v in node[key].items() if "usd" not in k}
                else:
                    node[key] = None
                    node[f"{key}_reason"] = why
            for value in node.values():
                blank(value)
        elif isinstance(node, list):
            for value in node:
                blank(value)

    blank(result)
    result["gates"][4] |= {"observed": None, "observed_reason": why, "status": "not_statable", "message": why}
    result["comparisons"] = [
        c | {"difference": None, "difference_reason": why, "lower": None, "upper": None, "better": None}
        for c in result["comparisons"]
    ]
    result["stop_rules"][3] |= {"triggered": None, "detail": why}
    result["candidate"] = None
    result["candidate_reason"] = why
    result["cross_fitted"] = None
    result["verdict"] |= {
        "headline": "Costs are unknown for 190 of 500 items",
        "reasons": [why],
        "next_step": "Name a price for demo/top-1.",
    }
    return result


def fixed_decisions() -> Result:
    """Decisions of today's router, judged: no thresholds, no scores."""
    result = base(("cheap", "mid", "frontier", "reasoning"), n=20, at=0.5)
    result["policy"] = "decisions"
    result["rule"] = None
    result["judged"] = copy.deepcopy(result["candidate"]) | {"name": "judged", "thresholds": []}
    result["judged"] |= {"p95_task_n": 20, "p95_task_note": "not statable: n below 59"}
    result["candidate"] = None
    result |= {
        "points": [],
        "t_hi": None,
        "t_lo": None,
        "thresholds_evaluated": 0,
        "separation": None,
        "cross_fitted": None,
    }
    for gate in result["gates"][:3]:
        if not gate["n"] or gate["status"] == "estimate":
            gate |= {"status": "not_statable", "message": "no item of this class needs a stronger tier"}
    result["stop_rules"] = result["stop_rules"][1:]
    result["verdict"] |= {
        "headline": "20 items cannot certify these limits",
        "reasons": ["n is too small"],
        "next_step": "Label more.",
    }
    result["provenance"]["scores"] = None
    return result


def nothing_measured() -> Result:
    """Every request failed."""
    result = base(n=60)
    why = "5 of 5 errored, nothing was scored"
    result["counts"] = {
        "items": 5,
        "answered": 0,
        "unanswered": 5,
        "unsolvable": 0,
        "needs": 0,
        "samples": 1,
        "groups": None,
        "weight_zero": 0,
    }
    result |= {
        "candidate": None,
        "candidate_reason": why,
        "points": [],
        "thresholds_evaluated": 0,
        "baselines": {},
        "by_tier": [],
        "cost_matrix_usd": None,
        "comparisons": [],
        "separation": None,
        "cross_fitted": None,
        "routing_loss_upper_usd": None,
        "guarantee": None,
        "worst_items": [],
        "worst_items_total": 0,
        "t_hi": None,
        "t_lo": None,
        "stop_rules": [],
    }
    for gate in result["gates"]:
        gate |= {
            "observed": None,
            "upper_bound": None,
            "k": None,
            "n": 0,
            "status": "not_statable",
            "message": why,
            "missing_n": None,
        }
        gate.pop("lower_bound", None)
    result["verdict"] |= {
        "headline": "5 of 5 errored, nothing was scored; first error: HTTP 401 invalid key (5 times)",
        "reasons": [why],
        "next_step": "Put the key right and run the same command again.",
        "uncertified": [],
    }
    return result


ATTACKS = (
    '</td><script>document.title="pwned-1"</script>',
    "<img src=x onerror=\"document.title='pwned-2'\">",
    '[open me](javascript:document.title="pwned-3")',
    'q1"><svg onload=document.title="pwned-4">',
    'bad <iframe srcdoc="&lt;script&gt;document.title=1&lt;/script&gt;"> reply',
    "&lt;already escaped&gt; a & b < c \"d\" 'e'",
    "{{ 7*7 }} {% raw %} ${x} <b>mid</b>",
    "\x1b[31mred\x1b[0m \x07bell \u202eevil\u202c \u200bzero\x00nul \u2028sep ]]> --> | ` [bold]b[/bold] :smile:",
    "a | b | c\n| d | `code` **bold** @someone #1 https://evil.example/ www.evil.example",
)


def hostile(source: Result | None = None) -> Result:
    """Every text that comes from a user, a file or a model is an attack; what evalkit itself writes stays."""
    result = copy.deepcopy(source if source is not None else insufficient())
    turn = iter(range(10**9))

    def attack(text: str) -> str:
        return f"{ATTACKS[next(turn) % len(ATTACKS)]} {text}"

    tier = {t["name"]: attack(t["name"]) for t in result["tiers"]}
    risk = {r["name"]: attack(r["name"]) for r in result["risk_classes"]}
    keep = {
        "schema",
        "decision",
        "status",
        "unit",
        "limit_is",
        "basis",
        "policy",
        "n_is",
        "gate_on",
        "kind",
        "what",
        "name",
    }

    def walk(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            out = {}
            for name, value in node.items():
                new = tier.get(name) or risk.get(name) or name
                if name.startswith("always:"):
                    new = "always:" + tier[name.removeprefix("always:")]
                elif key in {"dependencies", "numbers"}:
                    new = attack(name)
                out[new] = walk(value, name)
            return out
        if isinstance(node, list):
            return [walk(value, key) for value in node]
        if not isinstance(node, str):
            return node
        if key == "numbers" or (key in keep and node in {*["max", "min", "share", "usd", "s"], *PLAIN}):
            return node
        if node in tier or node in risk:
            return tier.get(node) or risk[node]
        head, colon, tail = node.partition(":")
        if colon and (tail in tier or tail in risk):
            return f"{head}:{tier.get(tail) or risk[tail]}"
        return attack(node)

    return walk(result)


PLAIN = {
    "evalkit.route-sweep/1", "approve", "reject", "insufficient_evidence", "certified", "estimate",
    "insufficient", "not_statable", "violated", "infeasible", "bound", "direct", "cascade", "decisions", "items",
    "needs", "conversations", "cited", "assumed", "measured", "expected_total_usd", "cost_usd", "pass_rate",
    "cost_per_request", "random_mix", "category_lookup", "oracle", "router_not_shown_to_separate",
    "quality_overlaps", "escalates_nearly_everything", "no_gain_over_best_fixed_arm",
}  # fmt: skip

ALL: dict[str, Callable[[], Result]] = {
    "approve": approve,
    "reject": reject,
    "insufficient": insufficient,
    "four_tiers": four_tiers,
    "unknown_costs": unknown_costs,
    "fixed_decisions": fixed_decisions,
    "nothing_measured": nothing_measured,
    "hostile": hostile,
}
