"""`LabelSet`: the human labels of a study, checked, as arrays aligned by item."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["UNSOLVABLE", "LabelSet"]

UNSOLVABLE = "unsolvable"
"""The required tier of an item that no tier gets right."""


@dataclass(frozen=True)
class LabelSet:
    """N labelled items in file order.

    `required` is the position in `tiers` of the least tier that is good enough, `len(tiers)` for `unsolvable`, and
    -1 where the file was read without required tiers. `risk` is the position in `risk_classes`. `weight` is the
    share of traffic as given, 1.0 everywhere where the file has no weights (the caller rescales). A `group` of
    None is a group of its own. `prompts` are None where the file has none; `messages` are kept as given.
    `reference` is the text as the annotator typed it (JSON lists and objects stay what they are). `lines` are
    physical lines in the file (None for Parquet). `fingerprint` is the SHA-256 of the parsed records, whatever the
    file format, encoding, column order or row order.
    """

    file: str
    ids: tuple[str, ...]
    prompts: Sequence[str | None]
    required: npt.NDArray[np.int8]
    risk: npt.NDArray[np.int16]
    weight: npt.NDArray[np.float64]
    tiers: tuple[str, ...]
    risk_classes: tuple[str, ...]
    category: tuple[str | None, ...] | None = None
    group: tuple[str | None, ...] | None = None
    reference: tuple[Any, ...] | None = None
    metadata: Sequence[Any] | None = None
    messages: Sequence[Any] | None = None
    annotations: Sequence[Any] | None = None
    lines: Sequence[int] | None = None
    fingerprint: str = ""
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def risk_names(self) -> tuple[str, ...]:
        """The risk class of each item by name."""
        return tuple(self.risk_classes[int(code)] for code in self.risk)

    def without(self, ids: Collection[str]) -> LabelSet:
        """The labels without the items of `ids`; the fingerprint stays that of all that was read."""
        keep = np.array([i for i, name in enumerate(self.ids) if name not in ids], dtype=np.int64)

        def cut(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
            return None if values is None else tuple(values[int(i)] for i in keep)

        return replace(
            self,
            ids=tuple(self.ids[int(i)] for i in keep),
            prompts=tuple(self.prompts[int(i)] for i in keep),
            required=self.required[keep],
            risk=self.risk[keep],
            weight=self.weight[keep],
            category=cut(self.category),
            group=cut(self.group),
            reference=cut(self.reference),
            metadata=cut(self.metadata),
            messages=cut(self.messages),
            annotations=cut(self.annotations),
            lines=cut(self.lines),
        )

    def required_name(self, i: int) -> str | None:
        """The required tier of item `i` by name; None where it is not known."""
        code = int(self.required[i])
        if code < 0:
            return None
        return UNSOLVABLE if code == len(self.tiers) else self.tiers[code]
