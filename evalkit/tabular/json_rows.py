"""Tables of strict JSON: one object a line (JSONL), or a document that is a list of objects."""

from __future__ import annotations

import json
import math
from array import array
from dataclasses import replace
from typing import Any

import numpy as np

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.source import Located, decoded_lines, open_binary, read_text
from evalkit.tabular.strict_json import LiteralFloat, StrictJSONError, parse_json
from evalkit.tabular.table import Damaged, Table

__all__ = ["LiteralFloat", "StrictJSONError", "parse_json", "read_json", "read_jsonl"]


class _Records:
    """Objects gathered into columns; a key that a record lacks is None there."""

    def __init__(self) -> None:
        self.columns: dict[str, list[Any]] = {}
        self.n = 0
        self._keys: tuple[str, ...] = ()
        self._targets: list[list[Any]] = []

    def add(self, record: dict[str, Any]) -> None:
        keys = tuple(record)
        if keys != self._keys or len(self._targets) != len(self.columns):
            for key in keys:
                if key not in self.columns:
                    self.columns[key] = [None] * self.n
            self._keys = keys
            self._targets = [self.columns[key] for key in keys]
        for target, value in zip(self._targets, record.values(), strict=True):
            target.append(value)
        self.n += 1
        if len(keys) < len(self.columns):
            for column in self.columns.values():
                if len(column) < self.n:
                    column.append(None)

    def named(self, faults: Faults) -> dict[str, list[Any]]:
        """The columns under normalised names."""
        result: dict[str, list[Any]] = {}
        for key, values in self.columns.items():
            name = nfc(key)
            if name in result:
                faults.add(
                    Fault(
                        f"two keys are both {quoted(name)} in Unicode normal form C",
                        "spell the key one way",
                        file=faults.file,
                    )
                )
            result[name] = values
        return result


def read_jsonl(
    located: Located, encoding: str, faults: Faults, id_column: str | None = None, *, literals: bool = False
) -> Table:
    """Read one JSON object a line. Blank lines are skipped; every line that is not an object is a fault.

    A last line that is cut off (the writer was stopped) is named as such.
    """
    records = _Records()
    lines = array("q")
    rows = array("q")
    damaged: list[Damaged] = []
    row = 0
    with open_binary(located) as stream:
        for number, text in enumerate(decoded_lines(stream, encoding, faults), start=1):
            if not text.strip(" \t\r\n"):
                continue
            row += 1
            try:
                record = parse_json(text, literals=literals)
                if not isinstance(record, dict):
                    raise StrictJSONError(f"is {_kind(record)}, not an object")
            except StrictJSONError as error:
                damaged.append(Damaged(number, row, ()))
                fault = _line_fault(located.file, number, row, text, str(error))
                if "a JSON number" in str(error) or "too large a number" in str(error):
                    own, field = _where_no_number(text, id_column)
                    fault = replace(fault, id=own, field=field)
                faults.add(fault, "line")
                continue
            records.add(record)
            lines.append(number)
            rows.append(row)
    if row == 0:
        faults.stop(Fault("holds no records", "check how the file was written", file=located.file))
    return Table(
        located.file,
        records.named(faults),
        records.n,
        "jsonl",
        np.array(lines, dtype=np.int64),
        np.array(rows, dtype=np.int64),
        tuple(damaged),
    )


def _line_fault(file: str, line: int, row: int, text: str, why: str) -> Fault:
    if not text.endswith(("\n", "\r")) and text.lstrip().startswith("{") and not text.rstrip().endswith("}"):
        return Fault(
            "the last line is cut off: the file ends in the middle of a record",
            "remove the line, or write the file again",
            file=file,
            line=line,
            row=row,
        )
    fix = "write one JSON object per line"
    if "key" in why and "more than once" in why:
        fix = "keep one of them"
    elif "not a JSON number" in why or "too large a number" in why:
        fix = "leave the value out or write null where it is unknown"
    return Fault(why, fix, file=file, line=line, row=row)


def _where_no_number(text: str, id_column: str | None) -> tuple[str | None, str | None]:
    """The id and the field of a record in which NaN, Infinity or a number beyond all floats stands."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(record, dict):
        return None, None
    own = record.get(id_column) if id_column is not None else None
    known = isinstance(own, str | int) and not isinstance(own, bool)
    return str(own) if known else None, next((k for k, v in record.items() if _holds_no_number(v)), None)


def _holds_no_number(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(_holds_no_number(v) for v in value.values())
    return isinstance(value, list) and any(_holds_no_number(v) for v in value)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"


def read_json(
    located: Located, encoding: str, faults: Faults, records_key: str | None = None, *, literals: bool = False
) -> Table:
    """Read a JSON document that is a list of objects, or an object with such a list under `records_key`."""
    text = read_text(located, encoding, faults)
    try:
        document = parse_json(text, literals=literals)
    except StrictJSONError as error:
        faults.stop(Fault(str(error), "write the file again as strict JSON", file=located.file))
    if records_key is not None:
        if not isinstance(document, dict) or records_key not in document:
            keys = list(document) if isinstance(document, dict) else []
            faults.stop(
                Fault(
                    f"has no key {quoted(records_key)}{did_you_mean(records_key, keys)}",
                    f"name one of its keys: {listed([quoted(k) for k in keys])}" if keys else "leave the key out",
                    file=located.file,
                    field="records",
                )
            )
        document = document[records_key]
    if not isinstance(document, list):
        keys = [k for k, v in document.items() if isinstance(v, list)] if isinstance(document, dict) else []
        hint = f"name the list with --records {keys[0]}" if len(keys) == 1 else "name the list with --records KEY"
        faults.stop(Fault(f"is {_kind(document)}, not a list of records", hint, file=located.file))
    if not document:
        faults.stop(Fault("holds no records", "check how the file was written", file=located.file))
    records = _Records()
    rows = array("q")
    damaged = []
    for row, record in enumerate(document, start=1):
        if isinstance(record, dict):
            records.add(record)
            rows.append(row)
        else:
            damaged.append(Damaged(None, row, ()))
            faults.add(
                Fault(
                    f"is {_kind(record)}, not an object",
                    "write one object a record",
                    file=located.file,
                    row=row,
                )
            )
    return Table(
        located.file,
        records.named(faults),
        records.n,
        "json",
        None,
        np.array(rows, dtype=np.int64),
        tuple(damaged),
    )
