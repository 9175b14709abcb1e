"""A routing study with every key, a small one, and how tests change them and read the faults found in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.study import read_study

FULL = """\
study: support-routing
kind: routing
description: Which support requests may stay on the cheap model
labels: {path: labels.csv, columns: {id: query_id, prompt: query}, encoding: cp949}
labels_kind: author_rule
outcomes: outcomes.parquet
tiers:
  - {name: cheap, model: openai/gpt-5-nano, params: {max_tokens: 400, temperature: 0.5}}
  - {name: mid, cost_usd: 0.004}
  - {name: frontier, model: anthropic/claude-opus-5, params: {max_tokens: 400}}
prices: prices.yaml
rubric: rubrics/support.yaml
missing_outcomes: unanswered
pass_at: 0.8
router:
  policy: both
  scores: {path: scores.csv, columns: {score_cheap: s1, id: query_id}}
  higher_means: needs_stronger
  trained_on: cross_fitted
  cost_usd: 0.0001
  seconds: 0.02
  thresholds: [0.41, 0.60]
  missing_scores: escalate
  probability: true
  routers: 3
risk:
  low: {under_route_loss: 0.05, max_under_route: 0.10, gate_on: estimate}
  medium: {under_route_loss: 1}
  critical: {under_route_loss: 40.0, max_under_route: 0, weight: 25}
contract_failure_cost: 0.02
limits: {min_pass_rate: 0.85, max_cost_per_request: 0.006, p95_task_seconds: 8, max_escalation: 0.95}
confidence: 0.9
looks: 2
seed: 7
near_total_escalation: 0.97
bootstrap_replicates: 10000
"""

SMALL = """\
study: small
kind: routing
labels: labels.csv
outcomes: outcomes.parquet
tiers: [{name: cheap}, {name: strong}]
router: {scores: scores.csv, higher_means: cheap_is_enough, trained_on: other_items, cost_usd: 0}
risk: {high: {under_route_loss: 1, max_under_route: 0.05}}
"""

Write = Callable[[str], Path]


def faults(path: Path) -> list[str]:
    """The messages without the folder of the test."""
    with pytest.raises(InputError) as caught:
        read_study(path)
    return [str(fault).replace(f"{path.parent}/", "") for fault in caught.value.faults]


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)
