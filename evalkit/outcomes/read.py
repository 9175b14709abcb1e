"""Read outcomes: one row per item, tier and sample, aligned with the items and tiers of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.errors import Fault
from evalkit.outcomes.align import Unknown, damaged_ids, item_positions, missing_list, tier_positions
from evalkit.outcomes.columns import MOST, NUMBERS, OUTCOME_SCHEMA
from evalkit.outcomes.errors_seen import errors_seen, read_errors
from evalkit.outcomes.layout import rank, slots
from evalkit.outcomes.rules import CONTRADICTION, SILENT, decide, unanswered
from evalkit.outcomes.status import ABSENT, ANSWERED, STATUSES, status_code
from evalkit.outcomes.table import Outcomes, Replies
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.fingerprint import Fingerprint
from evalkit.tabular.ids import is_rounded, read_ids, repeated
from evalkit.tabular.names import nfc, quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import resolve
from evalkit.tabular.table import TextColumn

__all__ = ["read_outcomes"]

Missing = Literal["error", "unanswered"]

_MANY_CELLS = 20_000_000


def read_outcomes(
    source: str | Path,
    *,
    ids: Sequence[str] | None,
    tiers: Sequence[str],
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    pass_at: float = 1.0,
    missing: Missing = "error",
    unknown: Unknown = "error",
    left_out: Sequence[str] = (),
    noun: str = "tier",
) -> Outcomes:
    """Read the outcomes of `ids` (the labelled items, in their order) on `tiers` from CSV, JSONL or Parquet.

    Without `ids`, the items are those of the file, in the order in which they first occur.

    A row has `id`, `tier` (or `arm`) and at least one of `status`, `passed` and `score` (`rules.decide`); `sample`
    numbers the samples of an item. Without a row for an item and tier: an input error that lists them, unless
    `missing="unanswered"`. Rows of ids or tiers that the study does not have: an input error, unless
    `unknown="notice"` leaves them out and says so; rows of ids `left_out` are not used. A tier without any row is
    an error in every case. Faults call a candidate `noun`, in a ladder "arm".

    Raises `InputError` with every fault of the file.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    names = resolve(table, OUTCOME_SCHEMA, columns, faults)
    if {"id", "tier"} - names.keys():
        faults.raise_if_any()
    if not {"status", "passed", "score"} & names.keys():
        faults.add(
            Fault(
                "there is no column that says whether a reply was right: status, passed or score",
                "name it: columns: {passed: ...}",
                file=table.file,
            )
        )
        faults.raise_all()
    items = None if ids is None else tuple(ids)
    reader = _Reader(Fields(table, names, faults), items, tuple(tiers), noun)
    return reader.read(pass_at, missing, unknown, left_out)


def _model_codes(
    model: pa.Array | None,
    models: tuple[tuple[str, ...], ...],
    at: npt.NDArray[np.int64],
    used: npt.NDArray[np.bool_],
    shape: tuple[int, int, int],
) -> npt.NDArray[np.int16]:
    """(N, K, S) position of each row's model in its tier's `models`; -1 where there is none."""
    codes = np.full(shape, -1, dtype=np.int16)
    if model is None:
        return codes
    rows = np.flatnonzero(used)
    tier = (at // shape[2]) % shape[1]
    for k, names in enumerate(models):
        mine = tier == k
        if names:
            place = pc.index_in(model.take(pa.array(rows[mine])), pa.array(names, pa.large_string()))
            codes.reshape(-1)[at[mine]] = place.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int16)
    return codes


