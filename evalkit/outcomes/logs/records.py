"""Records of a log become calls: what is done with each line, in this process or in another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalkit.errors import Fault, visible
from evalkit.outcomes.logs.call import LoggedCall
from evalkit.outcomes.logs.registry import calls_in
from evalkit.tabular.strict_json import StrictJSONError, parse_json

__all__ = ["LoggedCalls", "Mapped", "Parents", "Part", "map_part", "map_record", "parsed", "parts_of"]

_MOST_LEVELS = 60
_CONTAINERS = (dict, list)
_PART_LINES = 500
_PART_CHARACTERS = 2**20

Parents = dict[tuple[str, str], tuple[str, str]]
"""Which span stands in which."""


@dataclass
class LoggedCalls:
    """Calls in file order, where each stands, and what could not be mapped: how often, the first of each kind."""

    calls: list[LoggedCall] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    records: int = 0
    unmapped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def note(self, place: str, kind: str, detail: str) -> None:
        """Count one that cannot be mapped."""
        self.unmapped[kind] += 1
        if kind not in self.examples:
            self.examples[kind] = f"{place}: {visible(detail, 160)}" if detail else place

    def forget_calls(self) -> None:
        """Give the memory of the calls back once tables are made of them; what could not be mapped stays."""
        self.calls, self.places = [], []

    def extend(self, more: LoggedCalls) -> None:
        """Add what stands behind, as if it had been read here."""
        self.calls += more.calls
        self.places += more.places
        self.records += more.records
        self.unmapped.update(more.unmapped)
        for kind, example in more.examples.items():
            self.examples.setdefault(kind, example)


class Part(NamedTuple):
    """Lines of a file that stand together, the first of them line `line`, with `row` rows before it.

    `source` is the place of the file among those that are read together.
    """

    source: int
    file: str
    line: int
    row: int
    lines: list[str]


class Mapped(NamedTuple):
    """What a part of the file `source` holds: its calls, which span stands in which, and its damaged lines."""

    source: int
    found: LoggedCalls
    parents: Parents
    faults: list[Fault]


def map_record(place: str, record: Any, found: LoggedCalls, parents: Parents) -> None:
    """Add the calls of a record that stands at `place` to `found`, or count why there are none."""
    found.records += 1

    def note(kind: str, detail: str) -> None:
        found.note(place, kind, detail)

    if not isinstance(record, dict):
        note("a record that is no object", "")
        return
    for call in calls_in(record, note, parents):
        found.calls.append(call)
        found.places.append(place)


def parts_of(source: int, file: str, lines: Iterable[str]) -> Iterator[Part]:
    """The lines of a file in parts of some hundred, for `map_part`."""
    held: list[str] = []
    first, row, rows, size = 1, 0, 0, 0
    for number, line in enumerate(lines, start=1):
        held.append(line)
        rows += not line.isspace() and line != ""
        size += len(line)
        if len(held) == _PART_LINES or size >= _PART_CHARACTERS:
            yield Part(source, file, first, row, held)
            held, first, row, size = [], number + 1, rows, 0
    if held:
        yield Part(source, file, first, row, held)


def map_part(part: Part) -> Mapped:
    """The calls of the lines of a part."""
    made = Mapped(part.source, LoggedCalls(), {}, [])
    row = part.row
    for number, line in enumerate(part.lines, start=part.line):
        if not line.strip():
            continue
        row += 1
        try:
            record = parsed(line)
        except StrictJSONError as error:
            fix = "write one strict JSON object a line, or remove the line"
            made.faults.append(Fault(str(error), fix, file=part.file, line=number, row=row))
            continue
        map_record(f"{part.file}:{number}", record, made.found, made.parents)
    return made


def parsed(text: str) -> Any:
    """The value of strict JSON that is not too deep to walk through; raises `StrictJSONError`."""
    value = parse_json(text)
    if text.count("[") + text.count("{") > _MOST_LEVELS and _too_deep(value):
        raise StrictJSONError(f"is nested more than {_MOST_LEVELS} levels deep")
    return value


def _too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
        if not level:
            return False
    return True
