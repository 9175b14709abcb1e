"""What a usage says beside its counts of text tokens: other media, fees by the use, special processing.

Prices of text tokens cover none of it, so it is read and never left out in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Conditions", "read_conditions"]

_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "completion_tokens_details",
    "output_tokens_details",
)
_OTHER_MEDIA = ("audio_tokens", "image_tokens", "video_tokens")
_MODALITIES = (
    "promptTokensDetails",
    "candidatesTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
)
_TEXT = frozenset({"TEXT", "MODALITY_UNSPECIFIED"})
_TOOLS = ("server_tool_use", "serverToolUsage", "server_tool_use_details")
# Asked for is not done; fetching a page costs its tokens and nothing else.
_NO_FEE = frozenset({"tool_calls_requested", "web_fetch_requests"})
_FEES = ("num_sources_used", "num_search_queries", "citation_tokens", "search_units")
_PROCESSING = ("service_tier", "serviceTier", "speed", "inference_geo", "trafficType")
_PASSES = "iterations"
_TELLING = frozenset({*_DETAILS, *_MODALITIES, *_TOOLS, *_FEES, *_PROCESSING, _PASSES})
_STANDARD = frozenset({"", "auto", "default", "standard", "on_demand", "global", "not_available"})


@dataclass(frozen=True, slots=True)
class Conditions:
    """`media`: tokens that are no text. `fees`: what is billed beside the counted tokens. `processing`: what makes
    the provider's standard price not hold, such as a service tier. Each None where there is nothing of it."""

    media: str | None = None
    fees: str | None = None
    processing: str | None = None


_NOTHING = Conditions()


def read_conditions(raw: Mapping[str, Any], usage: Mapping[str, Any]) -> Conditions:
    """What the response `raw`, with `usage` inside or being the same, says beside its counts."""
    if _TELLING.isdisjoint(usage) and (raw is usage or _TELLING.isdisjoint(raw)):
        return _NOTHING
    around = () if raw is usage else _processing(raw)
    return Conditions(
        media=", ".join(_media(usage)) or None,
        fees=", ".join(dict.fromkeys([*_fees(usage), *_left_out(usage)])) or None,
        processing=", ".join(dict.fromkeys([*_processing(usage), *around])) or None,
    )


def _media(usage: Mapping[str, Any]) -> Iterator[str]:
    for details in _DETAILS:
        inner = usage.get(details)
        if inner and isinstance(inner, Mapping):
            yield from (f"{name} {inner[name]!s:.20}" for name in _OTHER_MEDIA if inner.get(name))
    for details in _MODALITIES:
        inner = usage.get(details)
        for part in inner if inner and isinstance(inner, Sequence) and not isinstance(inner, str) else ():
            if isinstance(part, Mapping) and part.get("tokenCount") and part.get("modality") not in _TEXT:
                yield f"{details} {part.get('modality')!s:.20} {part['tokenCount']!s:.20}"


def _fees(usage: Mapping[str, Any]) -> Iterator[str]:
    for details in _DETAILS:
        inner = usage.get(details)
        if inner and isinstance(inner, Mapping) and inner.get("web_search_requests"):
            yield f"web_search_requests {inner['web_search_requests']!s:.20}"
    for tools in _TOOLS:
        inner = usage.get(tools)
        if inner and isinstance(inner, Mapping):
            yield from (
                f"{name!s:.40} {used!s:.20}" for name, used in inner.items() if used and name not in _NO_FEE
            )
    yield from (f"{name} {usage[name]!s:.20}" for name in _FEES if usage.get(name))


def _left_out(usage: Mapping[str, Any]) -> Iterator[str]:
    """Passes of other kinds or models inside one request, whose tokens the totals of the usage do not hold."""
    passes = usage.get(_PASSES)
    for one in passes if passes and isinstance(passes, Sequence) and not isinstance(passes, str) else ():
        if isinstance(one, Mapping) and one.get("type") != "message":
            by = f" by {one['model']!s:.60}" if one.get("model") else ""
            yield f"a pass of type {one.get('type')!s:.40}{by}"


def _processing(said: Mapping[str, Any]) -> Iterator[str]:
    for name in _PROCESSING:
        value = said.get(name)
        if value is None:
            continue
        if isinstance(value, Mapping):
            value = value.get("type")
        if value is not None and str(value).lower() not in _STANDARD:
            yield f"{name} {value!s:.40}"
