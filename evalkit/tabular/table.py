"""`Table`: the records of one file, column by column, with the place of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evalkit.errors import Fault
from evalkit.tabular.source import Format

__all__ = ["Column", "Damaged", "Table", "TextColumn"]

Column = Any
"""A column as read: a Python list (JSON values), or an Arrow array (CSV text, Parquet)."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that could not be read as a row, with what is known of its id."""

    line: int | None
    row: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """The records of one file.

    `columns` maps each name in the file to its values (`Column`). `lines` holds the physical line, counted from
    1, at which each record starts (None for Parquet and JSON documents); `rows` the data row, counted from 1
    without the header (None: 1, 2, 3, ...). `damaged` are the records left out because of a fault.
    """

    file: str
    columns: Mapping[str, Column]
    n_rows: int
    format: Format
    lines: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None
    damaged: tuple[Damaged, ...] = ()
    notices: list[str] = field(default_factory=list)

    def line(self, i: int) -> int | None:
        """The physical line at which record `i` (from 0) starts."""
        return None if self.lines is None else int(self.lines[i])

    def row(self, i: int) -> int:
        """The data row of record `i` (from 0), counted from 1."""
        return i + 1 if self.rows is None else int(self.rows[i])

    def place(self, i: int) -> str:
        """Where record `i` stands, for use inside a message: "line 8 (row 3)" or "row 3"."""
        line = self.line(i)
        return f"row {self.row(i)}" if line is None else f"line {line} (row {self.row(i)})"

    def fault(self, i: int, what: str, fix: str, *, id: str | None = None, field: str | None = None) -> Fault:
        """A fault of record `i` (from 0)."""
        return Fault(what, fix, file=self.file, line=self.line(i), row=self.row(i), id=id, field=field)

    def values(self, name: str) -> list[Any]:
        """The column `name` as a list of Python values."""
        column = self.columns[name]
        return column if isinstance(column, list) else list(column.to_pylist())

    def value(self, name: str, i: int) -> Any:
        """The value of column `name` in record `i` (from 0)."""
        found = self.columns[name][i]
        return found.as_py() if isinstance(found, pa.Scalar) else found


class TextColumn(Sequence[str | None]):
    """An Arrow text array as a read-only sequence of `str | None`; cheap to hold for millions of rows."""

    __slots__ = ("_array",)

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, index: int) -> str | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str | None]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str | None] | None:
        if isinstance(index, slice):
            return TextColumn(self._array[index])
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        found: str | None = self._array[index].as_py()
        return found

    def __iter__(self) -> Iterator[str | None]:
        for start in range(0, len(self._array), 8192):
            yield from self._array.slice(start, 8192).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TextColumn({len(self)} values)"

    @property
    def array(self) -> pa.Array:
        """The Arrow array itself (large_string)."""
        return self._array
