"""Files of a bundle without the keys and passwords that stand in their texts; no figure depends on those."""

from __future__ import annotations

import gzip
import json

from evalkit.errors import redact
from evalkit.signoff.redacted import redacted

__all__ = ["without_secrets"]


def without_secrets(content: bytes, name: str) -> bytes:
    """The same bytes where nothing looks like a secret; else the file with each one hidden, line by line.

    name: tells the format. A line of JSON stays one. gzip is unpacked and packed again. Parquet and what is
    no text are kept as they are.
    """
    plain = name.lower().removesuffix(".gz")
    if plain.endswith(".parquet"):
        return content
    packed = name.lower().endswith(".gz")
    try:
        raw = gzip.decompress(content) if packed else content
    except (OSError, EOFError):
        return content
    text = raw.decode("utf-8", "surrogateescape")
    if redact(text) == text:
        return content
    lines = text.splitlines(keepends=True)
    whole = plain.endswith(".jsonl")
    cleaned = "".join(line if redact(line) == line else _clean(line, whole) for line in lines)
    done = cleaned.encode("utf-8", "surrogateescape")
    return gzip.compress(done, mtime=0) if packed else done


def _clean(line: str, is_json: bool) -> str:
    if not is_json:
        return redact(line)
    end = line[len(line.rstrip("\r\n")) :]
    try:
        return json.dumps(redacted(json.loads(line)), ensure_ascii=True) + end
    except (ValueError, RecursionError):
        return redact(line)
