"""What every importer shares: fields and units, cells that can be read or not, the rows of the outcome table.

What cannot be mapped is counted and listed, never guessed: a blank or odd mark of right or wrong makes no row, an
odd cost is left unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalkit.errors import Fault, InputError
from evalkit.outcomes.columns import OUTCOME_FIELDS
from evalkit.outcomes.status import Status
from evalkit.tabular.faults import SHOWN_PER_KIND, listed
from evalkit.tabular.fields import parse_number
from evalkit.tabular.names import nfc, quoted

__all__ = ["TEXT_FIELDS", "Cell", "Imported", "MarkKind", "Measure", "RowBuilder", "mark_kind", "read_mark"]

TEXT_FIELDS = ("status", "model", "error", "reply")

_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of the source: the field it becomes, its column or key there, and what divides it to the unit."""

    field: str
    source: str
    divisor: float = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in a source and what stands there, for the list of what could not be mapped."""

    where: str
    value: Any


@dataclass(frozen=True)
class Imported:
    """An outcome table: `columns` in the order of `OUTCOME_FIELDS`, all of one length.

    `passes` counts, per tier, rows that are marked right, wrong, or by a score; `unmapped` counts cells by reason
    and `examples` lists the first of each. `labels` are the columns kept for a labels file.
    """

    columns: Mapping[str, list[Any]]
    items: int
    tiers: tuple[str, ...]
    passes: Mapping[str, Mapping[str, int]]
    unmapped: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, list[str]] = field(default_factory=dict)
    labels: Mapping[str, list[Any]] | None = None
    notices: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["id"])


class MarkKind:
    """How a source marks right and wrong: words or 1 and 0 (`PASSED`), or a number from 0 to 1 (`SCORE`)."""

    PASSED = "passed"
    SCORE = "score"


def mark_kind(values: Sequence[Any]) -> str:
    """`SCORE` where any value is a number strictly between 0 and 1, else `PASSED`."""
    for value in values:
        number = _number(value)
        if number is not None and 0 < number < 1:
            return MarkKind.SCORE
    return MarkKind.PASSED


def read_mark(value: Any, kind: str) -> bool | float | None:
    """The mark as bool (`PASSED`) or float from 0 to 1 (`SCORE`); None where it cannot be read as that."""
    if kind == MarkKind.PASSED:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip() in _WORDS:
            return _WORDS[value.strip()]
        number = _number(value)
        return None if number not in (0.0, 1.0) else number == 1.0
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    return parse_number(value) if isinstance(value, str) else None


class RowBuilder:
    """Gathers outcome rows and what could not be mapped."""

    def __init__(self, file: str, tiers: Sequence[str]) -> None:
        self.file = file
        self.tiers = tuple(nfc(t) for t in tiers)
        self._rows: list[dict[str, Any]] = []
        self._seen: dict[tuple[str, str, int], str] = {}
        self._faults: list[Fault] = []
        self.unmapped: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.notices: list[str] = []

    def cannot(self, reason: str, cell: Cell) -> None:
        """Count a cell that cannot be mapped; the first ones are kept as examples."""
        self.unmapped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < 10:
            shown.append(f"{cell.where}: {quoted(cell.value) if cell.value is not None else 'nothing'}")

    def add(
        self,
        item: str,
        tier: str,
        mark: Any,
        kind: str,
        where: str,
        *,
        texts: Mapping[str, Any] | None = None,
        numbers: Mapping[str, tuple[Any, float, str]] | None = None,
        sample: int | None = None,
    ) -> None:
        """Add the row of `item` and `tier`, if its mark (or a status) can be read.

        `texts` are text fields as they are; an error text without a status makes the row `error` (unanswered).
         `numbers` map a field to its value, what divides it to the unit, and
        its name in the source.
        """
        read = read_mark(mark, kind)
        said = {name: None if value in (None, "") else str(value) for name, value in (texts or {}).items()}
        status = said.get("status")
        if status is not None and status not in set(Status):
            self.cannot("a status that is not known", Cell(where, status))
            return
        passes = read is True or (kind == MarkKind.SCORE and read == 1.0)
        if said.get("error") is not None and status is None:
            if passes:
                self.cannot("both an error and a pass", Cell(where, said["error"]))
                return
            said["status"] = status = Status.ERROR.value
            read = None
        elif passes and status not in {None, Status.OK.value}:
            self.cannot("a pass beside a status that is no pass", Cell(where, status))
            return
        if read is None and status is None:
            reason = "no mark of right or wrong" if mark in (None, "") else f"a mark that is no {_kind_name(kind)}"
            self.cannot(reason, Cell(where, mark))
            return
        key = (nfc(item), nfc(tier), sample or 0)
        if key in self._seen:
            self._repeat(key, where)
            return
        self._seen[key] = where
        row: dict[str, Any] = {"id": key[0], "tier": key[1], "sample": sample}
        if read is not None:
            row["passed" if kind == MarkKind.PASSED else "score"] = read
        row |= said
        for name, (value, divisor, source) in (numbers or {}).items():
            row[name] = self._measure(value, divisor, name, f"{where}, {source}")
        self._rows.append(row)

    def _measure(self, value: Any, divisor: float, field: str, where: str) -> float | int | None:
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        number = _number(value)
        if number is None or not math.isfinite(number) or number < 0:
            self.cannot(f"{field} that is no number of 0 or more", Cell(where, value))
            return None
        if divisor == 1.0 and number.is_integer() and field.endswith(("tokens", "attempts")):
            return int(number)
        return number / divisor

    def _repeat(self, key: tuple[str, str, int], where: str) -> None:
        if len(self._faults) < SHOWN_PER_KIND:
            self._faults.append(
                Fault(
                    f"{quoted(key[0])}, tier {quoted(key[1])} stands at {self._seen[key]} and at {where}",
                    "give each item an id of its own (--id-from-row makes ids of file name and row)",
                    file=self.file,
                    id=key[0],
                )
            )

    def done(self, labels: Mapping[str, list[Any]] | None = None) -> Imported:
        """The table. Raises `InputError` where an item and tier came twice or nothing could be mapped."""
        if self._faults:
            raise InputError(self._faults)
        if not self._rows:
            why = listed([f"{n:,} with {reason}" for reason, n in self.unmapped.items()])
            raise InputError(
                Fault(
                    "no row could be mapped" + (f": {why}" if why else ""),
                    "check the names of the columns",
                    file=self.file,
                )
            )
        columns = {
            name: [row.get(name) for row in self._rows]
            for name in OUTCOME_FIELDS
            if name in {"id", "tier"} or any(row.get(name) is not None for row in self._rows)
        }
        passes: dict[str, Counter[str]] = {tier: Counter() for tier in self.tiers}
        for row in self._rows:
            seen = passes[row["tier"]]
            seen["rows"] += 1
            if row.get("passed") is not None:
                seen["right" if row["passed"] else "wrong"] += 1
            elif row.get("score") is not None:
                seen["scored"] += 1
        items = len({row["id"] for row in self._rows})
        lack = {tier: items - seen["rows"] for tier, seen in passes.items() if seen["rows"] < items}
        if lack and all(row["sample"] is None for row in self._rows):
            self.notices.append(
                "items without a row: " + ", ".join(f"{tier} {n:,} of {items:,}" for tier, n in lack.items())
            )
        return Imported(
            columns,
            items,
            self.tiers,
            passes,
            dict(self.unmapped),
            self.examples,
            labels,
            tuple(self.notices),
        )


def _kind_name(kind: str) -> str:
    return "true, false, 1 or 0" if kind == MarkKind.PASSED else "number from 0 to 1"
