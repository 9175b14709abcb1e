"""Labels from a dataset hub: `hf://org/name@<40 hex>/split`, through `datasets`, read as strictly as a file.

The `datasets` package finds and downloads the files of the pinned revision. CSV and JSON files are then read by
our own reader, because type inference would turn `007` into 7; Parquet and Arrow data keep their stored types.
Nothing here runs unless a user wrote `hf://`, and HF_HUB_OFFLINE is obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.tabular.csv_rows import read_csv
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.json_rows import read_json, read_jsonl
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.parquet import ArrowColumns
from evalkit.tabular.source import Located
from evalkit.tabular.table import Table

__all__ = ["HubAddress", "parse_address", "read_hub", "table_from_builder"]

_ADDRESS = re.compile(
    r"hf://(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^/]*))?(?:/(?P<config>[\w.-]+))?/(?P<split>[\w.-]+)"
)
_FORM = "hf://org/name@<40 hex digits>/split, or .../config/split"


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A split of a dataset at one revision."""

    name: str
    revision: str
    config: str | None
    split: str


def parse_address(address: str) -> HubAddress:
    """The parts of `address`; the revision must be a full commit hash, so that the data cannot change."""
    match = re.fullmatch(_ADDRESS, address)
    revision = match["revision"] if match else None
    if match is None or (revision is None and "@" in address):
        raise InputError(Fault("is not an address of a dataset", f"write {_FORM}", file=address))
    if revision is None or not re.fullmatch(r"[0-9a-f]{40}", revision):
        said = "names no revision" if not revision else f"names the revision {quoted(revision)}, which can move"
        raise InputError(Fault(said, f"pin the commit: {_FORM}", file=address))
    return HubAddress(match["name"], revision, match["config"], match["split"])


def read_hub(address: str, faults: Faults, id_column: str | None = None) -> Table:
    """The table of a dataset split. Raises `InputError` where it cannot be had (offline, no such split, ...)."""
    parts = parse_address(address)
    import datasets
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        builder = datasets.load_dataset_builder(parts.name, parts.config, revision=parts.revision)
        return table_from_builder(builder, parts.split, address, faults, id_column)
    except (DatasetsError, HfHubHTTPError, OSError, ValueError, RuntimeError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(
            Fault(
                f"the dataset cannot be loaded: {quoted(reason, 300)}",
                "check the name, the revision and the network (HF_HUB_OFFLINE), or save the split as a file",
                file=address,
            )
        ) from None


def table_from_builder(builder: Any, split: str, file: str, faults: Faults, id_column: str | None = None) -> Table:
    """The table of `split` of a `datasets` builder; text stays text whatever it looks like."""
    files = getattr(builder.config, "data_files", None)
    kind = _text_kind(builder)
    if kind is None or not isinstance(files, Mapping):
        return _prepared(builder, split, file, faults)
    names = {str(name): list(paths) for name, paths in files.items()}
    _check_split(split, list(names), file, faults)
    from datasets import DownloadManager

    _check_dialect(builder.config, file, faults)
    remote = names[split]
    local = DownloadManager(dataset_name=builder.dataset_name).download(remote)
    tables = [
        _read_text(kind, Path(path), str(name), file, faults, id_column)
        for path, name in zip(local, remote, strict=True)
    ]
    return tables[0] if len(tables) == 1 else _joined(tables, file)


def _text_kind(builder: Any) -> str | None:
    for base in type(builder).__mro__:
        if base.__module__ == "datasets.packaged_modules.csv.csv":
            return "csv"
        if base.__module__ == "datasets.packaged_modules.json.json":
            return "json"
    return None


def _check_split(split: str, known: Sequence[str], file: str, faults: Faults) -> None:
    if split not in known:
        faults.stop(
            Fault(
                f"has no split {quoted(split)}{did_you_mean(split, known)}",
                f"its splits are {listed([quoted(k) for k in known])}",
                file=file,
            )
        )


def _check_dialect(config: Any, file: str, faults: Faults) -> None:
    separator = getattr(config, "delimiter", None) or getattr(config, "sep", None) or ","
    if separator != ",":
        faults.stop(
            Fault(
                f"the dataset parts its columns with {quoted(separator)}, not with commas",
                "save the split as CSV, JSONL or Parquet and name that file",
                file=file,
            )
        )


def _read_text(kind: str, path: Path, remote: str, file: str, faults: Faults, id_column: str | None) -> Table:
    with path.open("rb") as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
    if kind == "csv":
        return read_csv(Located(path, file, "csv", gzipped), "utf-8", faults, id_column)
    document = remote.removesuffix(".gz").endswith(".json") and _is_list(path, gzipped)
    located = Located(path, file, "json" if document else "jsonl", gzipped)
    if document:
        return read_json(located, "utf-8", faults, literals=True)
    return read_jsonl(located, "utf-8", faults, id_column, literals=True)


def _is_list(path: Path, gzipped: bool) -> bool:
    import gzip

    with gzip.open(path, "rb") if gzipped else path.open("rb") as stream:
        return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _prepared(builder: Any, split: str, file: str, faults: Faults) -> Table:
    builder.download_and_prepare()
    _check_split(split, list(builder.info.splits or ()), file, faults)
    data = builder.as_dataset(split=split)
    table = data.with_format("arrow")[:]
    return Table(file, ArrowColumns(table), table.num_rows, "parquet")


def _joined(tables: Sequence[Table], file: str) -> Table:
    """Several files of one split as one table of Python values; rows count on, lines are not known."""
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    columns = {
        nfc(name): [
            value
            for table in tables
            for value in (table.values(name) if name in table.columns else [None] * table.n_rows)
        ]
        for name in names
    }
    n = sum(table.n_rows for table in tables)
    rows = np.arange(1, n + 1, dtype=np.int64)
    return Table(file, columns, n, tables[0].format, None, rows, tuple(d for t in tables for d in t.damaged))
