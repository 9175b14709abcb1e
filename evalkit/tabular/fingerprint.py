"""Fingerprints of parsed records: the same content has the same hash, however the file was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Fingerprint", "canonical_json", "order_of", "rows_hash"]


_CANONICAL = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=str
)


def canonical_json(value: Any) -> str:
    """`value` as strict JSON with sorted keys; `ValueError` where it holds NaN or an infinity."""
    return _CANONICAL.encode(value)


def order_of(ids: pa.Array) -> npt.NDArray[np.int64]:
    """The order of records by id (code points), so that a re-sorted file keeps its fingerprint."""
    return np.asarray(pc.sort_indices(ids).to_numpy(), dtype=np.int64)


def rows_hash(kind: str, blocks: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of N rows of numbers, in whatever order they stand: 64 hex digits.

    blocks: arrays (N, ...) by name, a row of each being a part of the row. NaN (blank) has one form, -0 is 0.
    """
    parts = [np.reshape(values, (len(values), -1)).astype(np.float64) for values in blocks.values()]
    rows = np.concatenate(parts, axis=1) + 0.0
    rows = np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])])
    mark = Fingerprint(kind)
    mark.texts("blocks", [f"{name} {part.shape[1]}" for name, part in zip(blocks, parts, strict=True)])
    mark.numbers("rows", rows.ravel())
    return mark.hexdigest()


class Fingerprint:
    """SHA-256 over the named columns of a table, in the order they are given here.

    What goes in: a kind, and for each field its name, its length and its values in one layout. What does not:
    file format, encoding, BOM, column order, row order (pass `order`), columns that are not fields.
    """

    def __init__(self, kind: str, order: npt.NDArray[np.int64] | None = None) -> None:
        self._hash = hashlib.sha256(f"evalkit.{kind}/1\n".encode())
        self._order = order

    def texts(self, name: str, values: pa.Array | Iterable[str | None]) -> None:
        """A text field; null is not the empty text, and a field that is null throughout is as one left out."""
        array = values if isinstance(values, pa.Array) else pa.array(list(values), pa.large_string())
        if array.null_count == len(array):
            return
        if self._order is not None:
            array = array.take(pa.array(self._order))
        self._head(name, len(array))
        for start in range(0, len(array), 65_536):
            part = array.slice(start, 65_536)
            lengths = pc.fill_null(pc.binary_length(part), -1)
            self._hash.update(np.asarray(lengths.to_numpy(zero_copy_only=False), dtype="<i8").tobytes())
            self._hash.update(_bytes(part))

    def numbers(self, name: str, values: npt.NDArray[Any]) -> None:
        """A number field as float64; -0 is 0 and NaN (blank) has one form."""
        floats = np.array(values, dtype="<f8")
        if self._order is not None:
            floats = floats[self._order]
        floats[floats == 0] = 0.0
        floats[np.isnan(floats)] = np.nan
        self._head(name, len(floats))
        self._hash.update(floats.tobytes())

    def classes(self, name: str, codes: npt.NDArray[Any], names: Sequence[str]) -> None:
        """A field of classes: hashed by the names in use, so that an unused name changes nothing."""
        used = sorted({names[int(c)] for c in np.unique(codes) if c >= 0})
        place = {label: i for i, label in enumerate(used)}
        table = np.array([place.get(label, -1) for label in names] + [-1], dtype="<i8")
        found = table[np.asarray(codes, dtype=np.int64)]
        if self._order is not None:
            found = found[self._order]
        self._head(name, len(found))
        self._hash.update(canonical_json(used).encode())
        self._hash.update(found.tobytes())

    def values(self, name: str, values: Sequence[Any]) -> None:
        """A field of JSON values; raises `ValueError` where one holds NaN or an infinity."""
        self.texts(name, [None if v is None else canonical_json(v) for v in values])

    def _head(self, name: str, length: int) -> None:
        self._hash.update(f"{name}\n{length}\n".encode())

    def hexdigest(self) -> str:
        """The hash so far, 64 hex digits."""
        return self._hash.hexdigest()


def _bytes(array: pa.Array) -> memoryview:
    """The UTF-8 bytes of all texts of a large_string array, one behind the other."""
    whole = pa.concat_arrays([pc.fill_null(array, "")])
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
    return memoryview(b"") if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]
