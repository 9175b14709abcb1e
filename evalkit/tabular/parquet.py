"""Parquet, column by column: a column is read when it is asked for, never row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.source import Located
from evalkit.tabular.table import Table

__all__ = ["ArrowColumns", "read_parquet"]


class _Columns(Mapping[str, pa.Array]):
    """Column name -> Arrow array, read from the file at first use."""

    def __init__(self, path: str, file: str, names: Mapping[str, str]) -> None:
        self._path = path
        self._file = file
        self._names = names
        self._read: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._read:
            raw = self._names[name]
            try:
                table = pq.read_table(self._path, columns=[raw], use_threads=True)
                column = table.column(raw)
                column.validate(full=True)
            except (pa.ArrowException, OSError) as error:
                _damaged(self._file, error, name)
            self._read[name] = _one_array(column)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ArrowColumns(Mapping[str, pa.Array]):
    """The columns of an Arrow table in memory, as a mapping."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self._table.column_names:
            raise KeyError(name)
        return _one_array(self._table.column(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return self._table.num_columns  # type: ignore[no-any-return]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _damaged(file: str, error: BaseException, field: str | None = None) -> NoReturn:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    faults = Faults(file)
    faults.stop(Fault(f"cannot be read as Parquet: {reason}", "write the file again", file=file, field=field))


def read_parquet(located: Located, faults: Faults) -> Table:
    """The table of a Parquet file; its columns are read lazily and checked as UTF-8 in full."""
    try:
        with located.path.open("rb") as stream:
            parquet = pq.ParquetFile(stream)
            raw_names: list[str] = parquet.schema_arrow.names
            n_rows: int = parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        _damaged(located.file, error)
    names: dict[str, str] = {}
    for raw in raw_names:
        if nfc(raw) in names:
            faults.add(
                Fault(
                    f"names the column {quoted(raw)} more than once",
                    "give each its own name",
                    file=located.file,
                )
            )
        names[nfc(raw)] = raw
    if n_rows == 0:
        faults.add(Fault("holds no rows", "check how the file was written", file=located.file))
    faults.raise_if_any()
    return Table(located.file, _Columns(str(located.path), located.file, names), n_rows, "parquet")
