"""The list of allowed signers: read strictly, every bad line named, names as patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.signoff.allowed_signers import parse_allowed_signers
from tests.signoff.folders import pem_key, public_line


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return pem_key(tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("", "holds no key"),
        ("name", "holds no key where"),
        ("name ssh-ed25519", "holds no key where"),
        ("name ssh-ed25519 !!!", "no base64"),
        ("name ssh-rsa {blob}", 'of the type "ssh-ed25519"'),
        ("name cert-authority {key}", '"cert-authority" is not known'),
        ('name valid-before="20270101" {key}', "no time in UTC"),
        ('name valid-before="20271301Z" {key}', "is no date"),
        ('name namespaces="a",namespaces="b" {key}', "given twice"),
        ('"name {key}', "holds no key|cannot be read"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "holds a private key"),
        ("-----BEGIN PUBLIC KEY-----\nabc", "no Ed25519 public key"),
    ],
)
def test_a_list_of_signers_is_read_strictly(key: Path, row: str, message: str) -> None:
    line = public_line(key)
    content = row.format(key=line, blob=line.split()[1]) if "{" in row else row
    with pytest.raises(InputError, match=message):
        parse_allowed_signers(content.encode(), "signers")


def test_a_key_without_a_name_is_no_entry_of_a_list(key: Path, tmp_path: Path) -> None:
    other = pem_key(tmp_path / "other.pem")
    assert parse_allowed_signers(public_line(key).encode(), "signers")[0].names is None
    with pytest.raises(InputError, match="signers:2: holds a key without a name"):
        parse_allowed_signers(f"name {public_line(other)}\n{public_line(key)}\n".encode(), "signers")


def test_every_bad_line_is_named(key: Path) -> None:
    rows = f"# comment\n\nname ssh-ed25519 !\nok {public_line(key)}\nname x=1 {public_line(key)}\n"
    with pytest.raises(InputError) as refused:
        parse_allowed_signers(rows.encode(), "signers")
    assert [fault.line for fault in refused.value.faults] == [3, 5]


def test_names_are_patterns_and_an_excluded_one_stays_out(key: Path) -> None:
    row = f'"*@corp.example","!temp*","Kim A" {public_line(key)}'
    (trusted,) = parse_allowed_signers(row.encode(), "signers")
    wanted = {"a@corp.example": True, "temp@corp.example": False, "Kim A": True, "kim a": False, "x": False}
    assert {name: trusted.is_for(name) for name in wanted} == wanted
    assert not trusted.is_for("a@corpXexample")
