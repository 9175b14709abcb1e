"""Which evalkit this is: a digest of its own source, since two builds can carry one version."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import evalkit

__all__ = ["SOURCE", "source_sha256"]

SOURCE = "evalkit_source_sha256"
"""What the provenance of a run or sign-off calls the digest of the evalkit that wrote it."""

_KINDS = frozenset({".py", ".html", ".css", ".js", ".po"})
_BUNDLED = "_bundled/"  # studies that a wheel carries and a checkout has beside the package


@cache
def source_sha256() -> str:
    """SHA-256 in hex over evalkit's own files: code, templates, catalogues; the same for a checkout and
    a wheel of it, whatever ends its lines.

    Each file in the order of its path below the package: the path, a zero byte, the SHA-256 of its content with
    LF for CR LF. Read when first asked for, and once.
    """
    root = Path(evalkit.__file__).resolve().parent
    digest = hashlib.sha256()
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.suffix in _KINDS}
    for name in sorted(name for name in files if not name.startswith(_BUNDLED)):
        content = files[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(name.encode("utf-8") + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()
