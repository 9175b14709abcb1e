"""What each annotator said of each item, from a column of labels or from one file an annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import UNSOLVABLE, LabelSet
from evalkit.tabular.names import nearest, nfc, quoted

__all__ = ["Ratings", "ratings_of_column", "ratings_of_files"]

_MOST_SHOWN = 100


@dataclass(frozen=True)
class Ratings:
    """values (items, annotators): position of the tier, len(tiers) for unsolvable, NaN where none was given.

    risk (items,): position of the risk class, -1 where the classes are not known. group: conversations, or None.
    """

    annotators: tuple[str, ...]
    ids: tuple[str, ...]
    values: NDArray[np.float64]
    risk: NDArray[np.int16]
    group: tuple[str | None, ...] | None
    tiers: tuple[str, ...]
    risk_classes: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The categories in order: tiers, then unsolvable, which no tier reaches."""
        return (*self.tiers, UNSOLVABLE)


def ratings_of_column(labels: LabelSet) -> Ratings:
    """The ratings of the column `labels`: per item an object {annotator: tier}, or a list of tiers in order.

    Raises `InputError` with a fault for each label that is no tier, and where there is no such column or fewer
    than two annotators.
    """
    if labels.annotations is None:
        fix = "add a column labels with what each annotator said, or give two files"
        raise InputError(Fault("has no column labels", fix, file=labels.file, field="labels"))
    place = {name: i for i, name in enumerate((*labels.tiers, UNSOLVABLE))}
    faults: list[Fault] = []
    rows: list[dict[str, float]] = []
    for i, given in enumerate(labels.annotations):
        rows.append(_row(labels, i, given, place, faults))
    if faults:
        rest = len(faults) - _MOST_SHOWN
        if rest > 0:
            more = Fault(f"{rest:,} more labels have a fault", "put those named right first", file=labels.file)
            faults = [*faults[:_MOST_SHOWN], more]
        raise InputError(faults)
    annotators = sorted({name for row in rows for name in row})
    if len(annotators) < 2:
        what = f"has labels of {len(annotators)} annotator{'' if len(annotators) == 1 else 's'}"
        raise InputError(Fault(what, "agreement needs two or more", file=labels.file, field="labels"))
    values = np.array([[row.get(name, np.nan) for name in annotators] for row in rows], dtype=np.float64)
    return Ratings(
        tuple(annotators), labels.ids, values.reshape(len(rows), len(annotators)), labels.risk, labels.group,
        labels.tiers, labels.risk_classes, labels.notices,
    )  # fmt: skip


def _row(labels: LabelSet, i: int, given: Any, place: dict[str, int], faults: list[Fault]) -> dict[str, float]:
    line = None if labels.lines is None else int(labels.lines[i])

    def fault(what: str, fix: str) -> None:
        faults.append(Fault(what, fix, file=labels.file, line=line, row=i + 1, id=labels.ids[i], field="labels"))

    if given is None:
        return {}
    if isinstance(given, list):
        given = {f"annotator {k + 1}": value for k, value in enumerate(given)}
    if not isinstance(given, dict):
        fault(f"{quoted(given)} is no object", 'write {"annotator": "tier", ...}')
        return {}
    out: dict[str, float] = {}
    for name, value in given.items():
        if value is None or value == "":
            continue
        text = nfc(value) if isinstance(value, str) else None
        if text is None or text not in place:
            close = nearest(str(value), list(place), 1)
            fault(
                f"{quoted(value)} of annotator {quoted(name)} is not a tier (allowed: {', '.join(place)})",
                f"write {close[0]}" if close else "write one of the tiers, or leave it out",
            )
            continue
        out[nfc(str(name))] = float(place[text])
    return out


def ratings_of_files(first: LabelSet, second: LabelSet, names: Sequence[str]) -> Ratings:
    """The required tiers of two files as two annotators, on the ids that both have.

    Raises `InputError` where no id is in both. Risk and group are those of the first; items of another risk class
    in the second are counted in the notices, so are ids that stand in one file only.
    """
    where = {name: i for i, name in enumerate(second.ids)}
    both = [i for i, name in enumerate(first.ids) if name in where]
    if not both:
        fix = "give two files that label the same items"
        raise InputError(Fault(f"shares no id with {quoted(first.file)}", fix, file=second.file, field="id"))
    other = [where[first.ids[i]] for i in both]
    values = np.stack([first.required[both], second.required[other]], axis=1).astype(np.float64)
    values[values < 0] = np.nan
    notices = [*first.notices, *second.notices]
    alone = len(first) + len(second) - 2 * len(both)
    if alone:
        notices.append(f"{alone:,} ids stand in one of the two files only and are not compared")
    differ = int((first.risk[both] != second.risk[other]).sum())
    if differ:
        notices.append(
            f"{differ:,} items have another risk class in {second.file}; those of {first.file} are used"
        )
    return Ratings(
        (names[0], names[1]), tuple(first.ids[i] for i in both), values, first.risk[both],
        None if first.group is None else tuple(first.group[i] for i in both),
        first.tiers, first.risk_classes, tuple(notices),
    )  # fmt: skip
