"""When two replies say the same: for a majority vote, and for how often a model agrees with itself."""

from __future__ import annotations

import unicodedata

__all__ = ["answer_key"]


def answer_key(answer: str) -> str:
    """Equal for answers that are the same in NFC, without case and with every run of blanks as one.

    >>> answer_key("  Vier\\n Äpfel") == answer_key("vier A\u0308PFEL")
    True
    """
    return " ".join(unicodedata.normalize("NFC", answer).casefold().split())
