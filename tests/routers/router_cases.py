"""Label sets and studies for the tests of routers, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.labels.labelset import LabelSet
from evalkit.study.models import Risk, Router, RouterSpec, RoutingStudy, Source, Tier

EASY = [
    "hello",
    "thanks",
    "opening",
    "hours",
    "reset",
    "password",
    "where",
    "is",
    "my",
    "order",
    "weather",
    "menu",
    "안녕",
    "영업시간",
]
HARD = [
    "prove",
    "integral",
    "liability",
    "clause",
    "traceback",
    "deadlock",
    "indemnity",
    "derivative",
    "계약해지",
    "손해배상",
    "arbitration",
]


def labels_of(
    prompts: Sequence[str | None],
    required: Sequence[int],
    *,
    tiers: Sequence[str] = ("cheap", "strong"),
    ids: Sequence[str] | None = None,
    category: Sequence[str | None] | None = None,
    group: Sequence[str | None] | None = None,
    weight: Sequence[float] | None = None,
    messages: Sequence[Any] | None = None,
) -> LabelSet:
    n = len(prompts)
    return LabelSet(
        file="labels.jsonl",
        ids=tuple(ids or (f"q{i}" for i in range(n))),
        prompts=list(prompts),
        required=np.array(required, dtype=np.int8),
        risk=np.zeros(n, dtype=np.int16),
        weight=np.ones(n) if weight is None else np.array(weight, dtype=np.float64),
        tiers=tuple(tiers),
        risk_classes=("low",),
        category=None if category is None else tuple(category),
        group=None if group is None else tuple(group),
        messages=messages,
    )


def planted(n: int, seed: int, *, tiers: int = 2, start: int = 0, noise: float = 0.1) -> LabelSet:
    """Items whose words tell the required tier, but for a share `noise`: hard words ask for stronger tiers."""
    rng = np.random.default_rng(seed)
    required = rng.integers(0, tiers, n)
    prompts, category = [], []
    for i in range(n):
        share = required[i] / (tiers - 1)
        words = [rng.choice(HARD if rng.random() < share else EASY) for _ in range(12)]
        prompts.append(" ".join(words) + f" {start + i}")
        category.append("law" if rng.random() < 0.25 + 0.5 * share else "shop")
    flipped = rng.random(n) < noise
    required[flipped] = rng.integers(0, tiers, int(flipped.sum()))
    names = ("cheap", "strong") if tiers == 2 else tuple(f"tier{k}" for k in range(tiers))
    ids = [f"q{start + i}" for i in range(n)]
    return labels_of(prompts, required.tolist(), tiers=names, ids=ids, category=category)


def study_of(folder: Path, router: Router, tiers: Sequence[str] = ("cheap", "strong")) -> RoutingStudy:
    return RoutingStudy(
        name="planted",
        path=folder / "study.yaml",
        base=folder,
        labels=Source("labels.jsonl", folder / "labels.jsonl"),
        tiers=tuple(Tier(name) for name in tiers),
        router=router,
        risk={"low": Risk(1.0)},
        seed=7,
    )


def router_of(kind: Any, **fields: Any) -> Router:
    """A router of a kind; `path`, `function` and `options` go to its spec."""
    spec = RouterSpec(
        kind,
        str(fields.get("path", fields.get("function", ""))),
        fields.pop("path", None),
        fields.pop("function", None),
        fields.pop("options", {}),
    )
    return Router(cost_usd=Decimal(0), higher_means="needs_stronger", spec=spec, **fields)
