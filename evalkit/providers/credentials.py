"""The secrets of a connection and of the environment, in every form in which they may come back."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from evalkit.errors import HIDDEN, remember_secret, remembered_secrets
from evalkit.providers.call import Connection
from evalkit.study.secrets import is_secret_name

__all__ = ["connection_secrets", "environment_secrets", "hide", "known_secrets"]

_SHORTEST = 8
"""Shorter values would hide ordinary words."""


_TELLING = re.compile(r"auth|key|token|secret|cookie|credential", re.IGNORECASE)
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|key)\s+", re.IGNORECASE)


def connection_secrets(connection: Connection) -> set[str]:
    """Every value of the connection that nobody may see, in each form in which it may come back."""
    found = {connection.api_key or ""}
    for name, value in connection.headers.items():
        if _TELLING.search(name):
            found |= {value, _SCHEME.sub("", value, count=1)}
    if connection.api_base is not None:
        found |= _address_secrets(connection.api_base)
    return {secret for secret in found if len(secret) >= _SHORTEST}


def _address_secrets(address: str) -> set[str]:
    try:
        parts = urlsplit(address)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        return {address}
    found = {password, parts.password or ""} if password else {user}
    if user or password:
        found.add(base64.b64encode(f"{user}:{password}".encode()).decode())
    for name, value in parse_qsl(parts.query):
        if is_secret_name(name) or len(value) >= 16:
            found |= {value, quote(value, safe="")}
    return found


def environment_secrets() -> set[str]:
    """The values of environment variables whose names say that they are secret; a single plain word is none."""
    named = {value for name, value in os.environ.items() if is_secret_name(name)}
    return {value for value in named if len(value) >= _SHORTEST and not value.isalpha()}


def known_secrets(connection: Connection) -> tuple[str, ...]:
    """The secrets of `connection`, of the environment, and all that were given before, longest first; hidden
    everywhere from now on. One endpoint may have been told the key of another."""
    known = connection_secrets(connection) | environment_secrets()
    for secret in known:
        remember_secret(secret)
    return tuple(sorted(known | remembered_secrets(), key=len, reverse=True))


def hide(text: str | None, secrets: Iterable[str]) -> str | None:
    """`text` without these very values, and otherwise as it was: no answer is rewritten for its looks."""
    for secret in secrets if text else ():
        text = (text or "").replace(secret, HIDDEN)
    return text
