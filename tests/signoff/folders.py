"""Sign-off folders as small as they can be, real keys, and the signatures made with them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalkit.signoff.allowed_signers import TrustedKey, parse_allowed_signers
from evalkit.signoff.digest import document_digest
from evalkit.signoff.keys import open_key
from evalkit.signoff.signing import Choice, sign_folder

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
SIGNED_AT = "2026-12-01T11:59:00Z"
NAME = "Release Approver"


def write_folder(folder: Path, decision: str = "approve", **changes: Any) -> Path:
    """signoff.json, a report and manifest.json, whose hashes are right."""
    folder.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {
        "schema": "evalkit.signoff/1",
        "name": "support",
        "created_at": "2026-12-01T09:00:00Z",
        "verdict": {"decision": decision, "headline": decision},
        "policy": {"file": "gates.yaml", "sha256": "ab" * 32},
        "release": {"expires": "2027-03-01"},
        "signers": [],
        **changes,
    }
    document["digest"] = document_digest(document)
    (folder / "signoff.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    (folder / "signoff.html").write_text("<p>report", encoding="utf-8")
    write_manifest(folder)
    return folder


def write_manifest(folder: Path) -> None:
    rows = []
    for name in ("signoff.json", "signoff.html"):
        content = (folder / name).read_bytes()
        rows.append({"path": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)})
    (folder / "manifest.json").write_text(json.dumps({"files": rows}), encoding="utf-8")


def pem_key(path: Path, passphrase: bytes | None = None) -> Path:
    """A fresh Ed25519 key in PEM; its public half stands beside it with the suffix .pub.pem."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    lock = form.NoEncryption() if passphrase is None else form.BestAvailableEncryption(passphrase)
    path.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, lock))
    path.chmod(0o600)
    public = key.public_key()
    path.with_suffix(".pub").write_bytes(public.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH))
    path.with_suffix(".pub.pem").write_bytes(
        public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    )
    return path


def ssh_key(path: Path, kind: str = "ed25519") -> Path:
    """A fresh key of ssh-keygen without a passphrase; its public half beside it."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen (OpenSSH), which is not installed")
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "a comment", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def public_line(key: Path) -> str:
    """`type base64` of a key's public half."""
    return " ".join(key.with_suffix(".pub").read_text(encoding="ascii").split()[:2])


def allowed(*keys: Path, name: str = NAME, options: str = "") -> tuple[TrustedKey, ...]:
    rows = [f'"{name}" {options} {public_line(key)}' for key in keys]
    return parse_allowed_signers("\n".join(rows).encode(), "allowed_signers")


def sign(folder: Path, key: Path, decision: str = "approve", reason: str | None = None, **changes: Any) -> Path:
    at = changes.pop("signed_at", SIGNED_AT)
    now = changes.pop("now", NOW)
    choice = Choice(**{"name": NAME, "role": "approver", **changes}, decision=decision, reason=reason)
    return sign_folder(folder, open_key(key), choice, signed_at=at, now=now)
