"""The scripts of the bundled study, which lie beside their data and not in the package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "labelsets" / "helpdesk"


@pytest.fixture(scope="session")
def helpdesk() -> Path:
    """The folder of the bundled study."""
    return FOLDER


@pytest.fixture(scope="session")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The study's scripts by name."""
    sys.path.insert(0, str(FOLDER))
    names = ("build", "train_router")
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(FOLDER))
        for name in names:
            sys.modules.pop(name, None)
