"""A router in Python: the user's own function, which a study names as `module:function`.

It is given a list of requests, `{"prompt": ..., "messages": ..., "category": ...}` each, and returns a number for
each. It runs with all rights of the user, so only a study may name it, and it is never run out of a bundle.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.routers.items import Requests
from evalkit.tabular.names import quoted

__all__ = ["call_router", "source_sha256"]

_CHECKED = 32
"""Requests that are scored a second time, in another order and company."""
_MOST_SCORE = 1e300


def call_router(
    function: str, folder: Path, requests: Requests, ids: Sequence[str], *, file: str, field: str
) -> NDArray[np.float64]:
    """(N,) what the function gives.

    Raises `InputError`: no such function, what it raised, what is no score, and a score that depends on which
    other requests it was asked with, or on chance: in production it is asked about one at a time.
    """

    def fault(what: str, fix: str) -> InputError:
        return InputError(Fault(f"{quoted(function)} {what}", fix, file=file, field=field))

    try:
        call = _load(function, folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (importing runs the user's code)
        what = f"cannot be imported: {type(error).__name__}: {visible(error)}"
        raise fault(what, "put the module beside the study, or install it; then correct what it raises") from None
    if not callable(call):
        raise fault("is no function", "name a function")
    score = _asked(call, _dicts(requests, range(len(requests))), ids, fault)
    some = list(range(0, len(requests), max(2, len(requests) // _CHECKED)))[:_CHECKED][::-1]  # never all of them
    again = _asked(call, _dicts(requests, some), [ids[i] for i in some], fault)
    for i, value in zip(some, again.tolist(), strict=True):
        if not math.isclose(value, float(score[i]), rel_tol=1e-9, abs_tol=1e-12):
            what = f"gives {quoted(ids[i])} {score[i]:g} among all items and {value:g} among others"
            raise fault(what, "score each request by itself, and without chance: production asks one at a time")
    return score


def source_sha256(function: str, folder: Path) -> str | None:
    """The hash of the file beside the study, None for an installed module."""
    path = _beside(function, folder)
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _dicts(requests: Requests, which: Sequence[int]) -> list[dict[str, Any]]:
    """New objects each time: what the function does to them reaches nobody."""
    found = []
    for i in which:
        messages = requests.messages[i]
        found.append({
            "prompt": requests.text[i],
            "messages": None if messages is None else [dict(message) for message in messages],
            "category": requests.category[i],
        })  # fmt: skip
    return found


def _asked(
    call: Callable[..., Any],
    given: list[dict[str, Any]],
    ids: Sequence[str],
    fault: Callable[[str, str], InputError],
) -> NDArray[np.float64]:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # results alone go to stdout
            found = call(given)
        values = list(found)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (it is the user's code)
        raise fault(f"raised {type(error).__name__}: {visible(error)}", "correct it") from None
    if len(values) != len(ids):
        what = f"returned {len(values):,} scores for {len(ids):,} items"
        raise fault(what, "return one number for each item, in their order")
    for name, value in zip(ids, values, strict=True):
        if not _is_score(value):
            raise fault(f"returned {visible(repr(value))} for {quoted(name)}", "return finite numbers")
    return np.array([float(value) for value in values], dtype=np.float64) + 0.0


def _is_score(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return abs(float(value)) <= _MOST_SCORE  # False for NaN
    except OverflowError:
        return False


def _beside(function: str, folder: Path) -> Path | None:
    path = folder.joinpath(*function.partition(":")[0].split(".")).with_suffix(".py")
    return path if path.is_file() else None


def _load(function: str, folder: Path) -> Any:
    module_name, _, attribute = function.partition(":")
    path = _beside(function, folder)
    found: Any
    if path is None:
        found = importlib.import_module(module_name)
    else:
        # Under a name of its own: a study's router.py hides no module called router.
        spec = importlib.util.spec_from_file_location(f"_router_{module_name.replace('.', '_')}", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path.name} cannot be loaded")
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found
