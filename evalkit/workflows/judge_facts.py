"""What is known of the judge that graded a study's outcomes: from the summary that a replay wrote beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["SUMMARY", "judge_facts", "replay_summary"]

SUMMARY = "replay.json"
_SCHEMA = "evalkit.replay-summary/1"
_MOST_BYTES = 2**26


def replay_summary(study: RoutingStudy | ReasoningStudy) -> Path | None:
    """The summary of the replay that made the outcomes; None where none of this study stands beside them."""
    return None if _document(study) is None else _path(study)


def judge_facts(study: RoutingStudy | ReasoningStudy) -> dict[str, Any]:
    """`{"judge": ...}` as the replay measured it; nothing where no judge graded."""
    document = _document(study)
    judge = None if document is None else document.get("judge")
    return {"judge": judge} if isinstance(judge, dict) else {}


def _path(study: RoutingStudy | ReasoningStudy) -> Path | None:
    if study.outcomes is None or study.outcomes.path is None:
        return None
    return study.outcomes.path.with_name(SUMMARY)


def _document(study: RoutingStudy | ReasoningStudy) -> dict[str, Any] | None:
    path = _path(study)
    try:
        if path is None or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        document = strict_json(path.read_bytes())
    except (OSError, BrokenFileError):
        return None
    sound = isinstance(document, dict) and document.get("schema") == _SCHEMA
    return document if sound and document.get("study") == study.name else None
