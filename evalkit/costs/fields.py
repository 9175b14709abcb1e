"""The names that providers and tracing formats give to token counts, read without a guess about their meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

__all__ = ["Counts", "read_counts", "usage_of"]

# A name with a point may be one key (tracing attributes) or a path (nested details).
_NAMES: dict[str, tuple[str, ...]] = {
    "input": (
        "prompt_tokens",
        "input_tokens",
        "promptTokenCount",
        "inputTokens",
        "input",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
    ),
    "output": (
        "completion_tokens",
        "output_tokens",
        "candidatesTokenCount",
        "outputTokens",
        "output",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "total": (
        "total_tokens",
        "totalTokenCount",
        "totalTokens",
        "total",
        "gen_ai.usage.total_tokens",
        "llm.token_count.total",
    ),
    "cache_read": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "prompt_cache_hit_tokens",
        "cachedContentTokenCount",
        "cacheReadInputTokens",
        "cacheReadInputTokenCount",
        # Not num_cached_tokens: it counts what the server reused, at no lower price.
        "cached_tokens",
        "input_cached_tokens",
        "input_cache_read",
        "cache_read_tokens",
        "prompt_cache_read_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_tokens",
        "gen_ai.usage.details.cache_read_input_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    "cache_write": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "input_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
        "cacheWriteInputTokens",
        "cacheWriteInputTokenCount",
        "input_cache_creation",
        "input_cache_write",
        "cache_write_tokens",
        "prompt_cache_write_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "output_tokens_details.thinking_tokens",
        "reasoning_tokens",
        "thoughtsTokenCount",
        "output_reasoning_tokens",
        "output_reasoning",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
    ),
    "write_5m": ("cache_creation.ephemeral_5m_input_tokens",),
    "write_1h": ("cache_creation.ephemeral_1h_input_tokens",),
    "miss": ("prompt_cache_miss_tokens",),
    "tool_prompt": ("toolUsePromptTokenCount",),
}
_DETAILS = (
    "prompt_tokens_details",
    "input_tokens_details",
    "completion_tokens_details",
    "output_tokens_details",
)
# Read with every reply, so taken apart once: (name, part before its dot, part behind it).
_PATHS = {
    kind: tuple((name, name.partition(".")[0], name.partition(".")[2]) for name in names)
    for kind, names in _NAMES.items()
}
_KNOWN = frozenset(part for paths in _PATHS.values() for name, head, _ in paths for part in (name, head))
_WHOLE_NAMES = frozenset(name for names in _NAMES.values() for name in names)
_STANDARD = {
    "input": "input_tokens",
    "output": "output_tokens",
    "total": "total_tokens",
    "cache_read": "cached tokens",
    "cache_write": "cache write tokens",
    "reasoning": "reasoning_tokens",
}
_CHECK = "store the raw usage and check what the provider's counts mean"


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts as they were given, with the name each was given under. `problem` says why they cannot be used."""

    input: int | None = None
    output: int | None = None
    total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cache_write_1h: int | None = None
    names: Mapping[str, str] = field(default_factory=lambda: dict(_STANDARD))
    problem: str | None = None
    fix: str = _CHECK

    @property
    def cached(self) -> int:
        """Cache reads and writes together."""
        return (self.cache_read or 0) + (self.cache_write or 0)


