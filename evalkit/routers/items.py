"""What a router may know of an item: what a request in production has, and nothing that labelling added.

Required tier, reference, weight, risk class, ratings, metadata and id are withheld: a router that saw them would
look better here than it can be in production.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.labels.labelset import LabelSet

__all__ = ["Requests", "requests_of", "sound_text"]


@dataclass(frozen=True)
class Requests:
    """N requests as routers see them. `text` is the prompt, or what the messages say but for those of the system,
    if others say anything; "" without either.

    `known` tells which items have a prompt or messages at all. `messages` are kept as given.
    """

    text: tuple[str, ...]
    category: tuple[str | None, ...]
    known: tuple[bool, ...]
    messages: tuple[Sequence[Mapping[str, Any]] | None, ...]

    def __len__(self) -> int:
        return len(self.text)


def requests_of(labels: LabelSet) -> Requests:
    """The requests of a label set, in its order."""
    n = len(labels)
    messages = tuple(labels.messages) if labels.messages is not None else (None,) * n
    text, known = [], []
    for i in range(n):
        prompt = labels.prompts[i]
        known.append(prompt is not None or messages[i] is not None)
        text.append(sound_text(prompt if prompt is not None else _said(messages[i])))
    category = labels.category if labels.category is not None else (None,) * n
    return Requests(tuple(text), category, tuple(known), messages)


def sound_text(text: str) -> str:
    """`text` with each half of a surrogate pair, which is no character, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _said(messages: Sequence[Mapping[str, Any]] | None) -> str:
    """The texts of the messages, one below the other; parts that are no text are passed over.

    What the system says is the same for many requests: it would hide what they differ in.
    """
    asked = [message for message in messages or () if message.get("role") not in {"system", "developer"}]
    return _texts(asked) or _texts(messages or ())


def _texts(messages: Sequence[Mapping[str, Any]]) -> str:
    parts: list[str] = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            parts.append(content)
        for part in content if isinstance(content, list) else ():
            said = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(said, str):
                parts.append(said)
    return "\n".join(parts)
