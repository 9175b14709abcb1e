"""`evalkit labels sample`: a log, without personal data and near duplicates, as a weighted sample to label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, cell
from evalkit.labels.log import Log, read_log, withheld
from evalkit.labels.notices import spelling_notice, spellings
from evalkit.labels.personal_data import KINDS
from evalkit.labels.stratified import StratifiedDraw, draw_by_stratum
from evalkit.tabular.names import quoted
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.collector import collector_paused
from evalkit.workflows.labels import names_in, pairs_in, say_at_work, show, write_summary
from evalkit.workflows.raw_log import refuse_raw_log
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["sample_log"]

_STRATA = ("risk", "category")


@collector_paused()
def sample_log(
    log: Path,
    *,
    out: Path,
    count: int,
    by: str | None,
    parts: Sequence[str],
    proportional: bool,
    similarity: float,
    regions: str,
    columns: Sequence[str],
    encoding: str | None,
    seed: int,
    json_file: Path | None,
    quiet: bool,
    presidio: Sequence[str] = (),
) -> None:
    """Read, clean, draw, write. Raises `InputError`, in which no value of the log is told."""
    check_table_suffix(out)
    refuse_to_overwrite([log], [out, *([json_file] if json_file else [])])
    mapping = pairs_in("--column", columns)
    shares = _parts(parts)
    areas = _regions(regions)
    faults = []
    if count < 1:
        faults.append(Fault(f"{count} is below 1", "write how many items to draw", field="--count"))
    if not 0.5 <= similarity <= 1:
        faults.append(Fault(f"{similarity} is not from 0.5 to 1", "write 0.85, or 1 for equal texts only",
                            field="--similarity"))  # fmt: skip
    if by is not None and by not in {*_STRATA, "none"}:
        faults.append(Fault(f"{quoted(by)} is no stratum", "write risk, category or none", field="--by"))
    if faults:
        raise InputError(faults)
    also = None
    if presidio:
        from evalkit.labels.presidio import presidio_names

        also = presidio_names(pairs_in("--presidio", presidio))
    refuse_raw_log(log)
    say_at_work("reading, and removing personal data from,", [log], quiet=quiet)
    read = read_log(log, columns=mapping, encoding=encoding, regions=areas, also=also)
    field = by or next((name for name in _STRATA if name in read.columns), "none")
    if field != "none" and field not in read.columns:
        fix = f"name the column: --column {field}=COLUMN, or draw without strata: --by none"
        raise InputError(Fault(f"has no column {field}", fix, file=str(log), field="--by"))
    if not len(read) or not float(read.weight.sum()) > 0:
        raise InputError(Fault("holds no request with text and traffic", "check the columns", file=str(log)))
    strata = read.columns[field] if field != "none" else [None] * len(read)
    unknown = sorted(set(shares) - {str(name) for name in strata if name is not None})
    if unknown:
        fix = f"name one of the {field} values of the log"
        raise InputError(
            [Fault(f"{quoted(name)} is no stratum of the log", fix, field="--part") for name in unknown]
        )
    say_at_work("looking for near duplicates in", [log], quiet=quiet)
    with withheld():
        drawn = draw_by_stratum(
            read.texts, read.weight, strata, count,
            parts=shares, proportional=proportional, threshold=similarity, seed=seed, contexts=read.contexts,
        )  # fmt: skip
        write_table(out, _columns(read, drawn))
    document = _document(read, drawn, field, seed, similarity, areas)
    if json_file is not None:
        write_summary(json_file, document)
    spelled = spelling_notice(read.file, field, spellings(strata)) if field != "none" else None
    show([] if quiet else _lines(out, document, count), [*read.notices, *([spelled] if spelled else [])])


def _parts(given: Sequence[str]) -> dict[str, float]:
    out = {}
    for name, text in pairs_in("--part", given).items():
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e9:
            raise InputError(Fault(f"{quoted(text)} is not a number of 0 or more", "write --part high=4",
                                   field="--part"))  # fmt: skip
        out[name] = value
    return out


def _regions(text: str) -> tuple[str, ...]:
    from phonenumbers import SUPPORTED_REGIONS

    names = tuple(name.upper() for name in names_in("--regions", text))
    wrong = [name for name in names if name not in SUPPORTED_REGIONS]
    if wrong:
        raise InputError(
            Fault(f"{quoted(wrong[0])} is no country", "write two letters each: KR,US", field="--regions")
        )
    return names


def _columns(read: Log, drawn: StratifiedDraw) -> dict[str, list[Any]]:
    at = drawn.chosen.tolist()
    out: dict[str, list[Any]] = {}
    for name in ("id", "prompt", "messages"):
        if name in read.columns:
            out[name] = [read.columns[name][i] for i in at]
    out["required_tier"] = [None] * len(at)
    for name in ("risk", "category", "group", "reference", "metadata"):
        if name in read.columns:
            out[name] = [read.columns[name][i] for i in at]
    out["weight"] = [float(f"{w:.12g}") for w in drawn.weight]
    return out


def _document(
    read: Log, drawn: StratifiedDraw, field: str, seed: int, similarity: float, regions: Sequence[str]
) -> dict[str, Any]:
    total = sum(s.traffic for s in drawn.strata)
    idle = int((read.weight == 0).sum())  # never drawn, whatever they repeat
    return {
        "schema": "evalkit.labels-sample/1",
        "file": read.file,
        "rows": len(read) + read.blank,
        "rows_without_text": read.blank,
        "rows_without_traffic": idle,
        "personal_data": {
            "removed": {kind: read.removed.get(kind, 0) for kind in KINDS},
            "rows": read.touched,
            "renamed": dict(read.renamed),
            "regions": list(regions),
        },
        "near_duplicates": {
            "rows": sum(s.rows - s.distinct for s in drawn.strata) - idle,
            "similarity": similarity,
        },
        "strata_by": field,
        "strata": [
            {
                "name": s.name,
                "rows": s.rows,
                "distinct": s.distinct,
                "drawn": s.drawn,
                "traffic_share": s.traffic / total,
                "drawn_share": s.drawn / max(1, len(drawn.chosen)),
                "effective_n": s.effective_n,
            }
            for s in drawn.strata
        ],
        "drawn": len(drawn.chosen),
        "weights": {"least": float(drawn.weight.min()), "largest": float(drawn.weight.max())},
        "seed": seed,
    }


def _lines(out: Path, document: dict[str, Any], count: int) -> list[str]:
    data = document["personal_data"]
    removed = Counter(data["removed"])
    fewer = f", and there are no more to draw ({count:,} asked for)" if document["drawn"] < count else ""
    lines = [f"{out}: {document['drawn']:,} of {document['rows']:,} rows drawn{fewer}"]
    kinds = ", ".join(f"{kind.replace('_', ' ')} {n:,}" for kind, n in removed.items() if n)
    lines.append(f"personal data removed: {kinds or 'none found'} (in {data['rows']:,} rows)")
    if data["renamed"]:
        lines.append("renamed: " + ", ".join(f"{n:,} {name}" for name, n in data["renamed"].items()))
    unseen = "not all names, and nothing that" if removed["name"] else "names, and what"
    missed = "is found" if removed["name"] else "are not found"
    lines.append(f"{unseen} a sentence only tells, {missed}: look before you share the file")
    near = document["near_duplicates"]
    lines.append(f"near duplicates left out: {near['rows']:,}; their traffic stays in the weights")
    if document["rows_without_text"]:
        lines.append(f"rows without text left out: {document['rows_without_text']:,}")
    if document["rows_without_traffic"]:
        lines.append(f"rows of weight 0 left out: {document['rows_without_traffic']:,}")
    lines.append(
        f"{document['strata_by'] + ' (stratum)':<24}{'distinct':>10}{'drawn':>8}{'traffic':>10}{'drawn %':>10}"
    )
    for stratum in document["strata"]:
        lines.append(
            f"{cell(stratum['name'], 24)}{stratum['distinct']:>10,}{stratum['drawn']:>8,}"
            f"{100 * stratum['traffic_share']:>8.1f} %{100 * stratum['drawn_share']:>8.1f} %"
        )
    least, most = document["weights"]["least"], document["weights"]["largest"]
    spread = "" if least == most else f", {least:.4g} to {most:.4g}"
    lines.append(f"weight: requests of the log that an item stands for{spread}; leave it as it is")
    if most > 2 * least:
        lines.append("requests that repeat often weigh more; among the needs of a class they make a bound wider")
    return lines
