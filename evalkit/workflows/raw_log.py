"""A log as a tool wrote it, given where its requests are asked for."""

from __future__ import annotations

import csv
import gzip
import json
import shlex
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError

__all__ = ["refuse_raw_log"]

_HEAD = 4_000_000  # characters: more than one record of any log


def refuse_raw_log(file: Path) -> None:
    """Raise `InputError` where the first record is one of a known log and has no prompt of its own.

    Read as a table of requests it would count calls that are none, lose its ids, and bring its metadata along.
    What cannot be read is left to the reader, which says why.
    """
    from evalkit.outcomes.logs.registry import RECORD_FORMATS
    from evalkit.outcomes.logs.spans import fits_otlp, fits_sdk

    try:
        first = _first_record(file)
    except (OSError, EOFError, ValueError, RecursionError, csv.Error, zlib.error):
        return
    if first is None or "prompt" in first:
        return
    name = next((known.name for known in RECORD_FORMATS if known.fits(first)), None)
    if name is None and (fits_otlp(first) or fits_sdk(first)):
        name = "spans"
    if name is not None:
        command = shlex.join(["evalkit", "import", "logs", str(file), "--requests-out", "requests.jsonl"])
        fix = f"make requests of it first: {command}, and sample those"
        raise InputError(Fault(f"is a log ({name}), not requests", fix, file=str(file)))


def _first_record(file: Path) -> Mapping[str, Any] | None:
    name = file.name.lower()
    packed = name.endswith(".gz")
    kind = Path(name.removesuffix(".gz")).suffix
    with gzip.open(file, "rt", encoding="utf-8-sig") if packed else file.open(encoding="utf-8-sig") as text:
        if kind == ".csv":
            return dict.fromkeys(next(csv.reader([text.readline(_HEAD)]), []))
        if kind in {".jsonl", ".ndjson"}:
            found = json.loads(text.readline(_HEAD))
        elif kind == ".json":
            head = text.read(_HEAD)
            found = json.JSONDecoder().raw_decode(head, head.index("{"))[0]
        else:
            return None
    return found if isinstance(found, dict) else None
