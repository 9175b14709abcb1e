"""Keys, passwords and tokens never survive `redact`; what a reader needs does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import redact

SECRET = "sk-FAKE-demo-0000-not-a-key"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"https://user:{SECRET}@gw.example/v1?api_key={SECRET}",
            "https://[hidden]@gw.example/v1?api_key=[hidden]",
        ),
        (f"Bearer {SECRET}", "Bearer [hidden]"),
        (
            f"Login refused for key {SECRET} (see headers).",
            "Login refused for key [hidden] (see headers).",
        ),
        ('{"api_key": "abcd1234", "b": 1}', '{"api_key": "[hidden]", "b": 1}'),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [hidden]"),
        ("password=hunter22;x", "password=[hidden];x"),
        ("OPENAI_API_KEY=foo12345", "OPENAI_API_KEY=[hidden]"),
        ("https://x.example/?key=abc&y=1", "https://x.example/?key=[hidden]&y=1"),
        ("token ghp_0123456789abcdefABCD", "token [hidden]"),
        ("AKIA0123456789ABCDEF", "[hidden]"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "[hidden]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----.", "[hidden]."),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut", "[hidden]"),
    ],
)
def test_secrets_are_hidden(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 256",
        "X-Team: routing",
        "https://gw.example/v1",
        "hf://org/name@0123456789012345678901234567890123456789/test",
        "a risk-assessment-of-the-things, task-force-with-many-people",
        "a basic understanding of bearer certificates",
        "sorted(x, key=len)",
        "api_key: ${OPENAI_API_KEY}",
        "api_key: os.environ/OPENAI_API_KEY",
    ],
)
def test_what_a_reader_needs_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_key_never_survives_and_a_second_pass_changes_nothing(before: str, after: str) -> None:
    once = redact(f"{before} {SECRET} {after}")
    assert SECRET not in once
    assert "not-a-key" not in once
    assert redact(once) == once
