"""A check in Python: the user's own code, which a rubric names as `module:function`."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalkit.errors import visible
from evalkit.grading.grade import Grade, GradeStatus
from evalkit.grading.items import Item
from evalkit.study.functions import load_function

__all__ = ["PythonCheck"]

_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """Calls `module:function` with (final answer, item), which returns a bool, a score in 0..1, or a `Grade`.

    `module` is a file beside the rubric, or a module that can be imported. Whatever goes wrong in it is a
    `judge_error`, never a wrong answer. It runs with all rights of the user, so only a rubric may name it.
    """

    function: str
    folder: Path

    def problem(self) -> tuple[str, str] | None:
        """(what is wrong, how to put it right) of a name that leads to no function. Imports the module."""
        if not _NAME.fullmatch(self.function):
            return f"{visible(self.function)!r} is not module:function", "write it as checks:is_right"
        try:
            found = _load(self.function, str(self.folder))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (importing runs the user's code, which may end the program)
            what = f"{visible(self.function)!r} cannot be imported: {type(error).__name__}: {visible(error)}"
            return what, "put the module beside the rubric, or install it; then correct what it raises"
        return None if callable(found) else (f"{visible(self.function)!r} is no function", "name a function")

    def source(self) -> Path | None:
        """The file beside the rubric, None for an installed module. Imports nothing."""
        return _beside(self.function, str(self.folder))

    def source_sha256(self) -> str | None:
        """The hash of the file beside the rubric, None for an installed module."""
        path = self.source()
        return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()

    def grade(self, answer: str, item: Item, pass_at: float) -> Grade:
        """The grade that the function gives, or `judge_error` with what it did instead."""
        try:
            given = _load(self.function, str(self.folder))(answer, item)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (it is the user's code and says nothing of the answer)
            return Grade.judge_error("python_raised", f"{self.function}: {type(error).__name__}: {error}")
        if isinstance(given, Grade) and _is_sound(given):
            return given
        if isinstance(given, bool):
            return Grade.ok("python") if given else Grade.wrong("python")
        if isinstance(given, int | float) and math.isfinite(given) and 0 <= given <= 1:
            return Grade.scored(float(given), pass_at, "python")
        what = f"{self.function} returned {visible(repr(given))}; it has to be a bool, a score in 0..1 or a Grade"
        return Grade.judge_error("python_result", what)


def _is_sound(grade: Grade) -> bool:
    """Whether status, score and `passed` of a grade say the same."""
    if grade.status in {GradeStatus.JUDGE_ERROR, GradeStatus.NO_FINAL_ANSWER}:
        return grade.score is None and grade.passed is None
    score = grade.score
    whole = isinstance(score, int | float) and math.isfinite(score) and 0 <= score <= 1
    return whole and grade.passed is (grade.status is GradeStatus.OK)


def _beside(function: str, folder: str) -> Path | None:
    path = Path(folder) / f"{function.partition(':')[0]}.py"
    return path if path.is_file() else None


@lru_cache(maxsize=256)
def _load(function: str, folder: str) -> Callable[[str, Item], Any]:
    module = function.partition(":")[0]
    return load_function(function, _beside(function, folder), f"_rubric_{module}")  # type: ignore[no-any-return]
