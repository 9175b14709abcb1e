"""Sign-off documents to render: each verdict, two runs with many gates, next to nothing, every text an attack."""

from __future__ import annotations

import copy
from typing import Any

Document = dict[str, Any]

STATES = {
    "certified": "pass",
    "estimate": "pass",
    "insufficient": "open",
    "not_statable": "open",
    "violated": "fail",
    "infeasible": "fail",
}


def digest(letter: str) -> str:
    return letter * 64


def gate(name: str, label: str, status: str = "certified", **more: Any) -> Document:
    run = more.pop("run", "routing-1")
    made = {
        "id": f"{run or 'policy'}:{name}",
        "run": run,
        "name": name,
        "label": label,
        "limit": 0.05,
        "limit_is": "max",
        "unit": "share",
        "observed": 0.01,
        "bound": 0.031,
        "n": 400,
        "n_is": "needs",
        "status": status,
        "state": STATES[status],
        "missing_n": None,
        "more_helps": False,
        "message": "",
        "basis": "bound",
        "confidence": 0.95,
        "kind": "measured",
    }
    if name.startswith("under_route:"):
        made["risk"] = name.partition(":")[2]
    return made | more


def fact(name: str, label: str, status: str = "certified", **more: Any) -> Document:
    """A gate that holds or not, without chance."""
    still = {"limit": None, "observed": None, "bound": None, "n": None, "n_is": "", "unit": "", "confidence": None}
    reasons = {"bound_reason": "does not apply", "observed_reason": "does not apply"}
    return gate(name, label, status, basis="fact", **(still | reasons | more))


