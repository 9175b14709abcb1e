"""Signatures as people read them: state first, every problem by its code, nothing of a signer's text runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.reporting.signatures import signature_lines
from evalkit.signoff.dsse import IN_TOTO, Envelope, dump_envelope, pae
from evalkit.signoff.keys import open_key
from evalkit.signoff.signatures import PROBLEMS, verify_signatures
from tests.signoff.folders import NAME, NOW, allowed, pem_key, sign, write_folder


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return pem_key(tmp_path / "key.pem")


def test_a_valid_override_shows_its_reason(tmp_path: Path, key: Path) -> None:
    folder = write_folder(tmp_path / "s", "reject")
    sign(folder, key, reason="known failures\nrolled back at 1 %")
    assert signature_lines(verify_signatures(folder, allowed(key), now=NOW)) == [
        f"valid: signoff.1.sig.json: {NAME} (approver), approve, against the computed verdict (reject), "
        "2026-12-01 11:59:00 UTC",
        f"  key {allowed(key)[0].fingerprint}",
        "  reason: known failures",
        "  reason: rolled back at 1 %",
        "decision by signature: approve",
    ]


def test_without_keys_it_says_not_checked(tmp_path: Path, key: Path) -> None:
    folder = write_folder(tmp_path / "s")
    sign(folder, key)
    lines = signature_lines(verify_signatures(folder, None, now=NOW))
    assert lines[0].startswith("not checked: ")
    assert "--allowed-signers" in lines[-1]


def test_what_is_wrong_and_who_is_missing_is_named(tmp_path: Path, key: Path) -> None:
    folder = write_folder(tmp_path / "s", signers=[{"role": "approver", "name": "Somebody\x1b[2J Else"}])
    sign(folder, key)
    lines = signature_lines(verify_signatures(folder, allowed(key), now=NOW))
    assert lines[0].startswith("INVALID: ")
    assert any(line.startswith("  wrong (not_a_signer_of_the_policy): ") for line in lines)
    assert lines[-1] == "not signed by approver: Somebody\\u001b[2J Else"
    assert signature_lines(verify_signatures(write_folder(tmp_path / "t"), None, now=NOW)) == ["no signature"]


def test_a_payload_that_is_no_statement_is_shown_safely(tmp_path: Path, key: Path) -> None:
    folder = write_folder(tmp_path / "s")
    payload = '{"_type": "\u202e\x1b[2J"}'.encode().replace(b"\x1b", b"\\u001b")
    signed = open_key(key).sign(pae(IN_TOTO, payload))
    content = dump_envelope(Envelope(IN_TOTO, payload, "\x1b]0;owned\x07", signed.signature))
    (folder / "signoff.1.sig.json").write_bytes(content)
    lines = signature_lines(verify_signatures(folder, allowed(key), now=NOW))
    assert lines[0] == "INVALID: signoff.1.sig.json"
    assert not {"\x1b", "\x07", "\u202e"} & set("".join(lines))
    assert {line.partition(")")[0] for line in lines[1:]} == {"  wrong (unreadable", "  wrong (unknown_key"}
    assert all(code.isidentifier() and text for code, text in PROBLEMS.items())


def test_a_folder_in_place_of_a_file_is_no_signature(tmp_path: Path, key: Path) -> None:
    folder = write_folder(tmp_path / "s")
    (folder / "signoff.1.sig.json").mkdir()
    (finding,) = verify_signatures(folder, allowed(key), now=NOW).findings
    assert [problem.code for problem in finding.problems] == ["unreadable"]
    with pytest.raises(InputError):
        sign(tmp_path / "nowhere", key)
