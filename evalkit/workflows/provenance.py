"""Where every number of a run came from."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from evalkit.signoff.build import SOURCE, source_sha256
from evalkit.study.models import Source

__all__ = ["dependency_versions", "source_row", "utc_now"]

_DEPENDENCIES = ("numpy", "pandas", "pyarrow", "scipy", "statsmodels", "pydantic", "jinja2", "typer", "litellm")


def utc_now() -> str:
    """The time as UTC text to the second; SOURCE_DATE_EPOCH, where set to a whole number, fixes it."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def dependency_versions() -> Mapping[str, Any]:
    """Versions of Python and of the packages that computing and reports depend on, and which build of evalkit."""
    versions = {}
    for name in _DEPENDENCIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {SOURCE: source_sha256(), "python": platform.python_version(), "dependencies": versions}


def source_row(written: Source | str | None, fingerprint: str | None, **more: Any) -> dict[str, Any] | None:
    """A table as the provenance names it: the name that the study uses, and the hash of what was parsed."""
    if written is None or fingerprint is None:
        return None
    name = written if isinstance(written, str) else written.written
    return {"file": name, "hash": f"sha256:{fingerprint.removeprefix('sha256:')}", **more}
