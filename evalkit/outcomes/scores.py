"""Read router and verifier scores: one row per item, no item left out, none twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evalkit.errors import Fault
from evalkit.outcomes.align import item_positions, missing_list, without_row
from evalkit.outcomes.columns import MOST_USD
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.fingerprint import Fingerprint, order_of
from evalkit.tabular.ids import read_ids, repeated
from evalkit.tabular.names import did_you_mean, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve

__all__ = ["SCORE_SCHEMA", "Scores", "read_scores"]

Floats = npt.NDArray[np.float64]
MissingScores = Literal["escalate", "cheapest"]

MOST_SCORE = 1e300
"""Beyond the largest score another float is needed, for the threshold that nobody reaches."""
_BY_TIER = "score_"
_VERIFIER = "verifier_usd_"
SCORE_SCHEMA = Schema(required=("id",), optional=("score",), prefixes=(_BY_TIER, _VERIFIER))


@dataclass(frozen=True)
class Scores:
    """Scores aligned with the labelled items (N), in the user's own units and direction.

    `score` is None where the file has none; `by_tier` has the verifier's score of that tier's reply,
    `verifier_usd` what judging it cost (NaN unknown). A score is NaN only for `missing_ids`, the items without a
    score that the study treats by `missing`.
    """

    file: str
    score: Floats | None
    by_tier: Mapping[str, Floats] = field(default_factory=dict)
    verifier_usd: Mapping[str, Floats] = field(default_factory=dict)
    missing_ids: tuple[str, ...] = ()
    fingerprint: str = ""
    notices: tuple[str, ...] = ()


def read_scores(
    source: str | Path,
    *,
    ids: Sequence[str],
    tiers: Sequence[str],
    cascade: bool,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    missing: MissingScores | None = None,
    probability: bool = False,
    risk: Sequence[str] | None = None,
    weight: Sequence[float] | npt.NDArray[np.float64] | None = None,
    left_out: Sequence[str] = (),
) -> Scores:
    """Read the scores of `ids` from CSV, JSONL or Parquet with columns `id` and `score`.

    With `cascade`, `score_<tier>` for every tier but the top may stand instead of `score`, and
    `verifier_usd_<tier>` beside them. Scores are finite numbers; 0 to 1 only where the study declares a
    `probability`. Missing, unknown and repeated ids are input errors that list them (with their `risk` and
    `weight`, if given); `missing` says what production does with items that have no score, or NaN. Rows of items
    that are `left_out` are not used.

    Raises `InputError` with every fault of the file.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    names = resolve(table, SCORE_SCHEMA, columns, faults)
    fields = Fields(table, names, faults)
    wanted = _wanted(fields, tiers, cascade)
    if "id" not in names or not wanted:
        faults.raise_all()
    row_ids = read_ids(fields)
    known = normalised(pa.array(list(ids), pa.large_string()))
    item = item_positions(fields, row_ids, known, ids, "error", "score", left_out)
    blank = None if missing else "write the score, or say missing_scores: escalate or cheapest in the study"
    columns_read = {
        name: fields.numbers(
            name,
            minimum=0 if probability else -MOST_SCORE,
            maximum=1 if probability else MOST_SCORE,
            blank=blank,
            nan_is_blank=missing is not None,
            says="the study declares a probability" if probability else "a threshold must fit beyond it",
        )
        for name in wanted
    }
    costs = {
        f"{_VERIFIER}{tier}": fields.numbers(
            f"{_VERIFIER}{tier}", minimum=0, maximum=MOST_USD, says="it is the USD of one verification"
        )
        for tier in tiers
        if fields.has(f"{_VERIFIER}{tier}")
    }
    _repeated(fields, row_ids, wanted)
    lack = _missing(fields, item, len(ids), columns_read)
    if missing is None:
        _missing_fault(fields, item, ids, risk, weight)
    faults.raise_if_any()
    if len(lack) == len(ids):
        faults.stop(Fault("no item has a score", "check the ids and the column", file=table.file))
    order = order_of(row_ids)
    mark = Fingerprint("scores", order)
    mark.texts("id", row_ids)
    for name, values in sorted({**columns_read, **costs}.items()):
        mark.numbers(name, values)
    grid = {name: _spread(item, values, len(ids)) for name, values in {**columns_read, **costs}.items()}
    return Scores(
        file=table.file,
        score=grid.get("score"),
        by_tier={t: grid[f"{_BY_TIER}{t}"] for t in tiers if f"{_BY_TIER}{t}" in grid},
        verifier_usd={t: grid[f"{_VERIFIER}{t}"] for t in tiers if f"{_VERIFIER}{t}" in grid},
        missing_ids=tuple(ids[int(i)] for i in lack),
        fingerprint=mark.hexdigest(),
        notices=(*table.notices, *_notices(fields, columns_read, ids, lack, missing)),
    )


