"""`evalkit reprice`: what a finished run costs at the prices of another card. No model is called.

A run folder with a ledger is priced from the raw usage of every attempt, a file of outcomes from its token counts.
Every cost in the new file is of the new card: a row that it cannot price has none, whatever it had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.costs.prices import PriceCard
from evalkit.errors import Fault, InputError, visible
from evalkit.outcomes.columns import MOST_USD, NUMBERS, OUTCOME_SCHEMA
from evalkit.study.prices import read_price_card
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import read_ids
from evalkit.tabular.names import did_you_mean, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import resolve
from evalkit.tabular.table import Table
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.labels import pairs_in, show
from evalkit.workflows.reprice_costs import LEDGER, Row, costs_of_ledger, costs_of_tokens
from evalkit.workflows.reprice_report import Totals, as_json, run_prices, text_lines
from evalkit.workflows.run_files import refuse_to_overwrite, write_files

__all__ = ["Options", "reprice"]

_OUTCOMES = ("outcomes.jsonl", "outcomes.parquet", "outcomes.csv")
_TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class Options:
    """What `evalkit reprice` is asked. `models` holds TIER=MODEL, for rows that name none."""

    run: Path
    prices: Path
    was: Path | None = None
    out: Path | None = None
    models: Sequence[str] = ()
    columns: Sequence[str] = ()
    encoding: str | None = None
    batch: bool = False
    json_file: Path | None = None
    quiet: bool = False


@dataclass
class _Rows:
    """The outcomes of a run as a table, and what pricing needs of each row."""

    table: Table
    fields: Fields
    rows: list[Row]
    old_usd: np.ndarray[Any, np.dtype[np.float64]]
    notices: list[str] = field(default_factory=list)

    @property
    def cost_column(self) -> str:
        return self.fields.names.get("cost_usd", "cost_usd")


def reprice(options: Options) -> int:
    """Write the outcomes of a run with the costs of another card; totals to stdout, notices to stderr.

    Returns 0, or 3 where not one row could be priced. Raises `InputError` with every fault of the files.
    """
    source, ledger = _find(options.run)
    out = _out_of(options, source)
    inputs = [source, options.prices, options.was, ledger, options.run / "result.json"]
    refuse_to_overwrite(inputs, [out] if options.json_file is None else [out, options.json_file])
    card, was = _cards(options)
    read = _read(source, options)
    if ledger is not None:
        costs = costs_of_ledger(ledger, read.rows, card, batch=options.batch)
    else:
        costs = costs_of_tokens(read.rows, card, batch=options.batch)
    old = read.old_usd
    if was is not None:
        before = costs_of_tokens(read.rows, was, batch=options.batch)
        old = np.where(np.isnan(old), before.usd, old)
    totals = Totals.of([row.tier for row in read.rows], old, costs.usd)
    used = run_prices(options.run if options.run.is_dir() else None, ledger, was)
    priced = sum(costs.known)
    note = card.repriced(*used) or f"priced with {visible(card.file)}, the card that the run used"
    if priced:
        write_table(out, _columns(read, costs.usd))
    if options.json_file is not None:
        content = as_json(source, out if priced else None, card, used, totals, costs.reasons, note)
        write_files({options.json_file: content})
    lines = text_lines(totals, note, out if priced else None)
    notices = [*card.notices, *read.notices, *_told(costs.reasons, len(read.rows))]
    show([note] if options.quiet else lines, notices)
    return 0 if priced else 3


def _find(run: Path) -> tuple[Path, Path | None]:
    """The outcomes of a run, and its ledger where it has one."""
    if not run.is_dir():
        return run, None
    found = next((run / name for name in _OUTCOMES if (run / name).is_file()), None)
    if found is None:
        what = f"the folder has no {', '.join(_OUTCOMES[:-1])} or {_OUTCOMES[-1]}"
        raise InputError(Fault(what, "name the file of the run's outcomes", file=str(run)))
    ledger = run / LEDGER
    return found, ledger if ledger.is_file() else None


def _out_of(options: Options, source: Path) -> Path:
    if options.out is not None:
        out = options.out / source.name if options.out.is_dir() else options.out
    else:
        first, dot, rest = source.name.partition(".")
        out = source.with_name(f"{first}.repriced{dot}{rest}")
    check_table_suffix(out)
    return out


def _cards(options: Options) -> tuple[PriceCard, PriceCard | None]:
    faults: list[Fault] = []
    cards: list[PriceCard | None] = []
    for path in (options.prices, options.was):
        try:
            cards.append(None if path is None else read_price_card(path))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    card, was = cards
    assert card is not None
    return card, was


def _read(source: Path, options: Options) -> _Rows:
    faults = Faults(str(source))
    mapping = pairs_in("--column", options.columns)
    table = read_table(source, encoding=options.encoding, faults=faults, id_column=mapping.get("id", "id"))
    names = resolve(table, OUTCOME_SCHEMA, mapping, faults)
    if {"id", "tier"} - names.keys():
        faults.raise_all()
    fields = Fields(table, names, faults)
    ids = read_ids(fields).to_pylist()
    tiers = fields.texts("tier").to_pylist()
    models = fields.texts("model").to_pylist() if fields.has("model") else [None] * table.n_rows
    blank = np.full(table.n_rows, np.nan)
    numbers = {
        name: fields.numbers(name, minimum=0, maximum=MOST_USD if name == "cost_usd" else None, says=NUMBERS[name])
        if fields.has(name)
        else blank
        for name in ("cost_usd", "attempts", *_TOKENS)
    }
    samples = (
        fields.numbers("sample", minimum=0, maximum=2**53) if fields.has("sample") else np.zeros(table.n_rows)
    )
    fields.each(
        np.asarray([tier is None for tier in tiers], dtype=bool),
        lambda i: fields.fault(i, "tier", "is blank", "name the tier or arm of the row"),
    )
    faults.raise_if_any()
    asked = _models(options.models, sorted({str(tier) for tier in tiers}))
    rows = [
        Row(
            id=str(ids[i]),
            tier=str(tiers[i]),
            sample=0 if np.isnan(samples[i]) else int(samples[i]),
            model=asked.get(str(tiers[i])) or models[i],
            served=models[i],
            attempts=None if np.isnan(numbers["attempts"][i]) else int(numbers["attempts"][i]),
            old_usd=None if np.isnan(numbers["cost_usd"][i]) else float(numbers["cost_usd"][i]),
            tokens=tuple(float(numbers[name][i]) for name in _TOKENS),
        )
        for i in range(table.n_rows)
    ]
    return _Rows(table, fields, rows, numbers["cost_usd"], list(table.notices))


def _models(given: Sequence[str], tiers: Sequence[str]) -> Mapping[str, str]:
    asked = pairs_in("--model", given)
    for tier in asked:
        if tier not in tiers:
            what = f"{quoted(tier)} is no tier of the outcomes{did_you_mean(tier, tiers)}"
            raise InputError(Fault(what, "write --model TIER=MODEL", field="--model"))
    return asked


def _columns(read: _Rows, usd: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, list[Any]]:
    """The columns as they were read, the cost replaced or added behind them."""
    columns = {name: read.table.values(name) for name in read.table.columns}
    columns[read.cost_column] = [None if np.isnan(value) else float(value) for value in usd]
    return columns


def _told(reasons: Mapping[str, int], rows: int) -> list[str]:
    return [f"{count:,} of {rows:,} rows have no cost: {reason}" for reason, count in reasons.items()]
