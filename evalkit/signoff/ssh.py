"""SSH keys and signatures: the wire form, fingerprints, and what `ssh-keygen -Y sign` writes (SSHSIG, version 1).

An Ed25519 signature is checked here; those of other keys (RSA, ECDSA, security keys) by `ssh-keygen -Y verify`,
which then has to be installed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import Fault, InputError, visible
from evalkit.signoff.strict import BrokenFileError

__all__ = [
    "ED25519",
    "NAMESPACE",
    "SshSignature",
    "ed25519_blob",
    "ed25519_raw",
    "fingerprint",
    "key_type",
    "parse_signature",
    "ssh_keygen_sign",
    "unarmoured",
    "verify_ed25519",
    "verify_ssh",
]

NAMESPACE = "evalkit-signoff"
ED25519 = "ssh-ed25519"

_MAGIC = b"SSHSIG"
_START, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES = ("sha256", "sha512")
_WAIT_S = 300.0  # somebody may have to type a passphrase, or touch a security key


@dataclass(frozen=True, slots=True)
class SshSignature:
    """An SSHSIG blob taken apart: the public key in wire form, its signature, and what stands behind that."""

    public_key: bytes
    hash_name: str
    kind: str
    signature: bytes
    tail: bytes
    blob: bytes

    def signed_bytes(self, message: bytes) -> bytes:
        """What the key really signed: magic, namespace, nothing, the hash's name, the hash of the message."""
        hashed = hashlib.new(self.hash_name, message).digest()
        parts = (NAMESPACE.encode(), b"", self.hash_name.encode(), hashed)
        return _MAGIC + b"".join(_string(part) for part in parts)


def fingerprint(blob: bytes) -> str:
    """The fingerprint of a public key in wire form, as `ssh-keygen -l` prints it: `SHA256:...`."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def ed25519_blob(raw: bytes) -> bytes:
    """The wire form of an Ed25519 public key of 32 bytes."""
    return _string(ED25519.encode()) + _string(raw)


def ed25519_raw(blob: bytes) -> bytes | None:
    """The 32 bytes of an Ed25519 public key in wire form; None for any other key."""
    try:
        kind, rest = _take(blob)
        raw, rest = _take(rest)
    except BrokenFileError:
        return None
    return raw if kind == ED25519.encode() and len(raw) == 32 and not rest else None


def key_type(blob: bytes) -> str:
    """The type that a public key in wire form states; BrokenFileError where it states none."""
    kind, _ = _take(blob)
    try:
        return kind.decode("ascii")
    except UnicodeDecodeError:
        raise BrokenFileError("is no SSH public key") from None


def parse_signature(blob: bytes) -> SshSignature:
    """The SSHSIG blob taken apart; BrokenFileError where it is another version, of another namespace, or cut."""
    if not blob.startswith(_MAGIC) or blob[6:10] != (1).to_bytes(4, "big"):
        raise BrokenFileError("is no SSH signature of version 1")
    public_key, rest = _take(blob[10:])
    namespace, rest = _take(rest)
    reserved, rest = _take(rest)
    hash_name, rest = _take(rest)
    signature, rest = _take(rest)
    if rest or reserved:
        raise BrokenFileError("the SSH signature holds more than it should")
    if namespace != NAMESPACE.encode():
        said = visible(namespace.decode("utf-8", "replace"))
        raise BrokenFileError(f'the SSH signature is one for "{said}", not for "{NAMESPACE}"')
    hashed = hash_name.decode("ascii", "replace")
    if hashed not in _HASHES:
        raise BrokenFileError(f'the SSH signature uses the hash "{visible(hashed)}"')
    kind, inner = _take(signature)
    raw, tail = _take(inner)
    return SshSignature(public_key, hashed, kind.decode("ascii", "replace"), raw, tail, blob)


def verify_ssh(signature: SshSignature, message: bytes) -> bool | None:
    """Whether the signature is one of its own public key over the message; None where that cannot be checked here,
    because `ssh-keygen` is missing."""
    raw = ed25519_raw(signature.public_key)
    if raw is not None:
        whole = signature.kind == ED25519 and len(signature.signature) == 64 and not signature.tail
        return whole and verify_ed25519(raw, signature.signature, signature.signed_bytes(message))
    return _ssh_keygen_verify(signature, message)


def verify_ed25519(raw: bytes, signature: bytes, message: bytes) -> bool:
    """Whether `signature` (64 bytes) is one of the public key (32 bytes) over the message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def ssh_keygen_sign(key: Path, message: bytes) -> SshSignature:
    """The message signed by `ssh-keygen -Y sign` with a private key, or with the agent's for a public one.

    ssh-keygen asks for a passphrase itself; the key is never read here. InputError where it does not sign.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        fix = "install OpenSSH, or sign with an Ed25519 key in PEM (openssl genpkey -algorithm ed25519)"
        raise InputError(Fault("an SSH key needs ssh-keygen, which is not installed", fix, file=str(key)))
    with tempfile.TemporaryDirectory(prefix="evalkit-sign-") as folder:
        file = Path(folder) / "message"
        file.write_bytes(message)
        command = [program, "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key.absolute()), str(file)]
        try:
            done = subprocess.run(
                command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=_WAIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            what = f"ssh-keygen did not sign within {_WAIT_S:.0f} s"
            raise InputError(Fault(what, "unlock the key, or add it to the agent", file=str(key))) from None
        written = file.with_name("message.sig")
        if done.returncode != 0 or not written.is_file():
            said = visible(" ".join(done.stderr.decode("utf-8", "replace").replace(folder, "").split()), 300)
            what = f"ssh-keygen did not sign with it: {said or 'no reason given'}"
            raise InputError(Fault(what, "name a private SSH key that you can use", file=str(key)))
        return parse_signature(unarmoured(written.read_text(encoding="ascii")))


def unarmoured(text: str) -> bytes:
    """The blob in the text form of an SSH signature."""
    rows = text.split()
    body = text.replace(_START, "").replace(_END, "")
    if not rows or _START not in text or _END not in text:
        raise BrokenFileError("is no SSH signature")
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BrokenFileError("the SSH signature is no base64") from None


def _armoured(blob: bytes) -> str:
    text = base64.b64encode(blob).decode("ascii")
    rows = [text[at : at + 70] for at in range(0, len(text), 70)]
    return "\n".join([_START, *rows, _END, ""])


def _ssh_keygen_verify(signature: SshSignature, message: bytes) -> bool | None:
    program = shutil.which("ssh-keygen")
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="evalkit-verify-") as folder:
        place = Path(folder)
        key = base64.b64encode(signature.public_key).decode("ascii")
        (place / "sig").write_text(_armoured(signature.blob), encoding="ascii")
        (place / "allowed").write_text(f"signer {key_type(signature.public_key)} {key}\n", encoding="ascii")
        command = [program, "-Y", "verify", "-f", str(place / "allowed"), "-I", "signer", "-n", NAMESPACE]
        done = subprocess.run(
            [*command, "-s", str(place / "sig")], input=message, capture_output=True, timeout=60, check=False
        )
        return done.returncode == 0


def _string(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part


def _take(data: bytes) -> tuple[bytes, bytes]:
    """The first length-prefixed string, and what is behind it."""
    length = int.from_bytes(data[:4], "big")
    if len(data) < 4 or len(data) < 4 + length:
        raise BrokenFileError("is cut short")
    return data[4 : 4 + length], data[4 + length :]
