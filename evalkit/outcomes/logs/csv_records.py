"""Log exports as CSV: rows become the records that the same tool writes as JSON, and nothing is guessed.

A cell is text. What a column is known to hold otherwise, a number or a time in seconds, becomes that; a cell that
is JSON as a whole, an object or a list, becomes its value; an empty cell is null, as the exports write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.errors import Fault
from evalkit.tabular.csv_rows import read_csv
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import parse_number
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.names import quoted
from evalkit.tabular.source import Located

__all__ = ["csv_records"]

_NUMBERS = frozenset({
    "spend", "response_cost", "prompt_tokens", "completion_tokens", "total_tokens", "request_duration_ms",
    "response_status", "delay_ms", "time_to_first_token", "prompt_cache_read_tokens", "prompt_cache_write_tokens",
    "latency", "timeToFirstToken",
})  # fmt: skip
"""Columns that hold numbers in every format that is known."""

_TIMES = frozenset({"startTime", "endTime", "completionStartTime"})
"""Columns that hold ISO text, or seconds since 1970."""

_TEXTS = frozenset({"input", "messages", "proxy_server_request"})
"""Columns whose JSON the formats read themselves, where it is a conversation; else it is what somebody asked."""

_ROWS = 5_000


def csv_records(located: Located, encoding: str, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, record) of each row below the header. A cell that should be a number and is none, and rows with cells
    too few or too many, are noted in `faults`."""
    table = read_csv(located, encoding, faults)
    names = list(table.columns)
    for begin in range(0, table.n_rows, _ROWS):
        parts = [table.columns[name].slice(begin, _ROWS).to_pylist() for name in names]
        for at, cells in enumerate(zip(*parts, strict=True), start=begin):
            record: dict[str, Any] = {}
            for name, cell in zip(names, cells, strict=True):
                value = _value(name, cell)
                if isinstance(value, str) and name in _NUMBERS:
                    what = f"{quoted(cell, 60)} is not a number"
                    fault = Fault(what, "write a number with a decimal point, or leave the cell empty")
                    faults.add(table.fault(at, fault.what, fault.fix, field=name), name)
                    value = None
                record[name] = value
            yield table.line(at) or 0, record


def _value(name: str, cell: str) -> Any:
    if cell == "" or (cell in {"null", "NULL"} and name not in {"input", "output"}):
        return None
    if name in _NUMBERS or name in _TIMES:
        number = parse_number(cell)
        if number is None:
            return cell
        return int(number) if number.is_integer() and cell.strip().lstrip("-").isdigit() else number
    if cell[0] in "{[" and name not in _TEXTS:
        try:
            return parse_json(cell)
        except StrictJSONError:
            return cell
    return cell
