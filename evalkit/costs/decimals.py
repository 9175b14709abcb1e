"""One way to write an exact decimal."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["plain_decimal"]


def plain_decimal(value: Decimal) -> str:
    """`value` without exponent and trailing zeros, every digit kept: 0.0070 -> 0.007, 1E+2 -> 100, -0 -> 0."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text
