"""Items one by one: the worst of them for the page, all of them for the file beside it."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import numpy as np

from evalkit.errors import redact
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.scores import Scores
from evalkit.outcomes.status import STATUSES
from evalkit.outcomes.table import Outcomes
from evalkit.routing.analysis import RoutingResult
from evalkit.routing.data import Floats
from evalkit.routing.points import clean
from evalkit.signoff.redacted import redacted

__all__ = ["item_rows", "items_gz", "worst_items"]

MOST_SHOWN = 40
TEXT_LIMIT = 2000


def _losses(result: RoutingResult) -> Floats:
    """(N,) what each item adds to the routing loss where it was sent, traffic-weighted; unknown parts count 0."""
    measures = result.measures
    parts = measures.under_loss_usd.copy()
    for values in (measures.excess_usd, measures.contract_usd):
        if values is not None:
            parts += np.nan_to_num(values)
    at = np.take_along_axis(parts, result.tier[:, None].astype(np.int64), axis=1)[:, 0]
    return at * measures.data.weight


def _seconds(result: RoutingResult) -> Floats:
    """(N,) seconds of each item's path where it was sent, the mean over answered samples; NaN where none was
    answered or a time is unknown."""
    data, task = result.measures.data, result.measures.costs.task_s
    if task is None or data.replied is None:
        return np.full(data.n, np.nan)
    at = result.tier.astype(np.int64)[:, None, None]
    seconds, replied = (np.take_along_axis(values, at, axis=1)[:, 0] for values in (task, data.replied))
    count = replied.sum(axis=1)
    total = np.where(replied, seconds, 0.0).sum(axis=1)
    mean: Floats = np.divide(total, count, out=np.full(data.n, np.nan), where=count > 0)
    return mean


def _flags(result: RoutingResult, i: int) -> list[str]:
    data, j = result.measures.data, int(result.tier[i])
    flags = []
    if result.measures.under[i, j]:
        flags.append("under_routed")
    if result.measures.over[i, j]:
        flags.append("unnecessary_escalation")
    if data.contract_failed is not None and data.contract_failed[i, j] > 0:
        flags.append("contract_failure")
    if data.answered is not None and data.answered[i, j] < 1:
        flags.append("unanswered")
    if data.passed is not None and data.answered is not None and data.passed[i, j] < data.answered[i, j]:
        flags.append("wrong")
    if data.required[i] == data.k:
        flags.append("unsolvable")
    return flags


def worst_items(
    result: RoutingResult, labels: LabelSet, outcomes: Outcomes | None, scores: Scores | None
) -> tuple[list[dict[str, Any]], int]:
    """(rows for the page, how many items have something wrong): under-routed first by loss, then other losses,
    then failures; texts cut at TEXT_LIMIT characters with their full length beside them."""
    data = result.measures.data
    at = np.arange(data.n), result.tier.astype(np.int64)
    loss = _losses(result)
    under = result.measures.under[at]
    failed = np.zeros(data.n) if data.passed is None else 1.0 - data.passed[at]
    wrong = np.flatnonzero(under | (loss > 0) | (failed > 0))
    order = wrong[np.lexsort((wrong, -failed[wrong], -loss[wrong], ~under[wrong]))]
    each = loss, _seconds(result)
    rows = [_row(result, labels, outcomes, scores, each, int(i), TEXT_LIMIT) for i in order[:MOST_SHOWN]]
    return rows, len(order)


def item_rows(
    result: RoutingResult, labels: LabelSet, outcomes: Outcomes | None, scores: Scores | None
) -> list[dict[str, Any]]:
    """Every item in label order, without texts: its decision, outcome, cost, time and flags."""
    each = _losses(result), _seconds(result)
    return [_row(result, labels, outcomes, scores, each, i, None) for i in range(len(labels))]


def items_gz(rows: list[dict[str, Any]]) -> bytes:
    """The rows as gzipped JSON lines, with what looks like a key or password hidden; the same rows give the same
    bytes."""
    texts = "\n".join({str(row.get(name)) for row in rows for name in ("id", "category", "group")})
    if redact(texts) != texts:
        rows = [redacted(row) for row in rows]
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8"))
    return buffer.getvalue()


def _row(
    result: RoutingResult,
    labels: LabelSet,
    outcomes: Outcomes | None,
    scores: Scores | None,
    each: tuple[Floats, Floats],
    i: int,
    text_limit: int | None,
) -> dict[str, Any]:
    data, j = result.measures.data, int(result.tier[i])
    loss, seconds = each
    usd = result.measures.costs.usd
    cost = None if usd is None or np.isnan(usd[i, j]) else clean(float(usd[i, j]))
    row: dict[str, Any] = {
        "id": labels.ids[i],
        "category": None if labels.category is None else labels.category[i],
        "group": None if labels.group is None else labels.group[i],
        "risk": data.risk_classes[int(data.risk[i])],
        "required_tier": labels.required_name(i),
        "routed_tier": data.tiers[j],
        "score": _score(scores, i),
        "weight": clean(float(labels.weight[i])),
        "loss_usd": clean(float(loss[i])),
        "cost_usd": cost,
        "task_s": None if np.isnan(seconds[i]) else clean(float(seconds[i])),
        "flags": _flags(result, i),
        "status": None,
        "passed": None if data.passed is None else clean(float(data.passed[i, j])),
    }
    if outcomes is not None:
        row["status"] = _statuses(outcomes, i, j)
    if text_limit is None:
        return row
    row["model"] = None if outcomes is None else _model(outcomes, i, j)
    texts = {
        "prompt": _prompt(labels, i),
        "reply": None if outcomes is None or outcomes.reply is None else outcomes.reply.get(i, j),
        "reference": None if labels.reference is None else _text(labels.reference[i]),
    }
    for name, value in texts.items():
        row[name] = None if value is None else redact(value)[:text_limit]
        if value is not None and len(value) > text_limit:
            row[f"{name}_characters"] = len(value)
    return row


def _model(outcomes: Outcomes, i: int, j: int) -> str | None:
    """The model of the item's first sample at a tier; None where its row names none."""
    code = int(outcomes.model_code[i, j, 0])
    return None if code < 0 else outcomes.model[j][code]


def _statuses(outcomes: Outcomes, i: int, j: int) -> str | None:
    """The status of the item's samples at a tier; several are joined in sample order."""
    codes = [int(code) for code in outcomes.status[i, j] if code >= 0]
    return ", ".join(STATUSES[code].value for code in codes) or None


def _prompt(labels: LabelSet, i: int) -> str | None:
    if labels.prompts[i] is not None:
        return labels.prompts[i]
    return None if labels.messages is None else _text(labels.messages[i])


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _score(scores: Scores | None, i: int) -> float | None:
    """The score as the user gave it; with one a tier, the cheapest tier's."""
    if scores is None:
        return None
    values = scores.score if scores.score is not None else next(iter(scores.by_tier.values()))
    return None if np.isnan(values[i]) else float(values[i])
