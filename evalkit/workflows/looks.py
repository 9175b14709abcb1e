"""How often a label set was looked at, and what each look may spend of the error rate.

A look is a new combination of labels, outcomes, scores and study; running the same again is none. One undeclared
look spends everything, so that a study cannot be tuned on its labels until it passes. The record lies beside the
labels and grows only. A copy of the labels in the same folder is the same label set: what the records there say of
its fingerprint counts too.

A look at less is completed by the first that adds what was missing, and both are one look: requests that nobody
answered, or, where several thresholds are searched for, costs. Nothing could be selected before. An audit of the
labels completes one too: it can only withhold what the look without it allows, and is shared with no other audit.

An audit that was read back counts too, also where no router was looked at: of labels that are audited and put
right until nothing is found, some audit is clean by chance. The first look at these labels that names it completes
it. From then on they certify no router without an audit: what was found cannot be left out again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError

__all__ = ["Look", "looks_path", "looks_text", "take_audit", "take_look", "was_looked_at"]

_SCHEMA = "evalkit.looks/1"
_SUFFIX = ".looks.json"
_ADDED = frozenset({"outcomes", "costs", "audit"})
_ABOUT = frozenset({"key", "delta", "first_at", "completes"})
_AUDIT_ALONE = frozenset({"labels", "audit"})


@dataclass(frozen=True)
class Look:
    """number: 1 for the first look at these labels. delta: what it may spend on each side, None for nothing.
    recorded: the record could be written. audit_left_out: the labels were audited, and the look names no audit."""

    number: int
    declared: int
    delta: float | None
    recorded: bool
    audit_left_out: bool = False


def looks_path(labels: Path) -> Path:
    """Where the looks at a label file are recorded: beside the file itself, whatever links lead to it."""
    with contextlib.suppress(OSError, RuntimeError):
        labels = labels.resolve() if labels.is_symlink() else labels
    return labels.with_name(labels.name + _SUFFIX)


def take_look(
    record: Path,
    parts: Mapping[str, str],
    *,
    declared: int,
    delta: float,
    now: str,
    book: bool = True,
    by_tiers: bool = False,
) -> Look:
    """Number this look and book what it spends in the file `record`.

    parts: fingerprints of labels, outcomes, scores and study. With one look declared the first spends `delta`;
    with J declared, look j spends delta / 2**j. A look beyond those declared, or one for which too little is
    left, spends nothing and certifies nothing. `now` is UTC text. With `book` False nothing is written. Parts that
    are named outcomes and costs are left out while there are none. by_tiers: it rests on the required tiers,
    and so has to name their audit where there was one. Raises InputError where the record is damaged.
    """
    key = _key(parts)
    with _alone(record.parent):
        own = _read(record)
        looks = [*own, *_of_copies(record, parts.get("labels"), {entry["key"] for entry in own})]
        numbers, spent = _counted(looks)
        if by_tiers and "audit" not in parts and _were_audited(looks, parts.get("labels")):
            return Look(max(numbers.values()) + 1, declared, None, recorded=True, audit_left_out=True)
        if key in numbers:
            entry = next(e for e in looks if e["key"] == key)
            return Look(numbers[key], declared, entry["delta"], recorded=True)
        less = _completed(looks, parts)
        if less is not None:
            number, granted = numbers[less["key"]], less["delta"]
        else:
            number = max(numbers.values(), default=0) + 1
            share = delta if declared == 1 else delta / 2**number
            allowed = number <= declared and spent + share <= delta * (1 + 1e-9)
            granted = share if allowed else None
        if not book:
            return Look(number, declared, granted, recorded=True)
        whole = {} if less is None else {"completes": less["key"]}
        look = {"key": key, "delta": granted, "first_at": now, **whole, **dict(sorted(parts.items()))}
        text = json.dumps({"schema": _SCHEMA, "looks": [*own, look]}, indent=1, ensure_ascii=False) + "\n"
        return Look(number, declared, granted, recorded=_write(record, text))


def take_audit(record: Path, parts: Mapping[str, str], *, declared: int, delta: float, now: str) -> Look:
    """Book an audit that is read back, `parts["audit"]` its fingerprint: with the look that it completes or, where
    there is none, by itself. `parts` are those of the look that names it; the rest as for `take_look`."""
    with _alone(record.parent):
        own = _read(record)
        looks = [*own, *_of_copies(record, parts.get("labels"), {entry["key"] for entry in own})]
    alone = {name: parts[name] for name in sorted(_AUDIT_ALONE)}
    keys = {entry["key"] for entry in looks}
    whole = _key(parts) in keys or (_key(alone) not in keys and _completed(looks, parts) is not None)
    booked = parts if whole else alone
    return take_look(record, booked, declared=declared, delta=delta, now=now)


def was_looked_at(record: Path, parts: Mapping[str, str]) -> bool:
    """Whether some look had all these parts, so that what they show is known. InputError for a damaged record."""
    looks = [*_read(record), *_of_copies(record, parts.get("labels"), set())]
    return any(all(entry.get(name) == value for name, value in parts.items()) for entry in looks)


def looks_text(record: Path, labels: str) -> str:
    """The looks at labels of this fingerprint that a look is numbered by, as the text of one record."""
    own = _read(record)
    looks = [*own, *_of_copies(record, labels, {entry["key"] for entry in own})]
    return json.dumps({"schema": _SCHEMA, "looks": looks}, indent=1, ensure_ascii=False) + "\n"


def _key(parts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(sorted(parts.items()))).encode()).hexdigest()


def _were_audited(looks: list[dict[str, Any]], labels: str | None) -> bool:
    return labels is not None and any("audit" in e and e.get("labels") == labels for e in looks)


def _counted(looks: list[dict[str, Any]]) -> tuple[dict[str, int], float]:
    """(number of each look by its key, error rate spent by all); one that completes another shares its number."""
    numbers: dict[str, int] = {}
    spent, count = 0.0, 0
    for entry in looks:
        less = numbers.get(entry.get("completes", ""))
        if less is None:
            count += 1
            spent += entry["delta"] or 0.0
        numbers.setdefault(entry["key"], count if less is None else less)
    return numbers, spent


def _completed(looks: list[dict[str, Any]], parts: Mapping[str, str]) -> dict[str, Any] | None:
    """The look at less that these parts complete: all that it had is the same, and no other look completed it."""
    done = {entry.get("completes") for entry in looks}
    for entry in looks:
        had = {name: value for name, value in entry.items() if name not in _ABOUT}
        added = parts.keys() - had.keys()
        same = all(parts.get(name) == value for name, value in had.items())
        may = added <= _ADDED or had.keys() == _AUDIT_ALONE
        if added and may and same and entry["key"] not in done:
            return entry
    return None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder while a record is read and written, so that of two runs at once each counts the other.

    Where the system has no such lock, nothing is held.
    """
    handle = None
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _of_copies(record: Path, labels: str | None, known: set[str]) -> list[dict[str, Any]]:
    """Looks at labels of this fingerprint in the other records of the folder, each once, by name of the record."""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError):
        for other in sorted(record.parent.glob(f"*{_SUFFIX}")):
            if other.name == record.name:
                continue
            with contextlib.suppress(InputError):  # damage there is told to whoever uses those labels
                for entry in _read(other):
                    if labels is not None and entry.get("labels") == labels and entry["key"] not in known:
                        found.setdefault(entry["key"], entry)
    return list(found.values())


