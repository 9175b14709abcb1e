"""The folder of a finished run, read strictly: its result.json and, item by item, what was decided."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.signoff.strict import BrokenFileError, strict_json

__all__ = ["KINDS", "Run", "RunItem", "item_rows", "read_result", "read_run", "shown_arm"]

KINDS = {"evalkit.route-sweep/1": "route-sweep", "evalkit.reasoning-budget/1": "reasoning-budget"}
"""The schemas of result.json, and the command that writes each."""

_MOST_RESULT, _MOST_LINE, _MOST_ITEMS, _MOST_UNPACKED = 256 * 2**20, 2**20, 5_000_000, 4 * 2**30
_MOST_AMOUNT = 1e15
_MADE_ANEW = "run the study again, or name the folder that it wrote"


@dataclass(frozen=True, slots=True)
class RunItem:
    """One item as it fared where the run sent it.

    required, under_routed, escalated  None for a ladder of arms, which routes nothing
    routed     the tier, or the arm that is looked at
    passed     share of its runs that passed, unanswered counted as failed; None without outcomes
    cost_usd   per request; None where it is unknown
    task_s     seconds of the whole path, the mean of several runs; None where it is unknown or was not answered
    status     as the outcomes have it, of several runs joined; None without
    score      the router's; None without, and for a ladder
    loss_usd   what the item adds to the routing loss; None for a ladder
    arms       of a ladder: (name, share of its runs that passed, or None) of every arm of the item
    """

    id: str
    risk: str | None
    category: str | None
    group: str | None
    weight: float
    required: str | None
    routed: str
    under_routed: bool | None
    escalated: bool | None
    passed: float | None
    cost_usd: float | None
    task_s: float | None
    status: str | None
    flags: tuple[str, ...]
    score: float | None = None
    loss_usd: float | None = None
    arms: tuple[tuple[str, float | None], ...] = ()


@dataclass(frozen=True)
class Run:
    """A run: where it is, which command made it, result.json as it stands, and its items by id in label order.

    arm: the arm of a ladder that is looked at; None for a router. gates: those of the router, or of that arm.
    """

    folder: Path
    kind: str
    document: dict[str, Any]
    items: dict[str, RunItem]
    arm: str | None
    gates: list[dict[str, Any]]


def read_run(folder: Path, arm: str | None = None) -> Run:
    """The run in a folder. `arm`: the arm of a ladder to look at instead of the selected one, else the one shown.

    InputError with what is wrong where it is no run, its files do not go together, or it has no such arm.
    """
    document = read_result(folder)
    kind = KINDS[document["schema"]]
    arm, gates = _arm(folder / "result.json", document, kind, arm)
    items = {item.id: item for _, item in item_rows(folder, document, arm)}
    return Run(folder, kind, document, items, arm, gates)


def read_result(folder: Path) -> dict[str, Any]:
    """The result.json of a run folder; InputError where it is none that a run writes."""
    return _result(folder / "result.json")


def shown_arm(folder: Path, document: dict[str, Any]) -> str | None:
    """The arm of a ladder that its items are looked at by: the selected or shown one; None for a router."""
    return _arm(folder / "result.json", document, KINDS[document["schema"]], None)[0]


def item_rows(folder: Path, document: dict[str, Any], arm: str | None) -> Iterator[tuple[int, RunItem]]:
    """(line, item) of a run's items one by one, in label order; only hashes of their ids are kept in memory.

    InputError at the first line that cannot be used or names an item again, and at the end where there are more
    or fewer than result.json counts.
    """
    file = folder / "items.jsonl.gz"
    seen: set[bytes] = set()
    for number, row in _rows(file):
        try:
            item = _item(row, document, arm)
        except BrokenFileError as error:
            raise InputError(Fault(str(error), _MADE_ANEW, str(file), number)) from None
        mark = hashlib.blake2b(item.id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if mark in seen:
            raise InputError(Fault("stands there twice", _MADE_ANEW, str(file), number, id=item.id))
        seen.add(mark)
        if len(seen) > _MOST_ITEMS:
            raise _broken(file, f"holds more than {_MOST_ITEMS:,} items")
        yield number, item
    stated = document["counts"].get("items")
    if stated != len(seen):
        raise _broken(file, f"holds {len(seen):,} items, and result.json counts {visible(stated)}")


def _arm(
    file: Path, document: dict[str, Any], kind: str, asked: str | None
) -> tuple[str | None, list[dict[str, Any]]]:
    """The arm that is looked at, and the gates that are to be shown."""
    if kind == "route-sweep":
        if asked is not None:
            raise InputError(Fault(f'has no arms, and "{visible(asked)}" is asked', "name no arm", str(file)))
        return None, document["gates"]
    shown = document.get("selected") or document.get("shown")
    arm = asked or shown
    found = next((row for row in document["arms"] if row["name"] == arm), None)
    if found is None:
        held = ", ".join(visible(row["name"]) for row in document["arms"])
        raise InputError(Fault(f'has no arm "{visible(arm)}"', f"its arms are: {held}", str(file)))
    gates = document["gates"] if arm == document.get("shown") else found.get("gates")
    if not isinstance(gates, list) or not all(
        isinstance(g, dict) and isinstance(g.get("name"), str) for g in gates
    ):
        raise _broken(file, f'has no usable gates of the arm "{visible(arm)}"')
    return arm, gates


def _result(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise _broken(path, "is no file")
        if path.stat().st_size > _MOST_RESULT:
            raise _broken(path, f"is larger than {_MOST_RESULT // 2**20} MB")
        value = strict_json(path.read_bytes())
    except OSError as error:
        raise _broken(path, f"cannot be read: {error.strerror or type(error).__name__}") from None
    except BrokenFileError as error:
        raise _broken(path, str(error)) from None
    if not isinstance(value, dict) or value.get("schema") not in KINDS:
        said = visible(value.get("schema") if isinstance(value, dict) else value)
        raise _broken(path, f'has the schema "{said}", where {" and ".join(KINDS)} are known')
    wanted = {"verdict": dict, "counts": dict, "gates": list, "provenance": dict, "risk_classes": list}
    wanted |= {"tiers": list} if KINDS[value["schema"]] == "route-sweep" else {"arms": list}
    wrong = [key for key, kind in wanted.items() if not isinstance(value.get(key), kind)]
    if wrong:
        raise _broken(path, f"has no usable {', '.join(wrong)}")
    for key in ("gates", "risk_classes", "tiers" if "tiers" in wanted else "arms"):
        if not all(isinstance(row, dict) and isinstance(row.get("name"), str) for row in value[key]):
            raise _broken(path, f"has a row without a name under {key}")
    return value


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, row) of a file of gzipped JSON lines."""
    if path.exists() and not path.is_file():
        raise _broken(path, "is no file")
    try:
        with gzip.open(path, "rb") as file:
            number = unpacked = 0
            while line := file.readline(_MOST_LINE + 1):
                number += 1
                unpacked += len(line)
                if unpacked > _MOST_UNPACKED:
                    raise _broken(path, f"unpacks to more than {_MOST_UNPACKED // 2**30} GB")
                if len(line) > _MOST_LINE:
                    raise InputError(Fault("is too long for an item", _MADE_ANEW, str(path), number))
                try:
                    yield number, strict_json(line)
                except BrokenFileError as error:
                    raise InputError(Fault(str(error), _MADE_ANEW, str(path), number)) from None
    except (OSError, EOFError, zlib.error) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or visible(error) or "not readable"
        raise _broken(path, f"cannot be read: {said}") from None


