"""Signing a sign-off and checking it with real keys: what holds, and every way in which it does not."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.signoff.allowed_signers import parse_allowed_signers
from evalkit.signoff.digest import document_digest, folder_faults
from evalkit.signoff.dsse import IN_TOTO, Envelope, dump_envelope, pae, parse_envelope
from evalkit.signoff.keys import open_key
from evalkit.signoff.signatures import Signatures, verify_signatures
from evalkit.signoff.ssh import NAMESPACE
from evalkit.signoff.statement import parse_statement
from tests.signoff.folders import (
    NAME,
    NOW,
    allowed,
    pem_key,
    public_line,
    sign,
    ssh_key,
    write_folder,
    write_manifest,
)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return pem_key(tmp_path / "key.pem")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "signoff")


def codes(found: Signatures) -> list[list[str]]:
    return [[problem.code for problem in finding.problems] for finding in found.findings]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# What holds


def test_a_pem_key_signs_and_the_report_stays_as_it_was(folder: Path, key: Path) -> None:
    before = files(folder)
    path = sign(folder, key)
    assert path.name == "signoff.1.sig.json"
    assert files(folder) == {**before, path.name: path.read_bytes()}
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert codes(found) == [[]]
    assert (found.findings[0].valid, found.decision, found.missing) == (True, "approve", ())


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_an_ssh_key_signs_through_ssh_keygen(folder: Path, tmp_path: Path, kind: str) -> None:
    key = ssh_key(tmp_path / "id", kind)
    sign(folder, key)
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert codes(found) == [[]]
    assert found.findings[0].valid


def test_ssh_keygen_and_evalkit_agree_on_an_ssh_signature(folder: Path, tmp_path: Path) -> None:
    key = ssh_key(tmp_path / "id")
    envelope = parse_envelope(sign(folder, key).read_bytes())
    text = base64.b64encode(envelope.signature).decode()
    rows = [text[at : at + 76] for at in range(0, len(text), 76)]
    armour = ["-----BEGIN SSH SIGNATURE-----", *rows, "-----END SSH SIGNATURE-----", ""]
    (tmp_path / "sig").write_text("\n".join(armour), encoding="ascii")
    (tmp_path / "list").write_text(f"somebody {public_line(key)}\n", encoding="ascii")
    command = ["ssh-keygen", "-Y", "verify", "-f", tmp_path / "list", "-I", "somebody", "-n", NAMESPACE]
    for message, code in ((pae(IN_TOTO, envelope.payload), 0), (envelope.payload, 255)):
        done = subprocess.run([*command, "-s", tmp_path / "sig"], input=message, capture_output=True, check=False)
        assert done.returncode == code, done.stderr
    printed = subprocess.run(["ssh-keygen", "-l", "-f", key], capture_output=True, text=True, check=True).stdout
    assert envelope.keyid in printed


def test_the_agent_signs_for_a_public_key(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ssh_key(tmp_path / "id")
    if shutil.which("ssh-agent") is None or shutil.which("ssh-add") is None:
        pytest.skip("needs ssh-agent (OpenSSH), which is not installed")
    socket = tmp_path / "s"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        for _ in range(200):
            if subprocess.run(["ssh-add", "-q", key], capture_output=True, check=False).returncode == 0:
                break
        key.rename(tmp_path / "away")
        sign(folder, key.with_suffix(".pub"))
    finally:
        agent.terminate()
        agent.wait()
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [[]]


def test_the_statement_is_in_toto_and_names_both_files(folder: Path, key: Path) -> None:
    envelope = parse_envelope(sign(folder, key).read_bytes())
    value = json.loads(envelope.payload)
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    for part, name in zip(value["subject"], ("signoff.json", "manifest.json"), strict=True):
        assert part["name"] == name
        assert part["digest"] == {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
    assert value["predicate"]["computed_verdict"] == "approve"
    assert value["predicate"]["overrides"] is False


def test_the_same_signing_gives_the_same_bytes(tmp_path: Path, key: Path) -> None:
    one, two = (sign(write_folder(tmp_path / name), key).read_bytes() for name in ("a", "b"))
    assert one == two


def test_a_locked_pem_key_needs_its_passphrase(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = pem_key(tmp_path / "locked.pem", b"correct horse")
    monkeypatch.delenv("EVALKIT_KEY_PASSPHRASE", raising=False)
    with pytest.raises(InputError, match="EVALKIT_KEY_PASSPHRASE"):
        sign(folder, key)
    monkeypatch.setenv("EVALKIT_KEY_PASSPHRASE", "wrong horse")
    with pytest.raises(InputError, match="passphrase is wrong") as refused:
        sign(folder, key)
    assert "wrong horse" not in str(refused.value)
    monkeypatch.setenv("EVALKIT_KEY_PASSPHRASE", "correct horse")
    sign(folder, key)
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [[]]


def test_a_bare_public_key_is_trusted_for_any_name_and_says_so(folder: Path, key: Path) -> None:
    sign(folder, key)
    for public in (key.with_suffix(".pub.pem"), key.with_suffix(".pub")):
        found = verify_signatures(folder, parse_allowed_signers(public.read_bytes(), "key"), now=NOW)
        assert codes(found) == [[]]
        assert "names nobody" in found.findings[0].notes[0]


def test_without_keys_nothing_is_valid(folder: Path, key: Path) -> None:
    sign(folder, key)
    found = verify_signatures(folder, None, now=NOW)
    assert codes(found) == [[]]
    assert (found.findings[0].checked, found.findings[0].valid, found.decision) == (False, False, None)


def test_signatures_are_numbered_and_each_names_those_before_it(folder: Path, key: Path, tmp_path: Path) -> None:
    other = pem_key(tmp_path / "other.pem")
    first, second = (
        sign(folder, key),
        sign(folder, other, "reject", "the cost is not what was agreed", name="Second"),
    )
    assert [first.name, second.name] == ["signoff.1.sig.json", "signoff.2.sig.json"]
    keys = (*allowed(key), *allowed(other, name="Second"))
    found = verify_signatures(folder, keys, now=NOW)
    assert codes(found) == [[], []]
    assert found.decision == "reject"
    first.unlink()
    assert codes(verify_signatures(folder, keys, now=NOW)) == [["earlier_signature_missing"]]
    first.write_bytes(second.read_bytes())
    assert "earlier_signature_changed" in codes(verify_signatures(folder, keys, now=NOW))[1]


def test_a_number_is_never_taken_twice(folder: Path, key: Path) -> None:
    (folder / "signoff.10.sig.json").write_text("{}", encoding="utf-8")
    assert sign(folder, key).name == "signoff.11.sig.json"


def test_without_ssh_keygen_ed25519_is_checked_and_other_keys_are_not_believed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = ssh_key(tmp_path / "id_ed25519"), ssh_key(tmp_path / "id_ecdsa", "ecdsa")
    sign(folder, one)
    sign(folder, other)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = verify_signatures(folder, allowed(one, other), now=NOW)
    assert codes(found) == [[], ["cannot_be_checked"]]
    assert not found.findings[1].valid
    with pytest.raises(InputError, match="needs ssh-keygen, which is not installed"):
        sign(folder, one)


def test_a_locked_ssh_key_that_nobody_unlocks_signs_nothing(folder: Path, tmp_path: Path) -> None:
    key = ssh_key(tmp_path / "id")
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", key], check=True)
    script = "import sys; from pathlib import Path; from evalkit.cli.app import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["sign", folder, "--key", key, "--role", "approver", "--name", NAME, "--decision", "approve"]
    environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": str(int(NOW.timestamp()))}
    done = subprocess.run(  # a session of its own has no terminal to ask on
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        env=environment,
        cwd=Path(__file__).resolve().parents[2],
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "ssh-keygen did not sign with it" in done.stderr
    assert "PRIVATE KEY" not in done.stderr
    assert not list(folder.glob("*.sig.json"))


# What does not


@pytest.mark.parametrize("name", ["signoff.json", "manifest.json", "signoff.html"])
def test_a_changed_folder_is_not_signed(folder: Path, key: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    before = files(folder)
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        sign(folder, key)
    assert files(folder) == before


@pytest.mark.parametrize(
    "rows", [[], [{"path": "../signoff.json", "sha256": "0" * 64}], [{"path": "/etc/passwd"}], 7]
)
def test_a_manifest_that_says_nothing_or_leads_out_is_refused(folder: Path, rows: object) -> None:
    (folder / "manifest.json").write_text(json.dumps({"files": rows}), encoding="utf-8")
    assert [name for name, _ in folder_faults(folder)] == ["manifest.json"]


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "signoff.html").rename(tmp_path / "elsewhere.html")
    (folder / "signoff.html").symlink_to(tmp_path / "elsewhere.html")
    assert folder_faults(folder) == [("signoff.html", "is a link that leads out of the folder")]


@pytest.mark.parametrize("verdict", ["reject", "insufficient_evidence"])
def test_approval_against_the_verdict_needs_a_reason(tmp_path: Path, key: Path, verdict: str) -> None:
    folder = write_folder(tmp_path / "signoff", verdict)
    with pytest.raises(InputError, match="no reason is given"):
        sign(folder, key)
    with pytest.raises(InputError, match="is empty"):
        sign(folder, key, reason="  \n")
    sign(folder, key, reason="The two failures are known\nand handled by the fallback.")
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert codes(found) == [[]]
    statement = found.findings[0].statement
    assert statement is not None
    assert (statement.overrides, statement.computed_verdict) == (True, verdict)


def forge(folder: Path, key: Path, change: dict[str, object]) -> None:
    """A statement with changed fields, signed by the real key: what somebody without evalkit could make."""
    path = folder / "signoff.1.sig.json"
    value = json.loads(parse_envelope(path.read_bytes()).payload)
    value["predicate"].update(change)
    payload = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    signed = open_key(key).sign(pae(IN_TOTO, payload))
    path.write_bytes(dump_envelope(Envelope(IN_TOTO, payload, signed.keyid, signed.signature)))


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"computed_verdict": "reject", "overrides": True}, ["override_without_reason", "verdict_misstated"]),
        ({"decision": "reject", "overrides": True}, ["override_without_reason"]),
        ({"decision": "reject"}, ["unreadable"]),
        ({"decision": "approved"}, ["unreadable"]),
        ({"signed_at": "2026-12-01T12:06:00Z"}, ["signed_in_the_future"]),
        ({"signed_at": "2026-12-01T08:59:59Z"}, ["signed_before_document"]),
        ({"signed_at": "yesterday"}, ["unreadable"]),
        ({"document_digest": f"sha256:{'0' * 64}"}, ["wrong_digest"]),
        ({"expires": "2099-01-01"}, []),  # the document's own date counts
        ({"name": "Somebody Else"}, ["name_not_of_key"]),
        ({"name": "\u202eevil"}, ["unreadable"]),
        ({"earlier": [{"file": "../../etc/passwd", "sha256": "0" * 64}]}, ["unreadable"]),
        ({"extra": 1}, ["unreadable"]),
    ],
)
def test_what_a_statement_must_not_say(
    folder: Path, key: Path, change: dict[str, object], wanted: list[str]
) -> None:
    sign(folder, key)
    forge(folder, key, change)
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert codes(found) == [wanted]
    assert found.decision == ("approve" if not wanted else None)
    for finding in found.findings:
        assert all("\u202e" not in problem.text for problem in finding.problems)


def test_a_changed_payload_is_named(folder: Path, key: Path) -> None:
    path = sign(folder, key)
    envelope = parse_envelope(path.read_bytes())
    payload = envelope.payload.replace(b'"role":"approver"', b'"role":"approveR"')
    assert payload != envelope.payload
    path.write_bytes(dump_envelope(Envelope(IN_TOTO, payload, envelope.keyid, envelope.signature)))
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [["altered"]]


def test_every_single_byte_of_a_signature_file_counts(folder: Path, key: Path) -> None:
    path = sign(folder, key)
    content, keys = path.read_bytes(), allowed(key)
    for at in range(0, len(content), 7):
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        found = verify_signatures(folder, keys, now=NOW)
        assert found.faulty, f"byte {at}"
        assert found.decision is None


def test_the_key_of_somebody_else_is_unknown(folder: Path, key: Path, tmp_path: Path) -> None:
    sign(folder, pem_key(tmp_path / "stranger.pem"))
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [["unknown_key"]]


def test_naming_an_allowed_key_does_not_help_a_stranger(folder: Path, key: Path, tmp_path: Path) -> None:
    path = sign(folder, pem_key(tmp_path / "stranger.pem"))
    envelope = parse_envelope(path.read_bytes())
    known = allowed(key)[0].fingerprint
    path.write_bytes(dump_envelope(Envelope(IN_TOTO, envelope.payload, known, envelope.signature)))
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [["altered"]]


def test_an_ssh_signature_by_a_stranger_that_names_an_allowed_key_is_refused(folder: Path, tmp_path: Path) -> None:
    friend, stranger = ssh_key(tmp_path / "friend"), ssh_key(tmp_path / "stranger")
    path = sign(folder, stranger)
    envelope = parse_envelope(path.read_bytes())
    known = allowed(friend)[0].fingerprint
    path.write_bytes(dump_envelope(Envelope(IN_TOTO, envelope.payload, known, envelope.signature)))
    assert codes(verify_signatures(folder, allowed(friend), now=NOW)) == [["altered"]]


def test_an_ssh_signature_made_for_something_else_is_refused(folder: Path, tmp_path: Path) -> None:
    from evalkit.signoff.ssh import unarmoured

    key = ssh_key(tmp_path / "id")
    path = sign(folder, key)
    envelope = parse_envelope(path.read_bytes())
    (tmp_path / "m").write_bytes(pae(IN_TOTO, envelope.payload))
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", key, tmp_path / "m"], check=True)
    blob = unarmoured((tmp_path / "m.sig").read_text(encoding="ascii"))
    path.write_bytes(dump_envelope(Envelope(IN_TOTO, envelope.payload, envelope.keyid, blob)))
    assert codes(verify_signatures(folder, allowed(key), now=NOW)) == [["altered"]]


def test_another_document_under_an_old_signature_is_named(folder: Path, key: Path) -> None:
    sign(folder, key)
    write_folder(folder, "reject")
    found = codes(verify_signatures(folder, allowed(key), now=NOW))
    assert found == [["wrong_digest", "wrong_digest", "verdict_misstated", "wrong_digest"]]


def test_a_changed_manifest_is_named(folder: Path, key: Path) -> None:
    sign(folder, key)
    (folder / "signoff.html").write_text("<p>another report", encoding="utf-8")
    write_manifest(folder)
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert codes(found) == [["wrong_digest"]]
    assert "manifest.json" in found.findings[0].problems[0].text


def test_a_missing_document_leaves_no_signature_valid(folder: Path, key: Path) -> None:
    sign(folder, key)
    (folder / "signoff.json").unlink()
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert (codes(found), found.decision) == ([["wrong_digest"]], None)


def test_an_approval_runs_out_after_its_last_day(folder: Path, key: Path) -> None:
    sign(folder, key)
    last = NOW.replace(year=2027, month=3, day=1, hour=23)
    assert codes(verify_signatures(folder, allowed(key), now=last)) == [[]]
    over = last + timedelta(hours=1)
    assert codes(verify_signatures(folder, allowed(key), now=over)) == [["expired"]]
    with pytest.raises(InputError, match="expired on 2027-03-01"):
        sign(folder, key, signed_at="2027-03-02T00:00:00Z", now=over)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ('namespaces="evalkit-signoff"', []),
        ('namespaces="git,evalkit-*"', []),
        ('namespaces="git"', ["key_not_for_sign_offs"]),
        ('valid-after="20261201Z",valid-before="20261202Z"', []),
        ('valid-before="202612011159Z"', ["key_not_valid_then"]),
        ('valid-after="20261202Z"', ["key_not_valid_then"]),
    ],
)
def test_the_options_of_an_allowed_signer_are_kept(
    folder: Path, key: Path, options: str, wanted: list[str]
) -> None:
    sign(folder, key)
    assert codes(verify_signatures(folder, allowed(key, options=options), now=NOW)) == [wanted]


def test_a_key_that_ran_out_since_is_noted(folder: Path, key: Path) -> None:
    sign(folder, key)
    keys = allowed(key, options='valid-before="20261205Z"')
    found = verify_signatures(folder, keys, now=NOW + timedelta(days=30))
    assert found.findings[0].valid
    assert "no longer valid" in found.findings[0].notes[0]


def test_the_signers_of_the_policy_must_all_approve(tmp_path: Path, key: Path) -> None:
    signers = [{"role": "approver", "name": NAME}, {"role": "risk", "name": None}]
    folder = write_folder(tmp_path / "signoff", signers=signers)
    sign(folder, key)
    found = verify_signatures(folder, allowed(key, name="*"), now=NOW)
    assert (found.decision, found.missing) == (None, ("risk: anybody",))
    sign(folder, key, role="risk", name="Risk Officer")
    found = verify_signatures(folder, allowed(key, name="*"), now=NOW)
    assert (found.decision, found.missing) == ("approve", ())
    sign(folder, key, name="Passer By")
    assert codes(verify_signatures(folder, allowed(key, name="*"), now=NOW))[2] == ["not_a_signer_of_the_policy"]


def test_a_folder_with_a_stray_file_as_signature_is_not_valid(folder: Path, key: Path) -> None:
    (folder / "signoff.1.sig.json").write_bytes(b"\x00\xff")
    found = verify_signatures(folder, allowed(key), now=NOW)
    assert (codes(found), found.decision) == ([["unreadable"]], None)


# Keys


def test_a_key_that_others_may_read_is_refused(folder: Path, key: Path) -> None:
    key.chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        sign(folder, key)


def test_what_is_no_key_is_refused_without_quoting_it(folder: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    other = generate_private_key(SECP256R1()).private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
    )
    secret = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0LXNlY3JldC1zZWNyZXQ=\n-----END PRIVATE KEY-----\n"
    for content, message in ((secret, "no private key"), (b"", "no private key"), (other, "not Ed25519")):
        key = tmp_path / "broken"
        key.write_bytes(content)
        key.chmod(0o600)
        with pytest.raises(InputError, match=message) as refused:
            sign(folder, key)
        assert "c2VjcmV0" not in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        sign(folder, tmp_path / "nowhere")


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "a\x1b[2J"},
        {"name": "x" * 201},
        {"role": "a\nb"},
        {"reason": "\u202eno"},
        {"name": "\ud800"},
    ],
)
def test_text_that_reads_otherwise_than_it_is_written_is_not_signed(
    folder: Path, key: Path, changes: dict[str, str]
) -> None:
    with pytest.raises(InputError) as refused:
        sign(folder, key, **changes)
    assert refused.value.faults[0].field == f"--{next(iter(changes))}"
    assert not list(folder.glob("*.sig.json"))


def test_a_key_in_the_reason_is_not_signed(folder: Path, key: Path) -> None:
    with pytest.raises(InputError, match="looks like a key"):
        sign(folder, key, reason="use sk-FAKE-demo-0000-not-a-key")


def test_statement_bytes_are_read_back(folder: Path, key: Path) -> None:
    from evalkit.signoff.statement import statement_bytes

    payload = parse_envelope(sign(folder, key).read_bytes()).payload
    assert statement_bytes(parse_statement(payload)) == payload


def test_the_digest_is_of_everything_but_itself() -> None:
    one = {"a": 1, "digest": "x"}
    assert document_digest(one) == document_digest({"a": 1})
    assert document_digest({"a": 2}) != document_digest(one)