def usage_of(raw: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The usage inside a provider's response or a trace record, or `raw` itself where it is one."""
    if not isinstance(raw, Mapping):
        return None
    for key in ("usage", "usageMetadata", "usageDetails", "meta"):
        inner = raw.get(key)
        if inner is not None and isinstance(inner, Mapping) and (key != "meta" or "billed_units" in inner):
            return inner
    return raw if _KNOWN & raw.keys() else None


def read_counts(usage: Mapping[str, Any]) -> Counts:
    """The counts of a usage. Those that are no whole numbers, negative or at odds with others are a `problem`."""
    billed = usage.get("billed_units")
    if billed is not None and isinstance(billed, Mapping):  # what was processed stands beside what is billed
        if usage.get("cached_tokens"):
            what = f"cached_tokens {usage['cached_tokens']!r:.60} beside billed_units"
            return Counts(problem=f"{what}: it is not said how they are billed")
        return read_counts(billed)
    values: dict[str, int | None] = dict.fromkeys(_PATHS)
    names = dict(_STANDARD)
    for kind, known in _paths_among(tuple(part for part in usage if part in _KNOWN)):
        found = list(_found(usage, known))
        if not found:
            continue
        for name, value in found:
            if type(value) is int and value >= 0:
                continue
            if isinstance(value, str) and value.isascii() and value.isdigit() and "." in name:
                continue  # 64-bit numbers are text in trace files
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
                return Counts(problem=f"{name} is {value!r:.60}, not a whole number")
            if value < 0:
                return Counts(problem=f"{name} is {value}, below 0")
        whole: list[tuple[str, int]] = [(name, int(value)) for name, value in found]
        if len(whole) > 1 and len({value for _, value in whole}) > 1:
            said = ", ".join(f"{name} {value}" for name, value in whole)
            return Counts(problem=f"two counts of the same tokens differ: {said}")
        first, values[kind] = whole[0]
        names[kind] = first.rpartition(".")[2] if first.startswith(_DETAILS) else first
    return _joined(usage, values, names)


def _joined(usage: Mapping[str, Any], values: dict[str, int | None], names: dict[str, str]) -> Counts:
    """Counts that some providers split, put together; buckets of unknown meaning, refused."""
    unknown = list(_unknown_buckets(usage))
    if unknown:
        return Counts(problem=f"has {', '.join(unknown)}, which a price for text does not cover")
    hit, miss, prompt = values["cache_read"], values["miss"], values["input"]
    if miss is not None and hit is not None and prompt is not None and hit + miss != prompt:
        added = f"cache hit {hit} and cache miss {miss}"
        return Counts(problem=f"{added} do not add up to {names['input']} {prompt}")
    short, long, written = values["write_5m"], values["write_1h"], values["cache_write"]
    details = usage.get("cacheDetails")  # writes by the time they live
    if isinstance(details, list) and any(
        isinstance(part, Mapping) and part.get("ttl") == "1h" for part in details
    ):
        return Counts(problem="cacheDetails name a ttl of 1h, and what they count beside the writes is not known")
    if short is not None or long is not None:
        split = (short or 0) + (long or 0)
        if written is not None and split != written:
            return Counts(problem=f"cache writes {short or 0} and {long or 0} do not add up to {written}")
        written = split
    if prompt is not None and values["tool_prompt"]:
        prompt += values["tool_prompt"]
    return Counts(
        input=prompt,
        output=values["output"],
        total=values["total"],
        cache_read=hit,
        cache_write=written,
        reasoning=values["reasoning"],
        cache_write_1h=long,
        names=names,
    )


def _unknown_buckets(usage: Mapping[str, Any]) -> Iterator[str]:
    """Of disjoint buckets, those that are not known: their tokens would be lost."""
    if "input" in usage or "output" in usage:
        for name, value in usage.items():
            if name.startswith(("input_", "output_")) and name not in _WHOLE_NAMES and value:
                yield f"{name} {value!r:.60}"


@lru_cache(maxsize=1024)
def _paths_among(known: tuple[str, ...]) -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """By kind, the paths that can lead to a count in a usage with these known names, which many usages share."""
    among = {
        kind: tuple(path for path in paths if path[0] in known or (path[2] and path[1] in known))
        for kind, paths in _PATHS.items()
    }
    return tuple((kind, paths) for kind, paths in among.items() if paths)


def _found(usage: Mapping[str, Any], known: tuple[tuple[str, str, str], ...]) -> Iterator[tuple[str, Any]]:
    for name, head, tail in known:
        value: Any = usage.get(name)
        if value is None and tail:
            inner = usage.get(head)
            value = inner.get(tail) if inner is not None and isinstance(inner, Mapping) else None
        if value is not None:
            yield name, value