def approve() -> Document:
    """Eight gates pass, one of them on its estimate."""
    return {
        "schema": "evalkit.signoff/1",
        "name": "support-release",
        "created_at": "2026-11-30T09:12:00+00:00",
        "verdict": {
            "decision": "approve",
            "headline": "Approved with 1 uncertified class (low)",
            "reasons": [
                {
                    "code": "gates_hold",
                    "gate": None,
                    "text": "All 10 gates hold: 8 certified, 2 on the estimate",
                }
            ],
            "next_step": {
                "code": "deploy",
                "text": "Deploy the selected threshold as printed",
                "missing_n": None,
            },
            "uncertified": ["low"],
        },
        "policy": {"file": "gates.yaml", "sha256": digest("a"), "fixed_before_run": True},
        "changes": [
            {"what": "threshold", "before": 0.45, "after": 0.55, "unit": "threshold", "kind": "assumed"},
            {"what": "cost_per_request", "before": 0.00518, "after": 0.00388, "unit": "usd", "kind": "cited"},
            {"what": "pass_rate", "before": 0.8614, "after": 0.8566, "unit": "share", "kind": "measured"},
            {"what": "escalation", "before": 0.329, "after": 0.227, "unit": "share", "kind": "measured"},
            {"what": "under_route:critical", "before": 0.001, "after": 0.013, "unit": "share", "kind": "measured"},
            {"what": "p95_task", "before": 2.81, "after": 2.6, "unit": "s", "kind": "measured"},
        ],
        "runs": [
            {
                "id": "routing-1",
                "kind": "routing",
                "study": "support-routing",
                "folder": "runs/routing-1",
                "result_sha256": digest("b"),
                "report_sha256": digest("c"),
                "items_sha256": digest("d"),
                "evidence_sha256": digest("e"),
                "verdict": "approve",
                "selected": {"thresholds": [0.55], "rule": "go up where score >= t"},
                "looks": {"declared": 2, "this": 1},
            }
        ],
        "gates": [
            gate("under_route:critical", "Under-routing, critical", limit=0.02, observed=0.013, bound=0.0195,
                 n=1240),
            gate("under_route:medium", "Under-routing, medium", observed=0.014, bound=0.02, n=1900),
            gate(
                "under_route:low",
                "Under-routing, low",
                "estimate",
                limit=0.1,
                observed=0.081,
                bound=0.147,
                n=62,
                basis="estimate",
                message="NOT CERTIFIED (policy). low: 5 of 62 under-routed, 8.1 %; could be 14.7 %. Limit 10 %",
            ),
            gate("pass_rate", "Pass rate", limit_is="min", limit=0.85, observed=0.8566, bound=0.8511, n=6000,
                 n_is="requests"),
            gate("escalation", "Escalation rate", limit=0.3, observed=0.227, bound=0.236, n=6000, n_is="requests"),
            gate("cost_per_request", "Cost per request", "estimate", unit="usd", limit=0.0046, observed=0.00388,
                 bound=None, n=6000, n_is="requests", basis="estimate", kind="cited", confidence=None,
                 message="Cost per request: $0.00388 on average (limit $0.0046); judged on the estimate"),
            gate("non_inferiority", "Pass rate against today's policy", unit="points", limit_is="min", limit=-1.0,
                 observed=-0.48, bound=-0.93, n=6000, n_is="items", run="routing-1"),
            fact("policy_before_run", "Policy fixed before the run"),
            fact("evidence", "Evidence can be recomputed"),
            fact("price_age", "Age of the prices", unit="days", limit=60, observed=20, kind="cited"),
        ],
        "stop_rules": [
            {"name": "quality_overlaps", "run": "routing-1", "triggered": False, "applies": True,
             "on_trigger": "reject", "detail": "frontier passes more often than cheap: +7.9 points"},
            {"name": "no_gain_over_best_fixed_arm", "run": "routing-1", "triggered": False, "applies": True,
             "on_trigger": "reject", "detail": "Better than always:frontier, the best fixed arm"},
        ],
        "risk_slices": [
            {"run": "routing-1", "risk": "critical", "needs": 1240, "missed": 16, "rate": 0.013, "bound": 0.0195,
             "limit": 0.02, "certified": True},
            {"run": "routing-1", "risk": "medium", "needs": 1900, "missed": 27, "rate": 0.0142, "bound": 0.02,
             "limit": 0.05, "certified": True},
            {"run": "routing-1", "risk": "low", "needs": 62, "missed": 5, "rate": 0.081, "bound": 0.147,
             "limit": 0.1, "certified": False},
        ],
        "worst_items": [
            {"run": "routing-1", "id": f"q{i:05}", "risk": ("critical", "medium", "low")[i % 3],
             "text": WORST[i % len(WORST)], "required": "frontier", "routed": "cheap", "why": ["under_routed"],
             "loss_usd": 40.0 / (1 + i)}
            for i in range(12)
        ],
        "worst_total": 48,
        "ladder": None,
        "evidence_limits": [
            "Required tiers were set by people.",
            "No audit of the labels is part of this run: it assumes that they miss no need.",
            "The bound printed at a searched threshold is pointwise; the guarantee is the sentence under the "
            "gates.",
        ],
        "release": {
            "rollout": ["5 % for 24 hours", "50 % for 24 hours", "all"],
            "rollback_when": "3 under-routed critical requests in a daily sample of 100",
            "rollback_how": "set the threshold back to 0.45",
            "owner": "the support platform team",
            "expires": "2027-03-01",
        },
        "provenance": {
            "evalkit_version": "0.3.0",
            "seed": 7,
            "dependencies": {"numpy": "2.4.1", "scipy": "1.17.0"},
            "labels": {"file": "labels.jsonl", "sha256": digest("f")},
        },
        "signers": [{"role": "reviewer", "name": ""}, {"role": "approver", "name": ""}],
        "manifest": [
            {"path": "runs/routing-1/result.json", "sha256": digest("b"), "bytes": 81234},
            {"path": "runs/routing-1/evidence.zip", "sha256": digest("e"), "bytes": 1481234},
        ],
        "digest": "sha256:" + "0123456789abcdef" * 4,
    }  # fmt: skip


WORST = (
    "My father takes warfarin. Is it safe for him to start the antibiotic his dentist prescribed?",
    "전세 계약이 끝났는데 집주인이 보증금을 돌려주지 않습니다. 임차권 등기명령은 언제 신청해야 하나요?",
    "Clause 14.2 says 'reasonable endeavours'. Does that let the supplier delay past 31 March?\nSecond line.",
    "word " * 400,
)


