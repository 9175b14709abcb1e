"""One annotator at work: what the page is told, and what it may decide. No HTTP here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evalkit.labelling import shown
from evalkit.labelling.adjudicate import Conflict
from evalkit.labelling.blind import LETTERS, least_good, shown_order
from evalkit.labelling.decisions import MOST_NOTE, Decision, Undo
from evalkit.labelling.items import Items, Replies
from evalkit.labelling.log_file import DecisionFile
from evalkit.labels.labelset import UNSOLVABLE
from evalkit.tabular.fingerprint import canonical_json
from evalkit.tabular.names import nfc

__all__ = ["Refused", "Session", "Stale"]


class Refused(ValueError):
    """What was sent cannot be a decision; the message says why."""


class Stale(Exception):
    """Another window has decided since."""


@dataclass(frozen=True)
class _Asked:
    """What stands behind one item of the queue."""

    place: int
    shown: tuple[tuple[str, ...], ...] | None
    texts: tuple[str, ...]
    silent: int


class Session:
    """The queue of items and the decisions on them. Its methods may be called from several threads.

    queue: positions in `items`, in the order in which they are labelled; `conflicts` by id in adjudication.
    """

    def __init__(
        self,
        items: Items,
        replies: Replies | None,
        file: DecisionFile,
        *,
        queue: Sequence[int] | None = None,
        conflicts: Mapping[str, Conflict] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.items = items
        self.replies = replies
        self.file = file
        self.queue = range(len(items)) if queue is None else queue
        self.conflicts = conflicts
        self._now = now
        self._lock = threading.Lock()
        self._place = {items.ids[i]: k for k, i in enumerate(self.queue)}
        self._done = bytearray(len(self.queue))
        for name in file.work.ids:
            self._done[self._place[name]] = 1

    # -- what the page is told ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """How far the work is, and where to go on: behind the last decision."""
        with self._lock:
            last = self.file.work.last
            at = 0 if last is None else self._place[last.id] + 1
            return self._progress() | {"next": self._next(at)}

    def _progress(self) -> dict[str, Any]:
        work = self.file.work
        return {"total": len(self.queue), "done": len(work), "n": work.n, "undo": work.last is not None}

    def _next(self, start: int) -> int | None:
        """The first item from `start` on that is not decided, else the first of all; None where none is left."""
        found = self._done.find(0, start)
        found = found if found >= 0 else self._done.find(0)
        return found if found >= 0 else None

    def item(self, k: int) -> dict[str, Any]:
        """Item `k` of the queue: what is asked, the replies as A, B, C, and what was decided of it here.

        Nothing in it says which tier a reply is of. Raises IndexError.
        """
        asked = self._asked(k)
        i = asked.place
        category = None if self.items.category is None else self.items.category[i]
        messages = None if self.items.messages is None else self.items.messages[i]
        with self._lock:
            before = self.file.work.of(self.items.ids[i])
            following = self._next(k + 1)
        out: dict[str, Any] = {
            "index": k,
            "id": shown.name(self.items.ids[i]),
            "category": shown.name(category, 80),
            "turns": shown.speaking(self.items.prompts[i], messages),
            "reference": self._reference(i),
            "risk": self.items.risk[i],
            "decision": None if before is None else _seen(before, asked.shown),
            "next": following,
        }
        if asked.shown is not None:
            out["replies"] = [
                {"letter": LETTERS[j], "text": shown.text(body)} for j, body in enumerate(asked.texts)
            ]
            out["silent"] = asked.silent
        if self.conflicts is not None:
            conflict = self.conflicts.get(
                self.items.ids[i]
            )  # none where an annotator has changed their mind since
            both = () if conflict is None else conflict.in_order(self.file.header.seed)
            out["said"] = [
                seen | {"note": shown.text(seen["note"])} for seen in (_seen(d, asked.shown) for d in both)
            ]
        return out

    def _reference(self, i: int) -> str | None:
        column = self.items.kept.get("reference")
        given = None if column is None else column[i]
        return None if given is None else shown.text(given if isinstance(given, str) else canonical_json(given))

    def _asked(self, k: int) -> _Asked:
        if not 0 <= k < len(self.queue):
            raise IndexError(k)
        i = self.queue[k]
        if self.replies is None:
            return _Asked(i, None, (), 0)
        header = self.file.header
        texts = self.replies.of(i)
        order = shown_order(header.seed, header.annotator, self.items.ids[i], header.tiers, texts)
        by_tier = dict(zip(header.tiers, texts, strict=True))
        seen = tuple(by_tier[group[0]] or "" for group in order)
        return _Asked(i, order, seen, len(header.tiers) - sum(map(len, order)))

    # -- what the page decides ---------------------------------------------------------------------------------

    def decide(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Take a decision: `index`, `after` (number of the last event that the page knows of), `risk`, `note`, and
        `good` (letters) or `tier`. On disk when this returns.

        Raises `Refused`, `Stale`, or `InputError` where it cannot be written.
        """
        header = self.file.header
        wanted = {"index", "after", "risk", "note", "good" if self.replies is not None else "tier"}
        if set(sent) != wanted:
            raise Refused(f"the fields must be {', '.join(sorted(wanted))}")
        k, risk, note = sent["index"], sent["risk"], sent["note"]
        if type(k) is not int or not 0 <= k < len(self.queue):
            raise Refused("there is no such item")
        if risk not in header.risk_classes:
            raise Refused("the risk class is not one of the study")
        if not isinstance(note, str) or len(note) > MOST_NOTE:
            raise Refused(f"the note must be text of at most {MOST_NOTE:,} characters")
        asked = self._asked(k)
        good: tuple[int, ...] | None = None
        if asked.shown is not None:
            good = _places(sent["good"], len(asked.shown))
            tier = least_good(header.tiers, asked.shown, good)
        else:
            tier = sent["tier"]
            if tier not in (*header.tiers, UNSOLVABLE):
                raise Refused("the tier is not one of the study")
        i = asked.place
        with self._lock:
            self._not_stale(sent["after"])
            decision = Decision(
                n=self.file.work.n + 1,
                id=self.items.ids[i],
                item=self.items.asked(i),
                required_tier=tier,
                risk=risk,
                note=nfc(note.strip()),
                at=self._stamp(),
                replies=None if self.replies is None else self.replies.answered(i),
                shown=asked.shown,
                good=good,
            )
            self.file.append(decision)
            self._done[k] = 1
            return self._progress() | {"next": self._next(k + 1)}

    def undo(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Take back the last decision that stands; the answer holds its item and what it said.

        Raises `Refused` where none stands, `Stale`, or `InputError` where it cannot be written.
        """
        if set(sent) != {"after"}:
            raise Refused("the fields must be after")
        with self._lock:
            self._not_stale(sent["after"])
            last = self.file.work.last
            if last is None:
                raise Refused("there is nothing to undo")
            self.file.append(Undo(self.file.work.n + 1, last.n, self._stamp()))
            k = self._place[last.id]
            self._done[k] = self.file.work.of(last.id) is not None
            progress = self._progress()
        return progress | {"index": k, "undone": _seen(last, self._asked(k).shown)}

    def _not_stale(self, after: Any) -> None:
        if type(after) is not int:
            raise Refused("after must be a whole number")
        if after != self.file.work.n:
            raise Stale

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _places(sent: Any, count: int) -> tuple[int, ...]:
    if not isinstance(sent, list) or not all(isinstance(v, str) and len(v) == 1 for v in sent):
        raise Refused("good must be a list of letters")
    places = sorted(LETTERS.find(letter) for letter in sent)
    if len(set(places)) != len(places) or any(not 0 <= place < count for place in places):
        raise Refused("good names a letter that is not shown")
    return tuple(places)


def _seen(decision: Decision, order: tuple[tuple[str, ...], ...] | None) -> dict[str, Any]:
    """A decision in the letters that this page shows, without a word on who took it."""
    out: dict[str, Any] = {"risk": decision.risk, "note": decision.note}
    if order is None:
        return out | {"tier": decision.required_tier}
    good = decision.good_tiers
    return out | {"good": [LETTERS[j] for j, group in enumerate(order) if not good.isdisjoint(group)]}
