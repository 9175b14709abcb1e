"""All items of a run as pages: result.json and items.jsonl.gz in, a folder of linked pages out.

Rows are rendered once into a file and put into every page that shows them from there, so that memory holds a few
numbers and the id of each item, however many there are. The folder is made beside its place and put there whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.reporting.items_page import ItemsFrame, Selection, frame_of, render_index, render_page, row_renderer
from evalkit.signoff.digest import SIGNOFF
from evalkit.signoff.run_folder import RunItem, item_rows, read_result, shown_arm

__all__ = ["FOLDER", "LISTING", "ItemsOptions", "write_items"]

FOLDER, INDEX, LISTING = "items", "index.html", "pages.json"
"""The folder in a run's, its first page, and the list of its files by which it is known as one of these."""

SCHEMA = "evalkit.items/1"
_MADE_ANEW = "name the folder of a run as it was written; its items and result.json go together"
MOST_ROWS = 5_000
MOST_BYTES = 400_000
"""Rows of a page, in bytes: a page ends before it would hold more, whatever its number of rows."""
MOST_FLAGS = 60
ROUTING_FLAGS = (
    "under_routed",
    "unnecessary_escalation",
    "contract_failure",
    "unanswered",
    "wrong",
    "unsolvable",
)
LADDER_FLAGS = ("budget exhausted", "declined", "unanswered")
"""The flags of a router's items in the order in which they are shown, and those of a ladder's behind the arms that
break a task."""

_LEFT = re.compile(r"\.items\.[0-9a-f]{12}\.(?:part|old)")
_JUST_MADE_S = 10.0
"""A folder as young as this may be about to be locked by who made it."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ItemsOptions:
    """What the command line gave; out None: `items` in the run's folder."""

    run: Path
    out: Path | None = None
    page_size: int = 500
    only: tuple[str, ...] = ()
    quiet: bool = False


@dataclass(frozen=True)
class _Spooled:
    """Rows in a file, and by item: where its row begins and ends, its place in the order, its risk and flags.

    order: items the worst first. risk: place in `risks`, -1 without. flags: bit i is set where it has flag i.
    """

    file: BinaryIO
    start: Ints
    end: Ints
    order: Ints
    risk: Ints
    flag_bits: NDArray[np.uint64]
    risks: tuple[str, ...]
    flags: tuple[str, ...]


def write_items(options: ItemsOptions) -> int:
    """Write the pages of a run and say where; returns the exit code. InputError, and nothing written, for files
    that are none of a run, or a folder that holds something else."""
    if not 1 <= options.page_size <= MOST_ROWS:
        what = f"is {options.page_size:,}"
        raise InputError(Fault(what, f"give a number from 1 to {MOST_ROWS:,}", field="--page-size"))
    document = read_result(options.run)
    _check_facts(document, options.run)
    arm = shown_arm(options.run, document)
    asked = options.out if options.out is not None else options.run / FOLDER
    try:
        target = asked.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        what = f"leads nowhere: {visible(error)}"
        raise InputError(Fault(what, "name another folder with --out", file=str(asked))) from None
    _refuse(target, asked)
    beside = target.parent == options.run.resolve() and (options.run / "report.html").is_file()
    with _in_place(target, asked) as folder, tempfile.TemporaryFile() as file:
        spooled = _spool(options, document, arm, file)
        only, picked = _picked(options, spooled)
        chosen = _selections(spooled, picked)
        frame = frame_of(
            document,
            arm,
            [one for one, _ in chosen],
            only=only,
            back="../report.html" if beside else None,
        )
        pages = _write_pages(folder, frame, chosen, spooled, options.page_size)
    if not options.quiet:
        print(f"items: {visible(asked / INDEX, 400)} ({len(picked):,} items on {pages:,} pages)")
    return 0


def _check_facts(document: dict[str, Any], run: Path) -> None:
    """InputError where result.json lacks what stands on every page."""
    losses = [row.get("under_route_loss_usd") for row in document["risk_classes"]]
    numbers = all(
        loss is None or (isinstance(loss, int | float) and not isinstance(loss, bool)) for loss in losses
    )
    if not isinstance(document.get("study"), str) or not numbers:
        what = "has no usable study" if numbers else "has a loss of a risk class that is no number"
        raise InputError(Fault(what, _MADE_ANEW, file=str(run / "result.json")))


