"""The log formats that are known, and which of them a record is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from evalkit.outcomes.logs import batches, genai, helicone, langfuse, litellm, openinference, routerarena, spans
from evalkit.outcomes.logs.call import LoggedCall, Note

__all__ = ["RECORD_FORMATS", "SPAN_FORMATS", "UNKNOWN", "RecordFormat", "SpanFormat", "calls_in"]

UNKNOWN = "a record of no known format"


class RecordFormat(NamedTuple):
    """`fits` tells by the names of a record whether it is in the format, `call` maps it."""

    name: str
    fits: Callable[[Mapping[str, Any]], bool]
    call: Callable[[Mapping[str, Any], Note], LoggedCall | None]


class SpanFormat(NamedTuple):
    """The same for a span."""

    name: str
    fits: Callable[[spans.Span], bool]
    call: Callable[[spans.Span, Note], LoggedCall | None]


RECORD_FORMATS: tuple[RecordFormat, ...] = (
    RecordFormat("LiteLLM spend logs", litellm.fits_spend, litellm.spend_call),
    RecordFormat("LiteLLM standard logging payloads", litellm.fits_standard, litellm.standard_call),
    RecordFormat("Langfuse observations", langfuse.fits_langfuse, langfuse.langfuse_call),
    RecordFormat("OpenAI batch output", batches.fits_openai, batches.openai_call),
    RecordFormat("Anthropic batch results", batches.fits_anthropic, batches.anthropic_call),
    RecordFormat("Helicone requests", helicone.fits_helicone, helicone.helicone_call),
    RecordFormat("RouterArena predictions", routerarena.fits_routerarena, routerarena.routerarena_call),
)
SPAN_FORMATS: tuple[SpanFormat, ...] = (
    SpanFormat("OpenInference spans", openinference.fits_openinference, openinference.openinference_call),
    SpanFormat("OpenTelemetry GenAI spans", genai.fits_genai, genai.genai_call),
)


def calls_in(
    record: Mapping[str, Any], note: Note, parents: dict[tuple[str, str], tuple[str, str]]
) -> Iterator[LoggedCall]:
    """The calls of one record: one, several where it is an export of spans, or none, which is noted.

    `parents` gathers which span stands in which, of calls and of everything else.
    """
    if spans.fits_otlp(record):
        found = spans.otlp_spans(record, note)
    elif spans.fits_sdk(record):
        found = iter([span] if (span := spans.sdk_span(record, note)) is not None else [])
    else:
        fitting = [known for known in RECORD_FORMATS if known.fits(record)]
        if len(fitting) != 1:
            note("a record that fits two formats" if fitting else UNKNOWN, "")
        elif (call := fitting[0].call(record, note)) is not None:
            yield call
        _parent_observation(record, parents)
        return
    for span in found:
        if span.parent:
            parents[span.trace, span.own] = (span.trace, span.parent)
        known = next((known for known in SPAN_FORMATS if known.fits(span)), None)
        if known is None:
            note("a span that is no call to a chat model", "")
        elif (call := known.call(span, note)) is not None:
            yield call


def _parent_observation(record: Mapping[str, Any], parents: dict[tuple[str, str], tuple[str, str]]) -> None:
    if langfuse.fits_langfuse(record):
        trace, own, outer = (record.get(k) for k in ("traceId", "id", "parentObservationId"))
        if isinstance(trace, str) and isinstance(own, str) and isinstance(outer, str):
            parents[trace, own] = (trace, outer)
