"""RouterArena: predictions with their evaluation, one file a model or router."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.outcomes.logs.call import (
    LoggedCall,
    Note,
    error_text,
    identifier,
    nested,
    number,
    plain_usage,
    text,
    usage_or_note,
)

__all__ = ["fits_routerarena", "routerarena_call"]


def fits_routerarena(record: Mapping[str, Any]) -> bool:
    """A prediction."""
    return "global_index" in record and "generated_answer" in record


def routerarena_call(record: Mapping[str, Any], note: Note) -> LoggedCall | None:
    """A prediction with its score; one whose score is not from 0 to 1 is left out, never moved into that range."""
    own = identifier(record.get("global_index"))
    if own is None:
        note("no id", str(record.get("global_index")))
        return None
    failed = record.get("success") is False
    graded = nested(record.get("evaluation_result"), "score")
    score = None if failed else number(graded, 1)
    if graded is not None and score is None and not failed:
        note("a score that is not from 0 to 1", str(graded))
        return None
    counts = plain_usage(record.get("token_usage"))
    return LoggedCall(
        id=own,
        source="routerarena",
        requested=text(record.get("llm_selected")),
        failed=failed,
        error=error_text(record.get("error")) if failed else None,
        score=score,
        usage=usage_or_note(counts, note, failed=failed),
        raw_usage=counts,
        logged_cost_usd=number(nested(record.get("evaluation_result"), "inference_cost"), 1e6),
        prompt=text(record.get("question")),
        reply=text(record.get("generated_answer")),
    )
