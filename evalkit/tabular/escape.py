"""CSV cells that a spreadsheet would run as a formula.

A text cell that begins with = + - @, a tab or a carriage return is written with an apostrophe in front, and a
column `evalkit_escaped` names, per row, the columns so treated. Reading takes exactly those apostrophes off
again; a file without that column is read as it stands, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ESCAPES", "escaped_rows", "unescaped"]

ESCAPES = "evalkit_escaped"
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def escaped_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[str], list[list[object]]]:
    """Header and rows with risky text cells escaped; the marking column is added only where there are any.

    Numbers are left alone: a negative number is a number to a spreadsheet too.
    """
    out: list[list[object]] = []
    marks: list[str] = []
    for row in rows:
        cells = list(row)
        touched = []
        for i, cell in enumerate(cells):
            if isinstance(cell, str) and cell.startswith(_RISKY):
                cells[i] = "'" + cell
                touched.append(str(i + 1))
        out.append(cells)
        marks.append(" ".join(touched))
    if not any(marks):
        return list(names), out
    for cells, mark in zip(out, marks, strict=True):
        cells.append(mark)
    return [*names, ESCAPES], out


def unescaped(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """`columns` without the marking column and without the apostrophes it tells of."""
    names = [name for name in columns if name != ESCAPES]
    result = {name: columns[name] for name in names}
    marks = pc.fill_null(columns[ESCAPES], "")
    for position, name in enumerate(names, start=1):
        cells = columns[name]
        named = pc.match_substring_regex(marks, rf"(^| ){position}( |$)")
        touched = pc.and_(named, pc.starts_with(pc.fill_null(cells, ""), "'"))
        if pc.any(touched).as_py():
            result[name] = pc.if_else(touched, pc.utf8_slice_codeunits(cells, 1), cells)
    return result