def _spool(options: ItemsOptions, document: dict[str, Any], arm: str | None, file: BinaryIO) -> _Spooled:
    """Render every item into `file`. InputError where an item is none of this run."""
    risks = tuple(str(row["name"]) for row in document["risk_classes"])
    tiers = {str(row["name"]) for row in document.get("tiers", ())}
    at = {name: place for place, name in enumerate(risks)}
    first = None if arm is None else str(document["arms"][0]["name"])
    names: tuple[str, ...] = ROUTING_FLAGS
    if arm is not None:
        names = (*(f"broken by {row['name']}" for row in document["arms"][1:]), *LADDER_FLAGS)
    flags = {name: place for place, name in enumerate(dict.fromkeys(names))}
    render = row_renderer(document, arm)
    ends: list[int] = []
    ranks: list[tuple[float, float, float]] = []
    risk: list[int] = []
    bits: list[int] = []
    end = 0
    source = str(options.run / "items.jsonl.gz")
    for number, item in item_rows(options.run, document, arm):
        wrong = _foreign(item, at, tiers if arm is None else None)
        for flag in item.flags:
            flags.setdefault(flag, len(flags))
        if wrong is None and len(flags) > MOST_FLAGS:
            wrong = f"brings the number of different flags above {MOST_FLAGS}"
        if wrong is not None:
            raise InputError(Fault(wrong, _MADE_ANEW, source, number, id=item.id))
        row = render(item)
        file.write(row)
        end += len(row)
        ends.append(end)
        ranks.append(_badness(item, first))
        risk.append(-1 if item.risk is None else at[item.risk])
        bits.append(sum(1 << flags[flag] for flag in set(item.flags)))
    stops = np.array(ends, dtype=np.int64)
    keys = np.array(ranks, dtype=np.float64).reshape(-1, 3)
    return _Spooled(
        file=file,
        start=np.concatenate([np.zeros(min(1, len(stops)), np.int64), stops[:-1]]),
        end=stops,
        order=np.lexsort((np.arange(len(keys)), keys[:, 2], keys[:, 1], keys[:, 0])).astype(np.int64),
        risk=np.array(risk, dtype=np.int64),
        flag_bits=np.array(bits, dtype=np.uint64),
        risks=risks,
        flags=tuple(flags),
    )


def _foreign(item: RunItem, risks: dict[str, int], tiers: set[str] | None) -> str | None:
    """Why the item cannot be one of the run that result.json tells of; None where it can."""
    if item.risk is not None and item.risk not in risks:
        return f'has the risk class "{visible(item.risk)}", which result.json does not know'
    if tiers is not None and item.routed not in tiers:
        return f'is routed to "{visible(item.routed)}", which result.json does not know'
    return None


def _badness(item: RunItem, first_arm: str | None) -> tuple[float, float, float]:
    """What the report sorts its worst items by, the worst the least: of a router under-routed, loss and failures,
    of a ladder what is passed less often than by the first arm, then failures."""
    failed = 0.0 if item.passed is None else 1.0 - item.passed
    if first_arm is None:
        return (0.0 if item.under_routed else 1.0), -(item.loss_usd or 0.0), -failed
    first = dict(item.arms).get(first_arm)
    lost = 0.0 if item.passed is None or first is None else min(item.passed - first, 0.0)
    return 0.0, lost, -failed


def _picked(options: ItemsOptions, spooled: _Spooled) -> tuple[list[str], Ints]:
    """The flags that were asked for, and the items that have one of them in label order; all items without flags.

    InputError for a flag that none has or can have.
    """
    known_flags = set(spooled.flags)
    only = [n for text in options.only for n in ([text] if text in known_flags else text.split(","))]
    unknown = [name for name in only if name not in known_flags]
    if unknown:
        known = ", ".join(visible(name, 60) for name in spooled.flags) or "none"
        what = f"no item has the flag {', '.join(visible(name, 60) for name in unknown)}"
        raise InputError(Fault(what, f"the flags are: {known}", field="--only"))
    every = np.arange(len(spooled.end), dtype=np.int64)
    if not only:
        return [], every
    wanted = np.uint64(sum(1 << spooled.flags.index(name) for name in set(only)))
    return only, every[(spooled.flag_bits & wanted) != 0]


def _selections(spooled: _Spooled, picked: Ints) -> list[tuple[Selection, Ints]]:
    """Every selection that holds an item, with its items in order; all items first, which may be none."""
    wanted = np.zeros(len(spooled.end), dtype=bool)
    wanted[picked] = True
    order = spooled.order[wanted[spooled.order]]
    found = [(Selection("", None, None, False, len(order)), order)]
    found.append((Selection("given-", None, None, True, len(picked)), picked))
    for r in (None, *range(len(spooled.risks))):
        of_risk = order if r is None else order[spooled.risk[order] == r]
        for f in (None, *range(len(spooled.flags))):
            if r is None and f is None:
                continue
            held = of_risk
            if f is not None:
                held = of_risk[(spooled.flag_bits[of_risk] >> np.uint64(f)) & np.uint64(1) == 1]
            if len(held):
                code = ("" if r is None else f"risk{r + 1}-") + ("" if f is None else f"flag{f + 1}-")
                risk = None if r is None else spooled.risks[r]
                flag = None if f is None else spooled.flags[f]
                found.append((Selection(code, risk, flag, False, len(held)), held))
    return found


