"""`Fields`: the columns of a table as checked texts, numbers, truth values and codes.

Every method looks at the whole column, notes one fault per bad record, and gives arrays as long as the table.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.json_rows import LiteralFloat, StrictJSONError, parse_json
from evalkit.tabular.names import nearest, nfc, quoted
from evalkit.tabular.table import Table

__all__ = ["Fields", "normalised", "parse_number"]

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_TRUTH = {"true": 1, "True": 1, "TRUE": 1, "1": 1, "1.0": 1, "false": 0, "False": 0, "FALSE": 0, "0": 0, "0.0": 0}


def parse_number(text: str) -> float | None:
    """The number that `text` writes in decimal (blanks around it are fine), or None where it writes none.

    NaN and infinities are returned as such, for the caller to refuse by name.
    """
    trimmed = text.strip()
    if _NUMBER.fullmatch(trimmed) or trimmed.casefold().lstrip("+-") in {"nan", "inf", "infinity"}:
        return float(trimmed)
    return None


def normalised(array: pa.Array) -> pa.Array:
    """Texts in Unicode normal form C."""
    if pc.all(pc.string_is_ascii(array)).as_py() in (True, None):
        return array
    values = array.to_pylist()
    if all(v is None or unicodedata.is_normalized("NFC", v) for v in values):
        return array
    return pa.array([None if v is None else nfc(v) for v in values], pa.large_string())


class Fields:
    """Typed access to the columns of `table`; `names` maps each field to its column (`resolve`)."""

    def __init__(self, table: Table, names: Mapping[str, str], faults: Faults) -> None:
        self.table = table
        self.names = dict(names)
        self.faults = faults
        self.ids: pa.Array | None = None
        self._texts: dict[tuple[str, bool], pa.Array] = {}
        self._unreadable: dict[str, npt.NDArray[np.bool_]] = {}

    def has(self, field: str) -> bool:
        """Whether the file has the field."""
        return field in self.names

    def name(self, field: str) -> str:
        """The field as the user named it in the file."""
        return self.names.get(field, field)

    def column(self, field: str) -> Any:
        """The raw column of `field`."""
        return self.table.columns[self.names[field]]

    def raw(self, field: str, i: int) -> Any:
        """The value of `field` in record `i` as read."""
        return self.table.value(self.names[field], i)

    def id_of(self, i: int) -> str | None:
        """The id of record `i`, where it could be read."""
        if self.ids is None:
            return None
        found: str | None = self.ids[i].as_py()
        return found

    def fault(self, i: int, field: str, what: str, fix: str) -> Fault:
        """A fault of `field` in record `i`."""
        return self.table.fault(i, what, fix, id=self.id_of(i), field=self.name(field))

    def each(self, mask: npt.NDArray[np.bool_], make: Callable[[int], Fault]) -> None:
        """Note a fault for each record where `mask` is true."""
        if mask.any():
            self.faults.each(np.flatnonzero(mask), make)

    def unreadable(self, field: str) -> npt.NDArray[np.bool_]:
        """Records whose `field` has a fault already because it is of a kind that cannot be read."""
        return self._unreadable.get(field, np.zeros(self.table.n_rows, dtype=bool))

    def _stored_wrong(self, field: str, kind: Any, wanted: str, fix: str) -> None:
        """One fault for a column of a type that cannot be read, instead of one a record."""
        if not self.unreadable(field).all():
            what = f"the column is stored as {kind}, not as {wanted}"
            self.faults.add(Fault(what, fix, file=self.table.file, field=self.name(field)))
        self._unreadable[field] = np.ones(self.table.n_rows, dtype=bool)

    # -- texts ---------------------------------------------------------------------------------------------

    def texts(self, field: str, *, loose: bool = False) -> pa.Array:
        """The field as text (Arrow large_string), blank as null.

        Whole numbers become their decimal text; `loose` also takes other JSON scalars as they are written.
        Anything else that is not text is a fault.
        """
        if (field, loose) not in self._texts:
            column = self.column(field)
            if isinstance(column, list):
                array = self._texts_from_values(field, column, loose)
            else:
                array = self._texts_from_arrow(field, column, loose)
            blank = pc.equal(array, "")
            self._texts[field, loose] = pc.if_else(blank, pa.scalar(None, pa.large_string()), array)
        return self._texts[field, loose]

    def _texts_from_values(self, field: str, values: list[Any], loose: bool) -> pa.Array:
        kinds = set(map(type, values))
        if kinds <= {str, type(None)}:
            return pa.array(values, pa.large_string())
        bad = np.zeros(len(values), dtype=bool)
        out: list[str | None] = []
        for i, value in enumerate(values):
            text = _as_text(value, loose)
            bad[i] = text is None and value is not None
            out.append(text)
        self._unreadable[field] = bad
        self.each(
            bad,
            lambda i: self.fault(
                i,
                field,
                f"{_shown(values[i])} is {_json_kind(values[i])}, not text",
                "write it as text, in quotes",
            ),
        )
        return pa.array(out, pa.large_string())

    def _texts_from_arrow(self, field: str, column: pa.Array, loose: bool) -> pa.Array:
        kind = column.type
        if pa.types.is_large_string(kind):
            return column
        if pa.types.is_integer(kind) or pa.types.is_null(kind) or (loose and pa.types.is_floating(kind)):
            return column.cast(pa.large_string())
        if loose and pa.types.is_boolean(kind):
            return column.cast(pa.string()).cast(pa.large_string())
        self._stored_wrong(field, kind, "text", "store it as text in the program that writes the file")
        return pa.nulls(len(column), pa.large_string())

    # -- numbers -------------------------------------------------------------------------------------------

    def numbers(
        self,
        field: str,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        blank: str | None = None,
        nan_is_blank: bool = False,
        says: str = "",
    ) -> npt.NDArray[np.float64]:
        """The field as float64, NaN where blank.

        Faults: text that is no number, NaN and infinities by name (with `nan_is_blank` NaN counts as blank),
        values outside `minimum` to `maximum`, and, where `blank` says why, blanks. `says` ends the message about
        the range ("a cost is never negative").
        """
        values, absent, bad = self._floats(field)
        if nan_is_blank:
            absent = absent | (np.isnan(values) & ~bad)
        wrong = ~np.isfinite(values) & ~absent & ~bad
        self.each(bad, lambda i: self._not_a_number(field, i))
        self.each(
            wrong,
            lambda i: self.fault(
                i,
                field,
                f"{_shown(self.raw(field, i))} is not a finite number",
                "write a finite number" + ("" if blank is not None else ", or leave it empty where it is unknown"),
            ),
        )
        if blank is not None:
            self.each(absent & ~bad & ~self.unreadable(field), lambda i: self.fault(i, field, "is blank", blank))
        sound = ~absent & ~bad & ~wrong
        low = sound & (values < minimum) if minimum is not None else np.zeros_like(sound)
        high = sound & (values > maximum) if maximum is not None else np.zeros_like(sound)
        because = f": {says}" if says else ""

        def outside(i: int, how: str) -> Fault:
            what = f"{_shown(self.raw(field, i))} is {how}{because}"
            return self.fault(i, field, what, _range_fix(minimum, maximum))

        self.each(low, lambda i: outside(i, f"below {minimum:g}"))
        self.each(high, lambda i: outside(i, f"above {maximum:g}"))
        return np.where(sound & ~low & ~high, values, np.nan)

    def _not_a_number(self, field: str, i: int) -> Fault:
        value = self.raw(field, i)
        fix = "write a number with a decimal point"
        what = f"{_shown(value)} is not a number"
        if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", value):
            whole = value.strip()
            point, plain = whole.replace(",", "."), whole.replace(",", "")
            if re.search(r",\d{3}$", whole):  # 1,000: nobody can tell
                what += ", it may be a decimal comma or groups of thousands"
                fix = f"write {point} or {plain}, whichever is meant"
            else:
                what += ", it reads as a decimal comma"
                fix = f"write {point}"
        return self.fault(i, field, what, fix)

    def _floats(self, field: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Values (NaN where there are none), which are absent, which are no numbers at all."""
        column = self.column(field)
        if not isinstance(column, list):
            kind = column.type
            if pa.types.is_large_string(kind):
                column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.large_string()), column)
            if pa.types.is_boolean(kind) or pa.types.is_nested(kind) or pa.types.is_temporal(kind):
                self._stored_wrong(field, kind, "numbers", "store numbers in it")
                column = pa.nulls(len(column), pa.float64())
            try:
                floats = column.cast(pa.float64(), safe=not pa.types.is_integer(kind))
                absent = np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), dtype=bool)
                values = np.asarray(pc.fill_null(floats, np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)
                return values, absent, np.zeros(len(column), dtype=bool)
            except pa.ArrowInvalid:
                column = column.to_pylist()
        values = np.full(len(column), np.nan)
        absent = np.zeros(len(column), dtype=bool)
        bad = np.zeros(len(column), dtype=bool)
        for i, value in enumerate(column):
            if value is None or (isinstance(value, str) and not value.strip()):
                absent[i] = True
            elif isinstance(value, str):
                number = parse_number(value)
                bad[i] = number is None
                values[i] = np.nan if number is None else number
            elif isinstance(value, bool) or not isinstance(value, int | float):
                bad[i] = True
            else:
                try:
                    values[i] = value
                except OverflowError:
                    values[i] = math.inf
        return values, absent, bad

    # -- truth values and classes --------------------------------------------------------------------------

    def truths(self, field: str) -> npt.NDArray[np.int8]:
        """The field as 1 (true), 0 (false) or -1 (blank): true, false, 1 or 0, in any case."""
        column = self.column(field)
        if not isinstance(column, list):
            kind = column.type
            if pa.types.is_boolean(kind):
                ints = pc.fill_null(column.cast(pa.int8()), -1)
                return np.asarray(ints.to_numpy(zero_copy_only=False), dtype=np.int8)
            if pa.types.is_large_string(kind):
                return self._truths_from_text(field, pc.utf8_trim_whitespace(column))
            column = column.to_pylist()
        out = np.full(len(column), -1, dtype=np.int8)
        bad = np.zeros(len(column), dtype=bool)
        for i, value in enumerate(column):
            if value is None or value == "":
                continue
            if isinstance(value, str):
                code = _TRUTH.get(value.strip(), -1)
            else:
                code = int(value) if isinstance(value, bool | int | float) and value in (0, 1) else -1
            out[i] = code
            bad[i] = code < 0
        self._truth_faults(field, bad)
        return out

    def _truths_from_text(self, field: str, column: pa.Array) -> npt.NDArray[np.int8]:
        at = pc.index_in(column, pa.array(list(_TRUTH), pa.large_string()))
        found: npt.NDArray[np.int64] = np.asarray(
            pc.fill_null(at, -1).to_numpy(zero_copy_only=False), dtype=np.int64
        )
        out = np.array([*_TRUTH.values(), -1], dtype=np.int8)[found]
        absent = np.asarray(pc.equal(pc.fill_null(column, ""), "").to_numpy(zero_copy_only=False), dtype=bool)
        self._truth_faults(field, (out < 0) & ~absent)
        return np.asarray(out, dtype=np.int8)

    def _truth_faults(self, field: str, bad: npt.NDArray[np.bool_]) -> None:
        self.each(
            bad,
            lambda i: self.fault(
                i,
                field,
                f"{_shown(self.raw(field, i))} is neither true nor false",
                "write true, false, 1 or 0, or leave it empty where it is unknown",
            ),
        )

    def codes(
        self, field: str, allowed: Sequence[str], kind: str, *, blank_fix: str | None = None
    ) -> npt.NDArray[np.int64]:
        """The field as positions in `allowed` (normal form C), -1 where blank or not among them.

        Not among them is a fault with the nearest allowed names; so is blank where `blank_fix` says what to do.
        The allowed names are listed once.
        """
        texts = normalised(self.texts(field))
        at = pc.index_in(texts, pa.array([nfc(a) for a in allowed], pa.large_string()))
        codes = np.asarray(pc.fill_null(at, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        if not (codes < 0).any():
            return codes
        trimmed = pc.utf8_trim_whitespace(pc.fill_null(texts, ""))
        blank = np.asarray(pc.equal(trimmed, "").to_numpy(zero_copy_only=False), dtype=bool)
        unknown = (codes < 0) & ~blank
        blank = blank & ~self.unreadable(field)
        wrong = unknown | blank if blank_fix is not None else unknown
        if not wrong.any():
            return codes
        first = int(np.flatnonzero(wrong)[0])
        choices = f" (allowed: {', '.join(allowed)})"

        def make(i: int) -> Fault:
            also = choices if i == first else ""
            if blank[i]:
                return self.fault(i, field, f"is blank{also}", blank_fix or "")
            value = str(texts[i].as_py())
            close = nearest(value, allowed, 2)
            padded = ", it has blanks around it" if value != value.strip() else ""
            fix = f"write {' or '.join(close)}" if close else f"write one of the {kind} names"
            return self.fault(i, field, f"{quoted(value)} is not a {kind}{padded}{also}", fix)

        self.each(wrong, make)
        return codes

    # -- JSON ----------------------------------------------------------------------------------------------

    def json_values(self, field: str) -> list[Any]:
        """The field as JSON values: as read from JSON, parsed from the text of a CSV or Parquet cell."""
        column = self.column(field)
        values = column if isinstance(column, list) else column.to_pylist()
        if self.table.format in {"json", "jsonl"}:
            return list(values)
        out: list[Any] = []
        for i, value in enumerate(values):
            if isinstance(value, str):
                if not value.strip():
                    value = None
                else:
                    try:
                        value = parse_json(value)
                    except StrictJSONError as error:
                        self.faults.add(
                            self.fault(i, field, str(error), "write JSON in the cell"), f"json {field}"
                        )
                        value = None
            out.append(value)
        return out


def _range_fix(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f"write a number from {minimum:g} to {maximum:g}"
    return f"write a number of {minimum:g} or more" if minimum is not None else f"write at most {maximum:g}"


def _as_text(value: Any, loose: bool) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("true" if value else "false") if loose else None
    if isinstance(value, int):
        return str(value)
    if loose and isinstance(value, LiteralFloat):
        return value.literal
    if loose and isinstance(value, float):
        return repr(value)
    return None


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, float):
        return "a number with a decimal point or exponent"
    if isinstance(value, int):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def _shown(value: Any) -> str:
    """A value in a message: text in quotes, so that blanks are seen; numbers as they are."""
    if isinstance(value, LiteralFloat):
        return value.literal
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return listed([quoted(value)]) if isinstance(value, dict | list) else str(value)
