"""Read items that have no required tier yet, to be completed by a derived one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault
from evalkit.labels.read import LABEL_SCHEMA
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import read_ids, repeated
from evalkit.tabular.names import quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve

__all__ = ["BaseLabels", "read_base"]

_NESTED = ("messages", "labels", "metadata")
_SCHEMA = Schema(required=("id",), optional=("required_tier", "risk", *LABEL_SCHEMA.optional))


@dataclass(frozen=True)
class BaseLabels:
    """Items by id with the label fields the file has, as read; never a required tier."""

    file: str
    ids: tuple[str, ...]
    columns: Mapping[str, list[Any]]
    notices: tuple[str, ...]


def read_base(
    source: str | Path, *, columns: Mapping[str, str] | None = None, encoding: str | None = None
) -> BaseLabels:
    """The items of a file with at least `id`; a file that has required tiers already is refused.

    Raises `InputError` with every fault of the file.
    """
    faults = Faults(str(source))
    table = read_table(source, encoding=encoding, faults=faults, id_column=(columns or {}).get("id", "id"))
    names = resolve(table, _SCHEMA, columns, faults)
    if "id" not in names:
        faults.raise_all()
    fields = Fields(table, names, faults)
    ids = read_ids(fields)
    for group in repeated(ids):
        for i in (int(k) for k in group[1:]):
            what = f"{quoted(ids[i].as_py())} also stands on {table.place(int(group[0]))}"
            faults.add(fields.fault(i, "id", what, "give each row its own id"), "repeated id")
    if "required_tier" in names:
        faults.add(
            Fault(
                "the file has required tiers already, and derived ones would take their place",
                "leave the column out of the file of items",
                file=table.file,
                field=fields.name("required_tier"),
            )
        )
    kept: dict[str, list[Any]] = {}
    for name in LABEL_SCHEMA.known:
        if name in names and name not in {"id", "required_tier"}:
            values = fields.json_values(name) if name in _NESTED else table.values(names[name])
            kept[name] = [None if value == "" else value for value in values]
    faults.raise_if_any()
    return BaseLabels(table.file, tuple(ids.to_pylist()), kept, tuple(table.notices))