def _write_pages(
    folder: Path, frame: ItemsFrame, chosen: Sequence[tuple[Selection, Ints]], spooled: _Spooled, page_size: int
) -> int:
    """Write the pages, the index and the list of them all; returns how many pages there are."""
    names = [INDEX]
    (folder / INDEX).write_text(render_index(frame), encoding="utf-8")
    for selection, items in chosen:
        cuts = _cuts(spooled.end[items] - spooled.start[items], page_size)
        for page, (first, last) in enumerate(cuts, 1):
            rows = b"".join(_row(spooled, int(i)) for i in items[first:last])
            html = render_page(frame, selection, page, len(cuts), first + 1, rows)
            (folder / selection.file(page)).write_text(html, encoding="utf-8")
            names.append(selection.file(page))
    listing = {"schema": SCHEMA, "files": sorted([*names, LISTING])}
    (folder / LISTING).write_text(json.dumps(listing, indent=1) + "\n", encoding="ascii")
    return len(names)


def _row(spooled: _Spooled, i: int) -> bytes:
    spooled.file.seek(int(spooled.start[i]))
    return spooled.file.read(int(spooled.end[i] - spooled.start[i]))


def _cuts(lengths: Ints, page_size: int) -> list[tuple[int, int]]:
    """(first, last + 1) of each page: as many rows as fit; one page without rows where there are none."""
    cuts: list[tuple[int, int]] = []
    first, held = 0, 0
    for i, length in enumerate(lengths.tolist()):
        if i > first and (i - first >= page_size or held + length > MOST_BYTES):
            cuts.append((first, i))
            first, held = i, 0
        held += length
    cuts.append((first, len(lengths)))
    return cuts


def _refuse(target: Path, asked: Path) -> None:
    """InputError where the folder is not one that may be written or replaced."""
    for folder in (target, *target.parents):
        if (folder / SIGNOFF).is_file():
            what = "lies in a sign-off, whose files nobody adds to"
            raise InputError(Fault(what, "name a folder elsewhere with --out", file=str(asked)))
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(Fault("is a file, not a folder", "name another folder with --out", file=str(asked)))
    there = {path.name for path in target.iterdir()}
    if there and not _ours(target, there):
        what = "holds something else than pages of items, which is never written over"
        raise InputError(Fault(what, "name another folder with --out, or empty this one", file=str(asked)))


def _ours(folder: Path, there: set[str]) -> bool:
    """Whether everything in the folder was written by this command."""
    try:
        listing = json.loads((folder / LISTING).read_bytes())
        named = listing["schema"] == SCHEMA and there <= set(listing["files"])
        return named and all((folder / name).is_file() for name in there)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


@contextmanager
def _in_place(target: Path, asked: Path) -> Iterator[Path]:
    """A new folder that takes the place of `target` when all went well, and is gone when anything did not."""
    mark = secrets.token_hex(6)
    made, old = target.with_name(f".items.{mark}.part"), target.with_name(f".items.{mark}.old")
    held = -1
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made.mkdir()
        held = os.open(made, os.O_RDONLY)
        with suppress(OSError):  # a disk without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield made
        if target.exists():
            target.rename(old)
        try:
            made.rename(target)
        except OSError:
            with suppress(OSError):
                old.rename(target)
            raise
    except OSError as error:
        what = f"cannot be written: {error.strerror or type(error).__name__}"
        fix = "name a folder that can be written with --out, and check the space left"
        raise InputError(Fault(what, fix, file=str(asked))) from None
    finally:
        for folder in (made, old):
            shutil.rmtree(folder, ignore_errors=True)
        if held >= 0:
            os.close(held)
        _remove_left(target.parent)


def _remove_left(parent: Path) -> None:
    """Remove what a run that was killed left beside its place; one still at work holds its folder locked."""
    with suppress(OSError):
        for folder in parent.iterdir():
            if not _LEFT.fullmatch(folder.name) or folder.is_symlink():
                continue
            with suppress(OSError):
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if time.time() - folder.stat().st_mtime > _JUST_MADE_S:
                        shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(held)
