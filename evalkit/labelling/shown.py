"""Text of prompts and replies as the page shows it: whole, and nothing in it stays hidden or reorders the rest."""

from __future__ import annotations

import re
from typing import Any

from evalkit.errors import visible

__all__ = ["MOST_SHOWN", "name", "speaking", "text"]

MOST_SHOWN = 2_000_000
"""Characters of one text; a longer one is cut with a mark that says its full length."""

# Controls, and what Unicode lets be drawn as nothing: directions of writing, blanks without width, Hangul fillers,
# tags, joiners and selectors.
_UNSEEN = re.compile(
    "[\0-\b\v-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS, _SELECTORS = frozenset("\u200c\u200d"), frozenset("\ufe0e\ufe0f")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def _code(found: re.Match[str]) -> str:
    """What is not seen as its code point. A script needs single joiners, emoji a selector and a joiner, Han one of
    its variants: those stay; in a chain of them something may hide."""
    ch, before = found.group(), found.string[max(0, found.start() - 1) : found.start()]
    if ch in _JOINERS and before not in _JOINERS:
        return ch
    if ch in _SELECTORS and before not in _JOINERS | _SELECTORS:
        return ch
    if "\U000e0100" <= ch <= "\U000e01ef" and _HAN.match(before):
        return ch
    return f"[U+{ord(ch):04X}]"


def text(value: str) -> str:
    """`value` with its line breaks; characters that are not seen are shown as their code points, [U+202E]."""
    shown = value[:MOST_SHOWN].replace("\r\n", "\n")
    shown = _UNSEEN.sub(_code, shown)
    return shown if len(value) <= MOST_SHOWN else f"{shown}\n… ({len(value):,})"


def name(value: str | None, limit: int = 200) -> str:
    """An id, category or name on one line; nothing where there is none."""
    return "" if value is None else visible(value, limit)


def speaking(prompt: str | None, messages: Any) -> list[dict[str, str]]:
    """What is asked, as turns with `role` and `text`; the role of a plain prompt is "".

    Parts of a message that are no text, such as pictures, are named in brackets by their type.
    """
    if not messages:
        return [{"role": "", "text": text(prompt or "")}]
    turns = [{"role": name(m.get("role"), 40), "text": text(_content(m))} for m in messages]
    if prompt and not any(prompt in turn["text"] for turn in turns):
        turns.insert(0, {"role": "", "text": text(prompt)})
    return turns


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = []
    for part in content or ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            parts.append(f"[{name(str(kind), 40)}]")
    if message.get("tool_calls"):
        parts.append("[tool_calls]")
    return "\n".join(parts)
