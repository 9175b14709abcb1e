"""The file of decisions: only ever added to, on disk before a decision counts, held by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import Fault, InputError
from evalkit.labelling.decisions import SCHEMA, Event, Header, LineFaults, Work, as_line, read_event, read_header
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.names import quoted
from evalkit.tabular.write import sync_folder

__all__ = ["DecisionFile", "Read", "parse_decisions", "read_decisions"]

_FIRST = f'{{"schema": "{SCHEMA}"'.encode("ascii")
_FURTHER = b'{"n": '
"""How the first line of a file of decisions begins, and each further one."""

_RESTORE = "restore the file from a copy; decisions are only ever added to it"


@dataclass(frozen=True)
class Read:
    """What a file of decisions says. header: None where not even its first line is whole. whole: bytes up to the
    end of the last line that is; torn: bytes behind them, which a killed process left."""

    header: Header | None
    work: Work
    whole: int
    torn: int


def parse_decisions(data: bytes, file: str) -> Read:
    """Read the bytes of a file of decisions.

    A last line without its end that is no JSON was being written when the process died: nobody was told that it is
    saved, and it counts as never written. So every prefix of a file says what its whole lines say. Raises
    `InputError` with every fault of the lines before it, and where that line is no beginning of one of ours: it is
    somebody else's, and nothing of it may be cut off.
    """
    body, end = data, b""
    if data and not data.endswith(b"\n"):
        cut = data.rfind(b"\n") + 1
        if not _complete(data[cut:]):
            body, end = data[:cut], data[cut:]
            if not _begun(end, _FURTHER if body else _FIRST):
                what = "is no file of decisions" if not body else "ends in what is no decision"
                fix = "name another file with --out" if not body else _RESTORE
                raise InputError(Fault(what, fix, file=file, line=body.count(b"\n") + 1))
    faults: list[Fault] = []
    header: Header | None = None
    work = Work()
    try:
        lines = body.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise InputError(Fault("is not UTF-8", "restore the file from a copy", file=file, line=line)) from None
    if lines and not lines[-1]:
        lines.pop()
    for number, text in enumerate(lines, start=1):
        fault = LineFaults(file, number, faults)
        if number == 1:
            header = read_header(text, fault)
            if header is None:
                break
            continue
        assert header is not None
        event = read_event(text, header, fault)
        if event is None:
            break  # what follows hangs on it
        try:
            work.apply(event)
        except ValueError as error:
            fault("n", f"does not follow from the lines before it: {error}")
            break
    if faults:
        raise InputError(faults)
    return Read(header, work, len(body), len(end))


def _complete(tail: bytes) -> bool:
    """Whether a last line without its end is whole: no true beginning of a JSON object is JSON."""
    try:
        return isinstance(parse_json(tail.decode("utf-8")), dict)
    except (UnicodeDecodeError, StrictJSONError):
        return False


def _begun(tail: bytes, start: bytes) -> bool:
    """Whether a line without its end may be one that was being written; a crash of the system can leave zeros."""
    kept = tail.rstrip(b"\0")
    return kept.startswith(start) or start.startswith(kept)


def read_decisions(path: Path) -> Read:
    """The decisions of a file, which is left as it is. Raises `InputError`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise InputError(Fault(what, "check the path and its permissions", file=str(path))) from None
    read = parse_decisions(data, str(path))
    if read.header is None:
        raise InputError(Fault("holds no decisions", "name a file that evalkit label wrote", file=str(path)))
    return read


