"""A ladder straight from a log of runs, without files between."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.costs.settle import settle
from evalkit.outcomes.importers.effort import EffortLog
from evalkit.reasoning.data import LadderData

PRICE_IN, PRICE_OUT = 2e-6, 10e-6


def ladder_of_log(log: EffortLog, task: int, model: int, arms: list[int]) -> LadderData:
    """The ladder of one set of tasks and model, priced by tokens that are settled first."""
    rows = log.rows_of(task, model)
    encoded = pc.dictionary_encode(log.ids.take(pa.array(rows)))
    item = np.asarray(encoded.indices, dtype=np.int64)
    place = np.full(len(log.arms), -1)
    place[arms] = np.arange(len(arms))
    arm = place[log.arm[rows]]
    sample = log._samples(rows)
    shape = (len(encoded.dictionary), len(arms), int(sample.max()) + 1)

    def grid(values: np.ndarray, blank: object) -> np.ndarray:  # type: ignore[type-arg]
        out = np.full(shape, blank, dtype=values.dtype)
        out[item, arm, sample] = values
        return out

    output, reasoning = log.numbers["output_tokens"][rows], log.numbers["reasoning_tokens"][rows]
    billed = settle(output, reasoning, log.models[model]).whole
    prompt = log.numbers["input_tokens"][rows]
    mark = log.mark[rows]
    sampled = grid(np.ones(len(rows), dtype=bool), False)
    nothing = np.zeros(shape, dtype=bool)
    return LadderData(
        arms=tuple(log.arms[a] for a in arms),
        risk_classes=(),
        risk=np.full(shape[0], -1, dtype=np.int16),
        weight=np.ones(shape[0]),
        sampled=sampled,
        passed=grid(mark == 1, False),
        answered=grid(mark >= 0, False),
        exhausted=nothing,
        contract_failed=nothing,
        abstained=nothing,
        cost_usd=grid(PRICE_IN * prompt + PRICE_OUT * billed, np.nan),
        input_tokens=grid(prompt, np.nan),
        output_tokens=grid(output, np.nan),
        billed_output_tokens=grid(billed, np.nan),
        reasoning_tokens=grid(reasoning, np.nan),
        task_s=grid(log.numbers["task_s"][rows], np.nan),
        attempts=np.full(shape, np.nan),
    )
