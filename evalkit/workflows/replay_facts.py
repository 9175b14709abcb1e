"""What a replay says of the outcomes that it wrote: the judge, what was spent, what went out and who answered.

It stands in `replay.json` beside the outcomes, with their hash, so that it is carried to the results of a study
which names that file of outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import visible
from evalkit.signoff.digest import file_sha256
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["SCHEMA", "SUMMARY", "ReplayFacts", "replay_facts", "replay_summary"]

SUMMARY = "replay.json"
SCHEMA = "evalkit.replay-summary/1"

AnyStudy = RoutingStudy | ReasoningStudy

_MOST_BYTES = 2**26
_CARRIED = {"costs": dict, "all_runs": dict, "candidates": dict, "rubric": dict, "samples": int, "batch": bool}
_MOST_NOTICES = 50


@dataclass(frozen=True)
class ReplayFacts:
    """`provenance` has `replay` and, where a judge graded, `judge`; both are absent where nothing is known.

    `sent` is, by arm, the body that went out. `notices` is what the replay had to say of the replies.
    """

    provenance: Mapping[str, Any] = field(default_factory=dict)
    sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def replay_summary(study: AnyStudy) -> Path | None:
    """The summary of the replay that made the outcomes; None where none of them stands beside them."""
    path = _path(study)
    return path if path is not None and _read(study, path)[0] is not None else None


def replay_facts(study: AnyStudy) -> ReplayFacts:
    """What the replay that made the outcomes of `study` says of them; a summary of others says nothing."""
    path = _path(study)
    if path is None:
        return ReplayFacts()
    document, why = _read(study, path)
    if document is None:
        said = f"{visible(path.name)} beside the outcomes {why}: what it says of judge and spending is left out"
        return ReplayFacts(notices=() if why is None else (said,))
    block = {
        "file": path.name,
        "hash": f"sha256:{file_sha256(path)}",
        **{name: document[name] for name, kind in _CARRIED.items() if isinstance(document.get(name), kind)},
    }
    judge = document.get("judge")
    candidates = block.get("candidates", {})
    sent = {
        name: one["sent"]
        for name, one in candidates.items()
        if isinstance(one, Mapping) and isinstance(one.get("sent"), Mapping)
    }
    notices = document.get("notices")
    said_then = [str(note) for note in notices[:_MOST_NOTICES]] if isinstance(notices, list) else []
    return ReplayFacts({"replay": block, **({"judge": judge} if judge else {})}, sent, tuple(said_then))


def _path(study: AnyStudy) -> Path | None:
    if study.outcomes is None or study.outcomes.path is None:
        return None
    path = study.outcomes.path.with_name(SUMMARY)
    return path if path.is_file() else None


def _read(study: AnyStudy, path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """The summary, or (None, why it says nothing of the outcomes; None where it is another tool's file)."""
    assert study.outcomes is not None
    assert study.outcomes.path is not None
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None, "is too large to be a summary of theirs"
        document = strict_json(path.read_bytes())
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            return None, None
        written = document.get("outcomes")
        digest = written.get("sha256") if isinstance(written, Mapping) else None
        if document.get("study") != study.name or digest != file_sha256(study.outcomes.path):
            return None, "is of other outcomes, or they were changed since"
    except BrokenFileError as error:
        return None, f"cannot be read ({visible(error)})"
    except OSError:
        return None, "cannot be read"
    return document, None
