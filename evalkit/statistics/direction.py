"""Which annotator leans one way: labels below or above what the others agree on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalkit.statistics._parameters import bad_parameter, check_open_share
from evalkit.statistics.bounds import wilson_interval

__all__ = ["Leaning", "leanings"]


@dataclass(frozen=True, slots=True)
class Leaning:
    """One annotator against the strict majority of the others, item by item.

    compared         items with such a majority; higher: of these, where it is above the lowest category
    below, above     of the compared, labelled lower or higher than it
    missed           below / higher, with Wilson's interval; None without such items
    p_below          exact one-sided sign test that below is no more likely than above; 1.0 without either
    leans_low        p_below <= (1 - confidence) / annotators
    """

    compared: int
    higher: int
    below: int
    above: int
    missed: float | None
    interval: tuple[float, float] | None
    p_below: float
    leans_low: bool


def leanings(ratings: ArrayLike, confidence: float = 0.95) -> list[Leaning]:
    """How each rater of `ratings` (items, raters; category numbers in order, NaN where none was given) leans.

    The others' label is the one that more than half of them gave; items without one are not compared. Between two
    raters each is the other's measure: that one leans low and that the other leans high is then the same finding.
    The test is exact and shared by all annotators (Bonferroni).
    """
    from scipy.stats import binomtest

    check_open_share("leanings", "confidence", confidence)
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise bad_parameter("leanings", "ratings", "(items, raters)", f"shape {table.shape}")
    raters = table.shape[1]
    values = np.unique(table[~np.isnan(table)])
    lowest = values[0] if values.size else 0.0
    out = []
    for j in range(raters):
        others = np.delete(table, j, axis=1)
        counts = np.stack([(others == v).sum(axis=1) for v in values], axis=1) if values.size else None
        if counts is None:
            out.append(Leaning(0, 0, 0, 0, None, None, 1.0, False))
            continue
        top = counts.argmax(axis=1)
        agreed = 2 * counts.max(axis=1) > (~np.isnan(others)).sum(axis=1)
        rows = agreed & ~np.isnan(table[:, j])
        said, own = values[top[rows]], table[rows, j]
        higher, below, above = int((said > lowest).sum()), int((own < said).sum()), int((own > said).sum())
        p = float(binomtest(below, below + above, 0.5, "greater").pvalue) if below + above else 1.0
        interval = wilson_interval(below, higher, confidence) if higher else None
        out.append(
            Leaning(
                int(rows.sum()),
                higher,
                below,
                above,
                below / higher if higher else None,
                interval,
                p,
                p <= (1.0 - confidence) / raters,
            )
        )
    return out
