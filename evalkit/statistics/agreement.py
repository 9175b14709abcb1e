"""How far several people (or a judge and people) give the same labels.

Ratings are arrays (items, raters) of category numbers with NaN where a rater gave none. Kappa depends on how
common the categories are and misleads alone; show raw agreement, alpha and AC1 beside it.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter

__all__ = ["Level", "cohen_kappa", "gwet_ac1", "krippendorff_alpha", "raw_agreement"]

Floats = NDArray[np.float64]


class Level(StrEnum):
    """How far apart two categories are."""

    NOMINAL = "nominal"  # equal or not
    ORDINAL = "ordinal"  # by what lies between them; for tiers
    INTERVAL = "interval"  # by the squared difference of their numbers


def raw_agreement(ratings: ArrayLike) -> float | None:
    """The share of pairs of ratings of one item that agree, averaged over items rated twice or more; None without.

    `mean_i sum_k r_ik (r_ik - 1) / (r_i (r_i - 1))`, r_ik = ratings of item i in category k.
    """
    counts = _counts("raw_agreement", ratings)[0]
    return _agreement(counts)


def krippendorff_alpha(ratings: ArrayLike, level: Level = Level.NOMINAL) -> float | None:
    """Krippendorff's alpha, 1 - observed / expected disagreement, for any number of raters and missing ratings.

    From the coincidences of pairable ratings: `o_cd = sum_items pairs(c, d) / (r_i - 1)`, n_c = sum_d o_cd,
    `alpha = 1 - (n - 1) sum o_cd delta^2 / sum n_c n_d delta^2` (Krippendorff 2011). None where no item is rated
    twice, or all ratings fall into one category.
    """
    counts, categories = _counts("krippendorff_alpha", ratings)
    counts = counts[counts.sum(axis=1) > 1]
    if not counts.size:
        return None
    rated = counts.sum(axis=1)
    together = (counts / (rated - 1)[:, None]).T @ counts - np.diag((counts / (rated - 1)[:, None]).sum(axis=0))
    totals = together.sum(axis=0)
    distance = _distance(Level(level), categories, totals)
    expected = float(totals @ distance @ totals)
    if expected <= 0:
        return None
    return 1.0 - (float(totals.sum()) - 1.0) * float((together * distance).sum()) / expected


def gwet_ac1(ratings: ArrayLike, categories: int | None = None) -> float | None:
    """Gwet's AC1, agreement corrected for chance in a way that survives very uneven categories.

    `(p_a - p_e) / (1 - p_e)`, `p_e = sum_k pi_k (1 - pi_k) / (K - 1)`, pi_k = mean share of category k
    (Gwet 2008). `categories` is K where not all of them occur. None without pairs or with fewer than two
    categories.
    """
    counts, seen = _counts("gwet_ac1", ratings)
    size = max(seen.size, categories or 0)
    agreed = _agreement(counts)
    if agreed is None or size < 2:
        return None
    rated = counts.sum(axis=1)
    share = (counts[rated > 0] / rated[rated > 0, None]).mean(axis=0)
    chance = float((share * (1 - share)).sum()) / (size - 1)
    return (agreed - chance) / (1 - chance)


def cohen_kappa(ratings: ArrayLike) -> float | None:
    """Cohen's kappa of two raters, over items both rated; None where chance alone would agree always, or no items.

    `(p_o - p_e) / (1 - p_e)`, p_e = product of the raters' own shares (Cohen 1960).
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2:
        raise bad_parameter("cohen_kappa", "ratings", "(items, 2)", f"shape {table.shape}")
    table = table[~np.isnan(table).any(axis=1)]
    if not len(table):
        return None
    categories = np.unique(table)
    shares = (table[:, :, None] == categories).mean(axis=0)
    chance = float(shares[0] @ shares[1])
    if chance >= 1:
        return None
    return (float((table[:, 0] == table[:, 1]).mean()) - chance) / (1 - chance)


def _counts(function: str, ratings: ArrayLike) -> tuple[Floats, Floats]:
    """Ratings per item and category (items, K), and the category numbers in rising order."""
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise bad_parameter(function, "ratings", "(items, raters)", f"shape {table.shape}")
    if np.isinf(table).any():
        raise bad_parameter(function, "ratings", "finite or NaN", "infinite ratings")
    categories = np.unique(table[~np.isnan(table)])
    counts = np.zeros((len(table), categories.size))
    for column, category in enumerate(categories):
        counts[:, column] = (table == category).sum(axis=1)
    return counts, categories


def _agreement(counts: Floats) -> float | None:
    rated = counts.sum(axis=1)
    counts, rated = counts[rated > 1], rated[rated > 1]
    if not rated.size:
        return None
    return float(((counts * (counts - 1)).sum(axis=1) / (rated * (rated - 1))).mean())


def _distance(level: Level, categories: Floats, totals: Floats) -> Floats:
    """Squared distances between categories, (K, K)."""
    if level is Level.NOMINAL:
        return 1.0 - np.eye(categories.size)
    place = categories
    if level is Level.ORDINAL:
        place = np.cumsum(totals) - totals / 2  # so that differences are what lies between, ends by half
    return (place[:, None] - place) ** 2
