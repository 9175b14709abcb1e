"""Literal keys in a study are named and dropped: no message, no study and no fingerprint holds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.study import read_study
from evalkit.study.nodes import plain
from evalkit.study.secrets import hide_secrets, is_secret_name
from evalkit.study.strict_yaml import load_yaml, parse_yaml

SECRET = "sk-FAKE-demo-0000-not-a-key"

STUDY = """\
study: small
kind: routing
labels: labels.csv
outcomes: labels.csv
tiers:
  - name: cheap
    model: demo/cheap
    params:
      api_key: KEY
      api_base: "https://user:KEY@gw.example/v1?api_key=KEY"
      extra_headers:
        Authorization: "Bearer KEY"
        X-Team: routing
      max_tokens: 256
  - {name: strong, model: demo/strong, params: {api_key: os.environ/STRONG}}
router: {scores: labels.csv, higher_means: cheap_is_enough, trained_on: other_items, cost_usd: 0}
risk: {high: {under_route_loss: 1, max_under_route: 0.05}}
# the old key was KEY
"""


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "labels.csv").touch()
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_config_of_case_h07(shared: Path) -> None:
    path = shared / "cases" / "H07-secrets" / "config.yaml"
    expected = json.loads((path.parent / "expect.json").read_text(encoding="utf-8"))
    secret = expected["values"]["secret"]
    document, notices = hide_secrets(load_yaml(path))
    for tokens in expected["message_must_contain"]:
        assert any(all(token in notice for token in tokens) for notice in notices)
    assert notices[0].startswith(f"{path}:4: field models.mid.api_key: holds a secret as plain text.")
    assert "environment variable" in notices[0]
    assert [notice.split(":")[1] for notice in notices] == ["4", "5", "7"]
    assert f"{document!r}{notices!r}".count(secret) == expected["values"]["occurrences"]
    root = document.require()
    assert plain(root) == {
        "models": {
            "mid": {
                "model": "demo/mid",
                "api_key": "[hidden]",
                "api_base": "https://[hidden]@gw.example/v1?api_key=[hidden]",
                "extra_headers": {"Authorization": "[hidden]", "X-Team": "routing"},
                "max_tokens": 256,
            }
        }
    }


def test_a_study_neither_shows_nor_keeps_a_key(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, STUDY.replace("KEY", SECRET)))
    assert SECRET not in repr(study)
    assert [notice.split("study.yaml:")[1].split(":")[0] for notice in study.notices] == ["9", "10", "12", "18"]
    assert study.tiers[0].params == {
        "api_key": "[hidden]",
        "api_base": "https://[hidden]@gw.example/v1?api_key=[hidden]",
        "extra_headers": {"Authorization": "[hidden]", "X-Team": "routing"},
        "max_tokens": 256,
    }
    assert study.tiers[1].params == {"api_key": "os.environ/STRONG"}
    other = read_study(written(tmp_path, STUDY.replace("KEY", "sk-another-0000-key-of-mine")))
    assert other.fingerprint == study.fingerprint


def test_a_name_of_an_environment_variable_is_no_secret() -> None:
    text = "a: {api_key: os.environ/OPENAI_API_KEY, token: ${TOKEN}, password: 'env:PASSWORD', secret: null}\n"
    text = text.replace("${TOKEN}", '"${TOKEN}"')
    document, notices = hide_secrets(parse_yaml(text, "s.yaml"))
    assert notices == ()
    assert plain(document.require()) == {
        "a": {
            "api_key": "os.environ/OPENAI_API_KEY",
            "token": "${TOKEN}",
            "password": "env:PASSWORD",
            "secret": None,
        }
    }


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "API-Key",
        "openai_api_key",
        "Authorization",
        "x-api-key",
        "password",
        "hf_token",
        "client_secret",
        "Cookie",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "budget_tokens", "stop_token", "key", "api_key_env", "secretary", "model", "tokenizer"]
)
def test_names_that_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("value", ["1e99", "12:34", "007", "2026-01-15"])
def test_a_refused_value_under_the_name_of_a_secret_is_not_shown(value: str) -> None:
    document, notices = hide_secrets(parse_yaml(f"a: {{api_key: {value}}}\n", "s.yaml"))
    assert len(notices) == 1
    assert value not in f"{document!r}{notices!r}"
    assert document.faults[0].field == "a.api_key"


@pytest.mark.parametrize(
    "text",
    [
        "api_key: {inner: [KEY, 12345678]}\n",
        "KEY: 1\n",
        "list: [a, KEY]\n",
        "x: 'Bearer KEY'\n",
        "a: 1 # KEY\n",
        "a: *KEY\n",
        "a: &KEY 1\n",
        "a: !KEY 1\n",
        "? [KEY]\n: 1\n",
        "a: KEY\na: KEY\n",
        "a: 'KEY\n",
    ],
)
def test_a_key_is_found_wherever_it_stands(text: str) -> None:
    document, notices = hide_secrets(parse_yaml(text.replace("KEY", SECRET), "s.yaml"))
    assert notices
    for shown in (repr(document.root), repr(document.faults), repr(notices), repr(document)):
        assert SECRET not in shown
        assert "12345678" not in shown


def test_faults_about_a_key_do_not_show_it(tmp_path: Path) -> None:
    text = STUDY.replace("study: small", f"study: {SECRET}\n{SECRET}: 3\nprices: {SECRET}")
    text = text.replace("max_under_route: 0.05", f"max_under_route: {SECRET}")
    with pytest.raises(InputError) as caught:
        read_study(written(tmp_path, text))
    assert SECRET not in str(caught.value)
    assert "is a file name that looks like a key or password" in str(caught.value)
