"""Decisions of one annotator as a log of events, and the state that a log leads to. Pure.

The first line of a log says who labels what; every further line is one decision or one undo, numbered from 1:

    {"schema": "evalkit.label-decisions/1", "annotator": "ann", "seed": 0, "tiers": [...], "risk_classes": [...],
     "by": "replies", "adjudicates": []}
    {"n": 1, "do": "decide", "id": "q1", "item": "5f0c...", "shown": {"A": ["mid"], "B": ["cheap"]}, "good": ["A"],
     "required_tier": "mid", "risk": "low", "note": "", "at": "2026-01-01T00:00:00Z"}
    {"n": 2, "do": "undo", "of": 1, "at": "2026-01-01T00:00:09Z"}

An undo takes back the last decision that still stands, whichever item it was of; what was decided of the item
before it stands again. So any number of steps can be taken back, and no line is ever changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalkit.errors import Fault
from evalkit.labelling.blind import LETTERS, least_good
from evalkit.labels.labelset import UNSOLVABLE
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.names import nfc, quoted

__all__ = [
    "MOST_NOTE",
    "SCHEMA",
    "Decision",
    "Event",
    "Header",
    "LineFaults",
    "Undo",
    "Work",
    "as_line",
    "read_event",
    "read_header",
]

SCHEMA = "evalkit.label-decisions/1"
MOST_NOTE = 2000
"""Characters of a note."""

_HIDDEN = re.compile("[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


@dataclass(frozen=True, slots=True)
class Header:
    """Who labels what. `by`: each reply is marked, or the tier is chosen by name. `adjudicates`: whose conflicts
    are decided here; empty for an annotator of their own."""

    annotator: str
    seed: int
    tiers: tuple[str, ...]
    risk_classes: tuple[str, ...]
    by: Literal["replies", "tier"]
    adjudicates: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The first line of a log."""
        return {
            "schema": SCHEMA,
            "annotator": self.annotator,
            "seed": self.seed,
            "tiers": list(self.tiers),
            "risk_classes": list(self.risk_classes),
            "by": self.by,
            "adjudicates": list(self.adjudicates),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision on an item.

    `item` is the fingerprint of what was asked, `replies` that of what was answered (None where tiers are chosen
    by name), `shown` the tiers behind A, B, ..., and `good` the positions in it that are good enough.
    """

    n: int
    id: str
    item: str
    required_tier: str
    risk: str
    note: str
    at: str
    replies: str | None = None
    shown: tuple[tuple[str, ...], ...] | None = None
    good: tuple[int, ...] | None = None

    @property
    def good_tiers(self) -> frozenset[str]:
        """The tiers whose replies are marked good enough."""
        return frozenset(tier for place in self.good or () for tier in (self.shown or ())[place])

    def as_json(self) -> dict[str, Any]:
        """The line of a log."""
        line: dict[str, Any] = {"n": self.n, "do": "decide", "id": self.id, "item": self.item}
        if self.shown is not None:
            line["replies"] = self.replies
            line["shown"] = {LETTERS[i]: list(tiers) for i, tiers in enumerate(self.shown)}
            line["good"] = [LETTERS[i] for i in self.good or ()]
        return line | {
            "required_tier": self.required_tier,
            "risk": self.risk,
            "note": self.note,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class Undo:
    """Takes back decision number `of`."""

    n: int
    of: int
    at: str

    def as_json(self) -> dict[str, Any]:
        """The line of a log."""
        return {"n": self.n, "do": "undo", "of": self.of, "at": self.at}


Event = Decision | Undo


class Work:
    """The decisions that stand, after any number of events."""

    def __init__(self) -> None:
        self.n = 0
        self._standing: list[Decision] = []
        self._by_id: dict[str, list[Decision]] = {}

    def apply(self, event: Event) -> None:
        """Take one event in. Raises ValueError where it does not follow from what came before."""
        if event.n != self.n + 1:
            raise ValueError(f"its number is {event.n}, after {self.n}")
        if isinstance(event, Undo):
            last = self.last
            if last is None or last.n != event.of:
                stands = "none stands" if last is None else f"the last that stands is {last.n}"
                raise ValueError(f"it takes back decision {event.of}, and {stands}")
            self._standing.pop()
            self._by_id[last.id].pop()
            if not self._by_id[last.id]:
                del self._by_id[last.id]
        else:
            self._standing.append(event)
            self._by_id.setdefault(event.id, []).append(event)
        self.n = event.n

    @property
    def last(self) -> Decision | None:
        """The decision that an undo would take back."""
        return self._standing[-1] if self._standing else None

    @property
    def standing(self) -> tuple[Decision, ...]:
        """Every decision that was not taken back, in the order of time."""
        return tuple(self._standing)

    def of(self, id: str) -> Decision | None:
        """What is decided of an item."""
        found = self._by_id.get(id)
        return found[-1] if found else None

    @property
    def ids(self) -> frozenset[str]:
        """Items that are decided."""
        return frozenset(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)


def as_line(event: Header | Event) -> bytes:
    """One line of a log, in UTF-8 with its end; characters that are not seen are written as escapes."""
    text = json.dumps(event.as_json(), ensure_ascii=False, allow_nan=False)
    return _HIDDEN.sub(lambda m: f"\\u{ord(m.group()):04x}", text).encode("utf-8") + b"\n"


def read_header(text: str, fault: LineFaults) -> Header | None:
    """The first line of a log; None, with faults noted, where it is none."""
    line = _object(text, fault)
    if line is None:
        return None
    if line.get("schema") != SCHEMA:
        fault(
            "schema", f"is {quoted(line.get('schema'))}, not {SCHEMA}", "name a file of decisions of evalkit label"
        )
        return None
    names = {key: _names(line, key, fault) for key in ("tiers", "risk_classes", "adjudicates")}
    annotator, seed, by = line.get("annotator"), line.get("seed"), line.get("by")
    if not isinstance(annotator, str) or not annotator.strip():
        fault("annotator", f"is {quoted(annotator)}", _RESTORE)
    elif type(seed) is not int or seed < 0:
        fault("seed", f"is {quoted(seed)}, no whole number of 0 or more", _RESTORE)
    elif by != "replies" and by != "tier":
        fault("by", f"is {quoted(by)}, neither replies nor tier", _RESTORE)
    elif None not in names.values():
        tiers, classes, others = (names[key] or () for key in ("tiers", "risk_classes", "adjudicates"))
        return Header(nfc(annotator), seed, tiers, classes, by, others)
    return None


_RESTORE = "restore the file from a copy; decisions are only ever added to it"


class LineFaults:
    """Notes faults of one line."""

    def __init__(self, file: str, line: int, faults: list[Fault]) -> None:
        self.file, self.line, self.faults = file, line, faults

    def __call__(self, field: str | None, what: str, fix: str = _RESTORE) -> None:
        """Note one fault of the line."""
        self.faults.append(Fault(what, fix, file=self.file, line=self.line, field=field))


def _object(text: str, fault: LineFaults) -> dict[str, Any] | None:
    try:
        line = parse_json(text)
    except StrictJSONError as error:
        fault(None, str(error))
        return None
    if not isinstance(line, dict):
        fault(None, f"{quoted(text)} is no object")
        return None
    return line


def _names(line: Mapping[str, Any], key: str, fault: LineFaults) -> tuple[str, ...] | None:
    value = line.get(key)
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        fault(key, f"is {quoted(value)}, no list of names")
        return None
    return tuple(nfc(v) for v in value)


def read_event(text: str, header: Header, fault: LineFaults) -> Event | None:
    """A further line of a log; None, with faults noted, where it is none."""
    line = _object(text, fault)
    if line is None:
        return None
    n, at = line.get("n"), line.get("at")
    if type(n) is not int or not isinstance(at, str):
        fault("n" if type(n) is not int else "at", f"is {quoted(n if type(n) is not int else at)}")
        return None
    if line.get("do") == "undo":
        if type(line.get("of")) is not int:
            fault("of", f"is {quoted(line.get('of'))}, no number of a decision")
            return None
        return Undo(n, line["of"], at)
    if line.get("do") != "decide":
        fault("do", f"is {quoted(line.get('do'))}, neither decide nor undo")
        return None
    return _decision(line, n, at, header, fault)


def _decision(line: Mapping[str, Any], n: int, at: str, header: Header, fault: LineFaults) -> Decision | None:
    texts = {key: line.get(key) for key in ("id", "item", "required_tier", "risk", "note")}
    for key, value in texts.items():
        if not isinstance(value, str):
            fault(key, f"is {quoted(value)}, not text")
            return None
    made = Decision(n=n, at=at, **texts)  # type: ignore[arg-type]  # every one was just seen to be a str
    if made.required_tier not in (*header.tiers, UNSOLVABLE):
        fault("required_tier", f"{quoted(made.required_tier)} is not a tier ({', '.join(header.tiers)})")
        return None
    if made.risk not in header.risk_classes:
        fault("risk", f"{quoted(made.risk)} is not a risk class ({', '.join(header.risk_classes)})")
        return None
    if header.by == "tier":
        return made
    shown, good = _shown(line.get("shown"), header.tiers), _good(line.get("good"))
    if shown is None or good is None or not all(place < len(shown) for place in good):
        fault("good", "does not fit the replies that were shown")
        return None
    follows = least_good(header.tiers, shown, good)
    if follows != made.required_tier:
        fault("required_tier", f"is {quoted(made.required_tier)}, and the marks say {follows}")
        return None
    replies = line.get("replies")
    return replace(made, shown=shown, good=good, replies=replies if isinstance(replies, str) else None)


def _shown(value: Any, tiers: Sequence[str]) -> tuple[tuple[str, ...], ...] | None:
    if not isinstance(value, dict) or list(value) != list(LETTERS[: len(value)]):
        return None
    groups = list(value.values())
    if not all(isinstance(group, list) and group for group in groups):
        return None
    flat = [tier for group in groups for tier in group]
    if len(flat) > len(tiers) or not all(tier in tiers and flat.count(tier) == 1 for tier in flat):
        return None
    return tuple(tuple(group) for group in groups)


def _good(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(isinstance(v, str) and len(v) == 1 and v in LETTERS for v in value):
        return None
    places = sorted(LETTERS.index(v) for v in value)
    return tuple(places) if len(set(places)) == len(places) else None
