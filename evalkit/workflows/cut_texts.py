"""Texts that a logging tool cut before it kept them: what is left is not the request that was made.

LiteLLM keeps about 2,000 characters of each text in its database and writes a mark where the rest was; Langfuse's
SDKs put a mark in place of what is too large to send. Told by those marks only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evalkit.outcomes.logs.call import LoggedCall

__all__ = ["cut_request", "cut_system_prompt", "is_cut"]

_LITELLM_START = "(litellm_truncated"
_LITELLM = re.compile(re.escape(_LITELLM_START) + r"(?: skipped)? \d+ chars")
_LANGFUSE = "<truncated due to size exceeding limit>"


def is_cut(text: str | None) -> bool:
    """Whether the text bears the mark of a tool that cut it."""
    return text is not None and (
        text.strip() == _LANGFUSE or (_LITELLM_START in text and _LITELLM.search(text) is not None)
    )


def cut_request(call: LoggedCall) -> bool:
    """Whether the prompt, or any message but those of the system, was cut."""
    return is_cut(call.prompt) or any(is_cut(text) for text in _texts(call, system=False))


def cut_system_prompt(call: LoggedCall) -> bool:
    """Whether a message of the system was cut. The request itself may be whole."""
    return any(is_cut(text) for text in _texts(call, system=True))


def _texts(call: LoggedCall, *, system: bool) -> Iterator[str]:
    for message in call.messages or ():
        if (message.get("role") in {"system", "developer"}) is system:
            yield from _strings(message.get("content"))


def _strings(value: Any) -> Iterator[str]:
    """The texts of a content: itself, or those of its parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
