"""Spans of a trace, from OTLP/JSON or from a tracing SDK's own JSON, in one form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evalkit.outcomes.logs.call import Instant, Note, identifier, instant, nested, text

__all__ = ["Span", "fits_otlp", "fits_sdk", "otlp_spans", "sdk_span"]


class Span(NamedTuple):
    """One span: its place in the trace, its attributes by name, its times and what became of it."""

    trace: str
    own: str
    parent: str | None
    name: str
    attributes: Mapping[str, Any]
    start: Instant | None
    end: Instant | None
    failed: bool
    message: str | None
    events: tuple[tuple[str, Instant | None], ...] = ()

    @property
    def id(self) -> str:
        """Trace and span, as one id."""
        return f"{self.trace}-{self.own}"


def fits_otlp(record: Mapping[str, Any]) -> bool:
    """An export of spans in OTLP/JSON."""
    return "resourceSpans" in record


def fits_sdk(record: Mapping[str, Any]) -> bool:
    """One span as tracing SDKs write it."""
    return isinstance(record.get("context"), dict) and isinstance(record.get("attributes"), dict)


def otlp_spans(record: Mapping[str, Any], note: Note) -> Iterator[Span]:
    """Every span of an OTLP/JSON export; 64-bit numbers come as text there."""
    for resource in _list(record.get("resourceSpans")):
        for scope in _list(nested(resource, "scopeSpans")):
            for raw in _list(nested(scope, "spans")):
                if isinstance(raw, dict) and (span := _otlp_span(raw, note)) is not None:
                    yield span


def _otlp_span(raw: Mapping[str, Any], note: Note) -> Span | None:
    trace, own = identifier(raw.get("traceId")), identifier(raw.get("spanId"))
    if trace is None or own is None:
        note("a span without a trace or span id", "")
        return None
    attributes = _attributes(raw.get("attributes"), note)
    if attributes is None:
        return None
    code = nested(raw.get("status"), "code")
    events = tuple(
        (event["name"], _nanoseconds(event.get("timeUnixNano")))
        for event in _list(raw.get("events"))
        if isinstance(event, Mapping) and isinstance(event.get("name"), str)
    )
    return Span(
        trace=trace,
        own=own,
        parent=identifier(raw.get("parentSpanId")),
        name=text(raw.get("name")) or "",
        attributes=attributes,
        start=_nanoseconds(raw.get("startTimeUnixNano")),
        end=_nanoseconds(raw.get("endTimeUnixNano")),
        failed=str(code) in {"2", "STATUS_CODE_ERROR"},
        message=text(nested(raw.get("status"), "message")),
        events=events,
    )


def sdk_span(raw: Mapping[str, Any], note: Note) -> Span | None:
    """A span with its attributes as an object and its times as ISO text."""
    trace, own = identifier(nested(raw, "context", "trace_id")), identifier(nested(raw, "context", "span_id"))
    if trace is None or own is None:
        note("a span without a trace or span id", "")
        return None
    code = raw.get("status_code") or nested(raw.get("status"), "status_code")
    return Span(
        trace=trace,
        own=own,
        parent=identifier(raw.get("parent_id")),
        name=text(raw.get("name")) or "",
        attributes=raw["attributes"],
        start=instant(raw.get("start_time")),
        end=instant(raw.get("end_time")),
        failed=str(code).upper() in {"ERROR", "STATUSCODE.ERROR"},
        message=text(raw.get("status_message")) or text(nested(raw.get("status"), "description")),
        events=tuple(
            (event["name"], instant(event.get("timestamp")))
            for event in _list(raw.get("events"))
            if isinstance(event, Mapping) and isinstance(event.get("name"), str)
        ),
    )


def _attributes(raw: Any, note: Note) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for pair in _list(raw):
        key = nested(pair, "key")
        if not isinstance(key, str):
            continue
        value = _value(pair.get("value"))
        if key in found and found[key] != value:
            note("a span with two values of one attribute", key)
            return None
        found[key] = value
    return found


def _value(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return None
    for name in ("stringValue", "boolValue", "doubleValue"):
        if name in raw:
            return raw[name]
    if "intValue" in raw:
        return _whole(raw["intValue"])
    if "arrayValue" in raw:
        return [_value(part) for part in _list(nested(raw["arrayValue"], "values"))]
    if "kvlistValue" in raw:
        pairs = _list(nested(raw["kvlistValue"], "values"))
        return {pair["key"]: _value(pair.get("value")) for pair in pairs if isinstance(nested(pair, "key"), str)}
    return None


def _whole(value: Any) -> Any:
    """A 64-bit number that is written as text; what is none stays as it is."""
    digits = value[1:] if isinstance(value, str) and value.startswith("-") else value
    if isinstance(digits, str) and digits.isascii() and digits.isdigit() and len(digits) < 20:
        return int(value)
    return value


def _nanoseconds(value: Any) -> Instant | None:
    whole = _whole(value)
    if isinstance(whole, bool) or not isinstance(whole, int) or not 0 < whole < 10**20:
        return None
    return Instant(whole // 1000)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
