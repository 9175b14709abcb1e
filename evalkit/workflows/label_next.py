"""`evalkit labels next`: which unlabelled items to label next, by the bound that decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, cell, visible
from evalkit.labels.audit import draw_ids
from evalkit.labels.labelset import LabelSet
from evalkit.labels.next_labels import ClassBound, ClassQuota, quotas
from evalkit.labels.read import read_labels
from evalkit.routing.certify import class_units
from evalkit.routing.path import fixed_path
from evalkit.routing.units import demand_threshold
from evalkit.statistics.bounds import effective_n
from evalkit.study.models import RoutingStudy
from evalkit.study.routing import override, read_study
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import read_ids, repeated
from evalkit.tabular.names import quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.assemble import assemble
from evalkit.workflows.gate_policy import planned_under_policy
from evalkit.workflows.label_plan import next_budget, share_of_units
from evalkit.workflows.labels import pairs_in, show, write_summary
from evalkit.workflows.looks import looks_path, was_looked_at
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["next_labels"]

_POOL = Schema(required=("id", "risk"), optional=("score", "prompt", "messages", "category", "group", "weight"))
_BINS = 5


@dataclass(frozen=True)
class _Pool:
    """Unlabelled items: risk as a position; score NaN where there is none; weight 1 where the file has none; the
    columns to hand on."""

    ids: tuple[str, ...]
    risk: NDArray[np.int64]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]
    columns: dict[str, list[Any]]
    notices: tuple[str, ...]


def next_labels(
    study: Path,
    *,
    unlabelled: Path,
    count: int,
    threshold: Sequence[str],
    out: Path | None,
    columns: Sequence[str],
    encoding: str | None,
    seed: int | None,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Print how many items of each class to label next, and write them. Raises `InputError` with every fault."""
    if count < 1:
        raise InputError(Fault(f"{count} is below 1", "write how many items to label", field="--count"))
    read, stricter = planned_under_policy(read_study(study, files_exist=False))
    if threshold:
        read = override(read, threshold=list(threshold))
    if out is not None:
        check_table_suffix(out)
    targets = [path for path in (out, json_file) if path is not None]
    refuse_to_overwrite([study, read.labels.path, unlabelled], targets)
    source = read.labels
    labels = read_labels(
        source.address, tiers=read.tier_names, risk_classes=read.risk_classes,
        columns=dict(source.columns) or None, encoding=source.encoding,
    )  # fmt: skip
    pool = _read_pool(unlabelled, read, labels, pairs_in("--column", columns), encoding)
    budget = next_budget(read, labels.fingerprint)
    bounds, known = _bounds(read, labels, pool, fresh=budget.fresh)
    if not bounds:
        raise InputError(Fault("has no class with a limit on the bound", "set max_under_route", file=str(study)))
    found = quotas(bounds, count, budget.delta)
    seed = read.seed if seed is None else seed
    chosen: list[str] = []
    for quota in found:
        r = read.risk_classes.index(quota.bound.name)
        names = [pool.ids[int(i)] for i in np.flatnonzero(pool.risk == r)]
        chosen += draw_ids(names, quota.label, seed, quota.bound.name)
    where = {name: i for i, name in enumerate(pool.ids)}
    # Where no look is left, the labels at hand go into nothing.
    scales = None if budget.fresh else _scales(read, labels, pool, [where[name] for name in chosen])
    if out is not None:
        at = [where[name] for name in draw_ids(chosen, len(chosen), seed, "order")]
        write_table(out, {name: [values[i] for i in at] for name, values in pool.columns.items()})
    document = {
        "schema": "evalkit.labels-next/1",
        "study": read.name,
        "labels_hash": f"sha256:{labels.fingerprint}",
        "delta": budget.delta,
        "seed": seed,
        "threshold": None if read.router.thresholds is None else list(read.router.thresholds),
        "looked_at": known,
        "fresh_sample": budget.fresh,
        "classes": [quota.as_json() for quota in found],
        "weight_scales": scales,
        "ids": chosen,
    }
    if json_file is not None:
        write_summary(json_file, document)
    show(
        [] if quiet else [*_lines(read, found, out, fresh=budget.fresh, known=known), *_scale_lines(scales)],
        [*stricter, *labels.notices, *pool.notices],
    )


