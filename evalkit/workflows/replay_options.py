"""Options about calls that several commands share."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from evalkit.errors import Fault, InputError, visible

__all__ = ["usd"]


def usd(option: str, text: str | None) -> Decimal | None:
    """An amount that a person typed; None where none was given. Raises `InputError` where it is no amount."""
    if text is None:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0:
        what = f'"{visible(text, 60)}" is not an amount in USD'
        raise InputError(Fault(what, "give a number of 0 or more, such as 2.50", field=option))
    return amount
