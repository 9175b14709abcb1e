"""The replies that a verifier sees: of an outcome file only what is there before anybody judged it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault
from evalkit.grading.items import Item
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.columns import MOST_USD
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import positions, read_ids
from evalkit.tabular.names import quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve

__all__ = ["BLIND_FIELDS", "ReplyRow", "TierReplies", "blind_items", "read_replies"]

BLIND_FIELDS = ("id", "tier", "sample", "reply", "cost_usd", "mean_logprob")
"""All that is read of an outcome file. Status, score and passed are not among them."""

_SCHEMA = Schema(required=("id", "tier"), optional=BLIND_FIELDS[2:], aliases={"tier": "arm"})


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """One sample of one item by one tier. text: None where there was no reply; the numbers: None where unknown."""

    sample: int
    text: str | None
    cost_usd: float | None
    mean_logprob: float | None


@dataclass(frozen=True)
class TierReplies:
    """The replies of one tier: `rows` (N items), each in the order of its samples."""

    tier: str
    rows: tuple[tuple[ReplyRow, ...], ...]

    def first(self, item: int) -> ReplyRow | None:
        """The one that production would have sent on: the first sample."""
        return self.rows[item][0] if self.rows[item] else None


def blind_items(labels: LabelSet) -> tuple[Item, ...]:
    """The items as they are when a reply has to be verified: no reference, label, risk class or metadata."""
    return tuple(
        Item(
            id=name,
            prompt=labels.prompts[i],
            category=None if labels.category is None else labels.category[i],
            messages=tuple((None if labels.messages is None else labels.messages[i]) or ()),
            line=None if labels.lines is None else int(labels.lines[i]),
        )
        for i, name in enumerate(labels.ids)
    )


def read_replies(
    source: str | Path,
    *,
    ids: Sequence[str],
    tiers: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> tuple[TierReplies, ...]:
    """The replies of `ids` by each of `tiers` in an outcome file; other ids and tiers are passed over.

    Raises `InputError` with every fault of the file: columns that are missing, numbers that are none, a sample
    that stands there twice.
    """
    faults = Faults(str(source))
    mapped = {name: column for name, column in (columns or {}).items() if name in {*BLIND_FIELDS, "arm"}}
    table = read_table(source, encoding=encoding, faults=faults, id_column=mapped.get("id", "id"))
    names = resolve(table, _SCHEMA, mapped, faults)
    fields = Fields(table, names, faults)
    if "id" not in names or "tier" not in names:
        faults.raise_all()
    row_ids, tier = read_ids(fields), fields.texts("tier").to_pylist()
    sample = fields.numbers("sample", minimum=0, maximum=1e9) if fields.has("sample") else None
    cost = fields.numbers("cost_usd", minimum=0, maximum=MOST_USD) if fields.has("cost_usd") else None
    mean = fields.numbers("mean_logprob", minimum=-1e9, maximum=0) if fields.has("mean_logprob") else None
    text = fields.texts("reply").to_pylist() if fields.has("reply") else [None] * table.n_rows
    if sample is not None:
        broken = np.isfinite(sample) & (sample != np.floor(sample))
        fields.each(
            broken, lambda i: fields.fault(i, "sample", "is no whole number", "number the samples 0, 1, 2")
        )
    place = positions(row_ids, ids)
    found: dict[tuple[str, int], dict[int, ReplyRow]] = {}
    for i in np.flatnonzero(place >= 0).tolist():
        if tier[i] not in tiers:
            continue
        rows = found.setdefault((str(tier[i]), int(place[i])), {})
        number = _sample(sample, i, len(rows))
        if number in rows:
            what = f"{quoted(row_ids[i].as_py())} has sample {number} of {quoted(str(tier[i]))} twice"
            faults.add(fields.fault(i, "sample", what, "keep one row for each sample"), "repeated sample")
        rows[number] = ReplyRow(number, text[i] or None, _known(cost, i), _known(mean, i))
    faults.raise_if_any()
    if not found:
        what = f"holds no row of the study's items by {', '.join(tiers)}"
        faults.stop(Fault(what, "name the outcomes of this study, with the replies", file=table.file))
    return tuple(
        TierReplies(
            name, tuple(tuple(row for _, row in sorted(found.get((name, i), {}).items())) for i in range(len(ids)))
        )
        for name in tiers
    )


def _sample(column: NDArray[np.float64] | None, i: int, default: int) -> int:
    if column is None or np.isnan(column[i]):
        return default
    return int(column[i])


def _known(column: NDArray[np.float64] | None, i: int) -> float | None:
    return None if column is None or np.isnan(column[i]) else float(column[i])
