"""Error texts of requests that were not answered: short, one line, without keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evalkit.errors import visible
from evalkit.outcomes.status import ANSWERED, STATUSES
from evalkit.outcomes.table import ErrorsSeen
from evalkit.tabular.fingerprint import canonical_json

__all__ = ["error_text", "errors_seen"]

_LONGEST = 300


def error_text(value: Any) -> str | None:
    """The error of a row as one safe line: text as it is, an object as "HTTP 401 invalid key"; None if blank."""
    if value is None or value == "":
        return None
    if isinstance(value, dict):
        return visible(_object_text(value), _LONGEST)
    return visible(value if isinstance(value, str) else canonical_json(value), _LONGEST)


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


def errors_seen(
    status: npt.NDArray[np.int8], used: npt.NDArray[np.bool_], texts: Sequence[Any] | None
) -> tuple[ErrorsSeen, ...]:
    """One entry per unanswered status among the rows in use, in the order in which they first occur."""
    found: list[tuple[int, ErrorsSeen]] = []
    for code, name in enumerate(STATUSES):
        rows = np.flatnonzero((status == code) & used)
        if name in ANSWERED or not len(rows):
            continue
        raw = [] if texts is None else [texts[int(i)] for i in rows]
        first = next((value for value in raw if value not in (None, "")), None)
        same = sum(1 for value in raw if first is not None and value == first)
        found.append((int(rows[0]), ErrorsSeen(name, len(rows), error_text(first), same)))
    return tuple(entry for _, entry in sorted(found, key=lambda pair: pair[0]))
