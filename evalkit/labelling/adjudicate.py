"""Two annotators' decisions side by side: where they conflict, and whether they are of the same items. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalkit.errors import Fault, InputError
from evalkit.labelling.decisions import Decision, Header, Work
from evalkit.labelling.items import Items, Replies
from evalkit.tabular.names import quoted

__all__ = ["Annotator", "Conflict", "check_items", "check_pair", "check_replies", "conflicts"]

_MOST_FAULTS = 100


@dataclass(frozen=True)
class Annotator:
    """One file of decisions."""

    file: str
    header: Header
    work: Work


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two decisions on one item that are not the same."""

    first: Decision
    second: Decision

    def in_order(self, seed: int) -> tuple[Decision, Decision]:
        """Both, in an order that says nothing of who took which: from SHA-256 over seed and item."""
        key = json.dumps([seed, "conflict", self.first.id], ensure_ascii=True)
        turned = hashlib.sha256(key.encode("ascii")).digest()[0] & 1
        return (self.second, self.first) if turned else (self.first, self.second)


def conflicts(first: Work, second: Work, ids: Sequence[str]) -> dict[str, Conflict]:
    """Items of `ids`, in their order, on which both decided and required tier or risk class differ."""
    found = {}
    for name in ids:
        a, b = first.of(name), second.of(name)
        if a is not None and b is not None and (a.required_tier, a.risk) != (b.required_tier, b.risk):
            found[name] = Conflict(a, b)
    return found


def check_pair(first: Annotator, second: Annotator) -> None:
    """Raises `InputError` unless both are of two annotators who judged in the same way."""
    faults = []
    for one in (first, second):
        if one.header.adjudicates:
            fix = "name the file of an annotator"
            faults.append(Fault("holds decisions on conflicts of two others", fix, file=one.file))
    if first.header.annotator == second.header.annotator:
        what = f"is of {quoted(first.header.annotator)}, as {quoted(first.file)} is"
        faults.append(Fault(what, "name the files of two annotators", file=second.file))
    for field in ("tiers", "risk_classes", "by"):
        old, new = getattr(first.header, field), getattr(second.header, field)
        if old != new:
            left, right = (value if isinstance(value, str) else ", ".join(value) for value in (old, new))
            what = f"is {quoted(right)}, and {quoted(left)} in {quoted(first.file)}"
            faults.append(Fault(what, "compare what was judged in the same way", file=second.file, field=field))
    if faults:
        raise InputError(faults)


def check_items(annotator: Annotator, items: Items, replies: Replies | None) -> None:
    """Raises `InputError` for each decision whose item is not there, or asks or shows something else by now.

    Replies are compared where they are given.
    """
    _raise(list(_changed(annotator, items, replies)), annotator.file)


def check_replies(annotators: Sequence[Annotator]) -> None:
    """Raises `InputError` for each item that two of these files judged on different replies: what they say of it
    can neither agree nor be in conflict."""
    first: dict[str, tuple[str | None, str]] = {}
    for one in annotators:
        faults = []
        for name in sorted(one.work.ids):
            decision = one.work.of(name)
            assert decision is not None
            replies, file = first.setdefault(name, (decision.replies, one.file))
            if replies != decision.replies:
                what = f"was judged on other replies than in {quoted(file)}"
                faults.append(Fault(what, "judge the same replies in a new file", file=one.file, id=name))
        _raise(faults, one.file)


def _raise(faults: list[Fault], file: str) -> None:
    """Raise the first of these faults with the number of the others, if there are any."""
    if len(faults) > _MOST_FAULTS:
        rest = len(faults) - _MOST_FAULTS
        more = Fault(f"{rest:,} more decisions do not fit", "put those named above right first", file=file)
        faults = [*faults[:_MOST_FAULTS], more]
    if faults:
        raise InputError(faults)


def _changed(annotator: Annotator, items: Items, replies: Replies | None) -> Iterator[Fault]:
    place = {name: i for i, name in enumerate(items.ids)}
    fix = "use the files that were labelled, or begin a new file with --out"
    decided = annotator.work.ids
    if decided and not any(name in place for name in decided):
        yield Fault(f"decides no item of {quoted(items.file, 400)}, but others", fix, file=annotator.file)
        return
    for name in sorted(annotator.work.ids):
        decision = annotator.work.of(name)
        assert decision is not None
        i = place.get(name)
        what = None
        if i is None:
            what = f"is decided, and {quoted(items.file)} does not have it"
        elif items.asked(i) != decision.item:
            what = f"asks something else in {quoted(items.file)} than when it was decided"
        elif replies is not None and replies.answered(i) != decision.replies:
            what = "has other replies than when it was decided"
        if what is not None:
            yield Fault(what, fix, file=annotator.file, id=name)
