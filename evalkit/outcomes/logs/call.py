"""What every log format becomes, and how its values are read: strictly, and without what may be a secret."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from evalkit.costs.usage import Usage, normal_usage
from evalkit.errors import visible
from evalkit.tabular.strict_json import StrictJSONError, parse_json

__all__ = [
    "Instant",
    "LoggedCall",
    "Note",
    "elapsed_s",
    "error_text",
    "identifier",
    "instant",
    "messages_of",
    "nested",
    "number",
    "plain_usage",
    "text",
    "usage_or_note",
    "word",
]

Note = Callable[[str, str], None]
"""Counts what cannot be mapped: its kind (the same words each time), and what stands there."""

_UNKNOWN_USAGE = Usage()
_NUMBERS = (int, float)  # and truth values, which are whole numbers
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**53
_LONGEST_ID = 500
_USAGE_DEPTH = 3
_HIDDEN_TEXTS = frozenset({"redacted-by-litellm", "[redacted]", "REDACTED"})


class Instant(NamedTuple):
    """Microseconds since 1970; `zoned` is False where the source named no zone, so that only differences hold."""

    us: int
    zoned: bool = True

    def iso(self) -> str | None:
        """The time in UTC, None without a zone."""
        return (_EPOCH + timedelta(microseconds=self.us)).isoformat() if self.zoned else None


class LoggedCall(NamedTuple):
    """One request to a model, as far as its log tells; None is unknown.

    `requested` and `served` are model names, `names` further names a tier may be chosen by. `failed` says that no
    reply came. `score` (0..1) is a grade that the log itself holds. `logged_cost_usd` is what the logging tool
    says, never computed here. Times are seconds. `usage` is the normal form and `raw_usage` the counts it was read
    from. `cached` marks a reply that came from the logging tool's own cache: its times are not the model's. `span`
    and `parent` are the places in a trace, for telling calls that stand inside each other.
    """

    id: str
    source: str
    requested: str | None = None
    served: str | None = None
    names: tuple[str, ...] = ()
    failed: bool = False
    error: str | None = None
    finish_reason: str | None = None
    score: float | None = None
    usage: Usage = _UNKNOWN_USAGE
    raw_usage: Mapping[str, Any] | None = None
    logged_cost_usd: float | None = None
    ttft_s: float | None = None
    request_s: float | None = None
    started: Instant | None = None
    attempts: int | None = None
    group: str | None = None
    cached: bool = False
    batch: bool = False
    messages: tuple[Mapping[str, str], ...] | None = None
    prompt: str | None = None
    reply: str | None = None
    span: tuple[str, str] | None = None
    parent: tuple[str, str] | None = None

    @property
    def model(self) -> str | None:
        """The model that served, or else the one asked for."""
        return self.served or self.requested


def text(value: Any) -> str | None:
    """`value` where it is text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def word(value: Any) -> str | None:
    """`value` where it is text, as one of the words of a format; None where it is anything else."""
    return value if isinstance(value, str) else None


def identifier(value: Any) -> str | None:
    """`value` where it can be an id: text that is not blank, or a whole number, of at most 500 characters."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST:
        return str(value)
    found = text(value)
    return found if found is not None and len(found) <= _LONGEST_ID else None


def number(value: Any, most: float = float(_MOST)) -> float | None:
    """`value` where it is a number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS) or not 0 <= value <= most:
        return None
    return float(value) if math.isfinite(value) else None


def nested(value: Any, *keys: str) -> Any:
    """What stands under `keys`, one inside the other; None where there is no such place."""
    for key in keys:
        if not isinstance(value, dict):  # all that JSON makes; a look at Mapping takes ten times as long
            return None
        value = value.get(key)
    return value


