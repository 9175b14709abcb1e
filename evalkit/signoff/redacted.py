"""A document without anything that looks like a secret, and as the bytes that are written."""

from __future__ import annotations

import json
from typing import Any

from evalkit.errors import redact

__all__ = ["document_bytes", "redacted"]


def redacted(value: Any) -> Any:
    """`value` with every text that looks like a key or password hidden; keys of mappings too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(str(key)): redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def document_bytes(document: Any) -> bytes:
    """The document as strict JSON in UTF-8; the same document gives the same bytes. ValueError for NaN."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form; JSON's own escape keeps it
        return (json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1) + "\n").encode("ascii")
