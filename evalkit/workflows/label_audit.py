"""`evalkit labels audit`: draw items for a second look, and carry what it finds into the bounds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError, cell, visible
from evalkit.labels.audit import ClassAudit, audit_class, draw_ids
from evalkit.labels.read import read_labels
from evalkit.routing.audited import audited_class
from evalkit.routing.data import AuditCounts, LabelAudit, RoutingData
from evalkit.routing.search import certified_selection
from evalkit.statistics.bounds import upper_bound
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import RoutingStudy
from evalkit.study.routing import override, read_study
from evalkit.tabular.faults import listed
from evalkit.tabular.names import quoted
from evalkit.tabular.write import check_table_suffix, write_atomic, write_table
from evalkit.workflows.assemble import settings_of
from evalkit.workflows.label_audit_draw import AuditPoint, Drawn, draw_classes, point_at, point_everywhere
from evalkit.workflows.label_audit_file import (
    SCHEMA,
    audit_fingerprint,
    missed_of,
    scored_hash,
    tier_words,
    wrong_of,
)
from evalkit.workflows.labels import show, write_summary
from evalkit.workflows.looks import Look
from evalkit.workflows.provenance import utc_now
from evalkit.workflows.route_sweep import Inputs, audit_look, look_at, read_inputs
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["audit_labels", "draw_path", "point_of"]

_DRAW = "evalkit.labels-audit-draw/1"
_NOT_LOOKED_AT = (
    "Labels above the cheapest tier, unsolvable among them, are taken as right; an error between two of them is "
    "not looked for."
)
_UNSOLVABLE = "Items labelled as unsolvable are taken as right."
_LIMITS = (
    "The ratio of cheap labels to needs is taken as it is in the labels.",
    "The rate and the audit of a class spend half of delta each.",
)
_POINT_ALONE = "The bounds hold at this point, and at points where more goes up."
_EVERYWHERE = "No item is taken to go up, so the share of missed needs holds at every threshold of every router."


def draw_path(out: Path) -> Path:
    """Where the record of a draw stands: beside the file that is to be judged."""
    return out.with_name(out.name + ".draw.json")


def point_of(inputs: Inputs, look: Look) -> AuditPoint:
    """The fixed point of the study, or the one that it selects, or its candidate. `InputError` without one."""
    study, data = inputs.study, inputs.assembled.data
    if study.routers:
        what = "lists several routers, and the audit of a point is of one"
        raise InputError(Fault(what, "audit all cheap labels: --all", file=str(study.path), field="routers"))
    if inputs.decisions is not None:
        return point_at(study, data, None, inputs.decisions.routed)
    thresholds = study.router.thresholds
    if thresholds is None:
        if study.router.policy == "both":
            what = "compares two policies, and the audit needs one point"
            raise InputError(Fault(what, "name it: --threshold T", file=str(study.path), field="router.policy"))
        delta = None if look.delta is None else look.delta / study.router.routers
        found = certified_selection(data, settings_of(study, study.router.policy, delta))
        thresholds = found.selected or found.candidate
        if thresholds is None:
            what = "no threshold keeps every limit as observed, so nothing would go cheap"
            fix = "see evalkit route-sweep, or name a point with --threshold"
            raise InputError(Fault(what, fix, file=str(study.path)))
    return point_at(study, data, thresholds)


def audit_labels(
    study: Path,
    *,
    threshold: Sequence[str],
    everywhere: bool = False,
    out: Path | None,
    judged: Path | None,
    per_class: int,
    needs_per_class: int = 0,
    seed: int | None,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Draw (`out`), or read what was drawn back (`judged`). Raises `InputError` with every fault."""
    if (out is None) == (judged is None):
        raise InputError(Fault("one of --out and --judged is needed", "draw with --out, read back with --judged"))
    if needs_per_class < 0:
        what = f"{needs_per_class} is below 0"
        raise InputError(Fault(what, "write how many to draw a class", field="--needs-per-class"))
    if per_class < 1:
        raise InputError(Fault(f"{per_class} is below 1", "write how many to draw a class", field="--per-class"))
    if judged is not None:
        record = _read_draw(draw_path(judged))
        threshold, everywhere = record["threshold_option"], record["everywhere"]
        per_class, seed = record["per_class"], record["seed"]
        needs_per_class = record["needs_per_class"]
    if everywhere and threshold:
        raise InputError(
            Fault("is given with --all, which audits no threshold", "leave one out", field="--threshold")
        )
    read = _without_audit(_study(study))
    if threshold:
        read = override(read, threshold=list(threshold))
    inputs = read_inputs(read)
    files = [study, inputs.study.labels.path]
    seed = read.seed if seed is None else seed
    if out is not None:
        check_table_suffix(out)
        refuse_to_overwrite(files, [out, draw_path(out), *([json_file] if json_file else [])])
    elif json_file is not None:
        refuse_to_overwrite([*files, judged], [json_file])
    # All cheap labels are known without a look at what a router does with them.
    look = look_at(inputs, utc_now(), book=not everywhere, auditing=True)
    data = inputs.assembled.data
    point = point_everywhere(read, data) if everywhere else point_of(inputs, look)
    head: dict[str, Any] = {
        "study": read.name,
        "study_hash": f"sha256:{read.fingerprint.removeprefix('sha256:')}",
        "labels_hash": f"sha256:{inputs.labels.fingerprint.removeprefix('sha256:')}",
        "scores_hash": None if everywhere else scored_hash(inputs.scores, inputs.decisions),
        "everywhere": everywhere,
        "thresholds": None if point.thresholds is None else list(point.thresholds),
        "rule": read.router.rule,
        "threshold_option": list(threshold),
        "per_class": per_class,
        "needs_per_class": needs_per_class,
        "seed": seed,
    }
    about: dict[str, Any] = {"needs_per_class": needs_per_class, "labels_hash": head["labels_hash"]}
    drawn = draw_classes(inputs.study, inputs.labels.ids, data, point, per_class, seed, **about)
    if out is not None:
        delta = _spent_by(look, read)
        _write_draw(inputs, out, head, drawn)
        forecast = [_bounds(data, d, 0, 0, delta) for d in drawn]
        of_needs = sum(len(d.need_ids) for d in drawn)
        told = [*_draw_lines(out, point, forecast, of_needs), *_commands(study, read, out)]
        show([] if quiet else told, inputs.notices)
        return
    assert judged is not None
    _check_draw(record, head, drawn, judged)
    said, fingerprint = _judged(inputs, drawn, judged)
    place = {name: i for i, name in enumerate(inputs.labels.ids)}
    top = len(read.tiers)
    missed = {d.counts.name: missed_of(d, point, place, said, top) for d in drawn}
    required = {name: int(data.required[at]) for name, at in place.items()}
    wrong = {d.counts.name: wrong_of(d, required, said, top) for d in drawn}
    words = tier_words(read)
    rows: list[dict[str, Any]] = [
        {
            "risk": d.counts.name,
            "judged": {name: words[said[name]] for name in sorted(d.ids)},
            "judged_needs": {name: words[said[name]] for name in sorted(d.need_ids)},
        }
        for d in drawn
    ]
    look = audit_look(inputs, audit_fingerprint({**head, "classes": rows}), utc_now())
    delta = _spent_by(look, read)
    audits = [_bounds(data, d, len(missed[d.counts.name]), len(wrong[d.counts.name]), delta) for d in drawn]
    document = {
        "schema": SCHEMA,
        **head,
        "judged_hash": f"sha256:{fingerprint}",
        "delta": delta,
        "look": look.number,
        "certifies": look.delta is not None,
        "classes": [
            {
                **a.as_json(),
                "within_limit": _kept(a, everywhere=everywhere),
                "missed_ids": missed[a.counts.name],
                "need_labels": d.need_labels,
                "needs_audited": len(d.need_ids),
                "needs_wrong": len(wrong[a.counts.name]),
                "wrong_ids": wrong[a.counts.name],
                **row,
            }
            for a, d, row in zip(audits, drawn, rows, strict=True)
        ],
        "limits": [*_limits(drawn), _EVERYWHERE if everywhere else _POINT_ALONE],
    }
    if json_file is not None:
        write_summary(json_file, document)
    lines = _judged_lines(audits, missed, delta, look, everywhere=everywhere)
    if json_file is None:
        lines.append(
            "Nothing is kept of this: with --json audit.json it can be named in the study, audit: audit.json"
        )
    for d in drawn:
        if d.need_ids:
            count = len(wrong[d.counts.name])
            lines.append(
                f"{visible(d.counts.name, 60)}: {count:,} of {len(d.need_ids):,} drawn needs are labelled wrongly"
            )
    show([] if quiet else lines, inputs.notices)


