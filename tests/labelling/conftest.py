"""The helpers of this folder are found by name, and files that a test left open are closed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    from labelling_files import OPENED

    yield
    while OPENED:
        OPENED.pop().close()
