"""The user's own functions are found where they are named, and hide no module."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from evalkit.study.functions import load_function


def test_a_file_hides_no_module_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "json.py"
    path.write_text(
        "class Own:\n    @staticmethod\n    def dumps(value):\n        return 'mine'\n", encoding="utf-8"
    )
    assert load_function("json:Own.dumps", path, "_study_json")(1) == "mine"
    assert sys.modules["json"] is json
    assert load_function("json:dumps", None, "_study_json") is json.dumps


def test_what_is_not_there_or_raises_comes_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "checks.py"
    path.write_text("raise RuntimeError('no')", encoding="utf-8")
    with pytest.raises(RuntimeError, match="no"):
        load_function("checks:f", path, "_study_checks")
    with pytest.raises(AttributeError):
        load_function("json:nothing", None, "_study_json")
    with pytest.raises(ModuleNotFoundError):
        load_function("no_such_module_here:f", None, "_study_json")
