"""Read labels: one row an item, every fault of the file in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.labels.labelset import UNSOLVABLE, LabelSet
from evalkit.labels.notices import spelling_notice, spellings
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.fields import Fields
from evalkit.tabular.fingerprint import Fingerprint, canonical_json, order_of
from evalkit.tabular.ids import is_rounded, read_ids, repeated
from evalkit.tabular.json_rows import LiteralFloat
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve
from evalkit.tabular.table import Table, TextColumn

__all__ = ["LABEL_SCHEMA", "is_unlabelled", "read_labels"]

LABEL_SCHEMA = Schema(
    required=("id", "required_tier", "risk"),
    optional=("prompt", "messages", "category", "weight", "group", "reference", "labels", "metadata"),
)
_MOST_BLANK = 20
"""Rows without a required tier that are named one by one."""
_WITHOUT_TIER = Schema(required=("id", "risk"), optional=("required_tier", *LABEL_SCHEMA.optional))
_WITHOUT_RISK = Schema(required=("id",), optional=("required_tier", "risk", *LABEL_SCHEMA.optional))


def read_labels(
    source: str | Path,
    *,
    tiers: Sequence[str],
    risk_classes: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    require_required_tier: bool = True,
    drop_identical: bool = False,
) -> LabelSet:
    """Read the labels of a study from CSV, JSONL, JSON, Parquet or `hf://org/name@<40 hex>/split`.

    `tiers` are the study's, least capable first; `risk_classes` its classes in declared order; `columns` maps
    fields to the file's column names (`{"id": "query_id"}`). With `require_required_tier=False` the column may be
    missing or blank (reasoning studies, outcomes from which tiers are yet to be derived); where there are no
    `risk_classes` either, the risk column may be missing too and is not read. Rows that are equal in every field
    are faults too, unless `drop_identical` keeps one of each and counts the rest in the notices.

    Raises `InputError` with every fault of the file.
    """
    file = str(source)
    faults = Faults(file)
    table = _load(source, columns, encoding, faults)
    _refuse_decisions(table, faults)
    classless = not require_required_tier and not risk_classes
    schema = LABEL_SCHEMA if require_required_tier else _WITHOUT_RISK if classless else _WITHOUT_TIER
    names = resolve(table, schema, columns, faults)
    fields = Fields(table, names, faults)
    if "id" not in names:
        faults.raise_if_any()
    ids = read_ids(fields)
    dropped = _duplicates(fields, ids, drop_identical)
    required = _required(fields, tiers, require_required_tier)
    risk = (
        fields.codes("risk", risk_classes, "risk class", blank_fix="write the risk class of the row")
        if "risk" in names and not classless
        else np.full(table.n_rows, -1)
    )
    weight = _weights(fields)
    texts: dict[str, pa.Array] = {f: fields.texts(f) for f in ("prompt", "category", "group") if f in names}
    reference = _references(fields) if "reference" in names else None
    nested: dict[str, list[Any]] = {
        f: fields.json_values(f) for f in ("messages", "labels", "metadata") if f in names
    }
    _check_nested(fields, nested)
    faults.raise_if_any()
    kept = np.ones(table.n_rows, dtype=bool)
    kept[sorted(dropped)] = False
    keep = np.flatnonzero(kept)
    return _assemble(
        fields, ids, keep, tiers, risk_classes, required, risk, weight, texts, reference, nested, len(dropped)
    )


def is_unlabelled(
    source: str | Path, *, columns: Mapping[str, str] | None = None, encoding: str | None = None
) -> bool:
    """Whether no row has a required tier yet, as in a sample that is still to be labelled."""
    faults = Faults(str(source))
    table = _load(source, columns, encoding, faults)
    faults.raise_if_any()
    column = (columns or {}).get("required_tier", "required_tier")
    return column not in table.columns or all(value in (None, "") for value in table.values(column))


def _load(source: str | Path, columns: Mapping[str, str] | None, encoding: str | None, faults: Faults) -> Table:
    id_column = (columns or {}).get("id", "id")
    if str(source).startswith("hf://"):
        from evalkit.labels.hub import read_hub

        return read_hub(str(source), faults, id_column)
    return read_table(source, encoding=encoding, faults=faults, id_column=id_column, literals=True)


def _refuse_decisions(table: Table, faults: Faults) -> None:
    """What the labelling page wrote has every step of one annotator, undone ones too: it is no file of labels."""
    if not {"schema", "annotator", "adjudicates"} <= set(table.columns) or not table.n_rows:
        return
    if str(table.value("schema", 0)).startswith("evalkit.label-decisions/"):
        fix = "make labels of one or two of them: evalkit label ... --decisions FILE --export labels.jsonl"
        faults.stop(Fault("holds the decisions of an annotator, not labels", fix, file=table.file))


def _required(fields: Fields, tiers: Sequence[str], needed: bool) -> npt.NDArray[np.int64]:
    if not fields.has("required_tier"):
        return np.full(fields.table.n_rows, -1, dtype=np.int64)
    fix = "write the least tier that is good enough, or unsolvable"
    if fields.has("labels"):
        fix += "; where annotators differ, settle it with evalkit label --adjudicate and export again"
    told = needed and _tell_many_blanks(fields, fix)
    return fields.codes(
        "required_tier", [*tiers, UNSOLVABLE], "tier", blank_fix=fix if needed and not told else None
    )


def _tell_many_blanks(fields: Fields, fix: str) -> bool:
    """Whether so many rows are not labelled that one fault names them all: their cause is one, too."""
    texts = pc.utf8_trim_whitespace(pc.fill_null(fields.texts("required_tier"), ""))
    blank = np.asarray(pc.equal(texts, "").to_numpy(zero_copy_only=False), dtype=bool)
    rows = np.flatnonzero(blank & ~fields.unreadable("required_tier"))
    if len(rows) <= _MOST_BLANK:
        return False
    ids = fields.texts("id")
    named = listed([quoted(ids[int(i)].as_py() or "", 40) for i in rows[1:]], 10)
    what = f"is blank, and so it is in {len(rows) - 1:,} more of {len(blank):,} rows: {named}"
    fields.faults.add(fields.fault(int(rows[0]), "required_tier", what, fix))
    return True


def _weights(fields: Fields) -> npt.NDArray[np.float64]:
    n = fields.table.n_rows
    if not fields.has("weight"):
        return np.ones(n)
    before = len(list(fields.faults))
    weight = fields.numbers(
        "weight",
        minimum=0,
        blank="write a weight of 0 or more; no weight is assumed",
        says="a weight is never negative",
    )
    if len(list(fields.faults)) == before:
        with np.errstate(over="ignore"):
            total = float(np.sum(weight))
        if total == 0 or not np.isfinite(total):
            fields.faults.add(
                Fault(
                    "the weights sum to 0, so weighted rates are undefined"
                    if total == 0
                    else "the weights sum to more than a number can hold",
                    "give at least one row a weight above 0" if total == 0 else "divide all weights by one number",
                    file=fields.table.file,
                    field=fields.name("weight"),
                )
            )
    return weight


def _references(fields: Fields) -> list[Any]:
    """References as typed: scalars as text, JSON lists and objects as they are; blank is None."""
    column = fields.column("reference")
    if not isinstance(column, list):
        if pa.types.is_nested(column.type):
            return list(column.to_pylist())
        return list(fields.texts("reference", loose=True).to_pylist())
    out: list[Any] = []
    for value in column:
        if isinstance(value, LiteralFloat):
            out.append(value.literal)
        elif isinstance(value, bool):
            out.append("true" if value else "false")
        elif isinstance(value, int | float):
            out.append(str(value))
        else:
            out.append(None if value == "" else value)
    return out


def _duplicates(fields: Fields, ids: pa.Array, drop_identical: bool) -> set[int]:
    """Note ids that stand on several rows; the positions of equal rows that may be dropped."""
    table = fields.table
    dropped: set[int] = set()
    groups = repeated(ids)
    spelled = fields.texts("id") if groups else None
    for group in groups:
        first = int(group[0])
        value = str(ids[first].as_py())
        if is_rounded(value):
            continue
        for i in (int(k) for k in group[1:]):
            differ = [name for name in table.columns if not _same(table.value(name, first), table.value(name, i))]
            if not differ and drop_identical:
                dropped.add(i)
                continue
            assert spelled is not None
            normal = (
                ", equal only in Unicode normal form C" if spelled[first].as_py() != spelled[i].as_py() else ""
            )
            fix = "give each row its own id"
            if differ:
                how = f"{listed(differ, 20)} differ{'s' if len(differ) == 1 else ''}"
            else:
                how = "the rows are equal in every field"
                fix = "remove one of them, or keep one of each with --drop-identical"
            what = f"{quoted(value)} also stands on {table.place(first)}{normal}; {how}"
            fields.faults.add(fields.fault(i, "id", what, fix), "repeated id")
    return dropped


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _check_nested(fields: Fields, nested: Mapping[str, list[Any]]) -> None:
    checks: tuple[tuple[str, Callable[[Any], bool], str, str], ...] = (
        (
            "messages",
            _is_messages,
            "is not a list of messages with a role and content",
            'write [{"role": "user", "content": "..."}]',
        ),
        ("metadata", lambda v: isinstance(v, dict), "is not a JSON object", 'write an object: {"key": "value"}'),
    )
    for field, sound, what, fix in checks:
        for i, value in enumerate(nested.get(field, ())):
            if value is not None and not sound(value):
                fields.faults.add(fields.fault(i, field, what, fix), field)
    for field, values in nested.items():
        for i, value in enumerate(values):
            try:
                if value is not None:
                    canonical_json(value)
            except ValueError:
                fields.faults.add(
                    fields.fault(i, field, "holds NaN or an infinity", "write null where a number is unknown"),
                    f"finite {field}",
                )


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(m, dict)
            and isinstance(m.get("role"), str)
            and isinstance(m.get("content"), str | list | type(None))
            for m in value
        )
    )


def _assemble(
    fields: Fields,
    ids: pa.Array,
    keep: npt.NDArray[np.int64],
    tiers: Sequence[str],
    risk_classes: Sequence[str],
    required: npt.NDArray[np.int64],
    risk: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    texts: Mapping[str, pa.Array],
    reference: list[Any] | None,
    nested: Mapping[str, list[Any]],
    n_dropped: int,
) -> LabelSet:
    table = fields.table
    whole = len(keep) == table.n_rows
    chosen = pa.array(keep)
    ids = ids if whole else ids.take(chosen)
    texts = {name: array if whole else array.take(chosen) for name, array in texts.items()}
    required, risk, weight = required[keep], risk[keep], weight[keep]
    if reference is not None:
        reference = [reference[i] for i in keep]
    nested = {name: [values[i] for i in keep] for name, values in nested.items()}
    order = order_of(ids)
    mark = Fingerprint("labels", order)
    mark.texts("id", ids)
    mark.classes("required_tier", required, [*tiers, UNSOLVABLE])
    mark.classes("risk", risk, risk_classes)
    mark.numbers("weight", weight)
    for name, array in texts.items():
        mark.texts(name, array)
    if reference is not None:
        mark.values("reference", reference)
    for name, values in nested.items():
        mark.values(name, values)
    category, group = (tuple(texts[name].to_pylist()) if name in texts else None for name in ("category", "group"))
    n = len(keep)
    return LabelSet(
        file=table.file,
        ids=tuple(ids.to_pylist()),
        prompts=TextColumn(texts.get("prompt", pa.nulls(n, pa.large_string()))),
        required=required.astype(np.int8),
        risk=risk.astype(np.int16),
        weight=weight,
        tiers=tuple(nfc(t) for t in tiers),
        risk_classes=tuple(nfc(r) for r in risk_classes),
        category=category,
        group=group,
        reference=None if reference is None else tuple(reference),
        metadata=nested.get("metadata"),
        messages=nested.get("messages"),
        annotations=nested.get("labels"),
        lines=None if table.lines is None else table.lines[keep].tolist(),
        fingerprint=mark.hexdigest(),
        notices=tuple(_notices(fields, texts, reference, weight, keep, n_dropped)),
    )


def _notices(
    fields: Fields,
    texts: Mapping[str, pa.Array],
    reference: list[Any] | None,
    weight: npt.NDArray[np.float64],
    keep: npt.NDArray[np.int64],
    n_dropped: int,
) -> list[str]:
    table = fields.table
    notes = list(table.notices)
    if n_dropped:
        notes.append(f"{table.file}: {_rows(n_dropped)} equal to an earlier row in every field dropped")
    zero = int(np.sum(weight == 0))
    if zero:
        notes.append(
            f"{table.file}: {zero} quer{'y has' if zero == 1 else 'ies have'} weight 0 and "
            f"do{'es' if zero == 1 else ''} not affect weighted figures"
        )
    if "prompt" in texts:
        mask = pc.fill_null(pc.match_substring(texts["prompt"], "\ufffd"), False)
        damaged = int(pc.sum(mask).as_py() or 0)
        if damaged:
            first = int(keep[pc.index(mask, True).as_py()])
            notes.append(
                f"{table.file}: {damaged} prompt{'' if damaged == 1 else 's'} (first: {table.place(first)}) hold"
                f"{'s' if damaged == 1 else ''} U+FFFD, the mark that another program leaves where it could not "
                "read a byte"
            )
    counted: list[tuple[str, Mapping[str, int]]] = []
    if reference is not None:
        counted.append(("reference", spellings(reference)))
    if "category" in texts:
        found = pc.value_counts(texts["category"].drop_null())
        by_name = dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True))
        counted.append(("category", by_name))
    for name, counts in counted:
        notice = spelling_notice(table.file, fields.name(name), counts)
        if notice:
            notes.append(notice)
    return notes


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"