def insufficient() -> Document:
    """One class has too few needs; one gate cannot be stated."""
    document = approve()
    document["verdict"] = {
        "decision": "insufficient_evidence",
        "headline": "Insufficient evidence",
        "reasons": [
            {"code": "gate_open", "gate": "routing-1:under_route:critical",
             "text": "Under-routing, critical: 9 of 700, 1.3 % under-routed; at most 2.2 % with 95 % confidence "
             "(limit 2 %); 460 more needs without a further failure would settle it"},
            {"code": "gate_open", "gate": "policy:judge_agreement",
             "text": "Judge agreement: not measured, and the policy asks for it"},
        ],
        "next_step": {"code": "label_more", "text": "Label at least, in a fresh sample: Under-routing, critical: "
                      "460 more needs", "missing_n": 460},
        "uncertified": ["low"],
    }  # fmt: skip
    first = document["gates"][0]
    first |= {"limit": 0.02, "observed": 9 / 700, "bound": 0.0223, "n": 700, "status": "insufficient",
              "state": "open", "missing_n": 460, "more_helps": True,
              "message": document["verdict"]["reasons"][0]["text"]}  # fmt: skip
    document["gates"].append(
        gate("judge_agreement", "Judge agreement", "not_statable", unit="agreement", limit_is="min", limit=0.8,
             observed=None, bound=None, n=None, n_is="judgements", run=None,
             message="Judge agreement: not measured, and the policy asks for it")
    )  # fmt: skip
    document["risk_slices"][0] |= {"needs": 700, "missed": 9, "rate": 9 / 700, "bound": 0.0223, "certified": False}
    document["runs"][0] |= {"verdict": "insufficient_evidence", "selected": None}
    return document


def reject() -> Document:
    """A broken limit, a triggered stop rule, and a ladder beside the routing."""
    document = approve()
    document["verdict"] = {
        "decision": "reject",
        "headline": "Rejected",
        "reasons": [
            {"code": "gate_fail", "gate": "routing-1:under_route:critical",
             "text": "Under-routing, critical: 61 of 1,240, 4.9 %; at least 3.9 %, so the limit is broken"},
            {"code": "stop_rule", "rule": "no_gain_over_best_fixed_arm", "run": "routing-1",
             "text": "No gain is shown over always:frontier"},
            {"code": "run_reject", "run": "routing-1", "text": "support-routing: Rejected"},
        ],
        "next_step": {"code": "change", "text": "Change the router (broken: Under-routing, critical), then judge "
                      "it on fresh labels", "missing_n": None},
        "uncertified": ["critical", "low"],
    }  # fmt: skip
    document["gates"][0] |= {"observed": 61 / 1240, "bound": 0.0602, "status": "violated", "state": "fail",
                             "message": document["verdict"]["reasons"][0]["text"]}  # fmt: skip
    document["risk_slices"][0] |= {"missed": 61, "rate": 61 / 1240, "bound": 0.0602, "certified": False}
    document["stop_rules"][1] |= {"triggered": True, "detail": "No gain is shown over always:frontier: $0.0001"}
    document["runs"][0] |= {"verdict": "reject", "selected": None}
    document["runs"].append(
        document["runs"][0] | {"id": "math-2", "kind": "reasoning-budget", "study": "hard-math",
                               "folder": "runs/math-2", "verdict": "approve", "selected": "reasoning-2k",
                               "looks": {"declared": 1, "this": 1}, "evidence_sha256": None}
    )  # fmt: skip
    document["gates"].append(
        gate("risk_failure:high", "Failures, high", run="math-2", risk="high", n=1200, n_is="tasks")
    )
    document["ladder"] = [
        {"run": "math-2", "arm": arm, "budget": budget, "pass_rate": rate,
         "interval": [rate - 0.007, rate + 0.007],
         "cost_usd": cost, "marginal_usd_per_point": price, "chosen": arm == "reasoning-2k",
         "plateau": arm == "reasoning-8k"}
        for arm, budget, rate, cost, price in (
            ("no-thinking", 0, 0.742, 0.0021, None),
            ("reasoning-1k", 1024, 0.823, 0.0042, 0.00036),
            ("reasoning-2k", 2048, 0.846, 0.00635, 0.00093),
            ("reasoning-4k", 4096, 0.86, 0.0104, 0.00289),
            ("reasoning-8k", 8192, 0.864, 0.0181, None),
        )
    ]  # fmt: skip
    return document


