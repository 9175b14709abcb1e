"""The columns of an outcome file."""

from __future__ import annotations

from evalkit.tabular.resolve import Schema

__all__ = ["MOST", "MOST_USD", "NUMBERS", "OUTCOME_FIELDS", "OUTCOME_SCHEMA", "VERIFIER_FIELDS"]

MOST_USD = 1e6
"""No request costs more; beside a larger figure, those of the other requests are lost to rounding in a sum."""

NUMBERS: dict[str, str] = {
    "cost_usd": "it is the USD of one request",
    "input_tokens": "it counts the tokens of one request",
    "cache_read_tokens": "it counts the tokens of one request",
    "cache_write_tokens": "it counts the tokens of one request",
    "output_tokens": "it counts the tokens of one request",
    "reasoning_tokens": "it counts the tokens of one request",
    "ttft_s": "it is the seconds of one request",
    "request_s": "it is the seconds of one request",
    "task_s": "it is the seconds of one task",
    "attempts": "it counts the attempts at one request",
}
"""Number columns, and what their numbers are: none may be negative."""

MOST: dict[str, float] = {
    name: MOST_USD if name == "cost_usd" else 1e9 if name.endswith("_s") or name == "attempts" else 1e12
    for name in NUMBERS
}
"""The most that a number column may hold: beyond it stands no figure of a request, and sums lose the others."""

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

VERIFIER_FIELDS = ("mean_logprob",)
"""Columns for verifiers of replies, which say nothing about an outcome."""

OUTCOME_SCHEMA = Schema(
    required=("id", "tier"), optional=(*OUTCOME_FIELDS[2:], *VERIFIER_FIELDS), aliases={"tier": "arm"}
)
