"""Where the bundled studies are: `labelsets/` of a checkout, or the package data of an installed wheel."""

from __future__ import annotations

from pathlib import Path

from evalkit.errors import Fault, InputError, visible

__all__ = ["DEFAULT_STUDY", "bundled_path", "bundled_studies"]

DEFAULT_STUDY = "helpdesk"
_PACKAGE = Path(__file__).resolve().parent.parent
# A checkout first: an editable install may hold stale package data of an earlier build.
_FOLDERS = (_PACKAGE.parent / "labelsets", _PACKAGE / "_bundled" / "labelsets")


def bundled_studies(folders: tuple[Path, ...] = _FOLDERS) -> dict[str, Path]:
    """Name and study file of every bundled study, in order of the names."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/study.yaml")):
            found.setdefault(path.parent.name, path)
    return dict(sorted(found.items()))


def bundled_path(name: str = DEFAULT_STUDY, folders: tuple[Path, ...] = _FOLDERS) -> Path:
    """The study file (`study.yaml`) of the bundled study `name`. Raises `InputError` with the names there are."""
    studies = bundled_studies(folders)
    if name not in studies:
        known = ", ".join(studies) or "none"
        raise InputError(
            Fault(
                f'there is no bundled study "{visible(name, 60)}"; there are: {known}',
                "name one of them, or the path of a study file",
            )
        )
    return studies[name]