def many() -> Document:
    """Two runs and fourteen gates: the most that page 1 is made to hold."""
    document = reject()
    document["gates"] += [
        gate(name, label, run="math-2", n=1200, n_is="tasks", **more)
        for name, label, more in (
            ("pass_rate", "Pass rate", {"limit_is": "min", "limit": 0.8, "observed": 0.846, "bound": 0.83}),
            ("p95_task", "p95 task time", {"unit": "s", "limit": 60, "observed": 41.2, "bound": 52.0}),
            ("answered_share", "Answered share", {"limit_is": "min", "limit": 0.98, "observed": 0.999,
                                                  "bound": 0.994}),
        )
    ]  # fmt: skip
    document["gates"] += [
        fact("policy_before_run", "Policy fixed before the run", run="math-2"),
        fact("evidence", "Evidence can be recomputed", "not_statable", run="math-2",
             message="Evidence can be recomputed: the run left its bundle out"),
        fact("attempts", "Looks at the labels", run="math-2", unit="attempts", limit=1, observed=1),
        fact("label_age", "Age of the labels", run="math-2", unit="days", limit=180, observed=41),
    ]  # fmt: skip
    return document


def bare() -> Document:
    """What must be there and nothing else."""
    return {
        "schema": "evalkit.signoff/1",
        "name": "empty",
        "verdict": {"decision": "insufficient_evidence", "headline": "", "reasons": [], "next_step": None,
                    "uncertified": []},
        "runs": [],
        "gates": [],
        "digest": None,
    }  # fmt: skip


ATTACK = (
    "</td><script>document.title='pwned'</script><img src=x onerror=alert(1)> &lt;already escaped&gt; "
    "\u202e[x](javascript:alert(1)) {{ 7*7 }} |\x1b[31m"
)


def hostile() -> Document:
    """Every text that a file or a model can set is an attack; numbers, codes and states stay."""
    keep = {"schema", "decision", "status", "state", "unit", "limit_is", "basis", "kind", "code", "created_at"}
    document = reject()

    def poison(node: Any, key: str = "") -> Any:
        if isinstance(node, dict):
            return {k: poison(v, k) for k, v in node.items()}
        if isinstance(node, list):
            return [poison(part, key) for part in node]
        return node + ATTACK if isinstance(node, str) and key not in keep | {"verdict", "name"} else node

    poisoned = poison(copy.deepcopy(document))
    poisoned["name"] = "support" + ATTACK
    poisoned["runs"][0]["id"] = poisoned["runs"][0]["id"]
    poisoned["risk_slices"].append(poisoned["risk_slices"][0] | {"risk": ATTACK})
    for rule in poisoned["stop_rules"]:
        rule["name"] = "quality_overlaps"
    poisoned["stop_rules"].append({"name": ATTACK, "triggered": True, "detail": ATTACK, "run": ATTACK})
    poisoned["provenance"][ATTACK] = {ATTACK: ATTACK, "file": ATTACK}
    poisoned["release"][ATTACK] = ATTACK
    poisoned["changes"].append({"what": ATTACK, "before": ATTACK, "after": ATTACK, "unit": ATTACK, "kind": ATTACK})
    poisoned["gates"].append(gate(ATTACK, ATTACK, unit="share", n_is=ATTACK) | {"kind": ATTACK})
    return poisoned


def large(n: int = 100_000) -> Document:
    """A study of `n` items, put into the document by a careless writer: nothing may swell the page."""
    document = approve()
    item = document["worst_items"][0]
    document["worst_items"] = [item | {"id": f"q{i}", "text": "long text " * 400} for i in range(2000)]
    document["worst_total"] = n
    document["evidence_limits"] = [f"Limit {i}: " + "much to say " * 40 for i in range(500)]
    document["manifest"] = [
        {"path": f"runs/routing-1/{i}.json", "sha256": digest("b"), "bytes": i} for i in range(2000)
    ]
    return document


ALL = {
    "approve": approve,
    "reject": reject,
    "insufficient": insufficient,
    "many": many,
    "bare": bare,
    "hostile": hostile,
}
