"""Which reply is shown as A, B, C, shuffled for each item and annotator; what marks on them say of the tiers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence

from evalkit.labels.labelset import UNSOLVABLE

__all__ = ["LETTERS", "least_good", "shown_order"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of the replies on the page, in the order in which they are shown."""


def shown_order(
    seed: int, annotator: str, item: str, tiers: Sequence[str], replies: Sequence[str | None]
) -> tuple[tuple[str, ...], ...]:
    """The tiers behind A, B, C, ... for one item and annotator.

    `replies` (K) are the texts of `tiers` (K), least capable first; None and blank are no reply, and stand behind
    no letter. Tiers whose replies are the same text stand behind one letter, so that one text is judged once. The
    order is that of SHA-256 over seed, annotator, item and the first tier of each letter: the same in every run,
    and without any relation to the order of the tiers.
    """
    groups: dict[str, list[str]] = {}
    for tier, reply in zip(tiers, replies, strict=True):
        if reply is not None and reply.strip():
            groups.setdefault(reply, []).append(tier)

    def place(group: tuple[str, ...]) -> bytes:
        key = json.dumps([seed, annotator, item, group[0]], ensure_ascii=True)
        return hashlib.sha256(key.encode("ascii")).digest()

    return tuple(sorted((tuple(group) for group in groups.values()), key=place))


def least_good(tiers: Sequence[str], shown: Sequence[Sequence[str]], good: Collection[int]) -> str:
    """The required tier: the first of `tiers` whose reply is marked good enough; `unsolvable` where none is.

    `good` are positions in `shown`. A reply that is not marked, and a tier without a reply, is not good enough:
    nothing goes cheap because somebody did not look.
    """
    able = {tier for place in good for tier in shown[place]}
    return next((tier for tier in tiers if tier in able), UNSOLVABLE)
