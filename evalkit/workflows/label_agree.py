"""`evalkit labels agree`: how far annotators agree, where they do not, and who leans one way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from evalkit.errors import Fault, InputError, cell, visible
from evalkit.labels.labelset import LabelSet
from evalkit.labels.ratings import Ratings, ratings_of_column, ratings_of_files
from evalkit.labels.read import read_labels
from evalkit.statistics.agreement_intervals import Agreement, Estimate, agreement_with_intervals
from evalkit.statistics.direction import Leaning, leanings
from evalkit.workflows.labels import names_in, pairs_in, show, write_summary
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["agree_labels"]

_SHOWN = 20


def agree_labels(
    first: str,
    second: str | None,
    *,
    study: Path | None,
    tiers: str | None,
    risk_classes: str | None,
    columns: Sequence[str],
    encoding: str | None,
    confidence: float,
    replicates: int,
    seed: int,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Read the ratings, print agreement, write it as JSON. Raises `InputError` with every fault."""
    mapping = pairs_in("--column", columns)
    if study is not None:
        from evalkit.study.routing import read_study

        read = read_study(study, files_exist=False)
        names, classes = read.tier_names, read.risk_classes
        mapping = {**read.labels.columns, **mapping}
        encoding = encoding or read.labels.encoding
    elif tiers is not None:
        names = names_in("--tiers", tiers, least=2)
        classes = names_in("--risk-classes", risk_classes) if risk_classes else ()
    else:
        raise InputError(Fault("nothing says the tiers", "give --study, or --tiers (and --risk-classes)"))
    faults = []
    if not 0.5 < confidence < 1:
        faults.append(Fault(f"{confidence} is not between 0.5 and 1", "write 0.95", field="--confidence"))
    if not 100 <= replicates <= 100_000:
        faults.append(Fault(f"{replicates} is not from 100 to 100,000", "write 2000", field="--replicates"))
    if faults:
        raise InputError(faults)
    if json_file is not None:
        inputs = [Path(f) for f in (first, second) if f is not None and not f.startswith("hf://")]
        refuse_to_overwrite([study, *inputs], [json_file])

    def labels(file: str, *, whole: bool) -> LabelSet:
        return read_labels(
            file, tiers=names, risk_classes=classes, columns=mapping, encoding=encoding,
            require_required_tier=whole and bool(classes),
        )  # fmt: skip

    if second is None:
        ratings = ratings_of_column(labels(first, whole=False))
    else:
        ratings = ratings_of_files(
            labels(first, whole=True), labels(second, whole=True), _file_names(first, second)
        )
    document = _document(ratings, confidence, replicates, seed)
    if json_file is not None:
        write_summary(json_file, document)
    show([] if quiet else _lines(ratings, document), ratings.notices)


def _file_names(first: str, second: str) -> tuple[str, str]:
    left, right = Path(first).name, Path(second).name
    return (left, right) if left != right else (first, second)


def _document(ratings: Ratings, confidence: float, replicates: int, seed: int) -> dict[str, Any]:
    groups = _groups(ratings)

    def agreement(rows: Any) -> dict[str, Any]:
        found = agreement_with_intervals(
            ratings.values[rows], len(ratings.names), groups=None if groups is None else groups[rows],
            confidence=confidence, replicates=replicates, seed=seed,
        )  # fmt: skip
        return _agreement_json(found)

    by_risk = {
        name: agreement(ratings.risk == r)
        for r, name in enumerate(ratings.risk_classes)
        if (ratings.risk == r).any()
    }
    everything = np.ones(len(ratings.ids), dtype=bool)
    return {
        "schema": "evalkit.labels-agreement/1",
        "annotators": list(ratings.annotators),
        "categories": list(ratings.names),
        "confidence": confidence,
        "replicates": replicates,
        "seed": seed,
        "all": agreement(everything),
        "by_risk": by_risk,
        "leanings": [
            _leaning_json(name, found)
            for name, found in zip(ratings.annotators, leanings(ratings.values, confidence), strict=True)
        ],
        "pairs": _pairs(ratings),
        "disagreements": _disagreements(ratings),
    }


def _groups(ratings: Ratings) -> np.ndarray[Any, Any] | None:
    if ratings.group is None or len(set(ratings.group) - {None}) + ratings.group.count(None) == len(ratings.ids):
        return None
    place: dict[object, int] = {}
    codes = [place.setdefault(i if g is None else ("g", g), len(place)) for i, g in enumerate(ratings.group)]
    return np.array(codes, dtype=np.int64)


def _agreement_json(found: Agreement) -> dict[str, Any]:
    return {
        "items": found.items,
        "units": found.units,
        "disagreeing": found.disagreeing,
        "raw": asdict(found.raw),
        "alpha_ordinal": asdict(found.alpha),
        "ac1": asdict(found.ac1),
    }