def _item(row: Any, document: dict[str, Any], arm: str | None) -> RunItem:
    if not isinstance(row, dict):
        raise BrokenFileError("is no object")
    fared = row
    if arm is not None:
        arms = row.get("arms")
        found = arms.get(arm) if isinstance(arms, dict) else None
        if not isinstance(found, dict):
            raise BrokenFileError(f'has nothing for the arm "{visible(arm)}"')
        fared = found
    flags = row.get("flags")
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        raise BrokenFileError("has no usable flags")
    routed = _text(row, "routed_tier") if arm is None else arm
    weight = _number(row, "weight")
    if weight is None or weight < 0 or routed is None:
        raise BrokenFileError("has no usable weight or tier")
    return RunItem(
        id=_text(row, "id") or _missing("id"),
        risk=_text(row, "risk"),
        category=_text(row, "category"),
        group=_text(row, "group"),
        weight=weight,
        required=_text(row, "required_tier"),
        routed=routed,
        under_routed=None if arm is not None else "under_routed" in flags,
        escalated=None if arm is not None else routed != document["tiers"][0]["name"],
        passed=_share(fared),
        cost_usd=_number(fared, "cost_usd"),
        task_s=_number(fared, "task_s"),
        status=_text(fared, "status"),
        flags=tuple(flags),
        score=None if arm is not None else _number(row, "score", sys.float_info.max),
        loss_usd=None if arm is not None else _number(row, "loss_usd"),
        arms=() if arm is None else tuple((name, _share(found)) for name, found in _arms(row)),
    )


def _arms(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in row["arms"].items():
        if not isinstance(found, dict):
            raise BrokenFileError(f'has nothing for the arm "{visible(name)}"')
        yield name, found


def _share(fared: dict[str, Any]) -> float | None:
    passed = _number(fared, "passed")
    if passed is not None and not 0 <= passed <= 1:
        raise BrokenFileError(f'passed is "{passed}", which is no share')
    return passed


def _text(row: dict[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise BrokenFileError(f'{key} is "{visible(value)}", which is no text')
    return value


def _number(row: dict[str, Any], key: str, most: float = _MOST_AMOUNT) -> float | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= most:
        raise BrokenFileError(f'{key} is "{visible(value)}", which is no number')
    return float(value)


def _missing(key: str) -> str:
    raise BrokenFileError(f"has no {key}")


def _broken(path: Path, what: str) -> InputError:
    return InputError(Fault(what, _MADE_ANEW, file=str(path)))
