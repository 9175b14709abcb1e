"""Write files whole or not at all, and tables as CSV, JSONL or Parquet."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError
from evalkit.tabular.escape import escaped_rows
from evalkit.tabular.fingerprint import canonical_json

__all__ = [
    "atomic_path",
    "check_table_suffix",
    "csv_text",
    "jsonl_text",
    "sync_folder",
    "write_atomic",
    "write_table",
]

_NESTED = (dict, list, tuple)
_TABLES = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet")


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A path to write to; on leaving without an error it takes the place of `path`, in one step.

    The temporary file stands in the same folder (made where it is missing), is flushed to disk before the rename,
    and is removed when anything fails: a reader sees the old file or the new one, never half of one. A link is
    followed. What is no regular file (a pipe, /dev/stdout) is written to directly. Raises `InputError` when the
    system refuses.
    """
    asked = Path(path)
    try:
        target = asked.resolve() if asked.is_symlink() else asked
        if target.is_dir():
            raise InputError(Fault("is a folder, not a file", "name a file", file=str(path)))
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = os.fsdecode(os.fsencode(target.name)[:100])  # bytes: that is what systems limit in a name
        kept = kept.encode("utf-8", "ignore").decode("utf-8")
        temporary = target.with_name(f".{kept}.{secrets.token_hex(6)}.part")
        try:
            yield temporary
            with temporary.open("rb+") as stream:
                os.fsync(stream.fileno())
            temporary.replace(target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise InputError(
            Fault(
                f"cannot be written: {error.strerror or error}",
                "check the folder, its permissions and the space left",
                file=str(path),
            )
        ) from None


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomic(path: str | Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8, line ends as they are) to `path`, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def check_table_suffix(path: str | Path) -> str:
    """The suffix of a table to be written; one that cannot be written raises `InputError`."""
    name = Path(path).name.lower()
    found = next((s for s in sorted(_TABLES, key=len, reverse=True) if name.endswith(s)), None)
    if found is None:
        raise InputError(
            Fault("the suffix says no format that can be written", f"use {', '.join(_TABLES)}", file=str(path))
        )
    return found


def write_table(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of equal length as the suffix of `path` says: .csv, .jsonl (each may be .gz) or .parquet.

    None is an empty cell, a left-out key, or null. NaN and infinities are refused (`ValueError`): unknown is
    None. The same columns give the same bytes.
    """
    suffix = check_table_suffix(path)
    if suffix == ".parquet":
        with atomic_path(path) as temporary:
            _write_parquet(temporary, columns)
        return
    if suffix == ".jsonl":  # a line at a time: of a large table the text would be in memory several times
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            stream.writelines(line.encode("utf-8") for line in _jsonl_lines(columns))
        return
    text = csv_text(columns) if suffix.startswith(".csv") else jsonl_text(columns)
    data = text.encode("utf-8")
    if suffix.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_atomic(path, data)


def jsonl_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """One JSON object a line; keys whose value is None are left out."""
    return "".join(_jsonl_lines(columns))


def _jsonl_lines(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    names = list(columns)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for row in zip(*columns.values(), strict=True):
        yield encode({name: value for name, value in zip(names, row, strict=True) if value is not None}) + "\n"


def csv_text(columns: Mapping[str, Sequence[Any]]) -> str:
    """Comma-separated text with a header; cells that a spreadsheet would run are escaped (`escape`)."""
    names, rows = escaped_rows(
        list(columns), [[_cell(v) for v in row] for row in zip(*columns.values(), strict=True)]
    )
    lone = len(names) == 1
    lines = [",".join(_quoted(str(name), lone) for name in names)]
    lines += [",".join(_quoted(str(cell), lone) for cell in row) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"The `columns` parameter of `write_table` must hold finite numbers. Got {value} instead."
            )
        return float(value)
    text = value if isinstance(value, str) else canonical_json(value)
    if "\0" in text:
        raise InputError(Fault("a CSV cell cannot hold a NUL character", "write .jsonl or .parquet instead"))
    return text


def _quoted(cell: str, lone: bool) -> str:
    if any(mark in cell for mark in ',"\r\n') or cell != cell.strip() or (lone and not cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _write_parquet(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for name, values in columns.items():
        plain = list(values)
        kinds = {type(v) for v in plain if v is not None}
        if any(issubclass(kind, _NESTED) for kind in kinds):
            plain = [canonical_json(v) if isinstance(v, _NESTED) else v for v in plain]
            kinds = {type(v) for v in plain if v is not None}
        if any(issubclass(kind, float) for kind in kinds) and any(
            isinstance(v, float) and not math.isfinite(v) for v in plain
        ):
            raise ValueError(f"The `columns` parameter of `write_table` must hold finite numbers (column {name}).")
        arrays[name] = pa.array(plain, pa.string() if str in kinds or not kinds else None)
    pq.write_table(pa.table(arrays), path, compression="zstd")
