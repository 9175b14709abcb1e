"""Settles, for the token counts of many requests, whether a part stands inside its whole or beside it.

Reasoning stands inside the output with most providers and beside it with others; cached tokens inside or beside
the input. One provider counts in one way, so the counts of a model decide for the model, before anything is
averaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Settled", "settle"]

Floats = NDArray[np.float64]

_BESIDE_NATIVELY = re.compile(r"(?:^|/)(?:google|gemini|vertex_ai|gemma|xai|grok)(?:[-/_]|$)|gemini|gemma|grok")
_INSIDE_NATIVELY = re.compile(r"^(?:openai|azure|anthropic|deepseek)/|claude|(?:^|/)gpt-|(?:^|/)o[134](?:-|$)")
_FEW = 0.05


@dataclass(frozen=True, slots=True)
class Settled:
    """`whole` (n,) with the part inside everywhere. beside: the part was counted beside it throughout (True),
    inside (False), or no request has a part (None). added: requests whose part was added. odd: those among them
    that contradict the way the model counts otherwise."""

    whole: Floats
    beside: bool | None
    added: int
    odd: int


def settle(whole: Floats, part: Floats, model: str | None, *, part_is: str = "reasoning") -> Settled:
    """The `whole` (n,) counts of one model's requests with the `part` (n,) inside; NaN is unknown.

    A part above its whole cannot be inside it. Where that happens, all requests of the model are read as beside,
    if the provider is known to count so, or if more than 5 % of the requests with a part are like that and the
    provider is not known to count inside. Otherwise only those requests are: their counts allow no other reading.
    `part_is`: reasoning (of the output), or cache (of the input), for which no provider's habit is assumed.
    """
    has = ~np.isnan(whole) & ~np.isnan(part) & (part > 0)
    above = has & (part > whole)
    if not has.any():
        return Settled(whole, None, 0, 0)
    if not above.any():
        return Settled(whole, False, 0, 0)
    name = (model or "").lower()
    known_beside = part_is == "reasoning" and bool(_BESIDE_NATIVELY.search(name))
    known_inside = part_is == "reasoning" and not known_beside and bool(_INSIDE_NATIVELY.search(name))
    many = float(above.sum()) > _FEW * float(has.sum())
    beside = known_beside or (many and not known_inside)
    add = has if beside else above
    return Settled(
        np.where(add, whole + np.nan_to_num(part), whole),
        beside,
        int(add.sum()),
        0 if beside else int(above.sum()),
    )
