"""Drawing items so that what is drawn can be weighted back to where it came from, and how many must be drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share, check_share, finite_array

__all__ = ["allocate", "draws_for", "inclusion_chances", "systematic_sample"]

_MOST_DRAWS = 10**12


def draws_for(wanted: int, share: float, chance: float = 0.9) -> int | None:
    """The fewest random draws that hold, with `chance`, `wanted` items of a kind of which there is a `share`.

    `min{m : P(Binomial(m, share) >= wanted) >= chance}`. 0 for wanted 0; None for share 0, and beyond 10^12.

    >>> [draws_for(59, share) for share in (1.0, 0.3)]
    [59, 225]
    """
    from scipy.special import betainc

    check_share("draws_for", "share", share)
    check_open_share("draws_for", "chance", chance)
    if wanted < 0:
        raise bad_parameter("draws_for", "wanted", "0 or more", wanted)
    if wanted == 0:
        return 0
    if share == 0 or wanted / share > _MOST_DRAWS:
        return None
    if share == 1:
        return wanted

    def enough(m: int) -> bool:
        return m >= wanted and float(betainc(wanted, m - wanted + 1, share)) >= chance

    low, high = wanted - 1, max(wanted, math.ceil(wanted / share))  # low is never enough
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def allocate(total: int, sizes: Sequence[int], parts: Sequence[float]) -> list[int]:
    """How many of `total` draws each stratum gets: in proportion to `parts`, none more than its size.

    What a small stratum cannot take goes to the others in proportion. Whole numbers by largest remainder, ties to
    the earlier stratum; a stratum with items and a part above 0 gets at least one where there are enough draws.
    The sum is `total`, or that of the sizes with a part where it is less.

    >>> allocate(300, [10000, 800, 40], [1, 1, 1])
    [130, 130, 40]
    """
    if total < 0 or len(sizes) != len(parts):
        raise bad_parameter("allocate", "parts", "one number per stratum", f"{len(parts)} for {len(sizes)}")
    if any(not (math.isfinite(part) and part >= 0) for part in parts):
        raise bad_parameter("allocate", "parts", "finite and 0 or more", list(parts))
    open_ = [i for i, (size, part) in enumerate(zip(sizes, parts, strict=True)) if size > 0 and part > 0]
    left = min(total, sum(sizes[i] for i in open_))
    got = [0] * len(sizes)
    full: list[int] = []
    while open_:  # fill those that cannot take their share, then share the rest
        whole = sum(parts[i] for i in open_)
        full = [i for i in open_ if left * parts[i] / whole >= sizes[i]]
        if not full:
            break
        for i in full:
            got[i] = sizes[i]
            left -= sizes[i]
        open_ = [i for i in open_ if i not in full]
    if not open_:
        return got
    whole = sum(parts[i] for i in open_)
    exact = {i: left * parts[i] / whole for i in open_}
    for i in open_:
        got[i] = math.floor(exact[i])
    rest = left - sum(got[i] for i in open_)
    for i in sorted(open_, key=lambda i: (got[i] - exact[i], i))[:rest]:
        got[i] += 1
    for i in open_:  # a stratum without an item says nothing about its traffic
        richest = max(range(len(got)), key=lambda j: got[j])
        if got[i] == 0 and got[richest] > 1:
            got[i], got[richest] = 1, got[richest] - 1
    return got


def inclusion_chances(sizes: ArrayLike, n: int) -> NDArray[np.float64]:
    """(m,) chance of each unit to be among `n` drawn with chances in proportion to `sizes`, none above 1.

    Units whose share would be above 1 are drawn for certain, and the rest is shared anew (Sarndal, Swensson and
    Wretman 1992, 3.6.2). Units of size 0 are never drawn. The sum is `n`, or the number of units with a size.
    """
    size = finite_array("inclusion_chances", "sizes", sizes)
    if (size < 0).any() or n < 0:
        raise bad_parameter("inclusion_chances", "sizes", "0 or more", float(size.min(initial=0.0)))
    chance = np.zeros(size.size)
    sure = np.zeros(size.size, dtype=bool)
    positive = size > 0
    if n >= int(positive.sum()):
        return positive.astype(np.float64)
    while n > int(sure.sum()):
        rest = positive & ~sure
        scaled = np.zeros(size.size)
        scaled[rest] = (n - int(sure.sum())) * (size[rest] / size[rest].sum())
        new = scaled >= 1.0
        if not new.any():
            return np.where(sure, 1.0, scaled)
        sure |= new
    chance[sure] = 1.0
    return chance


def systematic_sample(chances: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions of a sample in which unit i is with chance `chances[i]`: systematic, over a random order.

    With chances c in random order, unit i is drawn when `cumsum(c) + u` passes a whole number there, u uniform on
    0..1 (Madow 1949). Where the chances sum to a whole number, so many are drawn. Ascending positions.
    """
    chance = finite_array("systematic_sample", "chances", chances)
    if (chance < 0).any() or (chance > 1).any():
        raise bad_parameter("systematic_sample", "chances", "between 0 and 1 throughout", chance.tolist()[:5])
    if not chance.size:
        return np.zeros(0, dtype=np.int64)
    sure = chance >= 1.0
    rest = np.flatnonzero(~sure & (chance > 0))
    order = rest[rng.permutation(rest.size)]
    running = np.cumsum(chance[order])
    if running.size:  # a sum that is whole but for rounding is whole
        whole = round(float(running[-1]))
        if abs(float(running[-1]) - whole) < 1e-6 and whole > 0:
            running *= whole / float(running[-1])
            running[-1] = whole
    passed = np.floor(running + rng.uniform())
    drawn = order[np.diff(passed, prepend=0.0) >= 1.0]
    return np.sort(np.concatenate([np.flatnonzero(sure), drawn]))
