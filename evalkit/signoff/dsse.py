"""A signed payload in a DSSE envelope (Dead Simple Signing Envelope, version 1): pure, and read strictly.

    {"payloadType": "application/vnd.in-toto+json", "payload": <base64>,
     "signatures": [{"keyid": "SHA256:...", "sig": <base64>}]}

What is signed is `pae(payloadType, payload)`, so a signature made for one type of payload is none for another. An
envelope is written in one way only: a file with one byte changed anywhere is no envelope, or its signature fails.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from evalkit.errors import visible
from evalkit.signoff.strict import BrokenFileError, exact_object, strict_json

__all__ = ["IN_TOTO", "MOST_BYTES", "Envelope", "dump_envelope", "pae", "parse_envelope"]

IN_TOTO = "application/vnd.in-toto+json"
MOST_BYTES = 1 << 20
"""An envelope larger than this is not read."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One payload with one signature. `keyid` is a hint of the signer, not itself signed."""

    payload_type: str
    payload: bytes
    keyid: str
    signature: bytes


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: "DSSEv1", then type and payload, each with its length in bytes before it.

    >>> pae("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def dump_envelope(envelope: Envelope) -> bytes:
    """The envelope as the bytes of its file."""
    value = {
        "payloadType": envelope.payload_type,
        "payload": base64.b64encode(envelope.payload).decode("ascii"),
        "signatures": [
            {"keyid": envelope.keyid, "sig": base64.b64encode(envelope.signature).decode("ascii")},
        ],
    }
    return (json.dumps(value, indent=1, ensure_ascii=True) + "\n").encode("ascii")


def parse_envelope(content: bytes) -> Envelope:
    """The envelope in the bytes of a file; BrokenFileError where they are not what `dump_envelope` writes."""
    if len(content) > MOST_BYTES:
        raise BrokenFileError(f"is larger than {MOST_BYTES:,} bytes")
    value = exact_object(strict_json(content), "the envelope", ("payloadType", "payload", "signatures"))
    signatures = value["signatures"]
    if not isinstance(signatures, list) or len(signatures) != 1:
        raise BrokenFileError("signatures: exactly one is wanted")
    signed = exact_object(signatures[0], "the signature", ("keyid", "sig"))
    kind, keyid = value["payloadType"], signed["keyid"]
    if kind != IN_TOTO:
        raise BrokenFileError(f'payloadType is "{visible(kind)}", where "{IN_TOTO}" is known')
    if not isinstance(keyid, str):
        raise BrokenFileError("keyid is no text")
    envelope = Envelope(kind, _base64(value["payload"], "payload"), keyid, _base64(signed["sig"], "sig"))
    if dump_envelope(envelope) != content:
        raise BrokenFileError("is not written as evalkit writes an envelope: its bytes were changed")
    return envelope


def _base64(value: Any, what: str) -> bytes:
    if not isinstance(value, str):
        raise BrokenFileError(f"{what} is no text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise BrokenFileError(f"{what} is no base64") from None
