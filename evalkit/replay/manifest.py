"""What a run folder was made with. What decides the answers stays as it was; the rest may change and is noted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.replay.ledger import Ledger
from evalkit.replay.records import json_text

__all__ = ["FREE_FIELDS", "Change", "changes", "check_manifest", "keep_manifest"]

FREE_FIELDS = frozenset(
    {
        "batch",
        "concurrency",
        "evalkit",
        "max_attempts",
        "max_spend_usd",
        "prices",
        "request_timeout_s",
        "requests_per_minute",
        "run_timeout_s",
        "samples",
        "seed",
        "stream",
        "tokens_per_minute",
    }
)
"""Fields that change no answer: how a run travels, how often each item is asked, and what may be spent."""

_REGRADED = ("label", "rubric", "reference")


@dataclass(frozen=True, slots=True)
class Change:
    """A field whose value is not what it was; None where it was not, or is no longer, there."""

    field: str
    old: Any
    new: Any
    free: bool


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], free: Collection[str] = FREE_FIELDS
) -> tuple[Change, ...]:
    """What differs, by name. Fields inside a field are named `models.mid`.

    The order of keys does not count, a null is as good as nothing, and 1.0 is 1: a study that is read twice never
    differs from itself.
    """
    before, after = dict(_flat(old)), dict(_flat(new))
    names = sorted(before.keys() | after.keys())
    found = ((name, before.get(name), after.get(name)) for name in names)
    return tuple(
        Change(name, was, now, name.partition(".")[0] in free)
        for name, was, now in found
        if _plain(was) != _plain(now)
    )


def _flat(fields: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        path = f"{start}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        elif value is not None:
            yield path, value


def _plain(value: Any) -> str:
    """One text for equal values: True is not 1, and 1.0 is."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(_plain(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return json_text(sorted((str(k), _plain(v)) for k, v in value.items() if v is not None))
    return json_text(value)


def check_manifest(
    old: Mapping[str, Any], new: Mapping[str, Any], *, file: str | Path, free: Collection[str] = FREE_FIELDS
) -> tuple[Change, ...]:
    """The free changes. Raises `InputError` with every other one: its name, what it was and is, the ways out."""
    found = changes(old, new, free)
    faults = [_fault(change, file) for change in found if not change.free]
    if faults:
        raise InputError(faults)
    return found


def _fault(change: Change, file: str | Path) -> Fault:
    what = f"was {_shown(change.old)} when this run was made and is {_shown(change.new)} now"
    word = change.field.removesuffix("_sha256")
    word = word if "." in word else word.replace("_", " ")
    fix = f"restore the {visible(word, 60)}, or start a new run folder with --out"
    if any(part in change.field for part in _REGRADED):
        fix += "; replies to unchanged queries stay valid, and grading them anew calls no model (--regrade)"
    return Fault(what, fix, file=str(file), field=change.field)


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return visible(value if isinstance(value, str) else json_text(value), 100)


def keep_manifest(
    ledger: Ledger, values: Mapping[str, Any], *, free: Collection[str] = FREE_FIELDS
) -> tuple[Change, ...]:
    """Note what a run folder is made with, or check that it still is: the free changes, which are noted, too.

    Raises `InputError` as `check_manifest` does, and then nothing is noted. To be called before any call is made.
    """
    old = ledger.manifest()
    found = check_manifest(old, values, file=ledger.path, free=free) if old else ()
    changed = {change.field.partition(".")[0] for change in found}
    fresh = {name: value for name, value in values.items() if not old or name in changed}
    gone = {name: None for name in changed if name not in values}
    if fresh or gone:
        ledger.set_manifest(fresh | gone)
    return found
