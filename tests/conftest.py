"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, and no deadline: a busy machine is no fault. To look further:
# pytest --hypothesis-profile=explore
settings.register_profile("evalkit", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("evalkit")

REPO = Path(__file__).resolve().parent.parent
SHARED = REPO.parent / "shared"


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the checkout; tests that need it skip where it is missing."""
    if not SHARED.is_dir():
        pytest.skip("needs the reference data folder beside the checkout, which is not here")
    return SHARED


@pytest.fixture(autouse=True)
def _no_remembered_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test's study gave as a secret must not hide text of another."""
    monkeypatch.setattr("evalkit.errors._REMEMBERED", set())