def _read_pool(
    file: Path, study: RoutingStudy, labels: LabelSet, columns: dict[str, str], encoding: str | None
) -> _Pool:
    faults = Faults(str(file))
    table = read_table(file, encoding=encoding, faults=faults, id_column=columns.get("id", "id"))
    if not {"risk", columns.get("risk", "risk")} & set(table.columns):
        what = f"has no column {quoted(columns.get('risk', 'risk'))}, and what to label next goes by risk class"
        fix = "name it with --column risk=COLUMN; where nobody knows it yet, label more of all traffic: "
        faults.stop(
            Fault(what, f"{fix}evalkit labels plan says how many (draw all)", file=str(file), field="risk")
        )
    names = resolve(table, _POOL, columns, faults)
    fields = Fields(table, names, faults)
    if "id" not in names or "risk" not in names:
        faults.raise_all()
    ids = read_ids(fields)
    for group in repeated(ids):
        for i in (int(k) for k in group[1:]):
            what = f"{quoted(ids[i].as_py())} also stands on {table.place(int(group[0]))}"
            faults.add(fields.fault(i, "id", what, "give each row its own id"), "repeated id")
    risk = fields.codes("risk", study.risk_classes, "risk class", blank_fix="write the risk class of the row")
    score = fields.numbers("score", nan_is_blank=True) if "score" in names else np.full(table.n_rows, np.nan)
    weight = fields.numbers("weight", minimum=0, blank="write a weight") if "weight" in names else None
    kept: dict[str, list[Any]] = {"id": list(ids.to_pylist())}
    for name in ("prompt", "messages", "risk", "category", "group", "weight"):
        if name in names:
            nested = name == "messages"
            kept[name] = fields.json_values(name) if nested else table.values(names[name])
    kept["required_tier"] = [None] * table.n_rows
    faults.raise_if_any()
    if weight is None:
        weight = np.ones(table.n_rows)
    known, notices = set(labels.ids), list(table.notices)
    at = [i for i, name in enumerate(kept["id"]) if name not in known]
    if len(at) < table.n_rows:
        notices.append(f"{file}: {table.n_rows - len(at):,} items are labelled already, and left out of the pool")
        kept = {name: [values[i] for i in at] for name, values in kept.items()}
        risk, score, weight = risk[at], score[at], weight[at]
    return _Pool(tuple(kept["id"]), risk, score, weight, kept, tuple(notices))


def _scales(study: RoutingStudy, labels: LabelSet, pool: _Pool, at: Sequence[int]) -> dict[str, float]:
    """By risk class, what its weights are to be multiplied by once the drawn items are labelled too, so that each
    class keeps the share of the traffic that it has in the labels: W / (W + w), and the largest made 1."""
    held = np.bincount(labels.risk, weights=labels.weight, minlength=len(study.risk))
    drawn = np.bincount(pool.risk[at], weights=pool.weight[at], minlength=len(study.risk))
    total = held + drawn
    scale = np.divide(held, total, out=np.ones_like(total), where=total > 0)
    scale /= max(float(scale.max()), np.finfo(float).tiny)
    return {name: float(f"{scale[r]:.6g}") for r, name in enumerate(study.risk)}


def _scale_lines(scales: Mapping[str, float] | None) -> list[str]:
    if scales is None:
        return ["A fresh sample needs every class by its traffic: evalkit labels sample draws one."]
    if len(set(scales.values())) < 2:
        return []
    said = ", ".join(f"{visible(name, 60)} {scale:.6g}" for name, scale in scales.items())
    return [
        "These draw the classes unequally. Once they are labelled, multiply all weights of a class, old and new "
        f"items, so that it keeps its share of the traffic: {said}"
    ]


