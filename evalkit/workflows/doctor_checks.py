"""What can be checked about the machine and the installation. Each check says what it found and what to do."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from evalkit import __version__

__all__ = ["Check", "extras", "folder", "packages", "python", "sqlite"]

Status = Literal["ok", "warning", "problem"]

_LEAST_BYTES = 100 * 2**20
_ENOUGH_BYTES = 2**30
_SQLITE = (3, 24, 0)
_LOCAL = "xllamacpp"
_INSTALL = "install the pinned packages: pip install --require-hashes -r requirements/run.txt"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `fix` says what to do where it is no `ok`."""

    name: str
    status: Status
    what: str
    fix: str | None = None


def python() -> Check:
    """The version of Python against the one that evalkit needs."""
    from packaging.specifiers import SpecifierSet

    needs = _metadata("Requires-Python") or ">=3.11"
    have = platform.python_version()
    if not SpecifierSet(needs).contains(have, prereleases=True):
        return Check("python", "problem", f"{have}, and evalkit needs {needs}", "use a newer Python")
    return Check("python", "ok", f"{have} (needs {needs}), evalkit {__version__}, {platform.system()}")


def packages() -> Iterator[Check]:
    """The installed versions of what evalkit requires."""
    from packaging.requirements import Requirement

    required = [Requirement(text) for text in _requires()]
    required = [one for one in required if one.marker is None or one.marker.evaluate({"extra": ""})]
    if not required:
        yield Check(
            "packages", "warning", "evalkit is not installed as a package: its needs are not known", _INSTALL
        )
        return
    right = 0
    for one in required:
        have = _version(one.name)
        if have is None:
            yield Check("packages", "problem", f"{one.name} is missing (needs {one.specifier})", _INSTALL)
        elif not one.specifier.contains(have, prereleases=True):
            yield Check("packages", "problem", f"{one.name} is {have}, and {one.specifier} is needed", _INSTALL)
        else:
            right += 1
    shown = ", ".join(f"{name} {_version(name)}" for name in ("litellm", "genai-prices") if _version(name))
    yield Check("packages", "ok", f"{right} of {len(required)} as required; {shown}")


def extras(needed: bool) -> Check:
    """The runtime of local models; `needed`: the study has one."""
    have = _version(_LOCAL)
    if have is not None:
        return Check("local models", "ok", f"{_LOCAL} {have} is installed")
    what = f"{_LOCAL} is not installed"
    if needed:
        return Check(
            "local models", "problem", f"{what}, and the study has local models", 'pip install "evalkit[local]"'
        )
    return Check("local models", "ok", f"{what}; only models local/... need it")


def sqlite() -> Check:
    """The SQLite that ledgers are written with."""
    have = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _SQLITE:
        needs = ".".join(map(str, _SQLITE))
        return Check("sqlite", "problem", f"{have}, and {needs} is needed", "use a Python with a newer SQLite")
    return Check("sqlite", "ok", have)


def folder(path: Path) -> Iterator[Check]:
    """Whether the folder of a run can be written, and the space there."""
    place = path.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        yield Check("run folder", "problem", f"{place} is no folder", "name another folder with --out")
        return
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        what = f"{path} cannot be written: {error.strerror or error}"
        yield Check("run folder", "problem", what, "name another folder with --out, or give the right to write")
    else:
        made = "" if path.is_dir() else " (not made yet)"
        yield Check("run folder", "ok", f"{path}{made} can be written")
    free = shutil.disk_usage(place).free
    shown = f"{free / 2**30:,.1f} GiB free"
    if free < _LEAST_BYTES:
        yield Check("disk", "problem", shown, "make room: a run that cannot write stops")
    elif free < _ENOUGH_BYTES:
        yield Check("disk", "warning", shown, "make room before a long run")
    else:
        yield Check("disk", "ok", shown)


def _requires() -> list[str]:
    try:
        return metadata.requires("evalkit") or []
    except metadata.PackageNotFoundError:
        return []


def _metadata(key: str) -> str | None:
    try:
        return metadata.metadata("evalkit")[key]
    except (metadata.PackageNotFoundError, KeyError):
        return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
