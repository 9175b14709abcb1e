"""Which column of a file holds which field: by its own name, or as the user mapped it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.names import did_you_mean, folded, nearest, nfc, quoted
from evalkit.tabular.table import Table

__all__ = ["Schema", "resolve"]


@dataclass(frozen=True)
class Schema:
    """The fields of one kind of file.

    `aliases` maps a field to another name it may have; a name that begins with one of `prefixes` is a field of
    its own (`score_cheap`).
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Every field by name."""
        return self.required + self.optional

    def is_field(self, name: str) -> bool:
        """Whether `name` is a field of this kind of file."""
        return name in self.known or name in self.aliases.values() or name.startswith(self.prefixes or "\0")


def resolve(table: Table, schema: Schema, mapping: Mapping[str, str] | None, faults: Faults) -> dict[str, str]:
    """Field name -> column name in the file, for every field that the file has.

    Faults: a mapped field or column that does not exist, a required field without a column, and a column that is
    a misspelt field (another case, blanks, a plural). Other columns that are not used are named in the notices.
    """
    wanted = {nfc(name): nfc(column) for name, column in (mapping or {}).items()}
    available = list(table.columns)
    back = {alias: name for name, alias in schema.aliases.items()}
    found: dict[str, str] = {}
    for name, column in wanted.items():
        if not schema.is_field(name):
            faults.add(
                Fault(
                    f"columns: maps {quoted(name)}, which is no field here{did_you_mean(name, schema.known)}",
                    f"the fields are {listed(schema.known, 30)}",
                    file=table.file,
                )
            )
        elif column not in table.columns:
            faults.add(
                Fault(
                    f"there is no column {quoted(column)}{did_you_mean(column, available)}",
                    f"columns: {{{name}: ...}} takes one of {listed([quoted(c) for c in available], 20)}",
                    file=table.file,
                    field=name,
                )
            )
        else:
            found[back.get(name, name)] = column
    for name in schema.known:
        for spelling in (name, schema.aliases.get(name)):
            if name not in found and name not in wanted and spelling in table.columns:
                found[name] = str(spelling)
    for column in available:
        if schema.prefixes and column.startswith(schema.prefixes) and column not in found.values():
            found.setdefault(column, column)
    _missing(table, schema, found, wanted, faults)
    _unused(table, schema, found, faults)
    return found


def _missing(
    table: Table, schema: Schema, found: Mapping[str, str], wanted: Mapping[str, str], faults: Faults
) -> None:
    for name in schema.required:
        if name not in found and name not in wanted:
            available = list(table.columns)
            faults.add(
                Fault(
                    f"there is no column {quoted(name)}{did_you_mean(name, available)}; "
                    f"the file has {listed([quoted(c, 40) for c in available], 20)}",
                    f"name the column that holds it: columns: {{{name}: ...}} in a study, "
                    f"{name}=COLUMN with --column (of replies: --reply-column)",
                    file=table.file,
                    field=name,
                )
            )


def _unused(table: Table, schema: Schema, found: Mapping[str, str], faults: Faults) -> None:
    open_fields = [name for name in schema.known if name not in found]
    unused = [column for column in table.columns if column not in found.values()]
    notes = []
    for column in unused:
        twin = next((n for n in open_fields if n in schema.optional and folded(n) == folded(column)), None)
        if twin is not None:
            faults.add(
                Fault(
                    f"the column {quoted(column)} looks like {quoted(twin)} but is not spelt so, "
                    "and would be left out without a word",
                    f"rename it, or map it: columns: {{{twin}: {quoted(column)}}} in a study, else --column",
                    file=table.file,
                    field=column,
                )
            )
            continue
        near = nearest(column, [n for n in open_fields if n in schema.optional], 1)
        notes.append(quoted(column, 40) + (f" (did you mean {near[0]}?)" if near else ""))
    if notes:
        one = len(notes) == 1
        table.notices.append(
            f"{table.file}: the column{'' if one else 's'} {listed(notes, 20)} {'is' if one else 'are'} not used"
        )
