"""Error texts of requests that were not answered: short, one line, without keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import redact, visible
from evalkit.outcomes.status import ANSWERED, STATUSES
from evalkit.outcomes.table import ErrorsSeen
from evalkit.tabular.fields import Fields
from evalkit.tabular.fingerprint import canonical_json

__all__ = ["error_text", "errors_seen", "read_errors"]

_LONGEST = 300


def error_text(value: Any) -> str | None:
    """The error of a row as text without keys; an object as "HTTP 401 invalid key"; None if blank."""
    if value is None or value == "":
        return None
    if isinstance(value, dict):
        return redact(_object_text(value))
    return redact(value if isinstance(value, str) else canonical_json(value))


def _object_text(error: dict[str, Any]) -> str:
    code = next((error[k] for k in ("http", "status_code", "http_status", "code") if error.get(k)), None)
    inner = error.get("error")
    message = error.get("message")
    if message is None and isinstance(inner, dict):
        message = inner.get("message")
    if message is None and isinstance(inner, str):
        message = inner
    if message is None:
        return canonical_json(error)
    return f"HTTP {code} {message}" if isinstance(code, int) else f"{code} {message}" if code else str(message)


def read_errors(fields: Fields) -> pa.Array | None:
    """The `error` field of every row as text without keys, null where there is none."""
    if not fields.has("error"):
        return None
    column = fields.column("error")
    if isinstance(column, list):
        return pa.array([error_text(value) for value in column], pa.large_string())
    if not pa.types.is_large_string(column.type):
        return pa.array([error_text(value) for value in column.to_pylist()], pa.large_string())
    encoded = pc.dictionary_encode(column)
    words = pa.array([error_text(word) for word in encoded.dictionary.to_pylist()], pa.large_string())
    return words.take(encoded.indices)


def errors_seen(
    status: npt.NDArray[np.int8], used: npt.NDArray[np.bool_], texts: pa.Array | None
) -> tuple[ErrorsSeen, ...]:
    """One entry per unanswered status among the rows in use, in the order in which they first occur."""
    found: list[tuple[int, ErrorsSeen]] = []
    for code, name in enumerate(STATUSES):
        rows = np.flatnonzero((status == code) & used)
        if name in ANSWERED or not len(rows):
            continue
        first, same = None, 0
        if texts is not None:
            said = texts.take(pa.array(rows)).drop_null()
            if len(said):
                first = str(said[0].as_py())
                same = int(pc.sum(pc.equal(said, said[0])).as_py())
        shown = None if first is None else visible(first, _LONGEST)
        found.append((int(rows[0]), ErrorsSeen(name, len(rows), shown, same)))
    return tuple(entry for _, entry in sorted(found, key=lambda pair: pair[0]))
