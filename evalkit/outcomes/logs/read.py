"""Read log files: every record in whatever known format it is, with all faults of a file in one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from evalkit.errors import Fault, InputError, visible
from evalkit.outcomes.logs.call import LoggedCall
from evalkit.outcomes.logs.registry import RECORD_FORMATS, SPAN_FORMATS, calls_in
from evalkit.tabular.faults import Faults
from evalkit.tabular.ids import is_rounded, rounded_words
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.source import Located, check_encoding, decoded_lines, locate, open_binary
from evalkit.tabular.spread import spread

__all__ = ["LoggedCalls", "read_logs"]

_MOST_LEVELS = 60
_CONTAINERS = (dict, list)
_LISTS = ("data", "observations", "records", "rows")
_CLIMB = 100
_PART_LINES = 500
_PART_CHARACTERS = 2**20
_LEAST_PARTS = 6  # fewer are read before another process has started
_Parents = dict[tuple[str, str], tuple[str, str]]
INSIDE = "a call around another call, which is the one that counts"


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

    def extend(self, more: LoggedCalls) -> None:
        """Add what stands behind, as if it had been read here."""
        self.calls += more.calls
        self.places += more.places
        self.records += more.records
        self.unmapped.update(more.unmapped)
        for kind, example in more.examples.items():
            self.examples.setdefault(kind, example)


class _Part(NamedTuple):
    """Lines of a file that stand together, the first of them line `line`, with `row` rows before it."""

    file: str
    line: int
    row: int
    lines: list[str]


class _Mapped(NamedTuple):
    """What a part holds: its calls, which span stands in which, and its damaged lines."""

    found: LoggedCalls
    parents: _Parents
    faults: list[Fault]


def read_logs(files: Sequence[str | Path], *, encoding: str | None = None) -> LoggedCalls:
    """Every call of the files (.jsonl, .json or .csv, each may be .gz).

    A JSON document is one record, a list of them, or an object with a list under `data`. A record that stands
    twice with the same content counts once. Raises `InputError` with all faults of all files: damaged lines, ids
    that stand twice with different content, and files without any call.
    """
    found = LoggedCalls()
    parents: _Parents = {}
    faults: list[Fault] = []
    for file in files:
        try:
            _read_file(file, encoding, found, parents)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    _leave_out_outer(found, parents)
    _once(found, str(files[0]) if files else "")
    if not found.calls:
        names = ", ".join([known.name for known in RECORD_FORMATS] + [known.name for known in SPAN_FORMATS])
        why = "; ".join(f"{kind}: {n:,} ({found.examples[kind]})" for kind, n in found.unmapped.items())
        raise InputError(
            Fault(f"holds no call of a known format: {why or 'no records'}", f"give an export of {names}",
                  file=", ".join(str(file) for file in files[:3]))
        )  # fmt: skip
    return found


def _read_file(file: str | Path, encoding: str | None, found: LoggedCalls, parents: _Parents) -> None:
    located = locate(file)
    faults = Faults(located.file)
    if located.format not in {"json", "jsonl", "csv"}:
        faults.stop(Fault("is no log that can be read", "export it as JSON, JSONL or CSV", file=located.file))
    encoding = check_encoding(encoding, located.file)
    if located.format == "csv":
        from evalkit.outcomes.logs.csv_records import csv_records

        for line, record in csv_records(located, encoding, faults):
            _map(f"{located.file}:{line}", record, found, parents)
    else:
        with open_binary(located) as stream:
            if located.format == "jsonl":
                _read_lines(located, stream, encoding, found, parents, faults)
            else:
                _read_document(located, stream, encoding, found, parents, faults)
    faults.raise_if_any()


def _map(place: str, record: Any, found: LoggedCalls, parents: _Parents) -> None:
    found.records += 1

    def note(kind: str, detail: str) -> None:
        found.note(place, kind, detail)

    if not isinstance(record, dict):
        note("a record that is no object", "")
        return
    for call in calls_in(record, note, parents):
        found.calls.append(call)
        found.places.append(place)


def _read_document(
    located: Located, stream: IO[bytes], encoding: str, found: LoggedCalls, parents: _Parents, faults: Faults
) -> None:
    text = "".join(decoded_lines(stream, encoding, faults))
    try:
        document = _parsed(text)
    except StrictJSONError as error:
        if "Extra data" in str(error):  # lines of JSON under the name of a document
            _gather(_parts(located.file, text.splitlines()), found, parents, faults)
            return
        faults.stop(Fault(str(error), "write the file again as strict JSON", file=located.file))
    if isinstance(document, Mapping):
        inner = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
        document = [document] if inner is None else inner
    for row, record in enumerate(document if isinstance(document, list) else [document], start=1):
        _map(f"{located.file}, record {row}", record, found, parents)


def _read_lines(
    located: Located, stream: IO[bytes], encoding: str, found: LoggedCalls, parents: _Parents, faults: Faults
) -> None:
    """Read until the end, or until what is no text, which is told with the damaged lines before it."""
    end = Faults(located.file)

    def lines() -> Iterator[str]:
        try:
            yield from decoded_lines(stream, encoding, end)
        except InputError:
            if not end:
                raise

    _gather(_parts(located.file, lines()), found, parents, faults)
    for fault in end:
        faults.stop(fault)


def _parts(file: str, lines: Iterable[str]) -> Iterator[_Part]:
    held: list[str] = []
    first, row, rows, size = 1, 0, 0, 0
    for number, line in enumerate(lines, start=1):
        held.append(line)
        rows += not line.isspace() and line != ""
        size += len(line)
        if len(held) == _PART_LINES or size >= _PART_CHARACTERS:
            yield _Part(file, first, row, held)
            held, first, row, size = [], number + 1, rows, 0
    if held:
        yield _Part(file, first, row, held)


def _gather(parts: Iterator[_Part], found: LoggedCalls, parents: _Parents, faults: Faults) -> None:
    for mapped in spread(_map_part, parts, least=_LEAST_PARTS):
        found.extend(mapped.found)
        parents.update(mapped.parents)
        for fault in mapped.faults:
            faults.add(fault, "line")


def _map_part(part: _Part) -> _Mapped:
    made = _Mapped(LoggedCalls(), {}, [])
    row = part.row
    for number, line in enumerate(part.lines, start=part.line):
        if not line.strip():
            continue
        row += 1
        try:
            record = _parsed(line)
        except StrictJSONError as error:
            fix = "write one strict JSON object a line, or remove the line"
            made.faults.append(Fault(str(error), fix, file=part.file, line=number, row=row))
            continue
        _map(f"{part.file}:{number}", record, made.found, made.parents)
    return made


def _parsed(text: str) -> Any:
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


def _leave_out_outer(found: LoggedCalls, parents: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """Two instruments may record one call, one span inside the other: the inner one is the request."""
    spans = {call.span for call in found.calls if call.span is not None}
    outer = set()
    for call in found.calls:
        at = call.parent
        for _ in range(_CLIMB):
            if at is None or (at in spans and at != call.span):
                break
            at = parents.get(at)
        if at is not None and at in spans and at != call.span:
            outer.add(at)
    _keep(found, [call.span not in outer for call in found.calls], INSIDE)


def _place(place: str) -> tuple[str, int | None]:
    """File and line of `file:line`; the line is None where a document has none."""
    file, _, line = place.rpartition(":")
    return (file, int(line)) if file and line.isdigit() else (place, None)


def _once(found: LoggedCalls, file: str) -> None:
    seen: dict[tuple[str, str | None], int] = {}
    keep: list[bool] = []
    faults = Faults(file)
    for i, call in enumerate(found.calls):
        first = seen.setdefault((call.id, call.model), i)
        keep.append(first == i)
        if is_rounded(call.id):
            file, line = _place(found.places[i])
            what, fix = rounded_words(call.id)
            faults.add(Fault(what, fix, file=file, line=line, id=call.id), "rounded id")
        elif first != i and found.calls[first] != call:
            what = f"the id also stands on {found.places[first]}, with other content"
            fix = "give each request its own id, or import the files one by one"
            file, line = _place(found.places[i])
            faults.add(Fault(what, fix, file=file, line=line, id=call.id), "repeated id")
    faults.raise_if_any()
    _keep(found, keep, "a record that stands twice with the same content")


def _keep(found: LoggedCalls, keep: Sequence[bool], kind: str) -> None:
    for kept, place in zip(keep, found.places, strict=True):
        if not kept:
            found.note(place, kind, "")
    found.calls = [call for call, kept in zip(found.calls, keep, strict=True) if kept]
    found.places = [place for place, kept in zip(found.places, keep, strict=True) if kept]