class _Reader:
    """The steps of reading one outcome file; rows are R, items N, tiers K, samples S."""

    def __init__(self, fields: Fields, ids: tuple[str, ...] | None, tiers: tuple[str, ...], noun: str) -> None:
        self.fields = fields
        self.tiers = tiers
        self.noun = noun
        self.ids = read_ids(fields)
        self.names = tuple(pc.unique(self.ids.drop_null()).to_pylist()) if ids is None else ids
        self.known = normalised(pa.array(self.names, pa.large_string()))

    def read(self, pass_at: float, missing: Missing, unknown: Unknown, left_out: Sequence[str]) -> Outcomes:
        fields, faults = self.fields, self.fields.faults
        item = item_positions(fields, self.ids, self.known, self.names, unknown, "row", left_out)
        tier = tier_positions(fields, self.tiers, unknown, self.noun)
        sample = self._samples()
        given, passed, score = self._verdicts()
        errors = read_errors(fields)
        errored = None if errors is None else np.asarray(errors.is_valid().to_numpy(zero_copy_only=False))
        status, wrong = decide(given, passed, score, pass_at, errored)
        self._rule_faults(given, wrong)
        numbers = {
            name: fields.numbers(name, minimum=0, maximum=MOST[name], says=why)
            for name, why in NUMBERS.items()
            if fields.has(name)
        }
        used = (item >= 0) & (tier >= 0)
        slot, n_samples = slots(item, sample, used)
        self._fits(len(item), n_samples)
        place = np.where(used, (item * len(self.tiers) + tier) * n_samples + slot, -1)
        self._repeated(place, sample)
        self._missing(item, tier, used, missing)
        faults.raise_if_any()
        return self._assemble(place, used, n_samples, status, given, passed, score, sample, numbers, errors)

    def _samples(self) -> npt.NDArray[np.int64]:
        fields = self.fields
        n = fields.table.n_rows
        if not fields.has("sample"):
            return np.zeros(n, dtype=np.int64)
        raw = fields.numbers(
            "sample", minimum=0, maximum=2**53, blank="number the samples of an item 0, 1, 2, ..."
        )
        whole = np.isnan(raw) | (raw == np.floor(raw))
        fields.each(
            ~whole,
            lambda i: fields.fault(
                i, "sample", f"{raw[i]:g} is not a whole number", "number the samples 0, 1, 2, ..."
            ),
        )
        return np.where(np.isnan(raw), 0, np.floor(raw)).astype(np.int64)

    def _fits(self, rows: int, n_samples: int) -> None:
        """Refuse a file in which a few items have so many samples that the arrays would be almost empty."""
        cells = len(self.names) * len(self.tiers) * n_samples
        if cells > max(50 * rows, _MANY_CELLS):
            self.fields.faults.stop(
                Fault(
                    f"one item has {n_samples:,} samples and most have far fewer",
                    "check that the column numbers the samples of one item",
                    file=self.fields.table.file,
                    field=self.fields.name("sample"),
                )
            )

    def _verdicts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        fields = self.fields
        n = fields.table.n_rows
        status = (
            fields.codes("status", [s.value for s in STATUSES], "status")
            if fields.has("status")
            else np.full(n, ABSENT, dtype=np.int64)
        )
        passed = fields.truths("passed") if fields.has("passed") else np.full(n, -1, dtype=np.int8)
        score = (
            fields.numbers("score", minimum=0, maximum=1, says="a score lies between wrong and right")
            if fields.has("score")
            else np.full(n, np.nan)
        )
        return status, passed, score

    def _rule_faults(self, given: npt.NDArray[np.int64], wrong: npt.NDArray[np.int8]) -> None:
        fields = self.fields
        names = [f for f in ("status", "passed", "score") if fields.has(f)]
        if any(f.field in {fields.name(n) for n in names} for f in fields.faults):
            return

        def contradiction(i: int) -> Fault:
            says = f"passed is {fields.raw('passed', i)}" if fields.has("passed") else ""
            if not says or str(fields.raw("passed", i)) in {"", "None"}:
                says = f"the score {fields.raw('score', i)} passes"
            return fields.fault(
                i,
                "status",
                f"{STATUSES[given[i]].value} and {says}: that cannot both be",
                "correct the one that is wrong",
            )

        fields.each(wrong == CONTRADICTION, contradiction)
        fields.each(
            wrong == SILENT,
            lambda i: fields.fault(
                i,
                names[0],
                f"the row says nothing of the outcome ({', '.join(fields.name(n) for n in names)} blank)",
                "write a status, such as error where there was no reply",
            ),
        )

    def _repeated(self, place: npt.NDArray[np.int64], sample: npt.NDArray[np.int64]) -> None:
        fields = self.fields
        pairs = [(int(g[0]), int(i)) for g in repeated(place) for i in g[1:]]
        pairs = [(a, b) for a, b in pairs if not is_rounded(str(self.ids[b].as_py()))]
        numbered = fields.has("sample")

        def make(k: int) -> Fault:
            first, i = pairs[k]
            which = f", sample {sample[i]}" if numbered else ""
            return fields.fault(
                i,
                "id",
                f"{quoted(self.ids[i].as_py())}, {self.noun} {quoted(fields.raw('tier', i))}{which} also "
                f"stands on {fields.table.place(first)}",
                "keep one of them" + ("" if numbered else ", or number repeats in a column sample"),
            )

        fields.faults.each(range(len(pairs)), make)

    def _missing(
        self,
        item: npt.NDArray[np.int64],
        tier: npt.NDArray[np.int64],
        used: npt.NDArray[np.bool_],
        missing: Missing,
    ) -> None:
        fields = self.fields
        n, k = len(self.names), len(self.tiers)
        have = np.zeros((n, k), dtype=bool)
        have[item[used], tier[used]] = True
        spoilt = damaged_ids(fields)
        if spoilt is None:
            return
        if spoilt:
            have[[i for i, name in enumerate(self.names) if nfc(name) in spoilt]] = True
        empty = np.flatnonzero(~have.any(axis=0))
        for t in empty:
            fields.faults.add(
                Fault(
                    f"the {self.noun} {quoted(self.tiers[int(t)])} has no row of a labelled item",
                    f"record its outcomes, or leave the {self.noun} out of the study",
                    file=fields.table.file,
                    field=fields.name("tier"),
                )
            )
        lack = ~have
        lack[:, empty] = False
        if not lack.any():
            return
        at = np.flatnonzero(lack.any(axis=1))
        notes = [", ".join(self.tiers[int(t)] for t in np.flatnonzero(lack[i])) for i in at[:20]]
        count = int(lack.sum())
        pairs = f"{count:,} of {n * k:,} pairs of item and {self.noun}"
        text = f"{pairs} have no row: {missing_list(self.names, at, notes)}"
        if missing == "unanswered":
            fields.table.notices.append(f"{fields.table.file}: {text}; they count as unanswered")
            return
        fields.faults.add(
            Fault(
                text,
                "record them, or write missing_outcomes: unanswered in the study to count them as unanswered",
                file=fields.table.file,
            )
        )

    def _assemble(
        self,
        place: npt.NDArray[np.int64],
        used: npt.NDArray[np.bool_],
        n_samples: int,
        status: npt.NDArray[np.int8],
        given: npt.NDArray[np.int64],
        passed: npt.NDArray[np.int8],
        score: npt.NDArray[np.float64],
        sample: npt.NDArray[np.int64],
        numbers: Mapping[str, npt.NDArray[np.float64]],
        errors: pa.Array | None,
    ) -> Outcomes:
        fields = self.fields
        shape = (len(self.names), len(self.tiers), n_samples)
        at = place[used]

        def spread(values: npt.NDArray[Any], blank: Any) -> npt.NDArray[Any]:
            grid = np.full(shape, blank, dtype=values.dtype)
            grid.reshape(-1)[at] = values[used]
            return grid

        grid = spread(status, ABSENT)
        scored = np.where(unanswered(status), np.nan, score)
        unknown = np.broadcast_to(np.float64(np.nan), shape)
        figures = {name: spread(numbers[name], np.nan) if name in numbers else unknown for name in NUMBERS}
        model = normalised(fields.texts("model")) if fields.has("model") else None
        reply = fields.texts("reply") if fields.has("reply") else None
        replies = None
        if reply is not None:
            replies = Replies(TextColumn(reply), spread(np.arange(len(place), dtype=np.int64), -1))
        fields.faults.raise_if_any()
        samples = (grid >= 0).sum(axis=2)
        self._uneven(samples)
        return Outcomes(
            file=fields.table.file,
            ids=self.names,
            tiers=self.tiers,
            status=grid,
            passed=grid == status_code(STATUSES[0]),
            answered=np.isin(grid, [status_code(s) for s in ANSWERED]),
            score=spread(scored, np.nan) if fields.has("score") else unknown,
            **figures,
            samples=samples,
            model=(models := self._models(model, at, used, n_samples)),
            model_code=_model_codes(model, models, at, used, shape),
            errors=errors_seen(status, used, errors),
            reply=replies,
            fingerprint=self._fingerprint(given, passed, score, sample, numbers, model, reply, errors),
            notices=tuple(fields.table.notices),
        )

    def _uneven(self, samples: npt.NDArray[np.int64]) -> None:
        most = int(samples.max(initial=0))
        fewer = int(((samples > 0) & (samples < most)).sum())
        if fewer:
            pairs = f"{fewer:,} of {samples.size:,} pairs of item and {self.noun}"
            self.fields.table.notices.append(f"{self.fields.table.file}: {pairs} have fewer than {most} samples")

    def _models(
        self, model: pa.Array | None, at: npt.NDArray[np.int64], used: npt.NDArray[np.bool_], n_samples: int
    ) -> tuple[tuple[str, ...], ...]:
        if model is None:
            return tuple(() for _ in self.tiers)
        tier = (at // n_samples) % len(self.tiers)
        rows = np.flatnonzero(used)
        found = []
        for k in range(len(self.tiers)):
            names = pc.unique(model.take(pa.array(rows[tier == k]))).to_pylist()
            found.append(tuple(sorted(name for name in names if name is not None)))
        return tuple(found)

    def _fingerprint(
        self,
        given: npt.NDArray[np.int64],
        passed: npt.NDArray[np.int8],
        score: npt.NDArray[np.float64],
        sample: npt.NDArray[np.int64],
        numbers: Mapping[str, npt.NDArray[np.float64]],
        model: pa.Array | None,
        reply: pa.Array | None,
        errors: pa.Array | None,
    ) -> str:
        fields = self.fields
        tier = normalised(fields.texts("tier"))
        order = np.lexsort((sample, rank(tier), rank(self.ids)))
        mark = Fingerprint("outcomes", order)
        mark.texts("id", self.ids)
        mark.texts("tier", tier)
        mark.numbers("sample", sample)
        mark.classes("status", given, [s.value for s in STATUSES])
        mark.numbers("passed", passed)
        mark.numbers("score", score)
        for name in NUMBERS:
            if name in numbers and not np.isnan(numbers[name]).all():
                mark.numbers(name, numbers[name])
        for name, texts in (("model", model), ("reply", reply), ("error", errors)):
            if texts is not None:
                mark.texts(name, texts)
        return mark.hexdigest()
