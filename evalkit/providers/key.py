"""The key of a request: a digest of everything that can change the answer, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from evalkit.providers.call import Request

__all__ = ["KEY_VERSION", "TRANSPORT_PARAMS", "request_key"]

KEY_VERSION = 1
"""Version of the format. A key of another version is a miss, never an error."""

TRANSPORT_PARAMS = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "max_retries",
        "metadata",
        "num_retries",
        "request_timeout",
        "stream",
        "stream_options",
        "stream_timeout",
        "timeout",
    }
)
"""Parameters that change how a request travels and not what is answered."""


def request_key(request: Request) -> str:
    """The key of `request`: `v1-` and 64 hex digits, equal on every machine and in every process.

    A parameter that is absent differs from one that is 0 or null. The order of keys does not count, that of
    messages does; 1 and 1.0 are the same number.
    """
    content = [
        KEY_VERSION,
        request.model,
        request.endpoint,
        _canonical(request.messages),
        {name: _canonical(value) for name, value in request.params.items() if name not in TRANSPORT_PARAMS},
        dict(request.files),
        request.sample,
        request.occurrence,
    ]
    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"v{KEY_VERSION}-{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
