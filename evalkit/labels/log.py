"""Requests of a log, read so that no value of it can reach a message, and cleaned of personal data."""

from __future__ import annotations

import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from evalkit.errors import EvalkitError, Fault, InputError
from evalkit.labels.personal_data import Finder, cleaned, cleaned_json
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import is_rounded, read_ids, repeated
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve
from evalkit.tabular.spread import spread

__all__ = ["LOG_SCHEMA", "Log", "read_log", "withheld"]

LOG_SCHEMA = Schema(
    required=(),
    optional=("id", "prompt", "messages", "risk", "category", "group", "weight", "reference", "metadata"),
)
_WITHHELD = "[value withheld]"
_NAMES = {"id", "group", "risk", "category"}
_ROWS_A_PART = 1000
_NAMES_A_PART = 5000

_Part = tuple[list[Any], tuple[str, ...], Finder | None]


@dataclass(frozen=True)
class Log:
    """N requests in file order, cleaned.

    columns: the fields of `LOG_SCHEMA` that the file has and `id`; `weight` is not among them. weight (N,):
    requests a row stands for, 1 where the file has no weights. texts: what near duplicates are told by. removed:
    how many pieces of personal data by kind; touched: rows that held some. renamed: ids, groups and names of
    strata that held some and stand under a made-up name. blank: rows left out because they have no text.
    contexts: the system prompt of each request, which is no part of its text: all requests of an application
    have it, and it tells none of them from another.
    """

    file: str
    columns: Mapping[str, list[Any]]
    weight: np.ndarray[Any, np.dtype[np.float64]]
    texts: Sequence[str]
    contexts: Sequence[str]
    removed: Counter[str]
    touched: int
    renamed: Mapping[str, int]
    blank: int
    notices: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


@contextmanager
def withheld() -> Iterator[None]:
    """Whatever goes wrong inside is told without a value of the file: by place, field and kind of fault only."""
    try:
        yield
    except InputError as error:
        raise InputError([_without_values(fault) for fault in error.faults]) from None
    except EvalkitError as error:
        raise type(error)(_plain(str(error))) from None
    except Exception as error:  # noqa: BLE001 - its message may hold what is to be removed, and a traceback shows it
        what = f"{type(error).__name__} on the way through the log; its message is withheld, it may hold values"
        raise RuntimeError(what) from None


def _without_values(fault: Fault) -> Fault:
    return Fault(
        _plain(fault.what), _plain(fault.fix), file=fault.file, line=fault.line, row=fault.row, field=fault.field
    )


def _plain_note(note: str, file: str) -> str:
    """A notice without values; the name of the file in front of it stays, whatever numbers it has."""
    start = f"{file}: "
    return start + _plain(note.removeprefix(start)) if note.startswith(start) else _plain(note)


def _plain(text: str) -> str:
    text = re.sub(r'".*"', _WITHHELD, text, flags=re.DOTALL)
    return cleaned(re.sub(r"(?<![\d,])[+-]?\d[\d.eE+-]{3,}", _WITHHELD, text), Counter())


def read_log(
    source: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    regions: Sequence[str] = ("KR", "US", "GB"),
    also: Finder | None = None,
) -> Log:
    """The requests of a CSV, JSONL, JSON or Parquet file with `prompt` or `messages`; the rest is optional.

    What `also` finds in texts is removed beside what the rules find.

    Raises `InputError` with every fault of the file, without any of its values.
    """
    with withheld():
        return _read(source, columns, encoding, regions, also)


def _read(
    source: str | Path,
    columns: Mapping[str, str] | None,
    encoding: str | None,
    regions: Sequence[str],
    also: Finder | None,
) -> Log:
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    names = resolve(table, LOG_SCHEMA, columns, faults)
    if "prompt" not in names and "messages" not in names:
        what = "has neither a column prompt nor a column messages"
        faults.stop(Fault(what, "name the column: --column prompt=COLUMN", file=table.file))
    fields = Fields(table, names, faults)
    ids = _ids(fields, faults)
    n = table.n_rows
    weight = np.ones(n)
    if fields.has("weight"):
        weight = fields.numbers("weight", minimum=0, blank="write how many requests the row stands for")
    raw: dict[str, list[Any]] = {"id": ids}
    for name in LOG_SCHEMA.optional:
        if name in names and name not in {"id", "weight"}:
            nested = name in {"messages", "metadata", "reference"} and table.format in {"json", "jsonl"}
            values = fields.json_values(name) if name in {"messages", "metadata"} else None
            if values is None:
                values = table.values(names[name]) if nested else fields.texts(name, loose=True).to_pylist()
            raw[name] = [None if value == "" else value for value in values]
    faults.raise_if_any()
    return _cleaned_log(table.file, raw, weight, regions, tuple(table.notices), also)


