"""Grades that people gave, from a file: as the grade itself, or to measure a judge by."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields, normalised
from evalkit.tabular.ids import SimilarIds, read_ids
from evalkit.tabular.names import quoted
from evalkit.tabular.read import read_table
from evalkit.tabular.resolve import Schema, resolve

__all__ = ["HUMAN_SCHEMA", "HumanGrades", "Key", "read_human_grades"]

HUMAN_SCHEMA = Schema(
    required=("id",), optional=("tier", "sample", "passed", "score", "annotator"), aliases={"tier": "candidate"}
)

Key = tuple[str, str, int]
"""(id of the item, candidate, sample) of a reply."""


@dataclass(frozen=True)
class HumanGrades:
    """Scores 0..1 by reply and annotator. `fingerprint` is the SHA-256 of the records, in any file format."""

    file: str
    by_reply: Mapping[Key, Mapping[str, float]]
    fingerprint: str = ""
    notices: tuple[str, ...] = field(default_factory=tuple)

    def grade_of(self, item: str, candidate: str, sample: int = 0, *, pass_at: float = 1.0) -> float | None:
        """The score of a reply: the median of its annotators.

        None where nobody graded it, or where as many of them pass it as fail it at `pass_at`.
        """
        given = sorted(self.by_reply.get((item, candidate, sample), {}).values())
        if not given:
            return None
        low, high = given[(len(given) - 1) // 2], given[len(given) // 2]
        return (low + high) / 2 if (low >= pass_at) == (high >= pass_at) else None


def read_human_grades(
    source: str | Path,
    *,
    ids: Collection[str] | None = None,
    candidates: Collection[str] | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> HumanGrades:
    """Read grades from CSV, JSONL or Parquet.

    Columns: `id`, `tier` (or `arm`, `candidate`), `sample`, `passed` or `score`, `annotator`. One row a reply and
    annotator; `tier` may be left out where there is one candidate, `sample` is 0 and the annotator nameless unless
    written. Raises `InputError` with every fault: unknown ids and candidates (where `ids`, `candidates` are
    given), blank grades, scores outside 0..1, one annotator who graded a reply twice.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
    if "arm" in table.columns and not {"tier", "candidate"} & (table.columns.keys() | (columns or {}).keys()):
        columns = {**(columns or {}), "tier": "arm"}
    names = resolve(table, HUMAN_SCHEMA, columns, faults)
    if "id" not in names:
        faults.raise_all()
    kind = "score" if "score" in names else "passed"
    if kind not in names:
        fix = "add a column passed (true or false) or score (0 to 1)"
        faults.stop(Fault("there is no column of grades", fix, file=table.file))
    only = next(iter(candidates)) if candidates is not None and len(candidates) == 1 else None
    if "tier" not in names and only is None:
        fix = "add a column tier with the name of the candidate that replied"
        faults.stop(Fault("there is no column that says whose reply was graded", fix, file=table.file))
    fields = Fields(table, names, faults)
    known = {"id": ids, "tier": candidates}
    found = _by_reply(fields, kind, only, {name: tuple(some) for name, some in known.items() if some is not None})
    faults.raise_if_any()
    graded = {key: dict(sorted(given.items())) for key, given in sorted(found.items())}
    return HumanGrades(table.file, graded, _fingerprint(graded), tuple(table.notices))


def _by_reply(
    fields: Fields, kind: str, only: str | None, known: Mapping[str, tuple[str, ...]]
) -> dict[Key, dict[str, float]]:
    """Scores by reply and annotator; what is wrong is noted and left out."""
    row_ids = read_ids(fields).to_pylist()
    scores = _scores(fields, kind)
    rows = range(fields.table.n_rows)
    tiers = normalised(fields.texts("tier")).to_pylist() if fields.has("tier") else [only for _ in rows]
    samples = _samples(fields) if fields.has("sample") else [0 for _ in rows]
    people = fields.texts("annotator", loose=True).to_pylist() if fields.has("annotator") else ["" for _ in rows]
    among = {name: frozenset(some) for name, some in known.items()}
    similar = SimilarIds(known.get("id", ()))
    found: dict[Key, dict[str, float]] = defaultdict(dict)
    for i, name, tier, sample, person in zip(rows, row_ids, tiers, samples, people, strict=True):
        if name is not None and "id" in among and name not in among["id"]:
            what = f"there is no item {quoted(name)}{similar.hint(name)}"
            fields.faults.add(fields.fault(i, "id", what, "use an id of the labels"), "id")
        if tier is None:
            fields.faults.add(fields.fault(i, "tier", "is blank", "write whose reply was graded"), "tier")
        elif "tier" in among and tier not in among["tier"]:
            fix = f"write one of {', '.join(known['tier'])}"
            fields.faults.add(fields.fault(i, "tier", f"{quoted(tier)} is no candidate", fix), "tier")
        if name is None or tier is None or sample is None or math.isnan(scores[i]):
            continue
        given, annotator = found[name, tier, sample], person or ""
        if annotator in given:
            who = quoted(annotator) if annotator else "an annotator without a name"
            fix = "keep one row, or name the annotators"
            fields.faults.add(fields.fault(i, "id", f"{who} graded this reply already", fix), "twice")
        given[annotator] = scores[i]
    return found


def _samples(fields: Fields) -> list[int | None]:
    """Sample numbers, 0 where blank, None where a fault was noted."""
    values = fields.numbers("sample", minimum=0, maximum=10_000)
    odd = [i for i, value in enumerate(values) if not math.isnan(value) and value != int(value)]
    fields.faults.each(
        odd, lambda i: fields.fault(i, "sample", f"{values[i]:g} is no whole number", "write 0, 1, 2")
    )
    return [0 if math.isnan(value) else int(value) if value == int(value) else None for value in values]


def _scores(fields: Fields, kind: str) -> list[float]:
    """The grades as scores, NaN where a fault was noted."""
    if kind == "score":
        return [float(v) for v in fields.numbers("score", minimum=0, maximum=1, blank="write a score from 0 to 1")]
    truths = fields.truths("passed")
    blank = [i for i, code in enumerate(truths) if code < 0 and _is_blank(fields.raw("passed", i))]
    fields.faults.each(blank, lambda i: fields.fault(i, "passed", "is blank", "write true or false"))
    return [float("nan") if code < 0 else float(code) for code in truths]


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _fingerprint(graded: Mapping[Key, Mapping[str, float]]) -> str:
    import hashlib
    import json

    content = [[*key, given] for key, given in graded.items()]
    text = json.dumps(["evalkit.human-grades/1", content], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
