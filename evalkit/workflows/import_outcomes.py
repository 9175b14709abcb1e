"""`evalkit import`: read another tool's file, write outcomes (and items), say what could not be mapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evalkit.errors import Fault, InputError
from evalkit.outcomes.importers.build import Imported, Measure
from evalkit.outcomes.importers.long import LongColumns, import_long
from evalkit.outcomes.importers.matrix import MatrixKeys, import_matrix
from evalkit.outcomes.importers.wide import FILE_STEM, Exclude, WideColumns, import_wide
from evalkit.tabular.faults import listed
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.labels import names_in, pairs_in, show
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["MEASURES", "TEXTS", "run_long", "run_matrix", "run_wide"]

MEASURES: dict[str, tuple[str, float]] = {
    "cost": ("cost_usd", 1.0),
    "input-tokens": ("input_tokens", 1.0),
    "cache-read-tokens": ("cache_read_tokens", 1.0),
    "cache-write-tokens": ("cache_write_tokens", 1.0),
    "output-tokens": ("output_tokens", 1.0),
    "reasoning-tokens": ("reasoning_tokens", 1.0),
    "latency-s": ("task_s", 1.0),
    "latency-ms": ("task_s", 1000.0),
    "request-s": ("request_s", 1.0),
    "request-ms": ("request_s", 1000.0),
    "ttft-s": ("ttft_s", 1.0),
    "ttft-ms": ("ttft_s", 1000.0),
}
"""Option -> the field it fills and what divides the source's number to the field's unit."""

TEXTS: dict[str, str] = {"status": "status", "error": "error", "reply": "reply"}
"""Option -> the text field it fills."""

_KEPT = ("prompt", "risk", "category", "group", "weight", "reference")


def run_wide(
    files: Sequence[Path],
    *,
    id_column: str | None,
    id_from_row: bool,
    tiers: Sequence[str],
    measures: Mapping[str, Sequence[str]],
    texts: Mapping[str, Sequence[str]],
    models: Sequence[str],
    keep: Sequence[str],
    labels_out: Path | None,
    exclude: tuple[Path, str, str] | None,
    encoding: str | None,
    records: str | None,
    out: Path,
    quiet: bool,
) -> None:
    """Import wide files. `measures` and `texts` hold NAME=COLUMN per option. Raises `InputError`."""
    if (id_column is None) == (not id_from_row):
        raise InputError(Fault("is said twice or not at all", "give --id COLUMN or --id-from-row", field="--id"))
    if bool(keep) != (labels_out is not None):
        raise InputError(
            Fault("--keep and --labels-out belong together", "give both or none", field="--labels-out")
        )
    names = pairs_in("--tier", tiers)
    columns = WideColumns(
        id=id_column,
        tiers=names,
        measures=_by_tier_measures(names, measures),
        texts=_by_tier_texts(names, texts),
        model=_of_tiers("--model", names, models),
        keep=_kept(keep),
        exclude=None if exclude is None else Exclude(*exclude),
    )
    _writable(out, labels_out, [*files, None if exclude is None else exclude[0]])
    _finish(import_wide(files, columns, encoding=encoding, records=records), out, labels_out, quiet)


def run_matrix(
    file: Path,
    *,
    ok: str,
    measures: Mapping[str, str | None],
    texts: Mapping[str, str | None],
    models: str | None,
    tiers: Sequence[str],
    items_outer: bool,
    encoding: str | None,
    out: Path,
    quiet: bool,
) -> None:
    """Import a matrix. Raises `InputError`."""
    if models is not None and tiers:
        raise InputError(Fault("--models and --tier both choose models", "give one of them", field="--models"))
    chosen = pairs_in("--tier", tiers) if tiers else {}
    if models is not None:
        chosen = {name: name for name in names_in("--models", models)}
    keys = MatrixKeys(ok, _measures(measures), _texts(texts), chosen, items_outer)
    _writable(out, None, [file])
    _finish(import_matrix(file, keys, encoding=encoding), out, None, quiet)


def run_long(
    file: Path,
    *,
    id_column: str,
    tier_column: str,
    ok: str,
    measures: Mapping[str, str | None],
    texts: Mapping[str, str | None],
    model: str | None,
    sample: str | None,
    tiers: Sequence[str],
    encoding: str | None,
    records: str | None,
    out: Path,
    quiet: bool,
) -> None:
    """Import a long file. Raises `InputError`."""
    columns = LongColumns(
        id=id_column,
        tier=tier_column,
        ok=ok,
        measures=_measures(measures),
        texts=_texts({**texts, "model": model}),
        tiers=pairs_in("--tier", tiers) if tiers else {},
        sample=sample,
    )
    _writable(out, None, [file])
    _finish(import_long(file, columns, encoding=encoding, records=records), out, None, quiet)


def _writable(out: Path, labels_out: Path | None, sources: Sequence[Path | None]) -> None:
    """Refuse a name that cannot be written before anything is read."""
    check_table_suffix(out)
    if labels_out is not None:
        check_table_suffix(labels_out)
    refuse_to_overwrite(sources, [out] if labels_out is None else [out, labels_out])


def _measures(options: Mapping[str, str | None]) -> list[Measure]:
    found: list[Measure] = []
    for option, source in options.items():
        if source is None:
            continue
        name, divisor = MEASURES[option]
        if any(m.field == name for m in found):
            raise InputError(Fault(f"{name} is given in two units", "give one", field=f"--{option}"))
        found.append(Measure(name, source, divisor))
    return found


def _texts(options: Mapping[str, str | None]) -> dict[str, str]:
    return {name: source for name, source in options.items() if source is not None}


def _of_tiers(option: str, tiers: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
    pairs = pairs_in(option, given)
    for name in pairs:
        if name not in tiers:
            raise InputError(
                Fault(
                    f"{quoted(name)} is no tier of --tier{did_you_mean(name, list(tiers))}",
                    f"write {option} TIER=..., with a tier of {', '.join(tiers)}",
                    field=option,
                )
            )
    return pairs


def _by_tier_measures(tiers: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> dict[str, list[Measure]]:
    sources: dict[str, dict[str, str | None]] = {tier: {} for tier in tiers}
    for option, given in options.items():
        for tier, column in _of_tiers(f"--{option}", tiers, given).items():
            sources[tier][option] = column
    return {tier: _measures(found) for tier, found in sources.items()}


def _by_tier_texts(tiers: Mapping[str, str], options: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {tier: {} for tier in tiers}
    for option, given in options.items():
        for tier, column in _of_tiers(f"--{option}", tiers, given).items():
            found[tier][TEXTS[option]] = column
    return found


def _kept(keep: Sequence[str]) -> dict[str, str]:
    pairs = pairs_in("--keep", keep)
    for name in pairs:
        if name not in _KEPT:
            raise InputError(
                Fault(
                    f"{quoted(name)} is no field of a labels file{did_you_mean(name, _KEPT)}",
                    f"write --keep FIELD=COLUMN (or {FILE_STEM}), with a field of {', '.join(_KEPT)}",
                    field="--keep",
                )
            )
    return {nfc(name): column for name, column in pairs.items()}


def _finish(imported: Imported, out: Path, labels_out: Path | None, quiet: bool) -> None:
    write_table(out, imported.columns)
    if labels_out is not None and imported.labels is not None:
        write_table(labels_out, imported.labels)
    counts = (
        _counted(imported.rows, "row"),
        _counted(imported.items, "item"),
        _counted(len(imported.tiers), "tier"),
    )
    lines = [f"{out}: {', '.join(counts)}"]
    for tier, seen in imported.passes.items():
        rows = seen.get("rows", 0)
        marked = seen.get("right", 0) + seen.get("wrong", 0)
        said = f"{seen.get('right', 0):,} of {marked:,} right" if marked else f"{seen.get('scored', 0):,} scored"
        lines.append(f"  {tier}: {_counted(rows, 'row')}, {said}")
    if labels_out is not None and imported.labels is not None:
        lines.append(f"{labels_out}: {_counted(len(imported.labels['id']), 'item')}, without required tiers")
    notes = list(imported.notices)
    for reason, count in imported.unmapped.items():
        notes.append(f"not mapped, {reason}: {count:,} ({listed(imported.examples[reason], 5)})")
    show([] if quiet else lines, notes)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
