"""A router in Python: the user's own function, which a study names as `module:function`.

It is given a list of requests, `{"prompt": ..., "messages": ..., "category": ...}` each, and returns a number for
each. It runs with all rights of the user, so only a study may name it, and it is never run out of a bundle.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AnySet
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.routers.items import Requests
from evalkit.study.functions import load_function
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
        with contextlib.redirect_stdout(sys.stderr):  # results alone go to stdout
            call = _load(function, folder)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (importing runs the user's code)
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
        found.append({
            "prompt": requests.text[i],
            "messages": copy.deepcopy(requests.messages[i]),
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
        with contextlib.redirect_stdout(sys.stderr):
            found = call(given)
            # One more than there are items tells that there are too many; they may be without end.
            values = [] if isinstance(found, AnySet | Mapping) else list(islice(iter(found), len(ids) + 1))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 (it is the user's code)
        raise fault(f"raised {type(error).__name__}: {visible(error)}", "correct it") from None
    if isinstance(found, AnySet | Mapping):
        what = f"returned a {type(found).__name__}, which has no order"
        raise fault(what, "return a list with one number for each item, in their order")
    if len(values) != len(ids):
        many = f"{len(values):,} scores for" if len(values) < len(ids) else "more scores than"
        what = f"returned {many} {len(ids):,} items"
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
    module = function.partition(":")[0].replace(".", "_")
    return load_function(function, _beside(function, folder), f"_router_{module}")
