"""Grades that people gave, from a file: as the grade itself, or to measure a judge by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalkit.errors import Fault
from evalkit.tabular.faults import Faults
from evalkit.tabular.fields import Fields
from evalkit.tabular.ids import SimilarIds, read_ids
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

    Columns: `id`, `tier` (or `candidate`), `sample`, `passed` or `score`, `annotator`. One row a reply and
    annotator; `tier` may be left out where there is one candidate, `sample` is 0 and the annotator nameless unless
    written. Raises `InputError` with every fault: unknown ids and candidates (where `ids`, `candidates` are
    given), blank grades, scores outside 0..1, one annotator who graded a reply twice.
    """
    faults = Faults(str(source))
    id_column = (columns or {}).get("id", "id")
    table = read_table(source, encoding=encoding, faults=faults, id_column=id_column)
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
    row_ids = read_ids(fields).to_pylist()
    scores = _scores(fields, kind)
    tiers = fields.texts("tier").to_pylist() if "tier" in names else [only] * table.n_rows
    samples = fields.numbers("sample", minimum=0, maximum=10_000) if "sample" in names else None
    who = fields.texts("annotator", loose=True).to_pylist() if "annotator" in names else [None] * table.n_rows
    similar = SimilarIds(sorted(ids)) if ids is not None else None
    found: dict[Key, dict[str, float]] = defaultdict(dict)
    for i, name in enumerate(row_ids):
        if name is None:
            continue
        tier = tiers[i]
        if similar is not None and ids is not None and name not in ids:
            what = f'there is no item "{name}"{similar.hint(name)}'
            faults.add(fields.fault(i, "id", what, "use an id of the labels"), "id")
            continue
        if tier is None:
            faults.add(fields.fault(i, "tier", "is blank", "write whose reply was graded"), "tier")
            continue
        if candidates is not None and tier not in candidates:
            fix = f"write one of {', '.join(sorted(candidates))}"
            faults.add(fields.fault(i, "tier", f'"{tier}" is no candidate', fix), "tier")
            continue
        sample = 0.0 if samples is None or samples[i] != samples[i] else float(samples[i])
        if sample != int(sample):
            faults.add(fields.fault(i, "sample", f"{sample:g} is no whole number", "write 0, 1, 2, ..."), "sample")
            continue
        key, annotator = (name, tier, int(sample)), who[i] or ""
        if annotator in found[key]:
            what = f"{annotator or 'an annotator without a name'} graded this reply already"
            faults.add(fields.fault(i, "id", what, "keep one row, or name the annotators"), "twice")
            continue
        if scores[i] == scores[i]:
            found[key][annotator] = float(scores[i])
    faults.raise_if_any()
    graded = {key: dict(sorted(given.items())) for key, given in sorted(found.items()) if given}
    return HumanGrades(table.file, graded, _fingerprint(graded), tuple(table.notices))


def _scores(fields: Fields, kind: str) -> list[float]:
    """The grades as scores, NaN where a fault was noted."""
    if kind == "score":
        return [float(v) for v in fields.numbers("score", minimum=0, maximum=1, blank="write a score from 0 to 1")]
    truths = fields.truths("passed")
    blank = [i for i in range(len(truths)) if truths[i] < 0 and fields.raw("passed", i) in {None, ""}]
    fields.faults.each(blank, lambda i: fields.fault(i, "passed", "is blank", "write true or false"))
    return [float("nan") if code < 0 else float(code) for code in truths]


def _fingerprint(graded: Mapping[Key, Mapping[str, float]]) -> str:
    import hashlib
    import json

    content = [[*key, given] for key, given in graded.items()]
    text = json.dumps(["evalkit.human-grades/1", content], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
