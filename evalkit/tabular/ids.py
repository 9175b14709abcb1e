"""Ids: opaque text, in one normal form, each once, never what a spreadsheet made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.tabular.faults import listed
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.names import folded, nearest, quoted

__all__ = ["SimilarIds", "is_rounded", "positions", "read_ids", "repeated", "rounded_words"]

_ROUNDED = r"^[+-]?[0-9](?:[.,][0-9]+)?[eE]\+[0-9]{2,3}$"
"""How a spreadsheet writes a long number it has rounded: 4.892E+09."""

_FEW = 500
"""Up to so many known ids, an unknown one is compared with each by its letters."""


def read_ids(fields: Fields, field: str = "id") -> pa.Array:
    """The ids as text in normal form C (Arrow large_string, null where blank), and set as `fields.ids`.

    Whole numbers become their decimal text; numbers with a decimal point or exponent are refused. Faults: blank
    ids, and ids of the shape of a number that a spreadsheet rounded.
    """
    raw = fields.texts(field)
    ids = normalised(raw)
    fields.ids = ids
    trimmed = pc.utf8_trim_whitespace(pc.fill_null(ids, ""))
    unread = np.asarray(pc.equal(trimmed, "").to_numpy(zero_copy_only=False), dtype=bool)
    fields.each(
        unread & _empty(fields.column(field)),
        lambda i: fields.table.fault(
            i, "is blank", "give the row an id of its own, or remove the row", field=fields.name(field)
        ),
    )
    _rounded(fields, field, ids)
    if unread.any():
        ids = pc.if_else(pa.array(unread), pa.scalar(None, pa.large_string()), ids)
    return ids


def _empty(column: list[Any] | pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are empty as read (and not merely of a kind that is no id)."""
    if isinstance(column, list):
        return np.array([v is None or (isinstance(v, str) and not v.strip()) for v in column], dtype=bool)
    blank = pc.is_null(column)
    if pa.types.is_large_string(column.type):
        blank = pc.or_(blank, pc.equal(pc.utf8_trim_whitespace(pc.fill_null(column, "")), ""))
    return np.asarray(blank.to_numpy(zero_copy_only=False), dtype=bool)


def _rounded(fields: Fields, field: str, ids: pa.Array) -> None:
    mask = pc.fill_null(pc.match_substring_regex(ids, _ROUNDED), False)
    if not pc.any(mask).as_py():
        return
    where: dict[str, list[int]] = {}
    for i in np.flatnonzero(np.asarray(mask.to_numpy(zero_copy_only=False), dtype=bool)):
        where.setdefault(str(ids[int(i)].as_py()), []).append(int(i))
    groups = list(where.items())

    def make(k: int) -> Fault:
        value, at = groups[k]
        many = f": {_places(fields, at)} carry it" if len(at) > 1 else ""
        return fields.fault(
            at[0],
            field,
            *rounded_words(value, many),
        )

    fields.faults.each(range(len(groups)), make)


def _places(fields: Fields, at: Sequence[int]) -> str:
    if fields.table.lines is None:
        return "rows " + listed([str(fields.table.row(i)) for i in at])
    return "lines " + listed([str(fields.table.line(i)) for i in at])


def is_rounded(value: str) -> bool:
    """Whether an id has the shape of a number that a spreadsheet has rounded."""
    return re.fullmatch(_ROUNDED, value) is not None


def rounded_words(value: str, where: str = "") -> tuple[str, str]:
    """What is wrong with an id of that shape, and what to do. where: ": lines 2, 3 carry it"."""
    return (
        f"{quoted(value)} has the shape of a number that a spreadsheet has rounded{where}; "
        "the original digits are gone and cannot be restored",
        "export the file again from its source with the id column set to Text",
    )


def repeated(keys: pa.Array | npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Positions that share a key, one ascending array a key, by first position; null and -1 share none."""
    if isinstance(keys, np.ndarray):
        codes = keys
    else:
        encoded = pc.dictionary_encode(keys)
        codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    twin = (ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)
    if not twin.any():
        return []
    edges = np.flatnonzero(np.diff(np.concatenate([[0], twin.astype(np.int8), [0]])))
    groups = [order[a : b + 1] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return sorted(groups, key=lambda group: int(group[0]))


def positions(ids: pa.Array, among: Sequence[str]) -> npt.NDArray[np.int64]:
    """Where each id stands in `among`; -1 where it does not, -2 where it is null."""
    known = among if isinstance(among, pa.Array) else pa.array(list(among), pa.large_string())
    at = pc.index_in(ids, known, skip_nulls=True)
    found = np.asarray(pc.fill_null(at, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.where(np.asarray(pc.is_null(ids).to_numpy(zero_copy_only=False), dtype=bool), -2, found)


class SimilarIds:
    """Hints for ids that are not known: known ids that are the same but for case, blanks or leading zeros."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known
        self._by_fold: dict[str, list[str]] | None = None

    def hint(self, wanted: str) -> str:
        """` (did you mean "00042"?)`, or nothing."""
        if self._by_fold is None:
            self._by_fold = {}
            for name in self._known:
                self._by_fold.setdefault(_bare(name), []).append(name)
        bare = _bare(wanted)
        close = [name for name in self._by_fold.get(bare, []) if bare and name != wanted][:2]
        if not close and len(wanted) > 3 and len(self._known) <= _FEW:
            close = nearest(wanted, self._known, 1)
        return f" (did you mean {' or '.join(quoted(c) for c in close)}?)" if close else ""


def _bare(name: str) -> str:
    return folded(name).lstrip("0")
