"""Import logs of reasoning models: one row a run of a task, with the effort or thinking budget asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault, InputError
from evalkit.outcomes.importers.wide import need_columns
from evalkit.outcomes.status import Status
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.read import read_table

__all__ = [
    "EffortColumns",
    "EffortLog",
    "LadderTable",
    "PublishedRate",
    "arm_order",
    "published_rates",
    "read_effort",
]

EFFORT_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
PLAIN = "plain"
"""The arm of rows that name neither an effort nor a budget."""

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_NUMBERS = ("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "task_s")
_RIGHT = {"1", "1.0", "true", "True", "TRUE"}
_WRONG = {"0", "0.0", "false", "False", "FALSE"}


@dataclass(frozen=True)
class EffortColumns:
    """The columns of a log; None: the log has no such column. `task` names a benchmark or set of tasks."""

    id: str = "sample_id"
    mark: str = "correct"
    model: str = "model"
    task: str | None = "task"
    sample: str | None = "epoch"
    run: str | None = "run_id"
    effort: str | None = "effort"
    budget: str | None = "budget_tokens"
    input_tokens: str | None = "input_tokens"
    output_tokens: str | None = "output_tokens"
    reasoning_tokens: str | None = "reasoning_tokens"
    cache_read_tokens: str | None = "cache_read_tokens"
    task_s: str | None = "total_time_s"


@dataclass(frozen=True)
class LadderTable:
    """One ladder as outcome columns: a model on one set of tasks at each of its efforts or budgets."""

    task: str | None
    model: str
    arms: tuple[str, ...]
    columns: Mapping[str, list[Any]]
    items: tuple[str, ...]


@dataclass(frozen=True)
class EffortLog:
    """The rows of a log as arrays; codes point into the tuples of names. mark: 1 right, 0 wrong, -1 ungraded."""

    file: str
    tasks: tuple[str, ...]
    models: tuple[str, ...]
    arms: tuple[str, ...]
    ids: pa.Array
    task: Codes
    model: Codes
    arm: Codes
    run: Codes
    epoch: Codes
    mark: npt.NDArray[np.int8]
    numbers: Mapping[str, Floats]
    notices: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.task)

    def ladders(self) -> list[tuple[int, int, list[int]]]:
        """(task, model, arms in budget order) of every set of tasks and model, in the order of the file."""
        k, m = len(self.models), len(self.arms)
        keys, first = np.unique((self.task * k + self.model) * m + self.arm, return_index=True)
        found: dict[tuple[int, int], list[int]] = {}
        for key in keys[np.argsort(first)].tolist():
            found.setdefault((key // m // k, key // m % k), []).append(key % m)
        return [(t, j, sorted(a, key=lambda i: arm_order(self.arms[i]))) for (t, j), a in found.items()]

    def rows_of(self, task: int, model: int) -> Codes:
        """Positions of the rows of one ladder."""
        return np.flatnonzero((self.task == task) & (self.model == model))

    def table(self, task: str | None, model: str | None, arms: Sequence[str] = ()) -> LadderTable:
        """The outcome columns of one ladder; `arms` chooses and orders them. InputError for what is not there.

        Token counts stay as the log has them; a study settles which are inside which. Samples are numbered over
        the epochs and runs of an arm. An ungraded row is `error`: unanswered, a failure in the lower pass rate.
        """
        t = _one("task", task, self.tasks, self.file)
        j = _one("model", model, self.models, self.file)
        rows = self.rows_of(t, j)
        if not len(rows):
            what = f"has no row of {quoted(self.models[j])} on {quoted(self.tasks[t])}"
            raise InputError(Fault(what, "name another model or task", file=self.file))
        have = sorted({int(a) for a in self.arm[rows]}, key=lambda i: arm_order(self.arms[i]))
        wanted = [_one("arm", name, self.arms, self.file) for name in arms] if arms else have
        for a in wanted:
            if a not in have:
                known = ", ".join(self.arms[i] for i in have)
                what = f"has no row of arm {quoted(self.arms[a])} there"
                raise InputError(Fault(what, f"the arms are {known}", file=self.file, field="--arm"))
        rows = rows[np.isin(self.arm[rows], wanted)]
        names = self.ids.take(pa.array(rows)).to_pylist()
        columns: dict[str, list[Any]] = {
            "id": names,
            "arm": [self.arms[a] for a in self.arm[rows]],
            "model": [self.models[j]] * len(rows),
            "sample": self._samples(rows).tolist(),
            "status": [_STATUS[int(mark)] for mark in self.mark[rows]],
        }
        for name, values in self.numbers.items():
            part = values[rows]
            if not np.isnan(part).all():
                columns[name] = [None if np.isnan(v) else int(v) if name != "task_s" else float(v) for v in part]
        return LadderTable(
            self.tasks[t] or None, self.models[j], tuple(self.arms[a] for a in wanted), columns,
            tuple(dict.fromkeys(names)),
        )  # fmt: skip

    def _samples(self, rows: Codes) -> Codes:
        """Number the rows of each id and arm 0, 1, ... by run and epoch. One row that stands twice is a fault."""
        ids = np.asarray(pc.dictionary_encode(self.ids.take(pa.array(rows))).indices)
        order = np.lexsort((self.epoch[rows], self.run[rows], self.arm[rows], ids))
        key = np.stack([ids, self.arm[rows], self.run[rows], self.epoch[rows]])[:, order]
        same = np.flatnonzero((key[:, 1:] == key[:, :-1]).all(axis=0))
        if len(same):
            i = int(rows[order[same[0] + 1]])
            what = (
                f"{quoted(self.ids[i].as_py())}, arm {quoted(self.arms[self.arm[i]])}, stands twice in one epoch"
            )
            raise InputError(Fault(what, "keep one of the rows", file=self.file, id=self.ids[i].as_py()))
        start = np.concatenate([[True], (key[:2, 1:] != key[:2, :-1]).any(axis=0)])
        place = np.arange(len(order))
        within = place - np.maximum.accumulate(np.where(start, place, 0))
        out = np.empty(len(rows), dtype=np.int64)
        out[order] = within
        return out


_STATUS = {1: Status.OK.value, 0: Status.WRONG.value, -1: Status.ERROR.value}


def arm_order(name: str) -> tuple[int, float, str]:
    """The budget order of arm names: plain, then budgets by size, then efforts."""
    if name == PLAIN:
        return 0, 0.0, name
    if name.startswith("budget-"):
        return 1, float(name.removeprefix("budget-")), name
    return 2, float(EFFORT_ORDER.index(name)) if name in EFFORT_ORDER else 99.0, name


def read_effort(
    source: str | Path, columns: EffortColumns | None = None, *, encoding: str | None = None
) -> EffortLog:
    """Read a log from CSV, JSONL or Parquet (text may be gzipped).

    Columns of `columns` that are named by default and missing are taken for absent, except id, mark and model.
    Marks are 1, 0, true or false; a blank one is an ungraded run. Counts below 0 are unknown and counted. Raises
    `InputError` with every fault of the file.
    """
    wanted = columns or EffortColumns()
    faults = Faults(str(source))
    table = read_table(source, encoding=encoding, faults=faults, id_column=nfc(wanted.id))
    names = {f: nfc(c) for f, c in vars(wanted).items() if c is not None}
    default = vars(EffortColumns())
    present = {f: c for f, c in names.items() if c in table.columns}
    must = [c for f, c in names.items() if f in {"id", "mark", "model"} or default[f] != c]
    need_columns(table, must, faults)
    if "effort" not in present and "budget" not in present:
        what = "there is neither a column of efforts nor one of budgets"
        faults.add(Fault(what, "name it with --effort or --budget", file=table.file))
    faults.raise_if_any()
    fields = Fields(table, present, faults)
    ids = normalised(fields.texts("id"))
    fields.each(_null(ids), lambda i: fields.fault(i, "id", "is blank", "write the id of the task"))
    mark = _marks(fields)
    arm, arm_names = _arms(fields)
    model, models = _coded(fields, "model")
    task, tasks = _coded(fields, "task")
    run, _ = _coded(fields, "run")
    epoch = np.zeros(table.n_rows, dtype=np.int64)
    if fields.has("sample"):
        epoch = np.nan_to_num(fields.numbers("sample", minimum=0)).astype(np.int64)
    notices = list(table.notices)
    numbers = {}
    for name in _NUMBERS:
        if fields.has(name):
            numbers[name] = _number(fields, name, notices)
    faults.raise_if_any()
    ungraded = int((mark < 0).sum())
    if ungraded:
        notices.append(
            f"{table.file}: {ungraded:,} of {table.n_rows:,} rows are ungraded: they count as unanswered, which "
            "is a failure in the pass rate that gates take"
        )
    return EffortLog(
        table.file, tasks, models, arm_names, ids, task, model, arm, run, epoch, mark, numbers, tuple(notices)
    )


def _null(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=bool)


def _marks(fields: Fields) -> npt.NDArray[np.int8]:
    encoded = pc.dictionary_encode(fields.texts("mark", loose=True))
    words = [str(word) for word in encoded.dictionary.to_pylist()]
    code = np.array([1 if w.strip() in _RIGHT else 0 if w.strip() in _WRONG else -2 for w in words] + [-1])
    at = np.asarray(pc.fill_null(encoded.indices, len(words)).to_numpy(zero_copy_only=False), dtype=np.int64)
    mark = code[at].astype(np.int8)

    def odd(i: int) -> Fault:
        return fields.fault(
            i, "mark", f"{quoted(words[at[i]])} is no mark", "write 1, 0, true, false, or leave blank"
        )

    fields.each(mark == -2, odd)
    return mark


def _coded(fields: Fields, name: str) -> tuple[Codes, tuple[str, ...]]:
    """(codes, names) of a text column; one blank name where the log has no such column."""
    if not fields.has(name):
        return np.zeros(fields.table.n_rows, dtype=np.int64), ("",)
    encoded = pc.dictionary_encode(pc.fill_null(normalised(fields.texts(name, loose=True)), ""))
    return np.asarray(encoded.indices, dtype=np.int64), tuple(str(n) for n in encoded.dictionary.to_pylist())


def _arms(fields: Fields) -> tuple[Codes, tuple[str, ...]]:
    effort, efforts = _coded(fields, "effort")
    budget = np.full(fields.table.n_rows, np.nan)
    if fields.has("budget"):
        budget = fields.numbers("budget", minimum=0, says="a budget is never negative")
    size = np.where(np.isnan(budget), -1, budget).astype(np.int64)
    pairs, code = np.unique(np.stack([effort, size], axis=1), axis=0, return_inverse=True)
    names = []
    for e, b in pairs.tolist():
        parts = [efforts[e]] if efforts[e] else []
        parts += [f"budget-{b}"] if b >= 0 else []
        names.append("+".join(parts) or PLAIN)
    return np.asarray(code, dtype=np.int64).reshape(-1), tuple(names)


def _number(fields: Fields, name: str, notices: list[str]) -> Floats:
    values = fields.numbers(name)
    below = values < 0
    if below.any():
        i = int(np.flatnonzero(below)[0])
        notices.append(
            f"{fields.table.file}: {int(below.sum()):,} rows have {fields.name(name)} below 0 (first: "
            f"{fields.table.place(i)}, {values[i]:g}): taken as unknown"
        )
    return np.where(below, np.nan, values)


def _one(what: str, name: str | None, known: Sequence[str], file: str) -> int:
    """The position of `name`; of the only one there is where none is given."""
    shown = [k or "(none)" for k in known]
    if name is None:
        if len(known) == 1:
            return 0
        text = f"holds {len(known):,} {what}s: {listed(shown, 30)}"
        raise InputError(Fault(text, f"choose one with --{what}", file=file, field=f"--{what}"))
    if nfc(name) in known:
        return list(known).index(nfc(name))
    text = f"there is no {what} {quoted(name)}{did_you_mean(name, list(known))}"
    raise InputError(Fault(text, f"the {what}s are {listed(shown, 30)}", file=file, field=f"--{what}"))


@dataclass(frozen=True, slots=True)
class PublishedRate:
    """A published pass rate that is not right / all: what it leaves out of the denominator."""

    run: str
    task: str
    model: str
    published: float
    counted: float
    rows: int

    def sentence(self) -> str:
        """Names the run, both rates, and the denominator that the published one implies."""
        right = round(self.counted * self.rows)
        implied = round(right / self.published) if self.published else 0
        return (
            f"run {self.run} ({self.model} on {self.task}): published {100 * self.published:.2f} % is {right:,} "
            f"of {implied:,}; of all {self.rows:,} it is {100 * self.counted:.2f} %: {self.rows - implied:,} "
            f"failed run{' was' if self.rows - implied == 1 else 's were'} dropped from the denominator"
        )


def published_rates(
    source: str | Path, *, tolerance: float = 0.002, encoding: str | None = None
) -> tuple[list[PublishedRate], int]:
    """(runs whose published rate differs from right / all by more than `tolerance`, runs in all) of a file.

    Columns: run_id, task, model, published_accuracy, acc_failures_as_wrong, n_rows. Raises `InputError`.
    """
    needed = ("run_id", "task", "model", "published_accuracy", "acc_failures_as_wrong", "n_rows")
    faults = Faults(str(source))
    table = read_table(source, encoding=encoding, faults=faults, id_column="run_id")
    need_columns(table, needed, faults)
    faults.raise_if_any()
    fields = Fields(table, {name: name for name in needed}, faults)
    published, counted = (fields.numbers(name, minimum=0, maximum=1) for name in needed[3:5])
    rows = fields.numbers("n_rows", minimum=0)
    texts = [fields.texts(name, loose=True).to_pylist() for name in needed[:3]]
    faults.raise_if_any()
    known = ~(np.isnan(published) | np.isnan(counted) | np.isnan(rows))
    differs = np.flatnonzero(known & (np.abs(published - counted) > tolerance))
    found = [
        PublishedRate(
            str(texts[0][i]),
            str(texts[1][i]),
            str(texts[2][i]),
            float(published[i]),
            float(counted[i]),
            int(rows[i]),
        )
        for i in differs.tolist()
    ]
    return found, table.n_rows
