"""Replies from recordings: exports of a ledger, or logs of other tools, replayed with no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from evalkit.errors import Fault, InputError, visible
from evalkit.providers.call import Failure, FailureKind, Provider, Reply, Request
from evalkit.providers.key import request_key
from evalkit.providers.recorded_rows import CellId, RowError, Seen, seen_in
from evalkit.providers.recordings import read_lines

__all__ = ["CellId", "RecordedProvider", "recording_files"]

_Name = TypeVar("_Name")
Identity = Mapping[str, CellId] | Callable[[Request], CellId | None]


def recording_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files meant by `paths`: each file, and of a folder its `.jsonl` and `.jsonl.gz` files by name.

    Raises `InputError` for a path that does not exist and for a folder without recordings.
    """
    found: list[Path] = []
    faults = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.name.endswith((".jsonl", ".jsonl.gz")))
            if not inside:
                faults.append(Fault("holds no .jsonl file", "name the recordings themselves", file=str(path)))
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            faults.append(Fault("does not exist", "name a recording, or a folder of them", file=str(path)))
    if faults:
        raise InputError(faults)
    return tuple(found)


class RecordedProvider:
    """Answers from recordings, and nothing else unless `otherwise` is given.

    `files` are read in their order and merged: of the lines of one call the first reply counts, in whatever file
    it stands and however new the others are; where there is none, the last failure. Calls are found by the key of
    their request, and in recordings without keys by `identity`: a mapping from keys, or a function of the request,
    to the item, candidate and sample it is of.

    What is not recorded fails with `NOT_RECORDED`, or goes to `otherwise`, as does a recorded failure that may
    pass; the provider closes it, too. `notices` tell of torn last lines. The files are never written.

    Raises `InputError` with every damaged line and every line that is neither a reply nor a failure.
    """

    def __init__(
        self, files: Iterable[Path], *, identity: Identity | None = None, otherwise: Provider | None = None
    ) -> None:
        self._identity = identity
        self._otherwise = otherwise
        self._by_key: dict[str, Reply | Failure] = {}
        self._by_cell: dict[CellId, Reply | Failure] = {}
        notices: list[str] = []
        faults: list[Fault] = []
        for path in files:
            try:
                recording = read_lines(path, name=str(path))
            except InputError as problem:
                faults += problem.faults
                continue
            if recording.notice is not None:
                notices.append(recording.notice)
            for line, row in zip(recording.lines, recording.rows, strict=True):
                try:
                    seen = seen_in(row)
                except RowError as problem:
                    fault = Fault(problem.what, problem.fix, str(path), line, field=problem.field)
                    faults.append(replace(fault, id=_own_id(row)))
                    continue
                if seen is not None:
                    self._add(seen)
        if faults:
            raise InputError(faults)
        self.notices = tuple(notices)

    def __len__(self) -> int:
        """Calls that have a reply or a failure."""
        return len(self._by_key) + len(self._by_cell)

    def _add(self, seen: Seen) -> None:
        if seen.key is not None:
            _keep(self._by_key, seen.key, seen.answer)
        elif seen.cell is not None:
            _keep(self._by_cell, seen.cell, seen.answer)

    def _find(self, request: Request) -> tuple[Reply | Failure | None, CellId | None]:
        key = request_key(request)
        cell = None
        if callable(self._identity):
            cell = self._identity(request)
        elif self._identity is not None:
            cell = self._identity.get(key)
        found = self._by_key.get(key)
        if not isinstance(found, Reply) and cell is not None:
            found = self._by_cell.get(cell, found)
        return found, cell

    def holds(self, request: Request) -> bool:
        """A recording answers `request`, and nobody is called for it."""
        found, _ = self._find(request)
        again = isinstance(found, Failure) and found.retryable and self._otherwise is not None
        return found is not None and not again

    async def call(self, request: Request) -> Reply | Failure:
        """The recorded answer to `request`."""
        found, cell = self._find(request)
        again = found is None or (isinstance(found, Failure) and found.retryable)
        if again and self._otherwise is not None:
            return await self._otherwise.call(request)
        if found is not None:
            return found
        which = f"{visible(request.model)}, sample {request.sample}"
        if cell is not None:
            which = f"item {visible(cell.item)}, candidate {visible(cell.candidate)}, sample {cell.sample}"
        return Failure(FailureKind.NOT_RECORDED, f"the recordings hold no reply for {which}")

    async def open(self) -> None:
        """Let `otherwise` load or start what it needs."""
        opens = getattr(self._otherwise, "open", None)
        if opens is not None:
            await opens()

    async def aclose(self) -> None:
        """Close `otherwise`."""
        if self._otherwise is not None:
            await self._otherwise.aclose()


def _keep(kept: dict[_Name, Reply | Failure], name: _Name, answer: Reply | Failure) -> None:
    """The first reply counts; before there is one, the last failure."""
    if not isinstance(kept.get(name), Reply):
        kept[name] = answer


def _own_id(row: Mapping[str, object]) -> str | None:
    for name in ("item", "id", "query_id"):
        if isinstance(row.get(name), str):
            return str(row[name])
    return None
