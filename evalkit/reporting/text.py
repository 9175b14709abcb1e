"""Text from data, made safe to show: nothing of it is markup, and nothing in it stays hidden.

Secrets are hidden first (`evalkit.errors.redact`), before anything is cut; then control, format and
bidirectional characters become visible escapes (`evalkit.errors.visible`). HTML is escaped by the templates
themselves; this module escapes for Markdown, XML and JSON inside a page.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from evalkit.errors import redact, visible

__all__ = ["Block", "block", "join", "language", "line", "markdown", "moment", "script_json", "words", "xml_text"]


class Block(NamedTuple):
    """Text of several lines as it is shown: the shown part, and the mark of what was cut ("" when whole)."""

    shown: str
    cut: str
    lang: str | None


def line(value: object, limit: int = 200) -> str:
    """`value` on one line."""
    return visible(redact(str(value)), limit)


def block(value: object, limit: int, lines: int = 12, full: int | None = None) -> Block:
    """`value` with its line breaks kept, cut after `limit` characters or `lines` lines with its full length.

    `full`: the length of the text that `value` is the beginning of, where it was cut before.
    """
    text = redact(str(value)).replace("\r\n", "\n")
    rows = text[:limit].split("\n")
    kept = rows[:lines]
    whole = len(text) <= limit and len(rows) <= lines and full is None
    shown = "\n".join(visible(row, max(len(row), 1)) for row in kept)
    return Block(shown, "" if whole else f"… cut here; {full or len(text):,} characters in all", language(shown))


def language(text: str) -> str | None:
    """The language to declare for East Asian text, where the script tells it; None for everything else."""
    if re.search(r"[ᄀ-ᇿ㄰-㆏가-힣]", text):
        return "ko"
    if re.search(r"[぀-ヿ]", text):
        return "ja"
    return "zh" if re.search(r"[一-鿿]", text) else None


def words(name: object) -> str:
    """A name such as `quality_overlap` as words."""
    return line(name).replace("_", " ")


def join(parts: list[str]) -> str:
    """A list in a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def moment(value: object) -> str:
    """A time stamp to the second in UTC; text that is none is shown as it is."""
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return line(value)
    if at.tzinfo is None:
        return f"{at:%Y-%m-%d %H:%M:%S} (no zone given)"
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_MARKDOWN = {
    **{ch: "\\" + ch for ch in "\\`*_[]|~$#"},
    "@": "&#64;",
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
}


def markdown(value: object, limit: int = 200) -> str:
    """`value` as one line of Markdown that holds no markup, link, mention or table cell of its own."""
    shown = re.sub(r"(?i)(?<=\bwww)\.|:(?=[/\w+-])", lambda m: _SPOTS[m.group()], line(value, limit).strip())
    escaped = "".join(_MARKDOWN.get(ch, ch) for ch in shown)
    escaped = re.sub(r"^(?:\d{1,9}(?=[.)](?:\s|$))|[-+=])", _first, escaped)
    return escaped.replace(_SPOTS["."], "&#46;").replace(_SPOTS[":"], "&#58;")


# `line` lets no control character through, so these two cannot come from data.
_SPOTS = {".": "\x01", ":": "\x02"}


def _first(match: re.Match[str]) -> str:
    """The start of a line that would be a list or a rule: its first sign is written as an entity."""
    head = match.group()
    return f"&#{ord(head[0])};{head[1:]}"


def xml_text(value: object, limit: int = 2000) -> str:
    """`value` as one line that XML 1.0 can hold; escape it for its place with `xml.sax.saxutils`."""
    return line(value, limit)


_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(value: Any) -> str:
    """Strict JSON that can stand in a `<script type="application/json">` element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(_SCRIPT.get(ch, ch) for ch in text)
