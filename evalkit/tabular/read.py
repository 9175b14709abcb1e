"""`read_table`: the one door through which every file of records comes in."""

from __future__ import annotations

from pathlib import Path

from evalkit.tabular.csv_rows import read_csv
from evalkit.tabular.faults import Faults
from evalkit.tabular.json_rows import read_json, read_jsonl
from evalkit.tabular.names import nfc
from evalkit.tabular.parquet import read_parquet
from evalkit.tabular.source import check_encoding, locate
from evalkit.tabular.table import Table

__all__ = ["read_table"]


def read_table(
    source: str | Path,
    *,
    encoding: str | None = None,
    faults: Faults | None = None,
    id_column: str | None = None,
    records: str | None = None,
    literals: bool = False,
) -> Table:
    """Read a CSV, JSONL, JSON or Parquet file of records (text formats may be gzipped, `.gz`).

    CSV cells stay text; JSON values stay what they are (with `literals`, floats keep how they were written);
    Parquet keeps its types. Text is UTF-8 (a BOM is fine) unless `encoding` says otherwise.

    With `faults`, records that cannot be read are noted there and left out, so that the caller can look for more
    before raising; without it every fault raises `InputError` here. What makes the rest unreadable (encoding, lost
    quote, NUL) raises in either case. `id_column` names the column with the id, for messages; `records` the key
    under which a JSON document keeps its list.
    """
    located = locate(source)
    codec = check_encoding(encoding, located.file)
    found = faults if faults is not None else Faults(located.file)
    id_column = None if id_column is None else nfc(id_column)
    if located.format == "csv":
        table = read_csv(located, codec, found, id_column)
    elif located.format == "jsonl":
        table = read_jsonl(located, codec, found, id_column, literals=literals)
    elif located.format == "json":
        table = read_json(located, codec, found, records, literals=literals)
    else:
        table = read_parquet(located, found)
    if faults is None:
        found.raise_if_any()
    return table
