"""What the tests of reading studies share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.study.routing_studies import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a study beside the files it names."""
    for name in ("labels.csv", "outcomes.parquet", "scores.csv", "routed.csv", "prices.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "support.yaml").touch()

    def _write(text: str) -> Path:
        path = tmp_path / "study.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write
