"""Import a wide file: one row an item, one column a model with right or wrong or a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import Fault
from evalkit.outcomes.importers.build import Cell, Imported, Measure, RowBuilder, mark_kind
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.table import Table

__all__ = ["FILE_STEM", "Exclude", "WideColumns", "import_wide", "need_columns", "stem"]

FILE_STEM = "@file"
"""In `keep`: the name of the file without its suffixes, instead of a column."""


@dataclass(frozen=True, slots=True)
class Exclude:
    """Rows to leave out: those whose column `on` equals a value of `column` in `file`."""

    file: str | Path
    column: str
    on: str


@dataclass(frozen=True)
class WideColumns:
    """What the columns of a wide file are.

    `tiers` maps each tier to the column with its mark. `measures` and `texts` map a tier to its further columns.
    `model` names the model of a tier. `id` None makes ids of the file name and the data row ("virology:12").
    `keep` maps fields of a labels file to columns (or `@file`).
    """

    id: str | None
    tiers: Mapping[str, str]
    measures: Mapping[str, Sequence[Measure]] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    exclude: Exclude | None = None

    def wanted(self) -> list[str]:
        """Every column that must be there."""
        names = [*self.tiers.values(), *(c for c in self.keep.values() if c != FILE_STEM)]
        names += [m.source for group in self.measures.values() for m in group]
        names += [c for group in self.texts.values() for c in group.values()]
        names += [self.id] if self.id is not None else []
        names += [self.exclude.on] if self.exclude is not None else []
        return list(dict.fromkeys(nfc(name) for name in names))


def stem(file: str | Path) -> str:
    """The name of a file without folder and suffixes."""
    name = Path(file).name.removesuffix(".gz")
    return Path(name).stem


def import_wide(
    sources: Sequence[str | Path],
    columns: WideColumns,
    *,
    encoding: str | None = None,
    records: str | None = None,
) -> Imported:
    """Outcomes from one or more wide files, in the order in which they are given.

    A mark column holds true and false or 1 and 0, or numbers from 0 to 1 where any of its values lies between;
    that is decided per tier over all files. Raises `InputError` for files that cannot be read, columns that are
    not there and ids that repeat.
    """
    tables = [_read(source, columns, encoding, records) for source in sources]
    excluded = _excluded(columns.exclude, encoding)
    builder = RowBuilder(str(sources[0]) if len(sources) == 1 else f"{sources[0]} and others", list(columns.tiers))
    kinds = {
        tier: mark_kind([v for table in tables for v in table.values(nfc(column))])
        for tier, column in columns.tiers.items()
    }
    kept: dict[str, list[Any]] = {"id": [], **{name: [] for name in columns.keep}}
    hit: set[str] = set()
    n_rows = n_left_out = 0
    for table in tables:
        values = {name: table.values(name) for name in columns.wanted()}
        for i in range(table.n_rows):
            n_rows += 1
            if columns.exclude is not None:
                key = str(values[nfc(columns.exclude.on)][i])
                if key in excluded:
                    hit.add(key)
                    n_left_out += 1
                    continue
            _row(builder, table, i, values, columns, kinds, kept)
    if columns.exclude is not None:
        builder.notices.append(
            f"{n_left_out:,} of {n_rows:,} rows left out: their {quoted(columns.exclude.on)} is in "
            f"{columns.exclude.file}"
        )
        lost = [value for value in excluded if value not in hit]
        if lost:
            builder.notices.append(
                f"{len(lost):,} of {len(excluded):,} values of {columns.exclude.file} are in no row: "
                f"{listed([quoted(v, 40) for v in lost], 3)}"
            )
    return builder.done(kept if columns.keep else None)


def _row(
    builder: RowBuilder,
    table: Table,
    i: int,
    values: Mapping[str, list[Any]],
    columns: WideColumns,
    kinds: Mapping[str, str],
    kept: dict[str, list[Any]],
) -> None:
    place = f"{table.file}, {table.place(i)}"
    if columns.id is None:
        item = f"{stem(table.file)}:{table.row(i)}"
    else:
        raw = values[nfc(columns.id)][i]
        if raw is None or isinstance(raw, float | bool) or not str(raw).strip():
            builder.cannot("no id that is text or a whole number", Cell(place, raw))
            return
        item = str(raw)
    kept["id"].append(nfc(item))
    for name, column in columns.keep.items():
        kept[name].append(stem(table.file) if column == FILE_STEM else values[nfc(column)][i])
    for tier, column in columns.tiers.items():
        texts: dict[str, Any] = {f: values[nfc(c)][i] for f, c in columns.texts.get(tier, {}).items()}
        if tier in columns.model:
            texts["model"] = columns.model[tier]
        builder.add(
            item,
            tier,
            values[nfc(column)][i],
            kinds[tier],
            f"{place}, {column}",
            texts=texts,
            numbers={
                m.field: (values[nfc(m.source)][i], m.divisor, m.source) for m in columns.measures.get(tier, ())
            },
        )


def _read(source: str | Path, columns: WideColumns, encoding: str | None, records: str | None) -> Table:
    faults = Faults(str(source))
    id_column = None if columns.id is None else nfc(columns.id)
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column, records=records)
    need_columns(table, columns.wanted(), faults)
    faults.raise_if_any()
    return table


def need_columns(table: Table, names: Sequence[str], faults: Faults) -> None:
    """A fault for every column that is not there, with the nearest that are."""
    for name in names:
        if name not in table.columns:
            faults.add(
                Fault(
                    f"there is no column {quoted(name)}{did_you_mean(name, list(table.columns))}",
                    f"the columns are {listed([quoted(c, 60) for c in table.columns], 20)}",
                    file=table.file,
                )
            )


def _excluded(exclude: Exclude | None, encoding: str | None) -> dict[str, None]:
    """The values to leave out, in file order."""
    if exclude is None:
        return {}
    faults = Faults(str(exclude.file))
    table = read_table(exclude.file, encoding=encoding, faults=faults)
    need_columns(table, [nfc(exclude.column)], faults)
    faults.raise_if_any()
    return {str(value): None for value in table.values(nfc(exclude.column)) if value is not None}
