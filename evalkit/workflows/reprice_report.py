"""What `evalkit reprice` says: totals by candidate before and after, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.costs.decimals import plain_decimal
from evalkit.costs.prices import PriceCard
from evalkit.errors import redact, visible
from evalkit.replay.ledger import Ledger

__all__ = ["RunPrices", "Total", "Totals", "as_json", "run_prices", "text_lines"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
RunPrices = tuple[str, date | str | None]
"""The fingerprint of the card that a run used ("" where it is not known), and its day."""


@dataclass(frozen=True, slots=True)
class Total:
    """The rows of one candidate: the sums of their known costs before and after, and how many are known."""

    name: str
    rows: int
    old_usd: Decimal
    old_priced: int
    new_usd: Decimal
    new_priced: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of all candidates, in the order in which they first occur."""

    candidates: tuple[Total, ...]

    @classmethod
    def of(cls, names: Sequence[str], old: Floats, new: Floats) -> Totals:
        """The sums by name of costs (R,), NaN where unknown."""
        found = []
        at = np.asarray(names, dtype=object)
        for name in dict.fromkeys(names):
            mine = at == name
            was, now = old[mine], new[mine]
            found.append(Total(name, int(mine.sum()), _sum(was), _known(was), _sum(now), _known(now)))
        return cls(tuple(found))


def _sum(usd: Floats) -> Decimal:
    return sum((Decimal(repr(value)) for value in usd[~np.isnan(usd)].tolist()), Decimal(0))


def _known(usd: Floats) -> int:
    return int((~np.isnan(usd)).sum())


def run_prices(folder: Path | None, ledger: Path | None, was: PriceCard | None) -> RunPrices:
    """What is known of the card that the run used: from its result, its ledger, or the card the user names."""
    if was is not None:
        return was.fingerprint, was.as_of
    said: Any = None
    if folder is not None and (folder / "result.json").is_file():
        said = _result_prices(folder / "result.json")
    if said is None and ledger is not None:
        with Ledger.read(ledger) as opened:
            said = opened.manifest().get("prices")
    if not isinstance(said, Mapping):
        return "", None
    day = said.get("as_of")
    return str(said.get("hash") or "").removeprefix("sha256:"), day if isinstance(day, str) else None


def _result_prices(path: Path) -> Any:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        return (result.get("provenance") or {}).get("prices")
    except (OSError, ValueError, AttributeError):
        return None  # the file is not needed: the day is then said to be unknown


def text_lines(totals: Totals, note: str, out: Path | None) -> list[str]:
    """A table of at most 80 columns, and where the new outcomes are."""
    width = min(24, max([len(visible(one.name, 24)) for one in totals.candidates], default=4))
    lines = [note, "", f"{'':{width}}  {'rows':>7}  {'USD before':>20}  {'USD now':>20}"]
    for one in totals.candidates:
        before, now = (
            _amount(one.old_usd, one.old_priced, one.rows),
            _amount(one.new_usd, one.new_priced, one.rows),
        )
        lines.append(f"{visible(one.name, 24):{width}}  {one.rows:>7,}  {before:>20}  {now:>20}")
    lines.append("")
    lines.append("nothing was written: not one row could be priced" if out is None else f"written: {out}")
    return lines


def _amount(usd: Decimal, priced: int, rows: int) -> str:
    if not priced:
        return "n/a"
    text = plain_decimal(usd.quantize(Decimal("0.000001"))) if usd else "0"
    return text if priced == rows else f">= {text}"


def as_json(
    source: Path,
    out: Path | None,
    card: PriceCard,
    used: RunPrices,
    totals: Totals,
    reasons: Mapping[str, int],
    note: str,
) -> bytes:
    """The same as strict JSON. Totals are decimal text, null where any row of the candidate has no cost."""
    day = used[1]
    content = {
        "schema": "evalkit.reprice/1",
        "note": redact(note),
        "outcomes": source.name,
        "written": None if out is None else out.name,
        "prices": {
            "file": Path(card.file).name,
            "hash": f"sha256:{card.fingerprint}",
            "as_of": None if card.as_of is None else card.as_of.isoformat(),
            "kind": card.kind.value,
        },
        "run_used": {
            "hash": f"sha256:{used[0]}" if used[0] else None,
            "as_of": day.isoformat() if isinstance(day, date) else day,
        },
        "candidates": [
            {
                "name": redact(one.name),
                "rows": one.rows,
                "old_usd": plain_decimal(one.old_usd) if one.old_priced == one.rows else None,
                "old_known_usd": plain_decimal(one.old_usd),
                "old_priced": one.old_priced,
                "new_usd": plain_decimal(one.new_usd) if one.new_priced == one.rows else None,
                "new_known_usd": plain_decimal(one.new_usd),
                "new_priced": one.new_priced,
            }
            for one in totals.candidates
        ],
        "without_cost": [{"reason": redact(reason), "rows": count} for reason, count in reasons.items()],
    }
    return (json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")