def _read(record: Path) -> list[dict[str, Any]]:
    if record.exists() and not record.is_file():
        raise InputError(_damaged(record, "is no file"))
    try:
        text = record.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(_damaged(record, f"cannot be read ({error.__class__.__name__})")) from None
    try:
        document = json.loads(text)
        looks = document["looks"]
        sound = document["schema"] == _SCHEMA and isinstance(looks, list) and all(_is_look(e) for e in looks)
    except (ValueError, TypeError, KeyError, RecursionError):
        sound = False
    if not sound:
        raise InputError(_damaged(record, "is not a record of looks"))
    return list(looks)


def _is_look(entry: dict[str, Any]) -> bool:
    delta = entry["delta"]
    number = isinstance(delta, int | float) and not isinstance(delta, bool)
    names = isinstance(entry["key"], str) and isinstance(entry.get("completes", ""), str)
    return names and (delta is None or (number and 0 <= delta <= 1))


def _damaged(record: Path, what: str) -> Fault:
    return Fault(
        f"the record of looks at these labels {what}",
        "restore it from a copy; without it, label a fresh sample: how often these labels were used is not known",
        file=str(record),
    )


def _write(record: Path, text: str) -> bool:
    from evalkit.tabular.write import write_atomic

    try:
        write_atomic(record, text)
    except (OSError, InputError):
        return False
    return True
