"""Numbers as they are stored: without the digits that only rounding put there."""

from __future__ import annotations

from typing import overload

__all__ = ["clean"]


@overload
def clean(value: float) -> float: ...
@overload
def clean(value: None) -> None: ...
@overload
def clean(value: float | None) -> float | None: ...
def clean(value: float | None) -> float | None:
    """`value` to 12 significant digits: sums of cents must not end in ...0001; None stays None."""
    return None if value is None else float(f"{float(value):.12g}")
