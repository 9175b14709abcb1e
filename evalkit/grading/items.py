"""`Item`: what a grader may know of the item that a reply answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit.labels.labelset import LabelSet

__all__ = ["Item", "items_of"]


@dataclass(frozen=True, slots=True)
class Item:
    """One labelled item. `reference` is text, or a JSON value as given, or None; `line` is where it stands."""

    id: str
    prompt: str | None = None
    reference: Any = None
    category: str | None = None
    risk: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Mapping[str, Any], ...] = ()
    line: int | None = None

    @property
    def references(self) -> tuple[str, ...]:
        """The references as texts: each entry of a list is a right answer; an object is its JSON."""
        given = self.reference
        if given is None:
            return ()
        return tuple(_text(one) for one in given) if isinstance(given, list | tuple) else (_text(given),)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    literal = getattr(value, "literal", None)  # a number as its file writes it
    return literal if isinstance(literal, str) else json.dumps(value, ensure_ascii=False, default=str)


def items_of(labels: LabelSet) -> tuple[Item, ...]:
    """The items of a label set, in its order."""
    risks = labels.risk_names if labels.risk_classes else None
    return tuple(
        Item(
            id=name,
            prompt=labels.prompts[i],
            reference=None if labels.reference is None else labels.reference[i],
            category=None if labels.category is None else labels.category[i],
            risk=None if risks is None else risks[i],
            metadata=(None if labels.metadata is None else labels.metadata[i]) or {},
            messages=tuple((None if labels.messages is None else labels.messages[i]) or ()),
            line=None if labels.lines is None else int(labels.lines[i]),
        )
        for i, name in enumerate(labels.ids)
    )
