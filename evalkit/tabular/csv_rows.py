"""Strict CSV: fields of any size, the physical line of every record, and nothing guessed."""

from __future__ import annotations

import csv
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evalkit.errors import Fault
from evalkit.tabular.escape import ESCAPES, unescaped
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.source import Located, decoded_lines, open_binary
from evalkit.tabular.table import Damaged, Table

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["read_csv"]

_CHUNK = 20_000


def _kept(lines: Iterable[str], pending: list[str]) -> Iterator[str]:
    """Hands lines to the parser and keeps those of the record in hand, for messages about lost quotes."""
    for line in lines:
        pending.append(line)
        yield line


@contextmanager
def _unlimited_fields() -> Iterator[None]:
    """The csv module's limit on a field is one number for the whole process: lift it, then put it back."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_csv(located: Located, encoding: str, faults: Faults, id_column: str | None = None) -> Table:
    """Read a comma-separated file whose first record is the header. Every cell stays text.

    Records with too few or too many cells are noted in `faults` and left out; a lost quote, a NUL byte or bytes
    that are not `encoding` stop. Blank lines are skipped and counted in the notices. `id_column` names the column
    that holds the id, for messages.
    """
    with open_binary(located) as stream, _unlimited_fields():
        pending: list[str] = []
        reader = csv.reader(_kept(decoded_lines(stream, encoding, faults), pending), strict=True)
        header = _header(reader, pending, faults)
        return _Rows(located.file, header, faults, id_column).read(reader, pending)


def _header(reader: Reader, pending: list[str], faults: Faults) -> list[str]:
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            faults.stop(Fault("holds no header and no rows", "write the file again", file=faults.file))
        except csv.Error as error:
            faults.stop(_quote_fault(pending, faults.file, start, reader.line_num, 0, None, None, error))
        pending.clear()
        if any(cell.strip() for cell in cells):
            break
    header = [nfc(cell) for cell in cells]
    for position, name in enumerate(header, start=1):
        if not name.strip():
            faults.add(
                Fault(
                    f"column {position} of {len(header)} has no name",
                    "name every column in the header, or remove the empty one",
                    file=faults.file,
                    line=start,
                )
            )
    for name in sorted({n for n in header if n.strip() and header.count(n) > 1}):
        where = listed([str(i) for i, other in enumerate(header, start=1) if other == name])
        faults.add(
            Fault(
                f"the header names {quoted(name)} more than once (columns {where})",
                "give each column its own name",
                file=faults.file,
                line=start,
            )
        )
    if len(header) == 1:
        for mark, said in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in header[0]:
                faults.add(
                    Fault(
                        f"the header {quoted(header[0])} has no comma: the columns seem to be parted by {said}",
                        "save the file with commas",
                        file=faults.file,
                        line=start,
                    )
                )
    faults.raise_if_any()
    return header


class _Rows:
    """Reads the records below the header into Arrow columns, a chunk at a time."""

    def __init__(self, file: str, header: list[str], faults: Faults, id_column: str | None) -> None:
        self.file = file
        self.header = header
        self.faults = faults
        self.id_at = header.index(id_column) if id_column in header else None
        self.lines = array("q")
        self.chunks: list[list[pa.Array]] = [[] for _ in header]
        self.damaged: list[Damaged] = []

    def read(self, reader: Reader, pending: list[str]) -> Table:
        width = len(self.header)
        kept: list[list[str]] = []
        blank: list[int] = []
        row = 0
        while True:
            start = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                self.faults.stop(
                    _quote_fault(
                        pending, self.file, start, reader.line_num, row + 1, self.header, self.id_at, error
                    )
                )
            pending.clear()
            if not cells:
                blank.append(start)
                continue
            row += 1
            if len(cells) != width:
                self._misfit(cells, start, row)
                continue
            kept.append(cells)
            self.lines.append(start)
            if len(kept) == _CHUNK:
                self._flush(kept)
        self._flush(kept)
        if row == 0:
            self.faults.stop(Fault("has a header but no rows", "check how the file was written", file=self.file))
        return self._table(blank, row)

    def _flush(self, kept: list[list[str]]) -> None:
        if kept:
            for chunks, cells in zip(self.chunks, zip(*kept, strict=True), strict=True):
                chunks.append(pa.array(cells, pa.large_string()))
            kept.clear()

    def _misfit(self, cells: list[str], line: int, row: int) -> None:
        width = len(self.header)
        self.damaged.append(Damaged(line, row, tuple(cells)))
        what = f"{len(cells)} field{'s' if len(cells) != 1 else ''} where the header has {width}: " + listed(
            [quoted(cell, 40) for cell in cells], 8
        )
        fix = "quote a cell that holds a comma, and leave no cell out"
        if len(cells) == width + 1:
            pair = _decimal_comma(cells)
            if pair is not None:
                what += f"; {pair[0]},{pair[1]} reads as a decimal comma"
                fix = f"write {pair[0]}.{pair[1]}, or remove the extra field"
        name = self.header[width - 1] if len(cells) > width else self.header[len(cells)]
        self.faults.add(
            Fault(what, fix, file=self.file, line=line, row=row, id=self._id(cells), field=name), "misfit"
        )

    def _id(self, cells: list[str]) -> str | None:
        return cells[self.id_at] if self.id_at is not None and self.id_at < len(cells) else None

    def _row_numbers(self, n_rows: int) -> npt.NDArray[np.int64] | None:
        """The data rows that were kept; None where none was left out."""
        if not self.damaged:
            return None
        kept = np.ones(n_rows, dtype=bool)
        kept[[row.row - 1 for row in self.damaged]] = False
        return np.flatnonzero(kept) + 1

    def _table(self, blank: list[int], n_rows: int) -> Table:
        columns = {
            name: pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_string())
            for name, chunks in zip(self.header, self.chunks, strict=True)
        }
        if ESCAPES in columns:
            columns = unescaped(columns)
        table = Table(
            self.file,
            columns,
            len(self.lines),
            "csv",
            np.array(self.lines, dtype=np.int64),
            self._row_numbers(n_rows),
            tuple(self.damaged),
        )
        inner = [line for line in blank if len(self.lines) and line < self.lines[-1]]
        if inner:
            table.notices.append(
                f"{self.file}: {len(inner)} blank line{'s' if len(inner) > 1 else ''} skipped "
                f"(line{'s' if len(inner) > 1 else ''} {listed(inner)})"
            )
        return table


def _decimal_comma(cells: list[str]) -> tuple[str, str] | None:
    for left, right in pairwise(cells):
        if re.fullmatch(r"\s*[+-]?\d+", left) and re.fullmatch(r"\d+\s*", right):
            return left.strip(), right.strip()
    return None


def _quote_fault(
    pending: list[str],
    file: str,
    start: int,
    end: int,
    row: int,
    header: list[str] | None,
    id_at: int | None,
    error: csv.Error,
) -> Fault:
    """The fault for a record that begins on line `start` and whose quotes do not fit."""
    text = "".join(pending)
    cells, opened, line = _open_quote(text, start)
    at = len(cells)
    name = header[at] if header is not None and at < len(header) else f"number {at + 1}"
    row_id = cells[id_at] if id_at is not None and id_at < len(cells) else None
    if opened:
        what = f"the quote opened on line {line} is never closed"
        fix = "close it; a quote inside a quoted cell is written twice"
    elif end > start:
        what = (
            f"a quote opened in the record on line {start} is closed on line {end}, and text follows it: "
            "a closing quote is missing, or a quote inside the cell is not doubled"
        )
        fix = "close the quote where the cell ends; a quote inside a quoted cell is written twice"
    elif "delimiter" in str(error) or "expected after" in str(error):
        what = "text follows the closing quote of a cell"
        fix = "a quote inside a quoted cell is written twice"
    else:
        what = f"cannot be read as CSV ({error})"
        fix = "write the record again"
    return Fault(what, fix, file=file, line=start, row=row or None, id=row_id, field=name)


def _open_quote(text: str, start: int) -> tuple[list[str], bool, int]:
    """Cells before the first cell whose quotes do not fit; whether it is never closed; the line it starts on."""
    cells: list[str] = []
    at = 0
    while at < len(text):
        line = start + len(re.findall(r"\r\n|\r|\n", text[:at]))
        if text[at] != '"':
            end = re.compile(r"[,\r\n]").search(text, at)
            stop = end.start() if end else len(text)
            cells.append(text[at:stop])
        else:
            close = re.compile(r'"(?:[^"]|"")*"', re.DOTALL).match(text, at)
            if close is None:
                return cells, True, line
            stop = close.end()
            if stop < len(text) and text[stop] not in ",\r\n":
                return cells, False, line
            cells.append(text[at + 1 : stop - 1].replace('""', '"'))
        if stop >= len(text) or text[stop] != ",":
            break
        at = stop + 1
    return cells, False, start