def instant(value: Any) -> Instant | None:
    """A time from ISO text or seconds since 1970."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value.strip())
            zoned = read.tzinfo is not None
            since = (read if zoned else read.replace(tzinfo=UTC)) - _EPOCH
            return Instant(since // timedelta(microseconds=1), zoned)
        seconds = number(value, 1e11)
        return None if seconds is None else Instant(round(seconds * 1e6))
    except (ValueError, OverflowError):
        return None


def elapsed_s(start: Instant | None, end: Instant | None, note: Note) -> float | None:
    """Seconds from `start` to `end`; None where one is unknown, or they cannot be the two ends of a time."""
    if start is None or end is None:
        return None
    if start.zoned != end.zoned:
        note("two times of which one has no zone", "")
        return None
    if end.us < start.us:
        note("a time that ends before it starts", f"{(end.us - start.us) / 1e6} s")
        return None
    return (end.us - start.us) / 1e6


def plain_usage(raw: Any) -> dict[str, Any]:
    """The counts of a usage and the short words beside them, nothing else: no text of a request, nothing deep."""
    return _plain(raw, 0) if isinstance(raw, dict) else {}


def _plain(raw: Mapping[str, Any], depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in raw.items():
        if len(name) > 100 or value is None:
            continue
        if isinstance(value, dict):
            if depth < _USAGE_DEPTH:
                kept[name] = _plain(value, depth + 1)
        elif isinstance(value, _NUMBERS):
            kept[name] = value
        elif isinstance(value, str) and len(value) <= 40:
            kept[name] = visible(value, 40)
        elif isinstance(value, list) and depth < _USAGE_DEPTH:
            kept[name] = [_plain(part, depth + 1) for part in value[:20] if isinstance(part, dict)]
    return kept


def usage_or_note(raw: Mapping[str, Any], note: Note, *, failed: bool = False) -> Usage:
    """The normal form of `raw` (made by `plain_usage`). Counts that cannot be read are unknown, and noted; that a
    failed request has none is no news."""
    if _too_large(raw):
        note("token counts that cannot be read", "a count is too large")
        return Usage(problem="a count is too large", fix="check how the log was written")
    usage = normal_usage(raw)
    if usage.problem is not None and not failed:
        if usage.problem == "no usage was returned":
            note("no token counts", "")
        else:
            note("token counts that cannot be read", usage.problem)
    return usage


def _too_large(raw: Mapping[str, Any]) -> bool:
    """Whether a count, however deep, is beyond what is exact everywhere."""
    for value in raw.values():
        if isinstance(value, int):
            if abs(value) > _MOST:
                return True
        elif isinstance(value, dict) and _too_large(value):
            return True
    return False


def error_text(*parts: Any) -> str:
    """The parts of an error that are there, as one safe line without credentials; `error` where none is."""
    said = [visible(part, 200) for part in parts if identifier(part) or text(part)]
    return ": ".join(dict.fromkeys(said)) or "error"


def messages_of(value: Any, note: Note) -> tuple[Mapping[str, str], ...] | None:
    """Chat messages as role and text. Parts that are no text are noted and left out; None where there is no text.

    `value` is a list of messages, an object that holds one under `messages`, or the JSON text of either.
    """
    if isinstance(value, str):
        if not value.lstrip().startswith(("[", "{")):
            return None
        try:
            value = parse_json(value)
        except StrictJSONError:
            note("a prompt that is no JSON", "")
            return None
    if isinstance(value, dict):
        value = value.get("messages")
    if not isinstance(value, list):
        return None
    found: list[Mapping[str, str]] = []
    for message in value:
        role = text(nested(message, "role"))
        content = _content(message, note) if role is not None else None
        if role is None:
            note("a message without a role", "")
        elif content:
            # A log repeats its texts, system prompts and earlier turns: each is kept once.
            found.append({"role": sys.intern(role[:40]), "content": sys.intern(content)})
    return tuple(found) or None


def _content(message: Mapping[str, Any], note: Note) -> str:
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        if content in _HIDDEN_TEXTS:
            note("a prompt that was not logged", "")
            return ""
        return content
    parts: list[str] = []
    for part in content if isinstance(content, list) else ():
        said = nested(part, "text") or nested(part, "content")
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(said, str) and word(nested(part, "type")) in {"text", "input_text", "output_text", None}:
            parts.append(said)
        else:
            note("a part of a message that is no text", "")
    return "\n".join(parts)
