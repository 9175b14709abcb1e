"""Collect every fault of one file, then raise them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from evalkit.errors import Fault, InputError

__all__ = ["SHOWN_PER_KIND", "Faults", "listed"]

SHOWN_PER_KIND = 100
"""Faults of one kind that are written out; a file with more says how many more there are."""


class Faults:
    """The faults of one file, in file order, raised as one `InputError`."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._faults: list[Fault] = []
        self._more: list[Fault] = []
        self._kinds: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def add(self, fault: Fault, kind: str | None = None) -> None:
        """Note one fault; of one `kind` (a name of the caller's) no more than `SHOWN_PER_KIND` are written out."""
        if kind is not None:
            self._kinds[kind] += 1
            if self._kinds[kind] > SHOWN_PER_KIND:
                return
        self._faults.append(fault)

    def each(self, positions: Iterable[int], make: Callable[[int], Fault]) -> None:
        """Note one fault per position, all of one kind; past `SHOWN_PER_KIND` only their number is kept."""
        places = [int(i) for i in positions]
        shown = [make(i) for i in places[:SHOWN_PER_KIND]]
        self._faults.extend(shown)
        rest = len(places) - len(shown)
        if rest > 0:
            self._more.append(self._rest(rest, shown[0].field))

    def stop(self, fault: Fault) -> NoReturn:
        """Note a fault after which nothing of the file can be read, and raise all."""
        self.add(fault)
        self.raise_all()

    def raise_all(self) -> NoReturn:
        """Raise what was noted, in file order; faults of the whole file come first."""
        ordered = sorted(self._faults, key=lambda f: (f.row or 0, f.line or 0))
        hidden = [self._rest(n - SHOWN_PER_KIND, None) for n in self._kinds.values() if n > SHOWN_PER_KIND]
        raise InputError([*ordered, *self._more, *hidden])

    def _rest(self, count: int, field: str | None) -> Fault:
        return Fault(
            f"{count:,} more rows have a fault of the same kind",
            "put the rows named above right, then look at the rest",
            file=self.file,
            field=field,
        )

    def raise_if_any(self) -> None:
        """Raise what was noted, if anything was."""
        if self._faults:
            self.raise_all()


def listed(items: Sequence[object], shown: int = 10) -> str:
    """`items` as "a, b, c and 12 more"."""
    text = ", ".join(str(item) for item in items[:shown])
    rest = len(items) - shown
    return f"{text} and {rest:,} more" if rest > 0 else text
