"""The columns of an outcome file."""

from __future__ import annotations

from evalkit.tabular.resolve import Schema

__all__ = ["MOST_USD", "NUMBERS", "OUTCOME_FIELDS", "OUTCOME_SCHEMA"]

MOST_USD = 1e6
"""No request costs more; beside a larger figure, those of the other requests are lost to rounding in a sum."""

NUMBERS: dict[str, str] = {
    "cost_usd": "it is the USD of one request",
    "input_tokens": "a count is never negative",
    "cache_read_tokens": "a count is never negative",
    "cache_write_tokens": "a count is never negative",
    "output_tokens": "a count is never negative",
    "reasoning_tokens": "a count is never negative",
    "ttft_s": "a time is never negative",
    "request_s": "a time is never negative",
    "task_s": "a time is never negative",
    "attempts": "a count is never negative",
}
"""Number columns, none of which may be negative, and why."""

OUTCOME_FIELDS = (
    "id",
    "tier",
    "model",
    "sample",
    "status",
    "score",
    "passed",
    *NUMBERS,
    "error",
    "reply",
)
"""Every column, in the order in which files are written."""

OUTCOME_SCHEMA = Schema(required=("id", "tier"), optional=OUTCOME_FIELDS[2:], aliases={"tier": "arm"})
