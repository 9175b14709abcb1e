"""Stratified Poisson bootstrap of weighted means, for differences, curves and intervals on means. Never for gates.

In a Poisson bootstrap every item gets an independent Poisson(1) weight. A sum of N such weights is Poisson(N), so
that a cell of N similar items needs one draw instead of N; what the items of a cell differ by is replaced by a
normal term with exactly their covariance. Time and memory then depend on the number of cells, not of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share, weight_array

__all__ = ["FEWEST_GROUPS", "hashed_poisson", "percentile_interval", "poisson_means", "too_few_groups"]

FEWEST_GROUPS = 20
_MOST_DRAWS = 40_000_000  # items times replicates that are drawn item by item
_CHUNK = 1 << 20  # draws held at a time
_CACHED = 1 << 17  # hashes held at a time
_BLOCK = 1 << 16  # rows held at a time
_SMALL = 32  # strata up to this size keep every item apart

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def too_few_groups(groups: ArrayLike) -> bool:
    """Whether there are too few distinct groups (fewer than 20) for a bootstrap: use t with G - 1 then."""
    return int(np.unique(np.asarray(groups)).size) < FEWEST_GROUPS


def poisson_means(
    values: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    order: ArrayLike | None = None,
    code: ArrayLike | None = None,
    replicates: int,
    seed: int,
    max_cells: int = 4096,
) -> Floats:
    """Bootstrap replicates (B, Q) of the weighted means of the Q columns of `values` (n, Q) or (n,).

    Each replicate is `sum_h W_h (sum_{i in h} P_i w_i v_i / sum_{i in h} P_i w_i)` with Poisson(1) weights P and
    the total weight W_h of each of the `strata` (n labels) held fixed: the columns of one row share their
    draws, so that differences between columns are paired. A stratum that draws nothing keeps its own mean.

    Items are drawn one by one while n * B <= 4e7. Beyond that, by cells: quantile bins of `order` (n,), such as
    the score, within each combination of stratum and `code` (n labels), about `max_cells` in all; means,
    variances and covariances stay those of the items. `order` and `code` change precision in the tails only.

    `groups` (n labels, such as conversations): one weight per group, from a hash of its label, the replicate and
    the seed, whatever the other items are. Costs groups * B draws. See `too_few_groups`.

    Items of weight 0 count nowhere. ValueError for values that are not finite and where no item has weight.
    Same inputs, same result; more `replicates` only add rows (to rounding).
    """
    x = np.asarray(values, dtype=np.float64)
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    if x.ndim != 2:
        raise bad_parameter("poisson_means", "values", "one- or two-dimensional", f"shape {x.shape}")
    if not np.isfinite(x).all():
        raise bad_parameter("poisson_means", "values", "finite throughout", "values that are not finite")
    if replicates < 1:
        raise bad_parameter("poisson_means", "replicates", "1 or more", replicates)
    if seed < 0:
        raise bad_parameter("poisson_means", "seed", "0 or more", seed)
    if max_cells < 1:
        raise bad_parameter("poisson_means", "max_cells", "1 or more", max_cells)
    n = x.shape[0]
    w = weight_array("poisson_means", weights, n)
    w = np.ones(n) if w is None else w
    stratum = _codes("strata", strata, n)
    unit = None if groups is None else _labels("groups", groups, n)
    inner = _codes("code", code, n)
    by = x[:, 0] if order is None and x.shape[1] else np.zeros(n) if order is None else _labels("order", order, n)
    if not (w > 0).any():
        raise bad_parameter(
            "poisson_means", "weights", "above 0 for one item or more", f"{n} items without weight"
        )
    if not (w > 0).all():
        used = w > 0
        x, w, by, inner = x[used], w[used], by[used], inner[used]
        stratum = np.unique(stratum[used], return_inverse=True)[1]
        unit = None if unit is None else unit[used]
    problem = _Problem(x, w, stratum)
    if unit is not None:
        return problem.means(_group_sums(problem, unit, replicates, seed), replicates)
    if x.shape[0] * replicates <= _MOST_DRAWS or x.shape[0] <= max_cells:
        cell = np.arange(x.shape[0])
    else:
        cell = _cells(stratum, inner, np.asarray(by, dtype=np.float64), max_cells)
    return problem.means(_cell_sums(problem, cell, replicates, seed), replicates)


def percentile_interval(replicates: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """The two-sided percentile interval of `replicates` (B,) or (B, Q): arrays (lower, upper), () or (Q,).

    Order statistics of rank k and B + 1 - k, k = max(1, floor(B (1 - confidence) / 2)): always replicates
    themselves, and the interval of negated replicates is the negated interval. ValueError for B = 0 or NaN.
    """
    check_open_share("percentile_interval", "confidence", confidence)
    x = np.asarray(replicates, dtype=np.float64)
    if x.ndim not in {1, 2} or not x.shape[0]:
        raise bad_parameter("percentile_interval", "replicates", "(B,) or (B, Q) with B > 0", f"shape {x.shape}")
    if np.isnan(x).any():
        raise bad_parameter("percentile_interval", "replicates", "free of NaN", f"{int(np.isnan(x).sum())} NaN")
    count = x.shape[0]
    k = max(1, int(count * (1 - confidence) / 2 + 1e-9))
    ordered = np.partition(x, [k - 1, count - k], axis=0)
    return ordered[k - 1], ordered[count - k]


def hashed_poisson(groups: ArrayLike, replicates: range, seed: int) -> NDArray[np.uint8]:
    """Poisson(1) weights (len(replicates), G) of the labels `groups` (G,), each from a hash of its own.

    The weight of a group depends on its label, the replicate number and the seed alone, so that parts of a data
    set that were drawn apart fit together. Labels are hashed as text: 7 and "7" are the same group.
    """
    return _hashed_poisson(_text_keys(np.asarray(groups)), replicates, seed)


def _hashed_poisson(keys: NDArray[np.uint64], replicates: range, seed: int) -> NDArray[np.uint8]:
    rows = np.array(replicates, dtype=np.uint64)
    start = _mixed(np.uint64(seed % 2**64) + rows * np.uint64(0x9E3779B97F4A7C15))
    weights = np.empty((rows.size, keys.size), dtype=np.uint8)
    for row in range(rows.size):
        for first in range(0, keys.size, _CACHED):
            part = slice(first, first + _CACHED)
            weights[row, part] = _poisson_of(_mixed(keys[part] ^ start[row]))
    return weights


class _Problem:
    """Items as sums to be resampled: their weights, and weighted deviations from the mean of their stratum."""

    def __init__(self, x: Floats, w: Floats, stratum: Codes) -> None:
        self.strata = int(stratum.max()) + 1
        self.columns = x.shape[1] + 1
        self.stratum = stratum
        self.w: Floats = w / w.max()
        self.x = x
        total = np.bincount(stratum, weights=self.w)
        self.shares = total / total.sum()
        self.centres = np.stack(
            [np.bincount(stratum, weights=self.w * column) / total for column in x.T], axis=1
        ) if x.shape[1] else np.empty((self.strata, 0))  # fmt: skip

    def rows(self, start: int, stop: int) -> Floats:
        """(w, w (v - centre)) of some items, (stop - start, 1 + Q)."""
        part = slice(start, stop)
        w = self.w[part, None]
        rows: Floats = np.concatenate([w, w * (self.x[part] - self.centres[self.stratum[part]])], axis=1)
        return rows

    def column(self, q: int) -> Floats:
        """Column q of all rows."""
        if q == 0:
            return self.w
        weighted: Floats = self.w * (self.x[:, q - 1] - self.centres[self.stratum, q - 1])
        return weighted

    def means(self, sums: Iterator[Floats], replicates: int) -> Floats:
        """Means from resampled sums (b, strata, 1 + Q), chunk by chunk."""
        result = np.empty((replicates, self.columns - 1))
        at = 0
        for chunk in sums:
            weight = chunk[:, :, :1]
            drawn = weight > 0
            deviation = np.where(drawn, chunk[:, :, 1:], 0.0) / np.where(drawn, weight, 1.0)
            result[at : at + len(chunk)] = np.einsum("h,bhq->bq", self.shares, deviation + self.centres)
            at += len(chunk)
        return result


def _cell_sums(problem: _Problem, cell: Codes, replicates: int, seed: int) -> Iterator[Floats]:
    """Poisson sums over cells of items, with a normal term for the spread within the cells."""
    draws, spread = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    count = np.bincount(cell)
    inside = np.zeros(count.size, dtype=np.intp)
    inside[cell] = problem.stratum
    per_cell = _sums_by(problem, cell) / count[:, None]
    roots = _spread_roots(problem, cell, per_cell) if count.size < cell.size else None
    members = [np.flatnonzero(inside == h) for h in range(problem.strata)]
    size = max(1, _CHUNK // count.size)
    for start in range(0, replicates, size):
        rows = min(size, replicates - start)
        if roots is None:  # every item is its own cell
            bits = draws.integers(0, 2**64, size=(rows, count.size), dtype=np.uint64)
            drawn = _poisson_of(bits).astype(np.float64)
        else:
            drawn = draws.poisson(count, size=(rows, count.size)).astype(np.float64)
        sums = np.stack([drawn[:, cells] @ per_cell[cells] for cells in members], axis=1)
        if roots is not None:
            normal = spread.standard_normal((rows, problem.strata, problem.columns))
            sums += np.einsum("hqr,bhr->bhq", roots, normal)
        yield sums


def _sums_by(problem: _Problem, place: Codes) -> Floats:
    """Sums of all columns by place, (places, 1 + Q)."""
    return np.stack([np.bincount(place, weights=problem.column(q)) for q in range(problem.columns)], axis=1)


def _spread_roots(problem: _Problem, cell: Codes, per_cell: Floats) -> Floats:
    """Per stratum a square root of the scatter of its items around the means of their cells."""
    scatter = np.zeros((problem.strata, problem.columns, problem.columns))
    for start in range(0, cell.size, _BLOCK):
        rows = problem.rows(start, start + _BLOCK) - per_cell[cell[start : start + _BLOCK]]
        stratum = problem.stratum[start : start + _BLOCK]
        for h in np.unique(stratum):
            part = rows[stratum == h]
            scatter[h] += part.T @ part
    roots = np.zeros_like(scatter)
    for h, matrix in enumerate(scatter):
        scale = np.sqrt(np.diag(matrix))
        unit = np.where(scale > 0, scale, 1.0)
        values, vectors = np.linalg.eigh(matrix / np.outer(unit, unit))
        roots[h] = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return roots


def _group_sums(problem: _Problem, unit: NDArray[Any], replicates: int, seed: int) -> Iterator[Floats]:
    """Sums with one hashed weight per group; a group may lie in several strata."""
    labels, group = np.unique(unit, return_inverse=True)
    pairs, atom = np.unique(group.reshape(-1) * problem.strata + problem.stratum, return_inverse=True)
    atom = atom.reshape(-1)
    per_atom = _sums_by(problem, atom)
    members = [np.flatnonzero(pairs % problem.strata == h) for h in range(problem.strata)]
    keys = _text_keys(labels)
    size = max(1, _CHUNK // pairs.size)
    for start in range(0, replicates, size):
        rows = range(start, min(start + size, replicates))
        drawn = _hashed_poisson(keys, rows, seed)
        yield np.stack(
            [drawn[:, pairs[atoms] // problem.strata].astype(np.float64) @ per_atom[atoms] for atoms in members],
            axis=1,
        )


def _cells(stratum: Codes, inner: Codes, by: Floats, max_cells: int) -> Codes:
    """A cell number per item: quantile bins of `by` within each stratum and code, shared out by size."""
    if np.isnan(by).any():
        raise bad_parameter("poisson_means", "order", "free of NaN", f"{int(np.isnan(by).sum())} NaN")
    outer = np.unique(stratum * (int(inner.max()) + 1) + inner, return_inverse=True)[1].reshape(-1)
    if int(outer.max()) + 1 > max_cells:  # too many codes: bins of the order alone
        outer = stratum
    sizes = np.bincount(outer)
    cell = np.empty(by.size, dtype=np.intp)
    first = 0
    by_part = np.argsort(outer, kind="stable")
    for part, size in zip(np.split(by_part, np.cumsum(sizes)[:-1]), sizes, strict=True):
        bins = max(int(max_cells * size / by.size), min(int(size), _SMALL), 1)
        if bins >= size:
            cell[part] = first + np.arange(size)
        else:
            ordered = np.sort(by[part])
            edges = np.unique(ordered[np.arange(1, bins) * size // bins])
            cell[part] = first + np.searchsorted(edges, by[part], side="right")
        first += bins
    return np.unique(cell, return_inverse=True)[1].reshape(-1)


def _labels(name: str, labels: ArrayLike, size: int) -> NDArray[Any]:
    array = np.asarray(labels)
    if array.shape != (size,):
        raise bad_parameter("poisson_means", name, f"one per item ({size})", f"shape {array.shape}")
    return array


def _codes(name: str, labels: ArrayLike | None, size: int) -> Codes:
    if labels is None:
        return np.zeros(size, dtype=np.intp)
    return np.unique(_labels(name, labels, size), return_inverse=True)[1].reshape(size)


def _text_keys(labels: NDArray[Any]) -> NDArray[np.uint64]:
    digests = b"".join(
        blake2b(str(label).encode("utf-8", "surrogatepass"), digest_size=8).digest() for label in labels.tolist()
    )
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _poisson_of(bits: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Poisson(1) by inversion of 64 random bits; the top 16 decide nearly always."""
    weights: NDArray[np.uint8] = _TABLE[bits >> np.uint64(48)]
    unsure = weights == _UNSURE
    weights[unsure] = np.searchsorted(_STEPS, bits[unsure], side="right")
    return weights


def _poisson_steps() -> NDArray[np.uint64]:
    """P(Poisson(1) <= k) as 64-bit whole numbers, for all k whose step is still visible at that precision."""
    from decimal import Decimal, localcontext

    steps: list[int] = []
    with localcontext() as context:
        context.prec = 40
        term = total = Decimal(-1).exp()
        k = 0
        while (step := int(total * 2**64)) < 2**64 and (not steps or step > steps[-1]):
            steps.append(step)
            k += 1
            term /= k
            total += term
    return np.array(steps, dtype=np.uint64)


_UNSURE = 255
_STEPS = _poisson_steps()


def _poisson_table() -> NDArray[np.uint8]:
    """The weight for each value of the top 16 bits, or _UNSURE where the lower bits decide."""
    low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    at_low = np.searchsorted(_STEPS, low, side="right")
    at_high = np.searchsorted(_STEPS, low | np.uint64((1 << 48) - 1), side="right")
    return np.where(at_low == at_high, at_low, _UNSURE).astype(np.uint8)


_TABLE = _poisson_table()
