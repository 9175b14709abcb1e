"""Tasks one by one: what more thinking breaks and what the shown arm fails, for the page; all for the file."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from evalkit.errors import redact
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.status import STATUSES
from evalkit.outcomes.table import Outcomes
from evalkit.reasoning.analysis import LadderResult
from evalkit.statistics.rounding import clean
from evalkit.workflows.reasoning_assemble import AssembledLadder

__all__ = ["task_rows", "worst_tasks"]

MOST_SHOWN = 40
TEXT_LIMIT = 2000


def worst_tasks(
    result: LadderResult, assembled: AssembledLadder, labels: LabelSet, outcomes: Outcomes
) -> tuple[list[dict[str, Any]], int]:
    """(rows for the page, how many tasks have something wrong): tasks that the shown arm passes less often than
    the first arm come first, then its other failures, the worst first; texts are cut, their length beside."""
    passed = result.tasks.passed
    shown, first = passed[:, result.shown], passed[:, 0]
    broken = np.minimum(shown - first, 0.0)
    wrong = np.flatnonzero(shown < 1.0)
    order = wrong[np.lexsort((wrong, shown[wrong], broken[wrong]))]
    rows = [_row(result, assembled, labels, outcomes, int(t), TEXT_LIMIT) for t in order[:MOST_SHOWN]]
    return rows, len(order)


def task_rows(
    result: LadderResult, assembled: AssembledLadder, labels: LabelSet, outcomes: Outcomes
) -> list[dict[str, Any]]:
    """Every task in label order, without texts: what each arm made of it, and what it cost."""
    return [_row(result, assembled, labels, outcomes, t, None) for t in range(result.data.n)]


def _row(
    result: LadderResult,
    assembled: AssembledLadder,
    labels: LabelSet,
    outcomes: Outcomes,
    t: int,
    text_limit: int | None,
) -> dict[str, Any]:
    data, tasks = result.data, result.tasks
    risk = int(data.risk[t])
    arms = {}
    for a, name in enumerate(data.arms):
        cost = tasks.cost_usd[t, a]
        arms[name] = {
            "passed": clean(float(tasks.passed[t, a])),
            "answered": clean(float(tasks.answered[t, a])),
            "runs": int(data.sampled[t, a].sum()),
            "cost_usd": None if np.isnan(cost) else clean(float(cost)),
            "task_s": _seconds(result, t, a),
            "status": _statuses(outcomes, assembled.at.get(name), t),
        }
    row: dict[str, Any] = {
        "id": labels.ids[t],
        "risk": None if risk < 0 else data.risk_classes[risk],
        "category": None if labels.category is None else labels.category[t],
        "group": None if labels.group is None else labels.group[t],
        "weight": clean(float(labels.weight[t])),
        "flags": _flags(result, t),
        "arms": arms,
    }
    if text_limit is None:
        return row
    j = assembled.at.get(data.arms[result.shown])
    reply = None if outcomes.reply is None or j is None else _failed_reply(outcomes, t, j)
    reference = None if labels.reference is None else labels.reference[t]
    prompt = labels.prompts[t]
    if prompt is None and labels.messages is not None:
        prompt = _text(labels.messages[t])
    for name, value in (("prompt", prompt), ("reply", reply), ("reference", _text(reference))):
        row[name] = None if value is None else redact(value)[:text_limit]
        if value is not None and len(value) > text_limit:
            row[f"{name}_characters"] = len(value)
    return row


def _seconds(result: LadderResult, t: int, a: int) -> float | None:
    """Mean seconds of the runs that were answered; None where none was, or a time is unknown."""
    data = result.data
    replied = data.sampled[t, a] & data.answered[t, a]
    seconds = data.task_s[t, a][replied]
    return None if not seconds.size or np.isnan(seconds).any() else clean(float(seconds.mean()))


def _flags(result: LadderResult, t: int) -> list[str]:
    """What stands out: steps that break the task, and its fate at the shown arm."""
    passed, names = result.tasks.passed[t], result.data.arms
    flags = [f"broken by {names[a]}" for a in range(1, len(names)) if passed[a] < passed[a - 1] - 1e-12]
    shown = result.shown
    if result.data.exhausted[t, shown].any():
        flags.append("budget exhausted")
    if result.data.abstained[t, shown].any():
        flags.append("declined")
    if result.tasks.answered[t, shown] < 1:
        flags.append("unanswered")
    return flags


def _failed_reply(outcomes: Outcomes, t: int, j: int) -> str | None:
    """The first reply of the arm that did not pass."""
    assert outcomes.reply is not None
    for s in np.flatnonzero(outcomes.present[t, j] & ~outcomes.passed[t, j]):
        reply = outcomes.reply.get(t, j, int(s))
        if reply is not None:
            return reply
    return None


def _statuses(outcomes: Outcomes, j: int | None, t: int) -> str | None:
    """The statuses of the runs in sample order; None for an arm that is made of other runs."""
    if j is None:
        return None
    return ", ".join(STATUSES[int(code)].value for code in outcomes.status[t, j] if code >= 0) or None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
