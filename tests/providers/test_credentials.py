"""Which values nobody may see, in each form in which an endpoint may send them back."""

from __future__ import annotations

import base64

import pytest

from evalkit.providers.call import Connection
from evalkit.providers.credentials import connection_secrets, environment_secrets


def test_keys_headers_and_addresses() -> None:
    connection = Connection(
        api_base="https://user:p%40ssword@gw.example/v1?api_key=abcd%2F1234&team=routing&k=0123456789abcdef",
        api_key="my-own-key",
        headers={"Authorization": "Bearer other-key", "X-Team": "routing-team", "X-Gateway-Auth": "third-key"},
    )
    found = connection_secrets(connection)
    assert found == {
        "my-own-key",
        "Bearer other-key",
        "other-key",
        "third-key",
        "p@ssword",
        "p%40ssword",
        base64.b64encode(b"user:p@ssword").decode(),
        "abcd/1234",
        "abcd%2F1234",
        "0123456789abcdef",
    }


def test_a_user_without_password_is_a_token_and_short_values_are_words() -> None:
    assert "tokentoken" in connection_secrets(Connection(api_base="https://tokentoken@gw.example/v1"))
    assert connection_secrets(Connection(api_base="http://a:b@127.0.0.1/v1", api_key="none")) == set()
    assert connection_secrets(Connection()) == set()


def test_an_address_that_is_none_is_a_secret_as_a_whole() -> None:
    assert connection_secrets(Connection(api_base="http://[broken")) == {"http://[broken"}


def test_variables_by_their_names_and_no_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "not-a-real-key")
    monkeypatch.setenv("DEMO_TOKEN", "production")
    monkeypatch.setenv("DEMO_PLACE", "nowhere-at-all")
    assert environment_secrets() & {"not-a-real-key", "production", "nowhere-at-all"} == {"not-a-real-key"}
