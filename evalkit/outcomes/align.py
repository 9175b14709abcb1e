"""Match the rows of a file with the items and tiers of a study, and name what does not match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.tabular.faults import listed
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.ids import SimilarIds, positions
from evalkit.tabular.names import did_you_mean, nfc, quoted

__all__ = ["Unknown", "damaged_ids", "item_positions", "missing_list", "tier_positions", "without_row"]

Unknown = Literal["error", "notice"]


def item_positions(
    fields: Fields,
    ids: pa.Array,
    known: pa.Array,
    names: Sequence[str],
    unknown: Unknown,
    what: str,
    left_out: Sequence[str] = (),
) -> npt.NDArray[np.int64]:
    """Where each row's id stands among the items; below 0 where it does not. Unknown ids are named, each once, but
    for those of items that are `left_out`, known and not judged: these are counted in a notice."""
    at = positions(ids, known)
    if left_out:
        gone = positions(ids, normalised(pa.array(list(left_out), pa.large_string()))) >= 0
        at = np.where((at == -1) & gone, -2, at)
        if unused := int((at == -2).sum()):
            fields.table.notices.append(
                f"{fields.table.file}: {unused:,} row{'' if unused == 1 else 's'} not used: their items are left "
                "out, or a router was trained on them"
            )
    stray = np.flatnonzero(at == -1)
    similar = SimilarIds(names)
    _stray(
        fields,
        "id",
        [(str(ids[int(i)].as_py()), int(i)) for i in stray],
        unknown,
        lambda value: (
            f"{quoted(value)} is not among the {len(names):,} labelled ids{similar.hint(value)}",
            f"remove the {what} or label the item",
        ),
    )
    return at


def tier_positions(
    fields: Fields, tiers: Sequence[str], unknown: Unknown, noun: str = "tier"
) -> npt.NDArray[np.int64]:
    """Where each row's tier stands among the tiers; below 0 where it does not. Faults call one `noun`."""
    texts = normalised(fields.texts("tier"))
    at = positions(texts, pa.array([nfc(t) for t in tiers], pa.large_string()))
    blank = np.asarray(
        pc.equal(pc.utf8_trim_whitespace(pc.fill_null(texts, "")), "").to_numpy(zero_copy_only=False), dtype=bool
    )
    unread = fields.unreadable("tier")
    fields.each(blank & ~unread, lambda i: fields.fault(i, "tier", "is blank", f"write one of {', '.join(tiers)}"))
    stray = np.flatnonzero((at == -1) & ~blank)
    _stray(
        fields,
        "tier",
        [(str(texts[int(i)].as_py()), int(i)) for i in stray],
        unknown,
        lambda value: (
            f"{quoted(value)} is not {_a(noun)} of the study ({', '.join(tiers)}){did_you_mean(value, tiers)}",
            f"correct the name, add the {noun} to the study, or remove its rows",
        ),
    )
    return at


def _stray(
    fields: Fields,
    field: str,
    found: Sequence[tuple[str, int]],
    unknown: Unknown,
    say: Callable[[str], tuple[str, str]],
) -> None:
    """One fault per value that is not known, at its first row and with the number of its rows; or one notice."""
    rows: dict[str, list[int]] = {}
    for value, i in found:
        rows.setdefault(value, []).append(i)
    if not rows:
        return
    if unknown == "notice":
        shown = listed([quoted(value, 40) for value in rows], 5)
        fields.table.notices.append(
            f"{fields.table.file}: {len(found):,} row{'' if len(found) == 1 else 's'} not used, their "
            f"{fields.name(field)} is not in the study: {shown}"
        )
        return
    values = list(rows)

    def make(k: int) -> Fault:
        value = values[k]
        what, fix = say(value)
        at = rows[value]
        also = f"; {len(at):,} rows have it" if len(at) > 1 else ""
        return fields.fault(at[0], field, what + also, fix)

    fields.faults.each(range(len(values)), make)


def damaged_ids(fields: Fields, field: str = "id") -> set[str] | None:
    """Ids of the rows that could not be read; None where the id of one of them is not known."""
    table = fields.table
    column = fields.name(field)
    order = list(table.columns)
    at = order.index(column) if column in order else len(order)
    if any(at >= len(row.cells) for row in table.damaged):
        return None
    return {nfc(row.cells[at]) for row in table.damaged}


def without_row(fields: Fields, item: npt.NDArray[np.int64], ids: Sequence[str]) -> npt.NDArray[np.int64]:
    """Items that no row is for; those whose row could not be read have a fault already and are not among them."""
    spoilt = damaged_ids(fields)
    if spoilt is None:
        return np.zeros(0, dtype=np.int64)
    have = np.zeros(len(ids), dtype=bool)
    have[item[item >= 0]] = True
    lack = np.flatnonzero(~have)
    return lack if not spoilt else np.array([i for i in lack if nfc(ids[int(i)]) not in spoilt], dtype=np.int64)


def missing_list(names: Sequence[str], at: npt.NDArray[np.int64], notes: Sequence[str] | None = None) -> str:
    """Names of the items at `at`, with a note in brackets each, cut after 20."""
    shown = [
        quoted(names[int(i)], 60)[1:-1] + (f" ({notes[k]})" if notes is not None else "")
        for k, i in enumerate(at[:20])
    ]
    rest = len(at) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
