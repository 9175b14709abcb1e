"""Leaks: judged items that a router's training labels hold too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Leak", "LeakKind"]

LeakKind = Literal["exact", "near", "group", "id"]


@dataclass(frozen=True, slots=True)
class Leak:
    """One judged item that leaked: `id`, the training item it repeats (`training`, its id), and how.

    exact: the same prompt, letter case, white space and punctuation aside. near: `similarity` of the shingles of
    both prompts is above the threshold. group: another prompt of the same conversation. id: items without a prompt
    of the same id.
    """

    id: str
    training: str
    kind: LeakKind
    similarity: float
