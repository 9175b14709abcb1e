"""One form for parameters that make no sense, shared by all modules of this folder."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["bad_parameter", "check_count", "check_open_share", "check_share", "finite_array", "weight_array"]


def bad_parameter(function: str, name: str, must_be: str, got: object) -> ValueError:
    """The error "The `k` parameter of `f` must be ... Got ... instead."."""
    return ValueError(f"The `{name}` parameter of `{function}` must be {must_be}. Got {got!r} instead.")


def check_open_share(function: str, name: str, value: float) -> float:
    """`value` as a float strictly between 0 and 1, or ValueError."""
    if not 0.0 < value < 1.0:
        raise bad_parameter(function, name, "between 0 and 1, both excluded", value)
    return float(value)


def check_share(function: str, name: str, value: float) -> float:
    """`value` as a float between 0 and 1, both included, or ValueError."""
    if not 0.0 <= value <= 1.0:
        raise bad_parameter(function, name, "between 0 and 1", value)
    return float(value)


def check_count(function: str, name: str, value: float) -> float:
    """`value` if it is finite and not negative, or ValueError; whole and real numbers alike."""
    if not (math.isfinite(value) and value >= 0):
        raise bad_parameter(function, name, "a finite number, 0 or more", value)
    return value


def finite_array(function: str, name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` as a 1-d float64 array of finite numbers, or ValueError that counts those that are not."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise bad_parameter(function, name, "one-dimensional", f"shape {array.shape}")
    wrong = int(array.size - np.count_nonzero(np.isfinite(array)))
    if wrong:
        raise bad_parameter(function, name, "finite throughout", f"{wrong} of {array.size} values not finite")
    return array


def weight_array(function: str, weights: ArrayLike | None, size: int) -> NDArray[np.float64] | None:
    """`weights` as `size` finite float64 numbers of 0 or more; None stays None (all items weigh the same)."""
    if weights is None:
        return None
    array = finite_array(function, "weights", weights)
    if array.size != size:
        raise bad_parameter(function, "weights", f"one number per value ({size})", f"{array.size} numbers")
    if array.size and float(array.min()) < 0:
        raise bad_parameter(function, "weights", "0 or more throughout", float(array.min()))
    return array
