"""Foreign JSON, looked at without trust: what has another type than expected counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["first", "mapping", "mappings", "text", "usage"]


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in `value` where it is a list, else none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def first(value: Any) -> Mapping[str, Any]:
    """The first item of the list `value` where it is a mapping, else an empty one."""
    return mapping(value[0]) if isinstance(value, list) and value else {}


def text(value: Any) -> str | None:
    """`value` where it is text."""
    return value if isinstance(value, str) else None


def usage(value: Any) -> Mapping[str, Any] | None:
    """`value` where it is a mapping that says something."""
    return dict(value) if isinstance(value, Mapping) and value else None