def _spent_by(look: Look, study: RoutingStudy) -> float:
    """The error rate of one router's certificate, as if the look had its first share where it has none."""
    return (1.0 - study.confidence if look.delta is None else look.delta) / study.shared


def _limits(drawn: Sequence[Drawn]) -> list[str]:
    """What the audit does not cover."""
    looked = all(len(d.need_ids) > 0 for d in drawn if d.need_labels)
    return [_UNSOLVABLE if looked else _NOT_LOOKED_AT, *_LIMITS]


def _bounds(data: RoutingData, drawn: Drawn, missed: int, wrong: int, delta: float) -> ClassAudit:
    """The bounds of one class, as the certificate carries them."""
    counts, audited = drawn.counts, len(drawn.ids)
    plain = audit_class(counts, audited, missed, delta)
    held = AuditCounts(
        counts.cheap_labels, audited, missed, counts.scale, drawn.need_labels, len(drawn.need_ids), wrong
    )
    one = replace(data, audit=LabelAudit((held,), np.zeros(data.n, dtype=np.int8)))
    found = audited_class(one, 0, counts.needs, delta)
    if found is None or not drawn.need_ids:
        return plain
    rate = None if audited == 0 else upper_bound(missed, audited, 1.0 - delta / 4.0)
    share = plain.missed_share_upper if found.grouped or plain.missed_share_upper is None else found.share
    return replace(
        plain,
        missed_rate_upper=rate,
        missed_items_upper=None if rate is None else rate * counts.cheap_labels * counts.scale,
        missed_share_upper=share,
        upper=found.bound(counts.under_routed),
    )


