"""What is to be labelled: items with their prompt or messages, and the replies of the candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.labels.hub import read_hub
from evalkit.labels.read import LABEL_SCHEMA
from evalkit.outcomes.align import item_positions, tier_positions
from evalkit.outcomes.columns import OUTCOME_FIELDS
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.fingerprint import canonical_json
from evalkit.tabular.ids import is_rounded, read_ids, repeated
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve
from evalkit.tabular.table import TextColumn

__all__ = ["Items", "Replies", "fingerprint", "read_items", "read_replies"]

_ITEMS = Schema(required=("id",), optional=("required_tier", "risk", *LABEL_SCHEMA.optional))
_REPLIES = Schema(
    required=("id", "tier", "reply"),
    optional=tuple(name for name in OUTCOME_FIELDS if name not in {"id", "tier", "reply"}),
    aliases={"tier": "arm"},
)
_KEPT = ("weight", "reference", "metadata")


@dataclass(frozen=True)
class Items:
    """N items in file order. A required tier and labels of annotators in the file are not read: none may show.

    risk: the class that the file gives, None where it gives none. kept: columns that go into the labels as they
    are.
    """

    file: str
    ids: tuple[str, ...]
    prompts: Sequence[str | None]
    messages: Sequence[Any] | None
    risk: tuple[str | None, ...]
    category: Sequence[str | None] | None
    group: Sequence[str | None] | None
    kept: Mapping[str, list[Any]]
    notices: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def asked(self, i: int) -> str:
        """Fingerprint of what item `i` asks."""
        return fingerprint([self.prompts[i], None if self.messages is None else self.messages[i]])


class Replies:
    """The replies of K tiers to N items, found by position; nothing is copied."""

    def __init__(self, texts: Sequence[str | None], row: npt.NDArray[np.int64], notices: tuple[str, ...]) -> None:
        self._texts = texts
        self._row = row
        self.notices = notices

    def of(self, i: int) -> list[str | None]:
        """The replies to item `i`, one a tier; None where there is none."""
        return [None if row < 0 else self._texts[row] for row in self._row[i].tolist()]

    def answered(self, i: int) -> str:
        """Fingerprint of the replies to item `i`."""
        return fingerprint(self.of(i))


def fingerprint(value: Any) -> str:
    """16 hex digits of SHA-256 over `value` as canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()[:16]


