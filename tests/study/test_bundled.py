"""The bundled studies are found in a checkout and in an installed wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.study.bundled import bundled_path, bundled_studies


def test_a_checkout_has_its_studies(repo: Path) -> None:
    assert bundled_path() == repo / "labelsets" / "helpdesk" / "study.yaml"
    assert bundled_studies()["helpdesk"] == bundled_path("helpdesk")


def test_the_first_folder_wins_and_names_are_listed(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in ((first, ["b"]), (second, ["a", "b"])):
        for name in names:
            (folder / name).mkdir(parents=True)
            (folder / name / "study.yaml").touch()
    (first / "no-study").mkdir()
    folders = (first, second, tmp_path / "missing")
    assert bundled_studies(folders) == {"a": second / "a" / "study.yaml", "b": first / "b" / "study.yaml"}
    with pytest.raises(InputError, match='there is no bundled study "no-study"; there are: a, b'):
        bundled_path("no-study", folders)


@pytest.mark.parametrize("name", ["../labelsets/helpdesk", "helpdesk/../helpdesk", "", "/etc"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(InputError, match="there is no bundled study"):
        bundled_path(name)


def test_a_wheel_carries_them_and_finds_them(repo: Path, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77", reason="building a wheel needs setuptools 77")
    source, site = tmp_path / "source", tmp_path / "site"
    skip = shutil.ignore_patterns("__pycache__")
    for folder in ("evalkit", "labelsets", "rubrics"):
        if (repo / folder).is_dir():
            shutil.copytree(repo / folder, source / folder, ignore=skip)
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(repo / name, source / name)
    (source / "README.md").touch()
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    ask = (
        "import sys; sys.path.insert(0, sys.argv[1]); import evalkit; "
        "from evalkit.study.bundled import bundled_path; "
        "print(evalkit.__file__); print(bundled_path('helpdesk'))"
    )
    shown = subprocess.run(
        [sys.executable, "-I", "-c", ask, str(site)], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    package, study = (Path(line) for line in shown.stdout.split())
    assert package == site / "evalkit" / "__init__.py"
    assert study.is_relative_to(site / "evalkit" / "_bundled")
    ask = "import sys; sys.path.insert(0, sys.argv[1]); from evalkit.signoff.build import source_sha256; "
    ask += "print(source_sha256())"
    digests = {
        subprocess.run(
            [sys.executable, "-I", "-c", ask, str(place)], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout
        for place in (site, source)
    }
    assert len(digests) == 1  # a wheel and the checkout that it was built from are one build
    beside = {path.relative_to(study.parent) for path in study.parent.rglob("*") if path.is_file()}
    original = repo / "labelsets" / "helpdesk"
    tracked = {path.relative_to(original) for path in original.rglob("*.jsonl")} | {
        Path("study.yaml"),
        Path("prices.yaml"),
    }
    assert tracked <= beside
    assert study.read_bytes() == (original / "study.yaml").read_bytes()
    assert {path.name for path in (site / "evalkit" / "reporting").rglob("*.html")} == {
        path.name for path in (repo / "evalkit" / "reporting").rglob("*.html")
    }
