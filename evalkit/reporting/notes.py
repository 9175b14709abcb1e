"""Reasons of unknown figures as numbered notes under a table, where a cell has no room for a sentence."""

from __future__ import annotations

import dataclasses
from typing import Final, TypeVar

__all__ = ["Notes"]

_MARK: Final = "n/a ("
_ROOM: Final = 18

Row = TypeVar("Row")


class Notes:
    """The notes of one table. A short reason stays in its cell; a long one becomes "n/a (note 1)"."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def cell(self, shown: str) -> str:
        """`shown`, with a long reason moved to the notes."""
        if not shown.startswith(_MARK):
            return shown
        reason = shown.removeprefix(_MARK).removesuffix(")")
        if len(reason) <= _ROOM:
            return shown
        if reason not in self.texts:
            self.texts.append(reason)
        return f"{_MARK}note {self.texts.index(reason) + 1})"

    def cells(self, shown: list[str]) -> list[str]:
        """A whole row of cells."""
        return [self.cell(text) for text in shown]

    def row(self, row: Row) -> Row:
        """A dataclass of texts with each of its texts shortened."""
        assert dataclasses.is_dataclass(row)
        assert not isinstance(row, type)
        texts = {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
        return dataclasses.replace(row, **{k: self.cell(v) for k, v in texts.items() if isinstance(v, str)})
