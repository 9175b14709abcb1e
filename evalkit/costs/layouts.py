"""What providers and tracing formats are known to count inside and beside their totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ANTHROPIC",
    "BEDROCK",
    "COHERE",
    "DEEPSEEK",
    "GEMINI",
    "LANGFUSE",
    "LAYOUTS",
    "OPENAI",
    "OPENTELEMETRY",
    "UNDECLARED",
    "XAI",
    "Layout",
    "known_layout",
]


@dataclass(frozen=True, slots=True)
class Layout:
    """`cache_inside`: cached tokens are part of the input count. `reasoning_inside`: reasoning is part of the
    output count. None: not known."""

    name: str
    cache_inside: bool | None
    reasoning_inside: bool | None

    def __str__(self) -> str:
        cache = "inside" if self.cache_inside else "beside"
        reasoning = "inside" if self.reasoning_inside else "beside"
        return f"{self.name}: cache {cache} input, reasoning {reasoning} output"


OPENAI = Layout("openai", cache_inside=True, reasoning_inside=True)
"""OpenAI, and what LiteLLM makes of every provider."""
ANTHROPIC = Layout("anthropic", cache_inside=False, reasoning_inside=True)
BEDROCK = Layout("bedrock", cache_inside=False, reasoning_inside=True)
COHERE = Layout("cohere", cache_inside=True, reasoning_inside=True)
"""`billed_units`: what is billed, beside the tokens that were processed."""
GEMINI = Layout("gemini", cache_inside=True, reasoning_inside=False)
XAI = Layout("xai", cache_inside=True, reasoning_inside=False)
DEEPSEEK = Layout("deepseek", cache_inside=True, reasoning_inside=True)
LANGFUSE = Layout("langfuse", cache_inside=False, reasoning_inside=False)
"""Langfuse's `usageDetails`: disjoint buckets."""
OPENTELEMETRY = Layout("opentelemetry", cache_inside=True, reasoning_inside=True)
"""The totals of the GenAI conventions; older exporters differ, which the counts then contradict."""
UNDECLARED = Layout("undeclared", cache_inside=True, reasoning_inside=None)
"""`prompt_tokens` and `completion_tokens` from an unnamed provider: OpenAI and xAI share these names, and they
differ in where reasoning is counted."""

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (OPENAI, ANTHROPIC, BEDROCK, COHERE, GEMINI, XAI, DEEPSEEK, LANGFUSE, OPENTELEMETRY)
}
"""Layouts that a user can declare by name."""


def known_layout(usage: Mapping[str, Any]) -> Layout:
    """The layout that the names of the counts speak for, by what only one source uses."""
    if "promptTokenCount" in usage:
        return GEMINI
    if "billed_units" in usage:
        return COHERE
    if "inputTokens" in usage:
        return BEDROCK
    if any(key.startswith("gen_ai.usage.") for key in usage):
        return OPENTELEMETRY
    if any(key.startswith("llm.token_count.") for key in usage):
        return OPENAI
    if "prompt_cache_hit_tokens" in usage or "prompt_cache_miss_tokens" in usage:
        return DEEPSEEK
    if "input" in usage or "output" in usage:
        return LANGFUSE
    anthropic = {"cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"} & usage.keys()
    if (
        anthropic
        and "input_tokens" in usage
        and "prompt_tokens" not in usage
        and "input_tokens_details" not in usage
    ):
        return ANTHROPIC
    return UNDECLARED
