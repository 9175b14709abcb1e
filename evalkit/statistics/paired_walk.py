"""How far along a path a policy's pass rate stays within a margin of a baseline's, with a guarantee.

At a point of the path the loss against the baseline is `E[broken] - E[gained]`: the share of requests that only
the baseline passes, less the share that only the policy passes. With n independent requests

    loss <= CPupper(ceil(n broken), n, delta / 2) - CPlower(floor(n gained), n, delta / 2)

holds with probability 1 - delta (Clopper and Pearson 1934, and Bonferroni over the two). The points are tested one
after the other from the start of the path, and the walk ends at the first that cannot be shown. A wrong point is
only reached through the first point of the path whose true loss is above the margin, which is passed with
probability delta: so all points before the end hold together, and any choice among them, however made, does too
(fixed-sequence testing; Angelopoulos et al. 2021, Learn then Test). By the same argument the limit shares its
error rate with all limits that are walked from the same start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.statistics._parameters import bad_parameter, check_open_share
from evalkit.statistics.bounds import upper_bounds

__all__ = ["paired_loss_upper", "steps_within"]

_ROUNDING = 1e-7


def paired_loss_upper(broken: ArrayLike, gained: ArrayLike, n: float, delta: float) -> NDArray[np.float64]:
    """Upper bound on the loss of a pass rate against a baseline at each point, at confidence 1 - delta.

    broken, gained (L,): shares in [0, 1] of the n requests, n > 0 and possibly real (effective requests). Raises
    ValueError for anything else.
    """
    check_open_share("paired_loss_upper", "delta", delta)
    lost, won = np.broadcast_arrays(np.asarray(broken, dtype=np.float64), np.asarray(gained, dtype=np.float64))
    for name, share in (("broken", lost), ("gained", won)):
        if not ((share >= -_ROUNDING) & (share <= 1 + _ROUNDING)).all():
            raise bad_parameter("paired_loss_upper", name, "shares from 0 to 1", share)
    if not (np.isfinite(n) and n > 0):
        raise bad_parameter("paired_loss_upper", "n", "a number above 0", n)
    most = np.clip(np.ceil(lost * n - _ROUNDING), 0.0, n)
    least = np.clip(np.floor(won * n + _ROUNDING), 0.0, n)
    level = 1.0 - delta / 2.0
    # The lower bound of k of n is one less the upper bound of the n - k others.
    found: NDArray[np.float64] = upper_bounds(most, n, level) - (1.0 - upper_bounds(n - least, n, level))
    return found


def steps_within(broken: ArrayLike, gained: ArrayLike, n: float, margin: float, delta: float) -> int:
    """How many points from the start of the path keep the loss within `margin`, all of them together with
    probability 1 - delta. Arguments as for `paired_loss_upper`."""
    over = np.flatnonzero(~(paired_loss_upper(broken, gained, n, delta) <= margin))
    return int(over[0]) if len(over) else int(np.size(broken))
