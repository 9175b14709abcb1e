"""From what a row says (status, passed, score) to its status: the rules, on whole columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evalkit.outcomes.status import ABSENT, ANSWERED, STATUSES, Status, status_code

__all__ = ["CONTRADICTION", "SILENT", "decide", "unanswered"]

CONTRADICTION = 1
SILENT = 2

_OK, _WRONG, _ERROR = (status_code(s) for s in (Status.OK, Status.WRONG, Status.ERROR))
_UNANSWERED = np.array([s not in ANSWERED for s in STATUSES] + [False])


def decide(
    status: npt.NDArray[np.int64],
    passed: npt.NDArray[np.int8],
    score: npt.NDArray[np.float64],
    pass_at: float,
    errored: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """The status code of each row, and what is wrong with it (0, `CONTRADICTION` or `SILENT`).

    `status` holds codes (-1: not given), `passed` 1, 0 or -1 (not given), `score` NaN where not given.
    `passed` decides; without it a score of at least `pass_at` passes; `ok` that did not pass is `wrong`. A pass
    on `wrong`, `contract_fail` or an unanswered status is a contradiction. A row that says nothing is silent.
    A row without a status that did not pass and has an error text (`errored`) is `error`: a failed request is not
    a wrong answer.
    """
    scored = ~np.isnan(score)
    passes = np.where(passed >= 0, passed == 1, scored & (score >= pass_at))
    verdict = (passed >= 0) | scored
    judged = np.where(passes, _OK, _WRONG)
    out = np.where(status == ABSENT, np.where(verdict, judged, ABSENT), status)
    out = np.where((status == _OK) & verdict, judged, out)
    if errored is not None:
        out = np.where((status == ABSENT) & errored & ~passes, _ERROR, out)
    fault = np.zeros(len(status), dtype=np.int8)
    fault[(status >= 0) & (status != _OK) & verdict & passes] = CONTRADICTION
    fault[out == ABSENT] = SILENT
    return out.astype(np.int8), fault


def unanswered(status: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Where the status is one of the unanswered ones (not where there is no row)."""
    return np.asarray(_UNANSWERED[status])
