"""The items that two runs share, each with what became of it in both. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalkit.signoff.run_folder import Run, RunItem

__all__ = ["Floats", "Pairs", "losses_by_risk", "pair_items"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """The items that both runs have with the same label, in the order of the candidate.

    only_base, only_candidate, relabelled: ids that are not paired, in order; a relabelled item has another risk
    class or required tier in each, so that it is not one question asked twice. groups: None where no two paired
    items share one; groups_known: whether both runs say which items hang together.
    """

    both: tuple[tuple[RunItem, RunItem], ...]
    only_base: tuple[str, ...]
    only_candidate: tuple[str, ...]
    relabelled: tuple[str, ...]
    weights: Floats
    groups: NDArray[np.intp] | None
    groups_known: bool

    def where(self, keep: Callable[[RunItem], bool]) -> NDArray[np.intp]:
        """The positions of pairs whose label is kept."""
        return np.array([i for i, (_, now) in enumerate(self.both) if keep(now)], dtype=np.intp)


def pair_items(base: Run, candidate: Run) -> Pairs:
    """The pairs of two runs."""
    both, relabelled, only_candidate = [], [], []
    for key, now in candidate.items.items():
        then = base.items.get(key)
        if then is None:
            only_candidate.append(key)
        elif (then.risk, then.required) != (now.risk, now.required):
            relabelled.append(key)
        else:
            both.append((then, now))
    weights = np.array([now.weight for _, now in both], dtype=np.float64)
    known = all(
        run.document["counts"].get("groups") is None or any(item.group is not None for item in run.items.values())
        for run in (base, candidate)
    )
    return Pairs(
        tuple(both),
        tuple(key for key in base.items if key not in candidate.items),
        tuple(only_candidate),
        tuple(relabelled),
        weights,
        _groups([now.group for _, now in both]),
        known,
    )


def _groups(names: Sequence[str | None]) -> NDArray[np.intp] | None:
    """Codes 0..G-1, an item without a group its own; None where no two share one."""
    place: dict[object, int] = {}
    codes = [place.setdefault(i if name is None else ("g", name), len(place)) for i, name in enumerate(names)]
    return None if len(place) == len(names) else np.array(codes, dtype=np.intp)


def losses_by_risk(run: Run) -> dict[str, float]:
    """USD lost by an under-routed item of each risk class; empty for a ladder."""
    found = {}
    for row in run.document["risk_classes"]:
        loss = row.get("under_route_loss_usd")
        if isinstance(loss, int | float) and not isinstance(loss, bool):
            found[row["name"]] = float(loss)
    return found
