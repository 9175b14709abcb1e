"""The secrets of a connection and of the environment, in every form in which they may come back."""

from __future__ import annotations

import base64
import os
from urllib.parse import parse_qsl, unquote, urlsplit

from evalkit.providers.call import Connection
from evalkit.study.secrets import is_secret_name

__all__ = ["connection_secrets", "environment_secrets"]

_SHORTEST = 8
"""Shorter values would hide ordinary words."""


def connection_secrets(connection: Connection) -> set[str]:
    """Every value of the connection that nobody may see, in each form in which it may come back."""
    found = {connection.api_key or ""}
    for name, value in connection.headers.items():
        if is_secret_name(name) or any(
            word in name.lower() for word in ("auth", "key", "token", "secret", "cookie")
        ):
            found |= {value, value.rpartition(" ")[2]}
    if connection.api_base:
        parts = urlsplit(connection.api_base)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if password:
            found |= {password, parts.password or "", base64.b64encode(f"{user}:{password}".encode()).decode()}
        elif user:
            found |= {user, base64.b64encode(f"{user}:".encode()).decode()}
        for name, value in parse_qsl(parts.query):
            if is_secret_name(name) or len(value) >= 16:
                found.add(value)
    return {secret for secret in found if len(secret) >= _SHORTEST}


def environment_secrets() -> set[str]:
    """The values of environment variables whose names say that they are secret."""
    return {value for name, value in os.environ.items() if is_secret_name(name) and len(value) >= _SHORTEST}
