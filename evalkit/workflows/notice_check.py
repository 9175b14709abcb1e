"""Notices of a run held against those that its evidence gives, whatever its files were called where it ran.

A notice may name a file by where it is, and the files of a bundle are elsewhere: there anything may stand. Notices
that only the run had are left alone: a key that was taken out of the bundle's copies has none there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evalkit.errors import visible

__all__ = ["without_places", "wrong_notices"]

_PLACE = "\x00"


def without_places(notices: Iterable[str], paths: Iterable[Path]) -> tuple[str, ...]:
    """`notices` with a mark where the place or the name of one of the files `paths` stands."""
    names = {str(path) for path in paths} | {path.name for path in paths}
    if not names:
        return tuple(notices)
    files = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    return tuple(files.sub(_PLACE, note) for note in notices)


def wrong_notices(written: object, computed: Sequence[str]) -> Iterator[str]:
    """What is wrong with the notices of a run; `computed` are those of its evidence, `without_places`.

    Each of these has to be among the run's, in the same order.
    """
    if not isinstance(written, list):
        yield "notices are missing"
        return
    left = [note for note in written if isinstance(note, str)]
    for note in computed:
        shape = re.compile(".+?".join(map(re.escape, note.split(_PLACE))), re.DOTALL)
        at = next((k for k, one in enumerate(left) if shape.fullmatch(one)), None)
        if at is None:
            yield f"notices lack what the evidence gives: {visible(note.replace(_PLACE, '…'), 200)}"
        else:
            del left[: at + 1]
