"""Read log files: every record in whatever known format it is, with all faults of a file in one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from evalkit.errors import Fault, InputError
from evalkit.outcomes.logs.records import LoggedCalls, Parents, Part, map_part, map_record, parsed, parts_of
from evalkit.outcomes.logs.registry import RECORD_FORMATS, SPAN_FORMATS
from evalkit.tabular.faults import Faults
from evalkit.tabular.ids import is_rounded, rounded_words
from evalkit.tabular.json_rows import StrictJSONError
from evalkit.tabular.source import Located, check_encoding, decoded_lines, locate, open_binary
from evalkit.tabular.spread import spread

__all__ = ["LoggedCalls", "read_logs"]

_LISTS = ("data", "observations", "records", "rows")
_CLIMB = 100
_LEAST_PARTS = 6  # fewer are read before another process has started
INSIDE = "a call around another call, which is the one that counts"


class _Source:
    """One file, and what is wrong with it."""

    def __init__(self, file: str | Path, encoding: str | None) -> None:
        self.records = Faults(str(file))
        self.end = Faults(str(file))
        """What is no text: nothing behind it was read."""
        self.lost: tuple[Fault, ...] = ()
        """Why nothing of the file counts."""
        self.encoding = ""
        self.located: Located | None = None
        try:
            located = locate(file)
            if located.format not in {"json", "jsonl", "csv"}:
                what, fix = "is no log that can be read", "export it as JSON, JSONL or CSV"
                raise InputError(Fault(what, fix, file=located.file))
            self.encoding = check_encoding(encoding, located.file)
            self.located = located
        except InputError as error:
            self.lost = tuple(error.faults)

    @property
    def of_lines(self) -> bool:
        """Whether each line is a record, so that the lines can be read by several processes."""
        return self.located is not None and self.located.format == "jsonl"

    def lines(self) -> Iterator[str]:
        """The lines until the end, or until what is no text."""
        if self.located is None:
            return
        try:
            with open_binary(self.located) as stream:
                yield from decoded_lines(stream, self.encoding, self.end)
        except InputError as error:
            if not self.end:
                self.lost = tuple(error.faults)

    def faults(self) -> Sequence[Fault]:
        """All of them: of the file itself, or those of its records and then what is no text."""
        if self.lost:
            return self.lost
        for fault in self.end:
            self.records.add(fault)
        try:
            self.records.raise_if_any()
        except InputError as error:
            return error.faults
        return ()


def read_logs(files: Sequence[str | Path], *, encoding: str | None = None) -> LoggedCalls:
    """Every call of the files (.jsonl, .json or .csv, each may be .gz).

    A JSON document is one record, a list of them, or an object with a list under `data`. A record that stands
    twice with the same content counts once. Raises `InputError` with all faults of all files: damaged lines, ids
    that stand twice with different content, and files without any call.
    """
    found = LoggedCalls()
    parents: Parents = {}
    sources = [_Source(file, encoding) for file in files]
    for of_lines, together in groupby(sources, key=lambda source: source.of_lines):
        if of_lines:
            _read_lines(list(together), found, parents)
        else:
            for source in together:
                _read_whole(source, found, parents)
    faults = [fault for source in sources for fault in source.faults()]
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


def _read_whole(source: _Source, found: LoggedCalls, parents: Parents) -> None:
    """Read a file that is not one record a line."""
    if source.located is None:
        return
    try:
        if source.located.format == "csv":
            from evalkit.outcomes.logs.csv_records import csv_records

            for line, record in csv_records(source.located, source.encoding, source.records):
                map_record(f"{source.located.file}:{line}", record, found, parents)
        else:
            _read_document(source, source.located, found, parents)
        source.records.raise_if_any()
    except InputError as error:
        source.lost = tuple(error.faults)


def _read_document(source: _Source, located: Located, found: LoggedCalls, parents: Parents) -> None:
    with open_binary(located) as stream:
        text = "".join(decoded_lines(stream, source.encoding, source.records))
    try:
        document = parsed(text)
    except StrictJSONError as error:
        if "Extra data" in str(error):  # lines of JSON under the name of a document
            _gather(parts_of(0, located.file, text.splitlines()), [source], found, parents)
            return
        source.records.stop(Fault(str(error), "write the file again as strict JSON", file=located.file))
    if isinstance(document, Mapping):
        inner = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), None)
        document = [document] if inner is None else inner
    for row, record in enumerate(document if isinstance(document, list) else [document], start=1):
        map_record(f"{located.file}, record {row}", record, found, parents)


def _read_lines(sources: Sequence[_Source], found: LoggedCalls, parents: Parents) -> None:
    """Read files of one record a line. Where lines are damaged, those behind them are read for their faults."""
    parts = (
        part for at, source in enumerate(sources) for part in parts_of(at, source.records.file, source.lines())
    )
    _gather(parts, sources, found, parents)


def _gather(parts: Iterator[Part], sources: Sequence[_Source], found: LoggedCalls, parents: Parents) -> None:
    for mapped in spread(map_part, parts, least=_LEAST_PARTS):
        found.extend(mapped.found)
        parents.update(mapped.parents)
        for fault in mapped.faults:
            sources[mapped.source].records.add(fault, "line")


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
