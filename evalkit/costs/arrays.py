"""Costs of many requests of one model at once, equal to the last digit to `cost_usd` one by one."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalkit.costs.cost import cost_usd
from evalkit.costs.prices import Price, Rates
from evalkit.costs.usage import Usage

__all__ = ["cost_usd_array"]

Floats = NDArray[np.float64]

_EXACT = 2**53  # whole numbers below this are exact in float64, and so are their sums
_MAX_STEP = 15  # and 10^15 is the largest power of ten among them
_DIGITS = re.compile(r"[0-9]+")


def cost_usd_array(
    price: Price,
    *,
    input_tokens: Floats,
    output_tokens: Floats,
    cache_read_tokens: Floats | None = None,
    cache_write_tokens: Floats | None = None,
    reasoning_tokens: Floats | None = None,
    batch: bool = False,
) -> tuple[Floats, dict[str, int]]:
    """USD of each request, shape (n,), NaN where unknown, and how many are unknown for which reason.

    Counts are in the normal form, shape (n,), NaN where unknown. The formula and its refusals are those of
    `cost_usd`; prices are whole multiples of a small step, so that sums of products are exact and the one division
    rounds as the exact decimal does. Reasons that differ in their numbers only are counted under the first.
    """
    columns = (input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens)
    counts = np.column_stack(
        [np.full(len(input_tokens), np.nan) if c is None else np.asarray(c, dtype=np.float64) for c in columns]
    )
    prompt, read, written, output, reasoning = np.nan_to_num(counts, nan=0.0).T
    sound = np.all(np.isnan(counts) | ((counts >= 0) & (counts == np.floor(counts))), axis=1)
    sound &= ~np.isnan(counts[:, 0]) & ~np.isnan(counts[:, 3])
    sound &= (prompt > 0) & (read + written <= prompt) & (reasoning <= output)
    usd = np.full(len(counts), np.nan)
    factor = price.period.batch_factor if batch else Decimal(1)
    tier = np.searchsorted([step.above for step in price.period.tiers], prompt, side="left")
    for index, rates in enumerate((price.period.rates, *(step.rates for step in price.period.tiers))):
        steps = None if factor is None else _in_steps(rates, factor)
        if steps is None:
            continue
        rows = np.flatnonzero(sound & (tier == index) & ((written == 0) | (rates.cache_write is not None)))
        fresh = prompt[rows] - read[rows] - written[rows]
        units = fresh * steps.input + read[rows] * steps.cache_read
        units += written[rows] * steps.cache_write + output[rows] * steps.output
        exact = units < _EXACT
        usd[rows[exact]] = units[exact] / steps.per_usd
    return usd, _one_by_one(usd, counts, price, batch=batch)


class _Steps(NamedTuple):
    """Prices per token as whole numbers of a step, and how many steps are one USD."""

    input: float
    cache_read: float
    cache_write: float
    output: float
    per_usd: float


def _in_steps(rates: Rates, factor: Decimal) -> _Steps | None:
    """None where the prices have too many digits for exact floats."""
    read = rates.input if rates.cache_read is None else rates.cache_read
    prices = [
        (price * factor).normalize()
        for price in (rates.input, read, rates.cache_write or Decimal(0), rates.output)
    ]
    digits = max(0, *(-int(price.as_tuple().exponent) for price in prices))
    if digits + 6 > _MAX_STEP:
        return None
    whole = [float(int(price.scaleb(digits))) for price in prices]
    return _Steps(whole[0], whole[1], whole[2], whole[3], float(10 ** (digits + 6)))


def _one_by_one(usd: Floats, counts: Floats, price: Price, *, batch: bool) -> dict[str, int]:
    """Fill in what the fast way left out, and count the reasons of what stays unknown."""
    first: dict[str, str] = {}
    seen: dict[str, int] = {}
    left = np.flatnonzero(np.isnan(usd))
    missing = np.isnan(counts[left][:, [0, 3]])
    for row, unknown in zip(left.tolist(), missing.tolist(), strict=True):
        kind = "input" if unknown[0] else "output" if unknown[1] else ""
        if kind and kind in first:  # nothing more to learn from the request
            seen[kind] += 1
            continue
        cost = cost_usd(_usage(counts[row]), price, batch=batch)
        if cost.usd is not None:
            usd[row] = float(cost.usd)
            continue
        reason = cost.reason or "unknown"
        kind = kind or _DIGITS.sub("#", reason)
        first.setdefault(kind, reason)
        seen[kind] = seen.get(kind, 0) + 1
    return {first[kind]: number for kind, number in seen.items()}


def _usage(row: Floats) -> Usage:
    values = [None if np.isnan(value) else value for value in row.tolist()]
    for value in values:
        if value is not None and value != int(value):
            return Usage(problem=f"a token count is {value}, not a whole number")
    whole = [None if value is None else int(value) for value in values]
    return Usage(
        input_tokens=whole[0],
        cache_read_tokens=whole[1],
        cache_write_tokens=whole[2],
        output_tokens=whole[3],
        reasoning_tokens=whole[4],
    )
