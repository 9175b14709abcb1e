"""Keys that sign: an Ed25519 private key in PEM, or an SSH key through `ssh-keygen`. A key is never printed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evalkit.errors import Fault, InputError, remember_secret
from evalkit.signoff.ssh import ed25519_blob, fingerprint, ssh_keygen_sign

__all__ = ["PASSPHRASE", "Signed", "Signer", "open_key", "pem_public_blob"]

PASSPHRASE = "EVALKIT_KEY_PASSPHRASE"
"""The variable with the passphrase of an encrypted PEM key; ssh-keygen asks for its own."""

_SSH_MARKS = (
    b"-----BEGIN OPENSSH PRIVATE KEY-----",
    b"-----BEGIN RSA PRIVATE KEY-----",
    b"-----BEGIN EC PRIVATE KEY-----",
)
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature and the fingerprint of the key that made it."""

    keyid: str
    signature: bytes


class Signer(Protocol):
    """Something that signs bytes."""

    def sign(self, message: bytes) -> Signed:
        """The signature over the message. InputError where the key does not sign."""


@dataclass(frozen=True, slots=True)
class _SshKey:
    path: Path

    def sign(self, message: bytes) -> Signed:
        made = ssh_keygen_sign(self.path, message)
        return Signed(fingerprint(made.public_key), made.blob)


class _PemKey:
    """An Ed25519 key in memory; its own text shows nothing of it."""

    __slots__ = ("_key",)

    def __init__(self, key: object) -> None:
        self._key = key

    def sign(self, message: bytes) -> Signed:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        assert isinstance(self._key, Ed25519PrivateKey)
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return Signed(fingerprint(ed25519_blob(raw)), self._key.sign(message))


def open_key(path: Path) -> Signer:
    """The key in a file: PEM (PKCS 8) with an Ed25519 key, a private SSH key, or the public half of a key that the
    SSH agent holds. InputError where it is none of these, or where others may read it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
            mode = os.fstat(file.fileno()).st_mode
    except OSError as error:
        what = f"cannot be read: {error.strerror or type(error).__name__}"
        raise InputError(Fault(what, "name the file of a private key", file=str(path))) from None
    start = content.lstrip()
    if start.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return _SshKey(path)
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        what = "is a key that others than its owner may read, so anybody may have signed with it"
        raise InputError(Fault(what, "chmod 600 it", file=str(path)))
    if start.startswith(_SSH_MARKS):
        return _SshKey(path)
    return _PemKey(_load_pem(path, content))


def _load_pem(path: Path, content: bytes) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    passphrase = os.environ.get(PASSPHRASE)
    if passphrase:
        remember_secret(passphrase)
    locked = b"ENCRYPTED" in content
    if locked and not passphrase:
        raise InputError(
            Fault("is locked by a passphrase", f"give it in the variable {PASSPHRASE}", file=str(path))
        )
    try:
        key = load_pem_private_key(content, passphrase.encode("utf-8") if locked and passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # What the library says is left out: it may quote the file.
        what = "is no private key that can be opened" + (", or the passphrase is wrong" if locked else "")
        raise InputError(Fault(what, "make one: ssh-keygen -t ed25519 -f FILE", file=str(path))) from None
    if not isinstance(key, Ed25519PrivateKey):
        what = "is a key in PEM that is not Ed25519"
        raise InputError(Fault(what, "openssl genpkey -algorithm ed25519 -out FILE makes one", file=str(path)))
    return key


def pem_public_blob(content: bytes) -> bytes | None:
    """The wire form of the Ed25519 public key in a PEM file; None where it holds none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, Ed25519PublicKey):
        return None
    return ed25519_blob(key.public_bytes(Encoding.Raw, PublicFormat.Raw))