def _leaning_json(name: str, found: Leaning) -> dict[str, Any]:
    return {
        "annotator": name,
        "compared": found.compared,
        "above_lowest_by_others": found.higher,
        "below": found.below,
        "above": found.above,
        "missed_share": found.missed,
        "missed_interval": None if found.interval is None else list(found.interval),
        "p_below": found.p_below,
        "leans_low": found.leans_low,
    }


def _pairs(ratings: Ratings) -> list[dict[str, Any]]:
    """Each pair of annotators: items both rated, on how many they agree, and their table of labels."""
    out = []
    k = len(ratings.names)
    for a, b in combinations(range(len(ratings.annotators)), 2):
        left, right = ratings.values[:, a], ratings.values[:, b]
        both = ~np.isnan(left) & ~np.isnan(right)
        table = np.zeros((k, k), dtype=np.int64)
        np.add.at(table, (left[both].astype(np.int64), right[both].astype(np.int64)), 1)
        out.append(
            {
                "annotators": [ratings.annotators[a], ratings.annotators[b]],
                "items": int(both.sum()),
                "agree": int(np.trace(table)),
                "table": table.tolist(),
            }
        )
    return out


def _disagreements(ratings: Ratings) -> list[dict[str, Any]]:
    """Items on which annotators differ, widest apart first."""
    out = []
    for i, row in enumerate(ratings.values):
        known = row[~np.isnan(row)]
        if len(known) < 2 or known.min() == known.max():
            continue
        said = {
            name: ratings.names[int(value)]
            for name, value in zip(ratings.annotators, row, strict=True)
            if not np.isnan(value)
        }
        risk = (
            ratings.risk_classes[int(ratings.risk[i])] if ratings.risk[i] >= 0 and ratings.risk_classes else None
        )
        out.append({"id": ratings.ids[i], "risk": risk, "labels": said, "apart": int(known.max() - known.min())})
    return sorted(out, key=lambda row: (-row["apart"], row["id"]))


def _lines(ratings: Ratings, document: dict[str, Any]) -> list[str]:
    whole = document["all"]
    lines = [f"{len(ratings.annotators)} annotators, {whole['items']:,} items rated by two or more of them"]
    lines.append(f"{'':<10}{'items':>7}  {'raw agreement':<19}{'alpha (ordinal)':<22}{'AC1':<18}".rstrip())
    for name, row in (("all", whole), *document["by_risk"].items()):
        lines.append(
            f"{cell(name, 10)}{row['items']:>7,}  {_shown(row['raw']):<19}{_shown(row['alpha_ordinal']):<22}"
            f"{_shown(row['ac1']):<18}".rstrip()
        )
    if whole["items"] and not whole["disagreeing"]:
        lines.append("No disagreement was seen, so alpha and AC1 have no interval; raw says what there can be.")
    lines.append(f"{'annotator':<14}{'compared':>9}{'needs':>7}{'below':>7}{'above':>7}  missed")
    for row in document["leanings"]:
        missed = "-"
        if row["missed_share"] is not None:
            lower, upper = row["missed_interval"]
            missed = f"{100 * row['missed_share']:.1f} % [{100 * lower:.1f}, {100 * upper:.1f}]"
        mark = "  LEANS LOW" if row["leans_low"] else ""
        lines.append(
            f"{cell(row['annotator'], 14)}{row['compared']:>9,}{row['above_lowest_by_others']:>7,}"
            f"{row['below']:>7,}{row['above']:>7,}  {missed}{mark}"
        )
    lines.append(
        "needs: items on which most of the others say more than the cheapest tier; missed: labelled below"
    )
    low = [row["annotator"] for row in document["leanings"] if row["leans_low"]]
    if low and len(ratings.annotators) == 2:
        lines.append(f"{visible(low[0], 60)} labels lower than the other; who is right is for a third to say")
    elif low:
        lines.append(
            f"{', '.join(visible(n, 60) for n in low)}: needs missed here widen the true rate; audit them"
        )
    apart = document["disagreements"]
    if apart:
        first = ", ".join(visible(row["id"], 40) for row in apart[:_SHOWN])
        more = f" and {len(apart) - _SHOWN:,} more" if len(apart) > _SHOWN else ""
        lines.append(f"{len(apart):,} items in dispute, widest apart first: {first}{more}")
    return lines


def _shown(row: dict[str, Any]) -> str:
    found = Estimate(**row)
    if found.value is None:
        return "n/a"
    if found.lower is None or found.upper is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.lower:.2f}, {found.upper:.2f}]"
