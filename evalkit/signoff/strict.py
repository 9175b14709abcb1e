"""The JSON of sign-off files, read strictly: what evalkit did not write so is refused, with what is wrong."""

from __future__ import annotations

import json
from typing import Any

from evalkit.errors import visible

__all__ = ["BrokenFileError", "exact_object", "strict_json"]


class BrokenFileError(ValueError):
    """A file of a sign-off folder is not what it should be; the message says what is wrong with it."""


def strict_json(content: bytes) -> Any:
    """JSON without doubled keys, NaN or bytes that are no UTF-8; BrokenFileError says what is wrong."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in pairs:
            if key in out:
                raise BrokenFileError(f'the key "{visible(key)}" stands there twice')
            out[key] = value
        return out

    def refuse(constant: str) -> None:
        raise BrokenFileError(f"{constant} is no JSON")

    try:
        text = content.decode("utf-8")
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except UnicodeDecodeError as error:
        raise BrokenFileError(f"byte {error.start} is no UTF-8") from None
    except json.JSONDecodeError as error:
        raise BrokenFileError(f"is no JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise BrokenFileError("is nested too deeply") from None


def exact_object(value: Any, what: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """`value` as an object with exactly these keys; BrokenFileError names it as `what`."""
    if not isinstance(value, dict):
        raise BrokenFileError(f"{what} is no object")
    if set(value) != set(keys):
        held = ", ".join(sorted(visible(key, 40) for key in value)) or "nothing"
        raise BrokenFileError(f"{what} holds {held}, where {', '.join(keys)} are wanted")
    return value
