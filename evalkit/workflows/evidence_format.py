"""What an evidence bundle is made of, for those who write and those who read one."""

from __future__ import annotations

from dataclasses import dataclass

from evalkit.errors import redact
from evalkit.study.models import RoutingStudy
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.study.router_section import name_problem
from evalkit.workflows.evidence_rubric import CHECK, RUBRIC_ROLES, is_module

__all__ = [
    "EVIDENCE",
    "FILES",
    "LABELS",
    "ROUTED",
    "SCHEMA",
    "TABLES",
    "AnyStudy",
    "RunOptions",
    "is_role",
    "is_table",
    "safe_name",
]

EVIDENCE = "evidence.zip"
FILES = "files.json"
SCHEMA = "evalkit.evidence/1"
LABELS = "labels.jsonl"
"""What the copy of labels of the hub is called: the parsed records."""

TABLES = ("labels", "outcomes", "scores", "decisions")
ROUTED = ("scores", "decisions")
"""Tables, and those that each router has."""

AnyStudy = RoutingStudy | ReasoningStudy

_ROLES = {
    "labels",
    "outcomes",
    "scores",
    "decisions",
    "prices",
    "replay",
    "rubric",
    "policy",
    "audit",
    "system_prompt",
    "prompt",
    "looks",
    "study",
    "routers",
    *RUBRIC_ROLES,
}


def is_table(role: str) -> bool:
    """A table, or one of those that several routers have each: `scores.<name>`, where the name is one."""
    table, point, name = role.partition(".")
    return role in TABLES or (table in ROUTED and bool(point) and name_problem(name) is None)


@dataclass(frozen=True)
class RunOptions:
    """What the command line put in place of what the study says."""

    thresholds: tuple[str, ...] = ()
    seed: int | None = None
    router: str | None = None


def safe_name(name: str) -> str:
    """A file name that every system can unpack; its end, by which readers know the format, stays."""
    kept = "".join(ch if ch.isprintable() and ch not in '\\/:*?"<>|' else "-" for ch in name).lstrip(".")
    return redact(kept)[-120:] or "file"


def is_role(role: str) -> bool:
    """What a file of a bundle may be; of a rubric's checks in Python each module is one: `check.<module>`."""
    kind, point, module = role.partition(".")
    return role in _ROLES or is_table(role) or (kind == CHECK and bool(point) and is_module(module))
