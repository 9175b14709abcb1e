"""What the tests of grading share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.grading import Rubric, read_rubric


@pytest.fixture(scope="session")
def rubric_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rubric]:
    """Writes a rubric, with other files beside it, and reads it."""

    def _rubric_of(text: str, **files: str) -> Rubric:
        folder: Path = tmp_path_factory.mktemp("rubric")
        for name, content in files.items():
            (folder / name.replace("_", ".")).write_text(content, encoding="utf-8")
        path = folder / "rubric.yaml"
        path.write_text(f"rubric: test\n{text}", encoding="utf-8")
        return read_rubric(path)

    return _rubric_of
