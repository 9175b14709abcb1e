"""Open a file as bytes and find its format, with a fault for everything that is not a readable table."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NoReturn, cast

from evalkit.errors import Fault, InputError
from evalkit.tabular.faults import Faults
from evalkit.tabular.names import quoted

__all__ = ["Format", "Located", "check_encoding", "decoded_lines", "locate", "open_binary", "read_text"]

Format = Literal["csv", "jsonl", "json", "parquet"]

_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_BOM = codecs.BOM_UTF8
_BLOCK = 1 << 20
_ENCODING_FIX = (
    "save the file as UTF-8, or name the encoding it was written in: --encoding cp949, --encoding shift_jis "
    "(in a study, encoding: cp949)"
)
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "is a spreadsheet or zip file, not text", "save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "is an old spreadsheet file, not text", "save the sheet as CSV UTF-8"),
    (b"PAR1", "is a Parquet file", "give it the suffix .parquet"),
    (b"\x1f\x8b", "is a gzip file", "give it the suffix .gz"),
    (b"\xff\xfe", "is UTF-16 text, not UTF-8", "save it as CSV UTF-8, or pass --encoding utf-16"),
    (b"\xfe\xff", "is UTF-16 text, not UTF-8", "save it as CSV UTF-8, or pass --encoding utf-16"),
)


@dataclass(frozen=True, slots=True)
class Located:
    """A file that exists: its path, the name used in messages, its format, and whether it is gzipped."""

    path: Path
    file: str
    format: Format
    gzipped: bool


def locate(source: str | Path) -> Located:
    """Find `source` and its format by suffix (`.gz` on top is fine).

    Raises `InputError` when there is no such file, it is a folder, it is empty or its suffix is not known.
    """
    file = str(source)
    path = Path(source)
    try:
        if path.is_dir():
            raise InputError(Fault("is a folder, not a file", "name the file inside it", file=file))
        if not path.exists():
            raise InputError(Fault("there is no such file", "check the path", file=file))
        size = path.stat().st_size if path.is_file() else None
    except (OSError, ValueError) as error:
        raise InputError(Fault(f"cannot be read: {_reason(error)}", "check the path", file=file)) from None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    last = suffixes[-2:-1] if gzipped else suffixes[-1:]
    form = _SUFFIXES.get(last[0]) if last else None
    if form is None or (gzipped and form == "parquet"):
        shown = quoted("".join(suffixes[-2:] if gzipped else suffixes[-1:]) or path.name)
        raise InputError(
            Fault(
                f"the suffix {shown} says no format that can be read",
                "use .csv, .jsonl, .json (each may be .gz) or .parquet",
                file=file,
            )
        )
    if size == 0:
        raise InputError(Fault("is empty (0 bytes)", "check how the file was written", file=file))
    return Located(path, file, form, gzipped)


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def open_binary(located: Located) -> Iterator[IO[bytes]]:
    """The bytes of the file, unzipped; damage and refusals of the system become faults."""
    try:
        if located.gzipped:
            with gzip.open(located.path, "rb") as unzipped:
                yield cast("IO[bytes]", unzipped)
        else:
            with located.path.open("rb") as stream:
                yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            Fault(f"the gzip data is damaged: {error}", "write the file again", file=located.file)
        ) from None
    except OSError as error:
        raise InputError(
            Fault(f"cannot be read: {_reason(error)}", "check the file and its permissions", file=located.file)
        ) from None


def check_encoding(encoding: str | None, file: str) -> str:
    """The codec name for `encoding` (None: UTF-8); not a text encoding: `InputError`."""
    if encoding is None:
        return "utf-8"
    try:
        info = codecs.lookup(encoding)
        if not getattr(info, "_is_text_encoding", True):
            raise LookupError(encoding)
    except (LookupError, ValueError):
        raise InputError(
            Fault(
                f"{quoted(encoding)} is not a text encoding",
                "name one, such as utf-8, cp949, shift_jis or windows-1252",
                file=file,
                field="encoding",
            )
        ) from None
    return info.name


def decoded_lines(stream: IO[bytes], encoding: str, faults: Faults) -> Iterator[str]:
    """The physical lines of `stream` with their line ends, decoded strictly; a BOM is dropped.

    The first byte that cannot be read stops with its line and its offset in the (unzipped) file. A line ends at
    LF, CR LF or CR.
    """
    if encoding == "utf-8":
        return _utf8_lines(stream, faults)
    return _encoded_lines(stream, encoding, faults)


def _encoded_lines(stream: IO[bytes], encoding: str, faults: Faults) -> Iterator[str]:
    data = stream.read()
    if encoding == "utf-8-sig":
        encoding = "utf-8"
    try:
        text = data.removeprefix(_BOM).decode(encoding)
    except UnicodeDecodeError as error:
        before = data.removeprefix(_BOM)[: error.start].decode(encoding)
        offset = error.start + (len(_BOM) if data.startswith(_BOM) else 0)
        line = len(before.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        faults.stop(
            Fault(
                f"byte 0x{data[offset]:02x} at offset {offset:,} is not {encoding}",
                _ENCODING_FIX,
                file=faults.file,
                line=line,
            )
        )
    for number, line_text in enumerate(io.StringIO(text.removeprefix("\ufeff"), newline=""), start=1):
        if "\0" in line_text:
            _stop_at_nul(faults, number)
        yield line_text


def _utf8_lines(stream: IO[bytes], faults: Faults) -> Iterator[str]:
    number = 0
    offset = 0
    while block := b"".join(stream.readlines(_BLOCK)):
        if offset == 0:
            _check_magic(block, faults)
            if block.startswith(_BOM):
                offset = len(_BOM)
                block = block[len(_BOM) :]
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError:
            _stop_at_bad_byte(block, number, offset, faults)
        if "\0" in text:
            before = text[: text.index("\0")]
            _stop_at_nul(faults, number + _line_ends(before) + 1)
        yield from io.StringIO(text, newline="")
        number += text.count("\n") if "\r" not in text else _line_ends(text)
        offset += len(block)


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _stop_at_bad_byte(block: bytes, number: int, offset: int, faults: Faults) -> NoReturn:
    """Stop at the first line of `block` that is not UTF-8; `number` lines and `offset` bytes stand before it."""
    for line, piece in enumerate(block.splitlines(keepends=True), start=number + 1):
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError as error:
            faults.stop(
                Fault(
                    f"byte 0x{piece[error.start]:02x} at offset {offset + error.start:,} is not UTF-8",
                    _ENCODING_FIX,
                    file=faults.file,
                    line=line,
                )
            )
        offset += len(piece)
    raise AssertionError("a block that is not UTF-8 has a line that is not")


def _check_magic(head: bytes, faults: Faults) -> None:
    for magic, what, fix in _MAGIC:
        if head.startswith(magic):
            faults.stop(Fault(what, fix, file=faults.file))


def _stop_at_nul(faults: Faults, line: int) -> None:
    faults.stop(
        Fault(
            "holds a NUL byte, which no text has",
            "write the file again as UTF-8 text (it may be UTF-16 or cut off by a crash)",
            file=faults.file,
            line=line,
        )
    )


def read_text(located: Located, encoding: str, faults: Faults) -> str:
    """The whole file as text, decoded as `decoded_lines` does."""
    with open_binary(located) as stream:
        return "".join(decoded_lines(stream, encoding, faults))
