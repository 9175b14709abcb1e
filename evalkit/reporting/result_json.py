"""result.json: strict, readable and the same bytes for the same result."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from evalkit.errors import redact

from .verdict import Result, checked

__all__ = ["dump_json"]

_WIDTH = 110
_SORTED = {("provenance", "dependencies"), ("provenance", "numbers")}


def dump_json(result: Result) -> bytes:
    """The result as strict JSON in UTF-8 with a final newline.

    Keys keep the order of the schema; mappings whose order means nothing are sorted. A NaN, an infinity, a key
    that is no text or a value that JSON does not know is a programming error and raises with its path
    (ValueError or TypeError). Text that looks like a secret is hidden.
    """
    return ("".join(_write(checked(result), (), 0)) + "\n").encode("utf-8", "strict")


def _write(value: Any, path: tuple[str, ...], depth: int) -> list[str]:
    if isinstance(value, Mapping):
        keys = sorted(value) if path in _SORTED else list(value)
        parts = [[_key(key, path), ": ", *_write(value[key], (*path, key), depth + 1)] for key in keys]
        return _fold(parts, "{", "}", depth)
    if isinstance(value, (list, tuple)):
        parts = [_write(part, (*path, str(i)), depth + 1) for i, part in enumerate(value)]
        return _fold(parts, "[", "]", depth)
    return [_scalar(value, path)]


def _fold(parts: list[list[str]], start: str, end: str, depth: int) -> list[str]:
    """On one line where it fits, else one part a line."""
    length = sum(len(piece) for part in parts for piece in part) + 2 * len(parts) + depth
    if length <= _WIDTH and not any("\n" in piece for part in parts for piece in part):
        return [start + ", ".join("".join(part) for part in parts) + end]
    pad = "\n" + " " * (depth + 1)
    out = [start]
    for i, part in enumerate(parts):
        out += [pad, *part] if i == 0 else [",", pad, *part]
    return [*out, "\n" + " " * depth, end]


def _key(key: Any, path: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise TypeError(f"result.{'.'.join(path)}: the key {key!r} is not text")
    return _text(key)


def _text(text: str) -> str:
    # A lone surrogate has no UTF-8 form; JSON's own escape keeps it.
    shown = json.dumps(text, ensure_ascii=False)
    return shown if shown.isascii() or not any("\ud800" <= ch <= "\udfff" for ch in text) else json.dumps(text)


def _scalar(value: Any, path: tuple[str, ...]) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _text(redact(value))
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"result.{'.'.join(path)} is {value!r}: an unknown number is null with a reason beside it"
            )
        return float.__repr__(value + 0.0)
    raise TypeError(f"result.{'.'.join(path)} is a {type(value).__name__}, which JSON does not know")