class DecisionFile:
    """A file of decisions that this process writes. Close it, or use it as a context."""

    def __init__(self, path: Path, file: io.FileIO, header: Header, work: Work, length: int, torn: int) -> None:
        self.path = path
        self.header = header
        self.work = work
        self.torn = torn
        self._file = file
        self._length = length
        self._unclean = False

    @classmethod
    def open(cls, path: Path, wanted: Header, *, seed_given: bool = True) -> DecisionFile:
        """Start the file, or go on where it ends; a torn last line is cut off.

        With `seed_given=False` the seed is the file's. Raises `InputError` where another process holds the file,
        it is damaged, or it was begun by somebody else or for other tiers or risk classes.
        """
        fix = "name a file that can be written with --out"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():  # a device takes everything and keeps nothing
                raise InputError(Fault("is no file", fix, file=str(path)))
            file = path.open("ab+", buffering=0)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(what, fix, file=str(path))) from None
        try:
            _hold(file, path)
            file.seek(0)
            read = parse_decisions(file.readall(), str(path))
            header = wanted
            if read.header is not None:
                header = read.header
                _same_work(path, header, wanted, seed_given)
            made = cls(path, file, header, read.work, read.whole, read.torn)
            made._recover(begun=read.header is not None)
        except BaseException:
            file.close()
            raise
        return made

    def _recover(self, *, begun: bool) -> None:
        if self.torn:
            self._file.truncate(self._length)
        if not begun:
            self._write(as_line(self.header))
            sync_folder(self.path.parent)
            return
        self._file.seek(max(0, self._length - 1))
        if self._file.read(1) != b"\n":
            self._write(b"\n")

    def append(self, event: Event) -> None:
        """Write one event and wait until it is on disk; only then does it count.

        Raises `InputError` where it cannot be written, or the file is not as it was left: then nothing of it is in
        the file, nor counted.
        """
        self._write(as_line(event))
        self.work.apply(event)

    def _write(self, line: bytes) -> None:
        try:
            if self._unclean:
                self._file.truncate(self._length)
                self._unclean = False
            self._check_untouched()
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self._file.fileno(), rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._unclean = True
            with contextlib.suppress(OSError):  # else it is a torn line, which the next write or start cuts off
                self._file.truncate(self._length)
                self._unclean = False
            what = f"cannot be written: {error.strerror or error}"
            raise InputError(Fault(what, "check the space left on the disk", file=str(self.path))) from None
        self._length += len(line)

    def _check_untouched(self) -> None:
        """Raises `InputError` where the name leads to another file by now, or something else changed its length:
        what is written there would be lost, or stand behind half a line."""
        here = os.fstat(self._file.fileno())
        try:
            there: os.stat_result | None = self.path.stat()
        except OSError:
            there = None
        if there is None or not os.path.samestat(here, there):
            what = "was moved, removed or replaced while the page was open"
        elif here.st_size != self._length:
            what = f"was changed by something else: it has {here.st_size:,} bytes and had {self._length:,}"
        else:
            return
        fix = "put it back as it was; what the page said is saved is in it"
        raise InputError(Fault(what, fix, file=str(self.path)))

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        self._file.close()

    def __enter__(self) -> DecisionFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _hold(file: io.FileIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fix = "use the page that is open already, or end that process first; an annotator has a file of their own"
        raise InputError(Fault("another process writes it", fix, file=str(path))) from None
    except OSError as error:
        what = f"cannot be locked: {error.strerror or error}"
        raise InputError(Fault(what, "use a folder on a local disk", file=str(path))) from None


def _same_work(path: Path, found: Header, wanted: Header, seed_given: bool) -> None:
    """Faults for each way in which a file was begun for other work."""
    pairs = [
        ("annotator", found.annotator, wanted.annotator),
        ("tiers", ", ".join(found.tiers), ", ".join(wanted.tiers)),
        ("risk_classes", ", ".join(found.risk_classes), ", ".join(wanted.risk_classes)),
        ("by", found.by, wanted.by),
        ("adjudicates", ", ".join(found.adjudicates), ", ".join(wanted.adjudicates)),
    ]
    if seed_given:
        pairs.append(("seed", str(found.seed), str(wanted.seed)))
    fix = "go on as it was begun, or name another file with --out"
    faults = [
        Fault(f"was begun with {quoted(old)}, not {quoted(new)}", fix, file=str(path), line=1, field=field)
        for field, old, new in pairs
        if old != new
    ]
    if faults:
        raise InputError(faults)