def read_items(
    source: str | Path,
    *,
    risk_classes: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Items:
    """The items of a CSV, JSONL, JSON or Parquet file, or of `hf://`, with `id` and `prompt` or `messages`.

    `risk` may be missing or blank; a class that is not among `risk_classes` is a fault. Raises `InputError` with
    every fault of the file.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    if str(source).startswith("hf://"):
        table = read_hub(str(source), faults, id_column)
    else:
        table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    names = resolve(table, _ITEMS, columns, faults)
    if "id" not in names:
        faults.raise_all()
    if "prompt" not in names and "messages" not in names:
        what = "has neither a column prompt nor a column messages"
        faults.stop(Fault(what, "name the column: --column prompt=COLUMN", file=table.file))
    fields = Fields(table, names, faults)
    ids = read_ids(fields)
    for group in repeated(ids):
        if is_rounded(str(ids[int(group[0])].as_py())):
            continue  # told already
        for i in (int(k) for k in group[1:]):
            what = f"{quoted(ids[i].as_py())} also stands on {table.place(int(group[0]))}"
            faults.add(fields.fault(i, "id", what, "give each row its own id"), "repeated id")
    texts = {name: fields.texts(name) for name in ("prompt", "category", "group") if name in names}
    messages = fields.json_values("messages") if "messages" in names else None
    codes = fields.codes("risk", risk_classes, "risk class") if "risk" in names else np.full(table.n_rows, -1)
    if "weight" in names:
        fields.numbers("weight", minimum=0, blank="write a weight of 0 or more; no weight is assumed")
    prompts = TextColumn(texts["prompt"]) if "prompt" in texts else [None] * table.n_rows
    if messages is None:
        empty = np.asarray(pc.is_null(texts["prompt"]).to_numpy(zero_copy_only=False), dtype=bool)
    else:
        empty = np.array([not m and not p for m, p in zip(messages, prompts, strict=True)], dtype=bool)
    fields.each(empty, lambda i: fields.fault(i, "prompt", "is blank", "write what is asked, or remove the row"))
    if messages is not None:
        wrong = np.array([bool(m) and not _is_messages(m) for m in messages], dtype=bool)
        fix = 'write [{"role": "user", "content": "..."}]'
        what = "is not a list of messages with a role and content"
        fields.each(wrong, lambda i: fields.fault(i, "messages", what, fix))
    if not table.n_rows:
        faults.add(Fault("holds no items", "name a file with rows", file=table.file))
    faults.raise_if_any()
    classes = [nfc(name) for name in risk_classes]
    return Items(
        file=table.file,
        ids=tuple(ids.to_pylist()),
        prompts=prompts,
        messages=messages,
        risk=tuple(classes[code] if code >= 0 else None for code in codes.tolist()),
        category=TextColumn(texts["category"]) if "category" in texts else None,
        group=TextColumn(texts["group"]) if "group" in texts else None,
        kept={name: _values(fields, name) for name in _KEPT if name in names},
        notices=tuple(table.notices),
    )


def _values(fields: Fields, name: str) -> list[Any]:
    if name == "weight":
        return fields.numbers("weight").tolist()  # type: ignore[no-any-return]
    values = fields.json_values(name) if name == "metadata" else fields.table.values(fields.names[name])
    return [None if value == "" else value for value in values]


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(m, dict)
        and isinstance(m.get("role"), str)
        and isinstance(m.get("content"), str | list | type(None))
        for m in value
    )


def read_replies(
    source: str | Path,
    *,
    items: Items,
    tiers: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> Replies:
    """The replies of `tiers` to `items` from a file of outcomes with `id`, `tier` (or `arm`) and `reply`.

    Of several samples the first by number is taken, whether it holds a reply or not: the best of several would
    make a tier look more able than it is. Rows of other ids and tiers are left out with a notice. Raises
    `InputError` with every fault of the file.
    """
    faults = Faults(str(source))
    table = read_table(source, encoding=encoding, faults=faults, id_column=(columns or {}).get("id", "id"))
    names = resolve(table, _REPLIES, columns, faults)
    if {"id", "tier", "reply"} - names.keys():
        faults.raise_all()
    fields = Fields(table, names, faults)
    found = read_ids(fields)
    import pyarrow as pa

    known = normalised(pa.array(items.ids, pa.large_string()))
    item = item_positions(fields, found, known, items.ids, "notice", "row")
    tier = tier_positions(fields, tiers, "notice")
    texts = fields.texts("reply")
    sample = np.zeros(table.n_rows)
    if fields.has("sample"):
        sample = fields.numbers("sample", minimum=0, blank="number the samples of an item 0, 1, 2, ...")
    faults.raise_if_any()
    used = np.flatnonzero((item >= 0) & (tier >= 0))
    order = used[np.lexsort((used, sample[used], tier[used], item[used]))]
    cell = item[order] * len(tiers) + tier[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = cell[1:] != cell[:-1]
    same = ~first & np.concatenate([[False], sample[order][1:] == sample[order][:-1]])
    for i in (int(k) for k in order[same]):
        what = f"{quoted(found[i].as_py())}, tier {quoted(fields.raw('tier', i))} stands on another row too"
        faults.add(fields.fault(i, "id", what, "keep one, or number repeats in a column sample"), "repeated cell")
    if not len(order):
        fix = "name the file with the replies to these items"
        faults.add(Fault("holds no reply of a tier to an item that is to be labelled", fix, file=table.file))
    faults.raise_if_any()
    row = np.full((len(items), len(tiers)), -1, dtype=np.int64)
    row.reshape(-1)[cell[first]] = order[first]
    notices = list(table.notices)
    if not first.all():
        notices.append(f"{table.file}: of several samples of an item and tier, the first is shown")
    return Replies(TextColumn(texts), row, tuple(notices))
