"""Where the files of a run go, each written whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evalkit.errors import Fault, InputError

__all__ = ["report_folder", "write_files"]


def report_folder(name: str) -> Path:
    """The folder of a study's reports where none is named: reports/<its name as one plain folder name>."""
    kept = "".join(ch if ch.isalnum() or ch in "-_." else "-" for ch in name).strip(".-")
    return Path("reports") / (kept[:100] or "study")


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write each file whole, making its folder; raises InputError where the system refuses."""
    from evalkit.tabular.write import write_atomic

    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        except OSError as error:
            what = f"cannot be written: {error.strerror or error.__class__.__name__}"
            raise InputError(Fault(what, "name a folder that can be written with --out", file=str(path))) from None
