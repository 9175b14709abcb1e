"""Read routed decisions: the tier that today's policy sends each item to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evalkit.errors import Fault
from evalkit.outcomes.align import item_positions, missing_list, without_row
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.fingerprint import Fingerprint, order_of
from evalkit.tabular.ids import read_ids, repeated
from evalkit.tabular.names import quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve

__all__ = ["DECISION_SCHEMA", "Decisions", "read_decisions"]

DECISION_SCHEMA = Schema(required=("id", "routed_tier"))


@dataclass(frozen=True)
class Decisions:
    """`routed` (int8, N): the position in the tiers that each labelled item is sent to."""

    file: str
    routed: npt.NDArray[np.int8]
    fingerprint: str
    notices: tuple[str, ...]


def read_decisions(
    source: str | Path,
    *,
    ids: Sequence[str],
    tiers: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    left_out: Sequence[str] = (),
) -> Decisions:
    """Read the routed tier of `ids` from CSV, JSONL or Parquet with columns `id` and `routed_tier`.

    Missing, unknown and repeated ids and unknown tiers are input errors; rows of items that are `left_out` are not
    used. Raises `InputError` with every fault.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    names = resolve(table, DECISION_SCHEMA, columns, faults)
    if {"id", "routed_tier"} - names.keys():
        faults.raise_all()
    fields = Fields(table, names, faults)
    row_ids = read_ids(fields)
    item = item_positions(
        fields, row_ids, normalised(pa.array(list(ids), pa.large_string())), ids, "error", "decision", left_out
    )
    tier = fields.codes("routed_tier", tiers, "tier", blank_fix="write the tier the item is sent to")
    pairs = [(int(group[0]), int(i)) for group in repeated(row_ids) for i in group[1:]]

    def make(k: int) -> Fault:
        first, i = pairs[k]
        return fields.fault(
            i,
            "id",
            f"{quoted(row_ids[i].as_py())} also stands on {table.place(first)}; the tiers are "
            f"{quoted(fields.raw('routed_tier', first))} and {quoted(fields.raw('routed_tier', i))}",
            "keep one decision per item",
        )

    faults.each(range(len(pairs)), make)
    routed = np.full(len(ids), -1, dtype=np.int8)
    routed[item[item >= 0]] = tier[item >= 0]
    lack = without_row(fields, item, ids)
    if len(lack):
        has = "has" if len(lack) == 1 else "have"
        faults.add(
            Fault(
                f"{len(lack):,} of {len(ids):,} labelled items {has} no decision: {missing_list(ids, lack)}",
                "add the tier each is sent to",
                file=table.file,
                field=fields.name("routed_tier"),
            )
        )
    faults.raise_if_any()
    mark = Fingerprint("decisions", order_of(row_ids))
    mark.texts("id", row_ids)
    mark.classes("routed_tier", tier, tiers)
    return Decisions(table.file, routed, mark.hexdigest(), tuple(table.notices))
