"""The envelope: the published example of the format, one way of writing it, and no byte that may change."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.signoff.dsse import IN_TOTO, MOST_BYTES, Envelope, dump_envelope, pae, parse_envelope
from evalkit.signoff.strict import BrokenFileError


def test_pae_is_the_example_of_the_protocol() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_pae_counts_bytes_not_characters() -> None:
    assert pae("é", "한".encode()) == b"DSSEv1 2 \xc3\xa9 3 \xed\x95\x9c"


@given(st.tuples(st.text(), st.binary()), st.tuples(st.text(), st.binary()))
def test_two_payloads_never_share_what_is_signed(a: tuple[str, bytes], b: tuple[str, bytes]) -> None:
    assert (pae(*a) == pae(*b)) == (a == b)


@given(st.binary(max_size=300), st.text(max_size=60), st.binary(max_size=90))
def test_an_envelope_is_read_as_it_was_written(payload: bytes, keyid: str, signature: bytes) -> None:
    envelope = Envelope(IN_TOTO, payload, keyid, signature)
    assert parse_envelope(dump_envelope(envelope)) == envelope


@given(st.data())
def test_one_changed_byte_is_refused_or_changes_what_is_read(data: st.DataObject) -> None:
    envelope = Envelope(IN_TOTO, b'{"a": 1}', "SHA256:abc", b"x" * 64)
    content = bytearray(dump_envelope(envelope))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda b: b != content[at]))
    try:
        read = parse_envelope(bytes(content))
    except BrokenFileError:
        return
    assert read != envelope


def envelope_json(**changes: object) -> bytes:
    value: dict[str, object] = {
        "payloadType": IN_TOTO,
        "payload": base64.b64encode(b"x").decode(),
        "signatures": [{"keyid": "k", "sig": "eA=="}],
    }
    value.update(changes)
    return (json.dumps(value, indent=1) + "\n").encode()


def test_the_helper_writes_what_is_read() -> None:
    assert parse_envelope(envelope_json()).payload == b"x"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON"),
        (b"\xff", "no UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the envelope is no object"),
        (b'{"payload": "eA==", "payload": "eQ=="}', '"payload" stands there twice'),
        (b'{"payload": NaN}', "NaN is no JSON"),
        (b" " * (MOST_BYTES + 1), "is larger than"),
        (envelope_json(extra=1), "the envelope holds extra"),
        (envelope_json(payloadType="text/plain"), 'payloadType is "text/plain"'),
        (envelope_json(payload="e A=="), "payload is no base64"),
        (envelope_json(payload="eB=="), "its bytes were changed"),  # the same byte, written otherwise
        (envelope_json(payload=7), "payload is no text"),
        (envelope_json(signatures=[]), "exactly one"),
        (envelope_json(signatures=[{"keyid": "k", "sig": "eA=="}] * 2), "exactly one"),
        (envelope_json(signatures=[{"keyid": "k"}]), "the signature holds keyid"),
        (envelope_json(signatures=[{"keyid": None, "sig": "eA=="}]), "keyid is no text"),
        (envelope_json().replace(b"\n", b"\r\n"), "its bytes were changed"),
        (envelope_json(**{"\x1b[2J": 1}), r"\u001b[2J"),
    ],
)
def test_what_is_no_envelope_is_refused_with_the_reason(content: bytes, message: str) -> None:
    with pytest.raises(BrokenFileError) as refused:
        parse_envelope(content)
    assert message in str(refused.value)
    assert "\x1b" not in str(refused.value)