def _wanted(fields: Fields, tiers: Sequence[str], cascade: bool) -> list[str]:
    """The score columns to read; faults for those that are missing or name no tier."""
    table, faults = fields.table, fields.faults
    below = list(tiers[:-1])
    for name in list(fields.names):
        prefix = next((p for p in (_BY_TIER, _VERIFIER) if name.startswith(p)), None)
        if prefix is None:
            continue
        tier = name.removeprefix(prefix)
        if tier not in tiers:
            faults.add(
                Fault(
                    f"{quoted(tier)} is not a tier of the study ({', '.join(tiers)}){did_you_mean(tier, tiers)}",
                    "correct the name of the column, or remove it",
                    file=table.file,
                    field=fields.name(name),
                )
            )
        elif tier not in below or not cascade:
            why = "the top tier is not verified" if cascade else "the policy is direct"
            table.notices.append(f"{table.file}: the column {quoted(fields.name(name))} is not used: {why}")
    by_tier = [f"{_BY_TIER}{t}" for t in below if cascade and fields.has(f"{_BY_TIER}{t}")]
    if by_tier and len(by_tier) < len(below):
        lacking = [f"{_BY_TIER}{t}" for t in below if not fields.has(f"{_BY_TIER}{t}")]
        faults.add(
            Fault(
                f"there is no column {listed([quoted(n) for n in lacking])}; the file has {listed(by_tier)}",
                "score the replies of every tier but the top, or give one column score",
                file=table.file,
            )
        )
        return []
    if not by_tier and not fields.has("score"):
        if not any(f.field == "score" for f in faults):
            has = listed([quoted(c, 40) for c in table.columns], 20)
            faults.add(
                Fault(
                    f'there is no column "score"{did_you_mean("score", list(table.columns))}; the file has {has}',
                    "name the column that holds it: columns: {score: ...}",
                    file=table.file,
                    field="score",
                )
            )
        return []
    return [*(["score"] if fields.has("score") else []), *by_tier]


def _repeated(fields: Fields, ids: pa.Array, wanted: Sequence[str]) -> None:
    pairs = [(int(group[0]), int(i)) for group in repeated(ids) for i in group[1:]]
    name = wanted[0]

    def make(k: int) -> Fault:
        first, i = pairs[k]
        return fields.fault(
            i,
            "id",
            f"{quoted(ids[i].as_py())} also stands on {fields.table.place(first)}; the scores are "
            f"{quoted(fields.raw(name, first))} and {quoted(fields.raw(name, i))}",
            "keep one score per item",
        )

    fields.faults.each(range(len(pairs)), make)


def _missing(
    fields: Fields, item: npt.NDArray[np.int64], n: int, columns: Mapping[str, Floats]
) -> npt.NDArray[np.int64]:
    """Items without a row, or whose row lacks a score."""
    whole = np.zeros(n, dtype=bool)
    sound = np.ones(len(item), dtype=bool)
    for values in columns.values():
        sound &= ~np.isnan(values)
    whole[item[(item >= 0) & sound]] = True
    return np.flatnonzero(~whole)


def _missing_fault(
    fields: Fields,
    item: npt.NDArray[np.int64],
    ids: Sequence[str],
    risk: Sequence[str] | None,
    weight: Sequence[float] | npt.NDArray[np.float64] | None,
) -> None:
    """One fault that lists the items without a row (a blank score in a row has its own)."""
    lack = without_row(fields, item, ids)
    if not len(lack):
        return
    notes = None
    if risk is not None:
        notes = [risk[int(i)] + (f", weight {weight[int(i)]:g}" if weight is not None else "") for i in lack]
    count = len(lack)
    fields.faults.add(
        Fault(
            f"{count:,} of {len(ids):,} labelled items {'has' if count == 1 else 'have'} no score: "
            f"{missing_list(ids, lack, notes)}",
            "score them, or say missing_scores: escalate or cheapest in the study, as production does",
            file=fields.table.file,
            field=fields.name("score"),
        )
    )


def _spread(item: npt.NDArray[np.int64], values: Floats, n: int) -> Floats:
    out = np.full(n, np.nan)
    used = item >= 0
    out[item[used]] = values[used]
    return out


def _notices(
    fields: Fields,
    columns: Mapping[str, Floats],
    ids: Sequence[str],
    lack: npt.NDArray[np.int64],
    missing: MissingScores | None,
) -> list[str]:
    file = fields.table.file
    notes = []
    for name, values in columns.items():
        seen = values[~np.isnan(values)]
        if len(seen) > 1 and (seen == seen[0]).all():
            which = "" if len(columns) == 1 else f" in {fields.name(name)}"
            notes.append(
                f"{file}: all {len(seen):,} scores{which} equal {seen[0]:g}: the score carries no information"
            )
    if len(lack) and missing is not None:
        count = len(lack)
        how = "escalated" if missing == "escalate" else "sent to the cheapest tier"
        notes.append(
            f"{file}: {count:,} quer{'y' if count == 1 else 'ies'} without score, treated as {how}: "
            f"{missing_list(ids, lack)}"
        )
    return notes
