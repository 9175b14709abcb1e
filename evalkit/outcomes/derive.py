"""Derive required tiers from outcomes: the least tier that passed; nobody passed: unsolvable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evalkit.errors import Fault, InputError
from evalkit.labels.base import BaseLabels
from evalkit.labels.labelset import UNSOLVABLE
from evalkit.outcomes.figures import item_passes
from evalkit.outcomes.table import Outcomes

__all__ = ["DERIVED", "derived_columns", "required_tiers"]

DERIVED = "derived"
"""What `labels_kind` says of such labels, in the metadata of each row and in a study."""


def required_tiers(outcomes: Outcomes) -> npt.NDArray[np.int8]:
    """(N,) position of the least tier that passes the item, K where none does.

    A tier passes an item when every sample of it passed; an unanswered request is no pass.
    """
    passes = item_passes(outcomes)
    least = np.where(passes.any(axis=1), passes.argmax(axis=1), passes.shape[1])
    return np.asarray(least, dtype=np.int8)


def derived_columns(
    outcomes: Outcomes, base: BaseLabels | None = None, risk: str | None = None
) -> dict[str, list[Any]]:
    """The columns of a labels file with derived required tiers, marked as derived in `metadata`.

    `base` (items in the order of `outcomes.ids`) gives the other fields; `risk` one risk class for all, where the
    items have none. Raises `InputError` where neither says the risk.
    """
    if base is not None and base.ids != outcomes.ids:
        raise ValueError(
            "The `base` parameter of `derived_columns` must have the ids of `outcomes`, in its order."
        )
    fields: Mapping[str, list[Any]] = {} if base is None else base.columns
    if "risk" in fields and risk is not None:
        raise InputError(
            Fault("the items have a risk class of their own", "leave --risk out", file=base.file if base else None)
        )
    if "risk" not in fields and risk is None:
        raise InputError(
            Fault(
                "nothing says the risk class of the items",
                "name one for all with --risk, or a file of items that has it with --labels",
                file=outcomes.file,
                field="risk",
            )
        )
    n = len(outcomes.ids)
    names = [*outcomes.tiers, UNSOLVABLE]
    metadata = fields.get("metadata") or [None] * n
    columns: dict[str, list[Any]] = {"id": list(outcomes.ids)}
    columns |= {name: values for name, values in fields.items() if name in {"prompt", "messages"}}
    columns["required_tier"] = [names[int(code)] for code in required_tiers(outcomes)]
    columns["risk"] = list(fields["risk"]) if "risk" in fields else [risk] * n
    columns |= {name: values for name, values in fields.items() if name not in {*columns, "metadata"}}
    columns["metadata"] = [{**(own or {}), "labels_kind": DERIVED} for own in metadata]
    return columns
