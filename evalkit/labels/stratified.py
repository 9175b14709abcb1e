"""A sample of a log by stratum, with the weight that gives every stratum its share of the traffic back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.labels.near_duplicates import clusters
from evalkit.statistics.bounds import effective_n
from evalkit.statistics.sampling import allocate, inclusion_chances, systematic_sample

__all__ = ["ALL", "DrawnStratum", "StratifiedDraw", "draw_by_stratum"]

ALL = "(all)"
"""The stratum of a log that names none."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrawnStratum:
    """traffic: requests it stands for. rows: of the log; distinct: without near duplicates; drawn: of these.
    effective_n: what the drawn items are worth to a bound, sum(w) / max(w)."""

    name: str
    traffic: float
    rows: int
    distinct: int
    drawn: int
    effective_n: float


@dataclass(frozen=True, slots=True)
class StratifiedDraw:
    """chosen: positions in the log, in a random order; weight: requests that each stands for."""

    chosen: NDArray[np.int64]
    weight: Floats
    strata: tuple[DrawnStratum, ...]


def draw_by_stratum(
    texts: Sequence[str],
    traffic: Floats,
    strata: Sequence[str | None],
    count: int,
    *,
    parts: Mapping[str, float] | None = None,
    proportional: bool = False,
    threshold: float = 0.85,
    seed: int = 0,
    contexts: Sequence[str] | None = None,
) -> StratifiedDraw:
    """Draw `count` of N requests; near duplicates within a stratum are drawn as one, with all of their traffic.

    `traffic` (N,): requests a row stands for. Draws are shared out in equal parts, which oversamples the rare
    strata; `parts` names others (a stratum left out has part 1), `proportional` takes the shares of traffic.
    Within a stratum a distinct request with traffic m is drawn with chance proportional to m, at most 1, and
    weighs m / chance: the weights of a stratum sum to its traffic, every weighted total of the log is recovered
    without bias (Horvitz and Thompson 1952), and all weights of a stratum are equal but for requests drawn for
    certain. `contexts` (N,), the system prompts: requests with different ones are no duplicates. ValueError for a
    part of a stratum that does not occur.
    """
    names = [ALL if name is None else name for name in strata]
    order = sorted(set(names))
    unknown = sorted(set(parts or {}) - set(order))
    if unknown:
        raise ValueError(
            f"The `parts` parameter of `draw_by_stratum` names no stratum. Got {unknown[0]!r} instead."
        )
    label = np.array(names, dtype=object)
    said = dict.fromkeys(contexts or ())
    alike = dict(zip(said, clusters(list(said), threshold).tolist(), strict=True))
    context = np.array([alike[text] for text in contexts] if contexts else np.zeros(len(names)), dtype=np.int64)
    leaders: list[NDArray[np.int64]] = []
    masses: list[Floats] = []
    for name in order:
        rows = np.flatnonzero(label == name)
        first = clusters(
            [texts[i] for i in rows.tolist()] if len(order) > 1 else texts, threshold, context[rows].tolist()
        )
        mass = np.bincount(first, weights=traffic[rows], minlength=len(rows)).astype(np.float64)
        own = np.flatnonzero((first == np.arange(len(rows))) & (mass > 0))
        leaders.append(rows[own])
        masses.append(mass[own])
    share = [float(m.sum()) if proportional else 1.0 for m in masses]
    wanted = [s * (parts or {}).get(name, 1.0) for s, name in zip(share, order, strict=True)]
    counts = allocate(count, [len(one) for one in leaders], wanted)
    rng = np.random.default_rng(seed)
    chosen: list[NDArray[np.int64]] = []
    weights: list[Floats] = []
    drawn: list[DrawnStratum] = []
    for name, where, mass, n in zip(order, leaders, masses, counts, strict=True):
        chance = inclusion_chances(mass, n)
        at = systematic_sample(chance, rng)
        weight = mass[at] / chance[at]
        chosen.append(where[at])
        weights.append(weight)
        drawn.append(
            DrawnStratum(
                name,
                float(traffic[label == name].sum()),
                int((label == name).sum()),
                len(where),
                len(at),
                effective_n(weight),
            )
        )
    places = np.concatenate(chosen)
    mixed = rng.permutation(len(places))
    return StratifiedDraw(places[mixed], np.concatenate(weights)[mixed], tuple(drawn))
