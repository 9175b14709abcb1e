"""Token counts of outcomes in the normal form, settled model by model before anything is averaged or priced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evalkit.costs.settle import settle
from evalkit.outcomes.table import Outcomes
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["SettledOutcomes", "settle_outcomes"]


@dataclass(frozen=True)
class SettledOutcomes:
    """`outcomes` with reasoning inside output_tokens and cached tokens inside input_tokens; `notices` say for
    which models that had to be put right."""

    outcomes: Outcomes
    notices: tuple[str, ...]


def settle_outcomes(study: ReasoningStudy, outcomes: Outcomes) -> SettledOutcomes:
    """Put reasoning inside the output and cached tokens inside the input, as the counts of each model decide."""
    output, prompt = outcomes.output_tokens.copy(), outcomes.input_tokens.copy()
    cached = np.nan_to_num(outcomes.cache_read_tokens) + np.nan_to_num(outcomes.cache_write_tokens)
    notices = []
    for model, mask in _by_model(study, outcomes):
        named = model or "an unnamed model"
        found = settle(output[mask], outcomes.reasoning_tokens[mask], model)
        if found.added:
            output[mask] = found.whole
            n = int(mask.sum())
            if found.beside:
                notices.append(
                    f"{named}: reasoning is counted beside the output ({found.added:,} of {n:,} runs have it): "
                    "it is added to the output and priced so"
                )
            else:
                notices.append(
                    f"{named}: {found.odd:,} of {n:,} runs have more reasoning than output, although the model "
                    "counts reasoning inside it otherwise: in these runs it is added to the output and priced so; "
                    "check the raw usage"
                )
        found = settle(prompt[mask], cached[mask], model, part_is="cache")
        if found.added:
            prompt[mask] = found.whole
            notices.append(
                f"{named}: cached tokens are counted beside the input in {found.added:,} of "
                f"{int(mask.sum()):,} runs: they are added to the input"
            )
    return SettledOutcomes(replace(outcomes, output_tokens=output, input_tokens=prompt), tuple(notices))


def _by_model(study: ReasoningStudy, outcomes: Outcomes) -> Iterator[tuple[str | None, NDArray[np.bool_]]]:
    """Each model with the runs (N, K, S) that it served; a run that names none is its arm's model."""
    masks: dict[str | None, NDArray[np.bool_]] = {}
    for j, arm in enumerate(study.tiers):
        for code, model in [(-1, arm.model), *enumerate(outcomes.model[j])]:
            mine = outcomes.present[:, j] & (outcomes.model_code[:, j] == code)
            if mine.any():
                mask = masks.setdefault(model, np.zeros(outcomes.present.shape, dtype=bool))
                mask[:, j] |= mine
    yield from masks.items()