def _write_draw(inputs: Inputs, out: Path, head: dict[str, Any], drawn: Sequence[Drawn]) -> None:
    """The file to judge, in a random order and without the label that is audited, and the record of the draw."""
    labels = inputs.labels
    where = {name: i for i, name in enumerate(labels.ids)}
    both = [name for d in drawn for name in (*d.ids, *d.need_ids)]
    names = draw_ids(both, len(labels), head["seed"], "order")
    at = [where[name] for name in names]
    columns: dict[str, list[Any]] = {"id": names}
    prompts = [labels.prompts[i] for i in at]
    if any(p is not None for p in prompts):
        columns["prompt"] = list(prompts)
    if labels.messages is not None:
        columns["messages"] = [labels.messages[i] for i in at]
    columns["risk"] = [labels.risk_names[i] for i in at]
    if labels.category is not None:
        columns["category"] = [labels.category[i] for i in at]
    columns["required_tier"] = [None] * len(at)
    write_table(out, columns)
    record = {
        "schema": _DRAW,
        **head,
        "classes": [_drawn_row(d) for d in drawn],
    }
    write_atomic(draw_path(out), json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def _drawn_row(drawn: Drawn) -> dict[str, Any]:
    """One class in the record of a draw."""
    return {
        "risk": drawn.counts.name,
        "cheap_labels": drawn.counts.cheap_labels,
        "drawn": sorted(drawn.ids),
        "needs_drawn": sorted(drawn.need_ids),
    }


def _read_draw(path: Path) -> dict[str, Any]:
    fix = "keep the record of the draw beside the judged file, under its name with .draw.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(Fault("there is no record of a draw", fix, file=str(path))) from None
    except (OSError, ValueError, RecursionError):
        raise InputError(Fault("the record of the draw cannot be read", fix, file=str(path))) from None
    sound = isinstance(record, dict) and record.get("schema") == _DRAW
    sound = sound and all(type(record.get(key)) is int for key in ("seed", "per_class", "needs_per_class"))
    sound = sound and isinstance(record.get("everywhere"), bool)
    given = record.get("threshold_option") if sound else None
    sound = sound and isinstance(given, list) and all(isinstance(t, str) for t in given)
    if not sound or record["per_class"] < 1:
        raise InputError(Fault("is no record of a draw", fix, file=str(path)))
    return dict(record)


def _check_draw(record: dict[str, Any], head: dict[str, Any], drawn: Sequence[Drawn], judged: Path) -> None:
    """What was drawn then must be what is drawn now: from the same labels, at the same point."""
    file, faults = str(draw_path(judged)), []
    for key, what in (("labels_hash", "labels"), ("study_hash", "study"), ("thresholds", "threshold")):
        if record.get(key) != head[key]:
            faults.append(Fault(f"was drawn for another {what} than the study has now",
                                "draw again with --out, and judge that", file=file, field=key))  # fmt: skip
    wanted = [_drawn_row(d) for d in drawn]
    if not faults and record.get("classes") != wanted:
        what = "does not hold the items that its seed draws"
        faults.append(
            Fault(what, "draw again with --out; items are not chosen by hand", file=file, field="classes")
        )
    if faults:
        raise InputError(faults)


def _judged(inputs: Inputs, drawn: Sequence[Drawn], judged: Path) -> tuple[dict[str, int], str]:
    """The judged tier of each drawn item, as a code, and the fingerprint of the file; all must be judged."""
    study: RoutingStudy = inputs.study
    found = read_labels(str(judged), tiers=study.tier_names, risk_classes=study.risk_classes)
    asked = {name for d in drawn for name in (*d.ids, *d.need_ids)}
    faults = []
    absent = sorted(asked - set(found.ids))
    if absent:
        fix = "judge every item that was drawn; one left out would make the bound too good"
        what = f"{len(absent):,} drawn items are missing: {listed([quoted(n) for n in absent])}"
        faults.append(Fault(what, fix, file=str(judged), field="id"))
    more = sorted(set(found.ids) - asked)
    if more:
        what = f"{len(more):,} items were not drawn: {listed([quoted(n) for n in more])}"
        faults.append(Fault(what, "leave them out", file=str(judged), field="id"))
    if faults:
        raise InputError(faults)
    return {name: int(tier) for name, tier in zip(found.ids, found.required, strict=True)}, found.fingerprint


def _study(path: Path) -> RoutingStudy:
    """The study, which may name the audit that is about to be made."""
    try:
        return read_study(path)
    except InputError as error:
        if any(fault.field != "audit" for fault in error.faults):
            raise
    return read_study(path, files_exist=False)


def _without_audit(study: RoutingStudy) -> RoutingStudy:
    """The study as it is audited: one that names an audit can be audited again."""
    plain = replace(study, audit=None)
    return replace(plain, fingerprint=study_fingerprint(plain))


def _draw_lines(out: Path, point: AuditPoint, forecast: Sequence[ClassAudit], needs: int) -> list[str]:
    at = "below the strongest tier at the judged decisions"
    if point.thresholds is not None:
        at = "below the strongest tier at threshold " + ", ".join(map(repr, point.thresholds))
    if point.everywhere:
        at = "wherever a router sends them"
    total = sum(a.audited for a in forecast)
    lines = [f"{out}: {total:,} items to judge again, labelled cheap, {at}"]
    if needs:
        lines.append(f"and {needs:,} labelled as needs")
    lines.append(f"{'risk':<16}{'cheap labels':>13}{'drawn':>7}{'limit':>8}  bound if none is missed")
    for audit in forecast:
        bound = f"{_percent(audit.upper)} (without an audit {_percent(audit.upper_unaudited)})"
        lines.append(
            f"{cell(audit.counts.name, 16)}{audit.counts.cheap_labels:>13,}{audit.audited:>7,}"
            f"{_percent(audit.counts.limit):>8}  {bound}"
        )
    lines.append(
        "Fill in required_tier without looking at the old label, in the file or on the page, and read it back."
    )
    return lines


def _commands(study: Path, read: RoutingStudy, out: Path) -> list[str]:
    """What to do with the file that was drawn."""
    names = ["--tiers", ",".join(read.tier_names), "--risk-classes", ",".join(read.risk_classes)]
    page = shlex.join(["evalkit", "label", str(out), *names, "--annotator", "NAME", "--out", "NAME.jsonl"])
    back = shlex.join(["evalkit", "labels", "audit", str(study), "--judged", str(out), "--json", "audit.json"])
    return [f"page: {page}", f"read back: {back}"]


def _kept(audit: ClassAudit, *, everywhere: bool) -> bool | None:
    """Whether the limit is kept; of all cheap labels, which speak of no router, only that it cannot be."""
    return None if everywhere and audit.within_limit else audit.within_limit


def _judged_lines(
    audits: Sequence[ClassAudit], missed: dict[str, list[str]], delta: float, look: Look, *, everywhere: bool
) -> list[str]:
    lines = [f"{'risk':<16}{'audited':>8}{'missed':>7}{'of needs':>10}{'bound':>9}{'without':>9}{'limit':>8}"]
    for audit in audits:
        kept = {True: "  kept", False: "  NOT KEPT", None: ""}[_kept(audit, everywhere=everywhere)]
        kept = "  estimate" if audit.counts.on_estimate else kept
        lines.append(
            f"{cell(audit.counts.name, 16)}{audit.audited:>8,}{audit.missed:>7,}"
            f"{_percent(audit.missed_share_upper):>10}{_percent(audit.upper):>9}{_percent(audit.upper_unaudited):>9}"
            f"{_percent(audit.counts.limit):>8}{kept}"
        )
    at = ", if no labelled need is under-routed" if everywhere else ""
    lines.append(f"of needs: at most this share of the true needs is labelled cheap; bound: on the true rate{at}")
    if any(audit.counts.on_estimate for audit in audits):
        lines.append("estimate: judged on what was seen (gate_on), whatever the bound")
    lines.append(f"delta {delta:.4g}, half for the rate and half for the audit")
    if look.delta is None:
        lines.append(
            f"This audit is look {look.number} at these labels and {look.declared} declared: it certifies nothing."
        )
    elif everywhere:
        lines.append(
            f"It counts as look {look.number} of {look.declared} declared, and so does the study that names it."
        )
    for name, ids in missed.items():
        if ids:
            lines.append(f"{name}: missed needs {listed(ids)}; put their labels right (that is a new look)")
    return lines


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"
