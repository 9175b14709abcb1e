"""Where the rows of an outcome file go in the arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["rank", "slots"]


def rank(texts: pa.Array) -> npt.NDArray[np.int64]:
    """The place of each text among the distinct texts in order."""
    encoded = pc.dictionary_encode(texts)
    order = np.asarray(pc.sort_indices(encoded.dictionary).to_numpy(), dtype=np.int64)
    place = np.empty(len(order) + 1, dtype=np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.asarray(place[codes], dtype=np.int64)


def slots(
    item: npt.NDArray[np.int64], sample: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], int]:
    """The place of each row's sample among the sample numbers of its item, over all tiers; how many at most."""
    slot = np.zeros(len(item), dtype=np.int64)
    if not used.any() or (sample[used] == sample[used][0]).all():
        return slot, 1
    numbers, code = np.unique(sample[used], return_inverse=True)
    keys, inverse = np.unique(item[used] * len(numbers) + code, return_inverse=True)
    owner = keys // len(numbers)
    rank = np.arange(len(keys)) - np.searchsorted(owner, owner, side="left")
    slot[used] = rank[inverse]
    return slot, int(rank.max()) + 1
