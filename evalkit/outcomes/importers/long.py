"""Import a long file: one row an item and model (or policy), with the names and units of another tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import Fault
from evalkit.outcomes.importers.build import Cell, Imported, Measure, RowBuilder, mark_kind
from evalkit.outcomes.importers.wide import need_columns
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.read import read_table

__all__ = ["LongColumns", "import_long"]


@dataclass(frozen=True)
class LongColumns:
    """What the columns of a long file are: `ok` holds right or wrong or a score, `tier` names the model or policy.

    `tiers` maps a tier to its name in the file; rows of other names are counted and left out. Empty: every name
    is a tier, in file order.
    """

    id: str
    tier: str
    ok: str
    measures: Sequence[Measure] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    tiers: Mapping[str, str] = field(default_factory=dict)
    sample: str | None = None

    def wanted(self) -> list[str]:
        """Every column that must be there."""
        names = [self.id, self.tier, self.ok, *(m.source for m in self.measures), *self.texts.values()]
        names += [self.sample] if self.sample is not None else []
        return list(dict.fromkeys(nfc(name) for name in names))


def import_long(
    source: str | Path, columns: LongColumns, *, encoding: str | None = None, records: str | None = None
) -> Imported:
    """Outcomes from a long file; `records` is the key of the list in a JSON document.

    Raises `InputError` for a file that cannot be read, columns or tiers that are not there, and repeated rows.
    """
    faults = Faults(str(source))
    table = read_table(source, encoding=encoding, faults=faults, id_column=nfc(columns.id), records=records)
    wanted = columns.wanted()
    ok = nfc(columns.ok)
    if ok not in table.columns and {"error", "status"} & columns.texts.keys():
        wanted.remove(ok)  # a file in which every request failed has nothing that was right or wrong
    need_columns(table, wanted, faults)
    faults.raise_if_any()
    values = {name: table.values(name) for name in wanted}
    values.setdefault(ok, [None] * table.n_rows)
    names = [None if v is None else nfc(str(v)) for v in values[nfc(columns.tier)]]
    found = list(dict.fromkeys(name for name in names if name))
    tiers = {nfc(t): nfc(name) for t, name in columns.tiers.items()} or {name: name for name in found}
    for name in tiers.values():
        if name not in found:
            faults.add(
                Fault(
                    f"no row has {quoted(name)}{did_you_mean(name, found)}",
                    f"the column holds {listed([quoted(f, 60) for f in found], 20)}",
                    file=table.file,
                    field=columns.tier,
                )
            )
    faults.raise_if_any()
    back = {name: tier for tier, name in tiers.items()}
    kinds = {name: mark_kind([v for v, n in zip(values[ok], names, strict=True) if n == name]) for name in back}
    builder = RowBuilder(table.file, list(tiers))
    other = 0
    for i, said in enumerate(names):
        where = f"{table.file}, {table.place(i)}"
        name = said or ""
        if name not in back:
            other += 1
            continue
        item = values[nfc(columns.id)][i]
        if item is None or isinstance(item, float | bool) or not str(item).strip():
            builder.cannot("no id that is text or a whole number", Cell(where, item))
            continue
        sample = _sample(builder, values, columns, i, where)
        builder.add(
            str(item),
            back[name],
            values[ok][i],
            kinds[name],
            f"{where}, {columns.ok}",
            texts={f: values[nfc(c)][i] for f, c in columns.texts.items()},
            numbers={m.field: (values[nfc(m.source)][i], m.divisor, m.source) for m in columns.measures},
            sample=sample,
        )
    if other:
        left = [f for f in found if f not in back]
        builder.notices.append(
            f"{other:,} of {len(names):,} rows left out: their {columns.tier} is {listed(left) or 'blank'}"
        )
    return builder.done()


def _sample(
    builder: RowBuilder, values: Mapping[str, list[Any]], columns: LongColumns, i: int, where: str
) -> int | None:
    if columns.sample is None:
        return None
    raw = values[nfc(columns.sample)][i]
    try:
        return int(str(raw))
    except ValueError:
        builder.cannot("a sample that is no whole number", Cell(f"{where}, {columns.sample}", raw))
        return None
