"""A digest of evalkit's own source: it changes with any of its files, and with nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import evalkit
from evalkit.signoff.build import source_sha256


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two files that takes evalkit's place."""
    (tmp_path / "a").mkdir()
    (tmp_path / "__init__.py").write_bytes(b"x = 1\n")
    (tmp_path / "a" / "page.html").write_bytes(b"<p>\n")
    monkeypatch.setattr(evalkit, "__file__", str(tmp_path / "__init__.py"))
    source_sha256.cache_clear()
    yield tmp_path
    source_sha256.cache_clear()


def now() -> str:
    source_sha256.cache_clear()
    return source_sha256()


def test_it_is_what_is_said(package: Path) -> None:
    parts = {"__init__.py": b"x = 1\n", "a/page.html": b"<p>\n"}
    joined = b"".join(name.encode() + b"\0" + hashlib.sha256(content).digest() for name, content in parts.items())
    assert now() == hashlib.sha256(joined).hexdigest()


def test_line_ends_caches_and_bundled_studies_are_no_part_of_it(package: Path) -> None:
    before = now()
    (package / "__init__.py").write_bytes(b"x = 1\r\n")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"1")
    (package / "_bundled" / "labelsets").mkdir(parents=True)
    (package / "_bundled" / "labelsets" / "build.py").write_bytes(b"1")
    assert now() == before


@pytest.mark.parametrize("name", ["__init__.py", "a/page.html", "a/new.css", "a/new.js", "ko.po"])
def test_every_file_that_is_run_or_shown_is_part_of_it(package: Path, name: str) -> None:
    before = now()
    (package / name).write_bytes(b"y")
    assert now() != before


def test_a_file_moved_is_another_source(package: Path) -> None:
    before = now()
    (package / "a" / "page.html").rename(package / "page.html")
    assert now() != before
