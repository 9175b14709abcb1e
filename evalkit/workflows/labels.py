"""`evalkit labels`: read, summarise or derive, print, write."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.labels.base import read_base
from evalkit.labels.read import read_labels
from evalkit.labels.summary import summarise, summary_lines
from evalkit.outcomes.derive import derived_columns
from evalkit.outcomes.read import read_outcomes
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.write import check_table_suffix, write_atomic, write_table
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["check_labels", "derive_labels", "names_in", "pairs_in", "say_at_work", "show", "write_summary"]

_LARGE_BYTES = 10_000_000
"""Files from here on take long enough to say that they are being worked on."""


def pairs_in(option: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` options as a mapping. Raises `InputError` for one without `=`, or a name given twice."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = nfc(name.strip())
        if not equals or not name or not value:
            raise InputError(
                Fault(f"{quoted(text)} is not of the form NAME=VALUE", f"write {option} NAME=VALUE", field=option)
            )
        if name in found:
            raise InputError(Fault(f"names {quoted(name)} twice", "name it once", field=option))
        found[name] = value
    return found


def names_in(option: str, text: str | None, least: int = 1) -> tuple[str, ...]:
    """A comma-separated list of names, each once."""
    names = [nfc(part.strip()) for part in (text or "").split(",")]
    if len(names) < least or not all(names):
        few = f" of {least} or more" if least > 1 else ""
        what = f"{quoted(text or '')} is not a list of names{few}"
        raise InputError(Fault(what, f"write {option} a,b,c", field=option))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(Fault(f"names {quoted(twice[0])} twice", "name it once", field=option))
    return tuple(names)


def check_labels(
    file: str,
    *,
    study: Path | None,
    tiers: str | None,
    risk_classes: str | None,
    columns: Sequence[str],
    encoding: str | None,
    drop_identical: bool,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Read the labels; summary to stdout, notices to stderr. Raises `InputError` with every fault."""
    mapping = pairs_in("--column", columns)
    if study is not None:
        from evalkit.study.routing import read_study

        read = read_study(study, files_exist=False)  # outcomes and scores may come later
        tier_names = tuple(tier.name for tier in read.tiers)
        classes = tuple(read.risk)
        mapping = {**read.labels.columns, **mapping}
        encoding = encoding or read.labels.encoding
    else:
        if tiers is None or risk_classes is None:
            raise InputError(
                Fault("nothing says the tiers and risk classes", "give --study, or --tiers and --risk-classes")
            )
        tier_names = names_in("--tiers", tiers)
        classes = names_in("--risk-classes", risk_classes)
    labels = read_labels(
        file,
        tiers=tier_names,
        risk_classes=classes,
        columns=mapping,
        encoding=encoding,
        drop_identical=drop_identical,
    )
    if json_file is not None:
        refuse_to_overwrite([study, None if file.startswith("hf://") else Path(file)], [json_file])
    summary = summarise(labels)
    if json_file is not None:
        write_summary(json_file, summary.as_json())
    show([] if quiet else summary_lines(summary), summary.notices)


def derive_labels(
    outcomes: Path,
    *,
    tiers: str,
    out: Path,
    labels: Path | None,
    risk: str | None,
    columns: Sequence[str],
    encoding: str | None,
    pass_at: float,
    missing: str,
    quiet: bool,
) -> None:
    """Read outcomes (and items), derive required tiers, write them. Raises `InputError` with all faults."""
    names = names_in("--tiers", tiers, least=2)
    check_table_suffix(out)
    refuse_to_overwrite([outcomes, labels], [out])
    if missing not in {"error", "unanswered"}:
        raise InputError(
            Fault(f"{quoted(missing)} is neither error nor unanswered", "write one of them", field="--missing")
        )
    if not (math.isfinite(pass_at) and 0 < pass_at <= 1):
        raise InputError(
            Fault(f"{pass_at} is not above 0 and at most 1", "write a number of that range", field="--pass-at")
        )
    base = None if labels is None else read_base(labels, encoding=encoding)
    found = read_outcomes(
        outcomes,
        ids=None if base is None else base.ids,
        tiers=names,
        columns=pairs_in("--column", columns),
        encoding=encoding,
        pass_at=pass_at,
        missing=cast('Literal["error", "unanswered"]', missing),
        unknown="notice",
    )
    table = derived_columns(found, base, risk)
    write_table(out, table)
    counts = Counter(table["required_tier"])
    lines = [f"{out}: {len(found.ids):,} items; required tiers are derived, not judged by people"]
    lines += [f"  {name}: {counts.get(name, 0):,}" for name in (*names, "unsolvable")]
    if found.status.shape[2] > 1:
        lines.append(f"  up to {found.status.shape[2]} samples an item: a tier passes when every sample did")
    show([] if quiet else lines, [*(base.notices if base else ()), *found.notices])


def show(lines: Sequence[str], notices: Sequence[str]) -> None:
    """Print results on stdout and notices on stderr, as safe text."""
    for line in lines:
        said = visible(line, 2000)
        print(said if ": evalkit " in said else fitted(said, sys.stdout))  # a command is pasted as it is
    for notice in notices:
        print(fitted(f"notice: {visible(notice, 2000)}", sys.stderr), file=sys.stderr)


def say_at_work(doing: str, files: Sequence[Path], *, quiet: bool) -> None:
    """Tell somebody at a terminal what a command that works for long on large files is doing."""
    size = sum(path.stat().st_size for path in files if path.is_file())
    if not quiet and size >= _LARGE_BYTES and sys.stderr.isatty():
        named = visible(files[0].name, 60) if len(files) == 1 else f"{len(files):,} files"
        print(fitted(f"{doing} {named} ({size / 1e6:,.0f} MB)", sys.stderr), file=sys.stderr, flush=True)


def write_summary(path: Path, document: Mapping[str, Any]) -> None:
    """What a command found, as strict JSON."""
    write_atomic(path, json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