def _ids(fields: Fields, faults: Faults) -> list[str]:
    if not fields.has("id"):
        return [f"row-{fields.table.row(i)}" for i in range(fields.table.n_rows)]
    ids = read_ids(fields)
    for group in repeated(ids):
        if is_rounded(str(ids[int(group[0])].as_py())):
            continue  # told already
        for i in (int(k) for k in group[1:]):
            what = f"the id also stands on {fields.table.place(int(group[0]))}"
            fix = "give each row its own id, or name another column for it: --column id=COLUMN"
            faults.add(fields.fault(i, "id", what, fix), "repeated id")
    return list(ids.to_pylist())


def _cleaned_log(
    file: str,
    raw: dict[str, list[Any]],
    weight: np.ndarray[Any, np.dtype[np.float64]],
    regions: Sequence[str],
    notices: tuple[str, ...],
    also: Finder | None,
) -> Log:
    removed: Counter[str] = Counter()
    asked = _Requests(raw)
    keep = [i for i in range(len(asked)) if asked[i].strip() or asked.context(i).strip()]
    touched = np.zeros(len(asked), dtype=bool)
    names = {name: raw.pop(name) for name in list(raw) if name in _NAMES}
    out: dict[str, list[Any]] = {name: [values[i] for i in keep] for name, values in names.items()}
    out |= {name: [] for name in raw}
    distinct = [(name, value) for name in names for value in dict.fromkeys(out[name]) if isinstance(value, str)]
    firsts = range(0, len(distinct), _NAMES_A_PART)
    sent: deque[tuple[str, Sequence[int], list[Any]]] = deque()  # parts that are being cleaned

    def parts() -> Iterator[_Part]:
        for start in firsts:
            yield [value for _, value in distinct[start : start + _NAMES_A_PART]], tuple(regions), None
        for name in list(raw):  # one column after the other, so that a log is never in memory twice
            values = raw.pop(name)
            for start in range(0, len(keep), _ROWS_A_PART):
                rows = keep[start : start + _ROWS_A_PART]
                sent.append((name, rows, [values[i] for i in rows]))
                yield sent[-1][2], tuple(regions), also

    clean = spread(_cleaned_part, parts()) if also is None else map(_cleaned_part, parts())
    aliases = _aliases(names, distinct, [(start, next(clean)[0]) for start in firsts])
    for name, alias in aliases.items():
        for at, value in enumerate(out[name]):
            if value in alias:
                out[name][at] = alias[value]
                touched[keep[at]] = True
    for changed, found in clean:
        name, rows, given = sent.popleft()
        removed.update(found)
        for at, value in enumerate(given):
            safe_value = changed.get(at, value)
            touched[rows[at]] |= at in changed and safe_value != value
            out[name].append(safe_value)
    kept = np.array(keep, dtype=np.int64)
    safe = tuple(_plain_note(note, file) for note in notices)
    texts = _Requests(out)
    contexts = [sys.intern(texts.context(i)) for i in range(len(keep))]
    return Log(
        file=file,
        columns=out,
        weight=weight[kept],
        texts=texts,
        contexts=contexts,
        removed=removed,
        touched=int(touched.sum()),
        renamed={name: len(alias) for name, alias in aliases.items() if alias},
        blank=len(weight) - len(keep),
        notices=safe,
    )


def _cleaned_part(part: _Part) -> tuple[dict[int, Any], Counter[str]]:
    """The values that held personal data, cleaned, by their place in the part; how many pieces of each kind."""
    values, regions, also = part
    found: Counter[str] = Counter()
    changed: dict[int, Any] = {}
    for at, value in enumerate(values):
        safe_value = cleaned_json(value, found, regions, also)
        if safe_value is not value:
            changed[at] = safe_value
    return changed, found


def _aliases(
    names: Iterable[str], distinct: Sequence[tuple[str, str]], cleaned: Iterable[tuple[int, Iterable[int]]]
) -> dict[str, dict[str, str]]:
    """For each of the columns `names` its values that hold personal data, with a made-up name for each.

    `cleaned` has the places in `distinct` of those that do: where a part begins, and places from there on.
    """
    aliases: dict[str, dict[str, str]] = {name: {} for name in names}
    for start, places in cleaned:
        for at in sorted(places):
            name, value = distinct[start + at]
            aliases[name][value] = f"{name}-{len(aliases[name]) + 1}-renamed"
    return aliases


class _Requests(Sequence[str]):
    """The text of each request without its system prompt, put together from the columns when it is asked for."""

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        n = len(columns["id"])
        self._prompts = columns.get("prompt") or [None] * n
        self._messages = columns.get("messages") or [None] * n

    def __len__(self) -> int:
        return len(self._prompts)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        return _joined([self._prompts[at], *(_said(m) for m in self._messages[at] or () if not _is_system(m))])

    def context(self, at: int) -> str:
        """The system prompt of a request."""
        return _joined([_said(m) for m in self._messages[at] or () if _is_system(m)])


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _said(message: Any) -> Any:
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, list):
        return " ".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return content


def _joined(parts: Iterable[Any]) -> str:
    return "\n".join(str(part) for part in parts if part)
