"""Agreement of annotators with intervals: items or conversations resampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share
from evalkit.statistics.agreement import Level, gwet_ac1, krippendorff_alpha, raw_agreement
from evalkit.statistics.bounds import wilson_interval

__all__ = ["Agreement", "Estimate", "agreement_with_intervals"]

Floats = NDArray[np.float64]
_CHUNK = 4_000_000  # numbers a block of replicates may hold


@dataclass(frozen=True, slots=True)
class Estimate:
    """A coefficient with its interval; None where there is none."""

    value: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """items: rated by two or more; units: of these, or conversations where items share them; disagreeing: items on
    which not all agree."""

    items: int
    units: int
    disagreeing: int
    raw: Estimate
    alpha: Estimate
    ac1: Estimate


def agreement_with_intervals(
    ratings: ArrayLike,
    categories: int,
    *,
    level: Level = Level.ORDINAL,
    groups: ArrayLike | None = None,
    confidence: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> Agreement:
    """Raw agreement, Krippendorff's alpha, Gwet's AC1 of `ratings` (items, raters), NaN where none was given.

    Ratings are category numbers 0 .. `categories` - 1. Alpha and AC1: percentile bootstrap over items, or over
    `groups` (N,) where they are given; replicates in which a coefficient is not defined are left out. Raw:
    Wilson's interval at the number of units. Where no two ratings disagree, resampling shows nothing: alpha and
    AC1 then have no interval, and the lower end of raw agreement says how much disagreement there can still be.
    ValueError for a table that is not (items, raters) or ratings that are no such numbers.
    """
    check_open_share("agreement_with_intervals", "confidence", confidence)
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise bad_parameter("agreement_with_intervals", "ratings", "(items, raters)", f"shape {table.shape}")
    known = table[~np.isnan(table)]
    if known.size and not (np.isin(known, np.arange(categories))).all():
        what = f"whole numbers from 0 to {categories - 1}"
        raise bad_parameter("agreement_with_intervals", "ratings", what, float(known.max()))
    pairable = (~np.isnan(table)).sum(axis=1) > 1
    counts = np.stack([(table == c).sum(axis=1) for c in range(categories)], axis=1).astype(np.float64)
    codes = np.arange(len(table)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    units = len(np.unique(codes[pairable]))
    raw, alpha = raw_agreement(table), krippendorff_alpha(table, level)
    ac1 = gwet_ac1(table, categories)
    disagreeing = int(((counts[pairable] > 0).sum(axis=1) > 1).sum())
    raw_ends = None if raw is None or not units else wilson_interval(raw * units, units, confidence)
    ends: dict[str, tuple[float, float] | None] = {"alpha": None, "ac1": None}
    if units > 1 and disagreeing:
        ends = _resampled(counts, codes, level, confidence, replicates, seed)

    def estimate(value: float | None, interval: tuple[float, float] | None) -> Estimate:
        return Estimate(value, None, None) if value is None or interval is None else Estimate(value, *interval)

    return Agreement(
        int(pairable.sum()),
        units,
        disagreeing,
        estimate(raw, raw_ends),
        estimate(alpha, ends["alpha"]),
        estimate(ac1, ends["ac1"]),
    )


def _resampled(
    counts: Floats, codes: NDArray[np.int64], level: Level, confidence: float, replicates: int, seed: int
) -> dict[str, tuple[float, float] | None]:
    """Percentile intervals over resampled units, from the sums that the coefficients are made of."""
    sums = _sums(counts)
    per_unit = np.zeros((int(codes.max()) + 1, sums.shape[1]))
    np.add.at(per_unit, codes, sums)
    # Units that are alike are drawn together: how many of them a replicate holds is one multinomial count.
    kinds, many = np.unique(per_unit, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // len(kinds))
    blocks = []
    for start in range(0, replicates, step):
        drawn = rng.multinomial(len(per_unit), many / many.sum(), size=min(step, replicates - start))
        blocks.append(drawn @ kinds)
    totals = np.concatenate(blocks)
    k = counts.shape[1]
    out: dict[str, tuple[float, float] | None] = {}
    tail = (1.0 - confidence) / 2
    for name, values in (("alpha", _alphas(totals, k, level)), ("ac1", _ac1s(totals, k))):
        sound = values[~np.isnan(values)]
        ends = np.quantile(sound, [tail, 1.0 - tail]) if len(sound) >= replicates / 2 else None
        out[name] = None if ends is None else (float(ends[0]), float(ends[1]))
    return out


def _sums(counts: Floats) -> Floats:
    """(N, K*K + 2 + K + 1): coincidences; agreement and whether there are pairs; shares and whether rated."""
    n, k = counts.shape
    rated = counts.sum(axis=1)
    pairs = rated > 1
    weight = np.where(pairs, 1.0 / np.maximum(rated - 1.0, 1.0), 0.0)
    together = counts[:, :, None] * counts[:, None, :] * weight[:, None, None]
    at = np.arange(k)
    together[:, at, at] -= counts * weight[:, None]
    agreed = (counts * (counts - 1)).sum(axis=1) / np.where(pairs, rated * (rated - 1.0), 1.0)
    share = counts / np.maximum(rated, 1.0)[:, None]
    columns = [together.reshape(n, k * k), (agreed * pairs)[:, None], pairs[:, None], share, (rated > 0)[:, None]]
    return np.hstack([np.asarray(c, dtype=np.float64) for c in columns])


def _alphas(totals: Floats, k: int, level: Level) -> Floats:
    """Krippendorff's alpha of each row of summed coincidences, as `krippendorff_alpha`."""
    together = totals[:, : k * k].reshape(-1, k, k)
    margin = together.sum(axis=1)
    if level is Level.NOMINAL:
        distance = np.broadcast_to(1.0 - np.eye(k), together.shape)
    else:
        place = np.broadcast_to(np.arange(k, dtype=np.float64), margin.shape)
        if level is Level.ORDINAL:
            place = np.cumsum(margin, axis=1) - margin / 2
        distance = (place[:, :, None] - place[:, None, :]) ** 2
    expected = np.einsum("bi,bij,bj->b", margin, distance, margin)
    observed = (together * distance).sum(axis=(1, 2))
    n = margin.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(expected > 0, 1.0 - (n - 1.0) * observed / expected, np.nan)


def _ac1s(totals: Floats, k: int) -> Floats:
    """Gwet's AC1 of each row, as `gwet_ac1` with K categories."""
    agreed, pairs = totals[:, k * k], totals[:, k * k + 1]
    share, rated = totals[:, k * k + 2 : -1], totals[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = share / rated[:, None]
        chance = (share * (1 - share)).sum(axis=1) / (k - 1)
        return np.where(pairs > 0, (agreed / pairs - chance) / (1 - chance), np.nan)