def _bounds(study: RoutingStudy, labels: LabelSet, pool: _Pool, *, fresh: bool) -> tuple[list[ClassBound], bool]:
    """(each class with a limit on the bound: what its labels hold, and what an item of its pool adds; whether the
    bounds are at the fixed threshold).

    What is under-routed there is told only where a look showed it: labelled on until it suits, the bound would be
    passed by chance. Elsewhere none is taken to be.
    """
    scores = _scores(study, labels)
    data = assemble(study, labels, None, scores, None).data
    levels = np.ones((data.n, data.k - 1))
    known = study.router.thresholds is not None and data.demand is not None and _shown(study, labels, scores)
    if known and study.router.thresholds is not None and data.demand is not None:
        demand = data.demand[:, 0] if data.demand.ndim == 2 and data.demand.shape[1] == 1 else data.demand
        up = study.router.higher_means != "cheap_is_enough"
        levels = fixed_path(demand, [demand_threshold(t, up) for t in study.router.thresholds]).levels
    certifying = share_of_units(study)
    held, along = data, levels
    if certifying < 1 and data.direction is not None and (~data.direction).any():
        held, along = data.subset(~data.direction), levels[~data.direction]
    own = None if scores is None else scores.score
    out = []
    for r, (name, rule) in enumerate(study.risk.items()):
        if not rule.certified or rule.max_under_route is None:
            continue
        level, weight = class_units(held, along, r)
        n = 0.0 if fresh else effective_n(weight)
        share = float(weight[level < 1.0].sum() / weight.sum()) if len(weight) else 0.0
        mine = data.risk == r
        waiting = pool.risk == r
        rate = _yield(data.needs[mine], None if own is None else own[mine], pool.score[waiting])
        if rate is not None and len(weight):
            rate *= certifying * effective_n(weight) / len(weight)
        out.append(ClassBound(name, rule.max_under_route, n, share * n, int(waiting.sum()), rate))
    return out, known


def _shown(study: RoutingStudy, labels: LabelSet, scores: Any) -> bool:
    """These scores of these labels were looked at: a report has every threshold's figures."""
    parts = {"labels": labels.fingerprint, "scores": scores.fingerprint}
    return was_looked_at(looks_path(study.labels.path or study.path), parts)


def _scores(study: RoutingStudy, labels: LabelSet) -> Any:
    from evalkit.outcomes.scores import read_scores

    source = study.router.scores
    if source is None or (source.path is not None and not source.path.exists()):
        return None
    return read_scores(
        source.address, ids=labels.ids, tiers=study.tier_names, cascade=study.router.policy != "direct",
        columns=dict(source.columns) or None, encoding=source.encoding, missing=study.router.missing_scores,
        probability=study.router.probability,
    )  # fmt: skip


def _yield(
    needs: NDArray[np.bool_], own: NDArray[np.float64] | None, waiting: NDArray[np.float64]
) -> float | None:
    """Needs that one item of the pool adds: the share among the labelled items of the class or, where both have
    scores, of its fifth by score. A forecast only; it never chooses an item."""
    if not len(needs):
        return None
    plain = float(needs.mean())
    known = ~np.isnan(waiting)
    if own is None or np.isnan(own).any() or not known.any() or len(needs) < 4 * _BINS:
        return plain
    edges = np.quantile(own, np.linspace(0, 1, _BINS + 1)[1:-1])
    of_label, of_pool = (
        np.searchsorted(edges, own, side="right"),
        np.searchsorted(edges, waiting[known], side="right"),
    )
    count = np.bincount(of_label, minlength=_BINS)
    rate = np.where(count > 0, np.bincount(of_label, weights=needs, minlength=_BINS) / np.maximum(count, 1), plain)
    return float((rate[of_pool].sum() + plain * (~known).sum()) / len(waiting))


def _lines(
    study: RoutingStudy, found: Sequence[ClassQuota], out: Path | None, *, fresh: bool, known: bool
) -> list[str]:
    lines = [f"{study.name}: {sum(q.label for q in found):,} items to label next"]
    if fresh:
        lines.append("No look at these labels is left: they count for nothing, and only a fresh sample certifies.")
    lines.append(f"{'risk':<16}{'limit':>8}{'needs':>8}{'pool':>8}{'bound now':>11}{'label':>8}{'bound then':>12}")
    for quota in found:
        bound = quota.bound
        then = "-" if quota.upper_then is None else f"{100 * quota.upper_then:.3g} %"
        limit, now = f"{100 * bound.limit:.3g} %", f"{100 * quota.upper_now:.3g} %"
        lines.append(
            f"{cell(bound.name, 16)}{limit:>8}{bound.needs:>8,.0f}{bound.pool:>8,}{now:>11}"
            f"{quota.label:>8,}{then:>12}"
        )
    at = "at the fixed threshold" if known else "if none of them is under-routed"
    lines.append(f"bound: on the under-route rate {at}; then: as expected, not promised")
    if study.router.thresholds is not None and not known:
        lines.append(
            "What is under-routed at the threshold is not told before evalkit route-sweep: that is a look."
        )
    lines.append("Within a class at random: items chosen by score would make the bound small for no reason.")
    if out is not None:
        lines.append(f"{out}: the items, in a random order, with an empty required_tier")
    return lines
