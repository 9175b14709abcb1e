"""Import a matrix: a JSON object `{model: {item: {...}}}`, or the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.errors import Fault
from evalkit.outcomes.importers.build import Cell, Imported, Measure, RowBuilder, mark_kind
from evalkit.tabular.faults import Faults, listed
from evalkit.tabular.json_rows import StrictJSONError, parse_json
from evalkit.tabular.names import did_you_mean, nfc, quoted
from evalkit.tabular.source import check_encoding, locate, read_text

__all__ = ["MatrixKeys", "import_matrix"]


@dataclass(frozen=True)
class MatrixKeys:
    """What the keys of a matrix are: `ok` holds right or wrong or a score; `tiers` maps a tier to its model key
    (empty: every model under its own name, in file order)."""

    ok: str
    measures: Sequence[Measure] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    tiers: Mapping[str, str] = field(default_factory=dict)
    items_outer: bool = False


def import_matrix(source: str | Path, keys: MatrixKeys, *, encoding: str | None = None) -> Imported:
    """Outcomes from a matrix of models and items; the row order is item by item.

    Raises `InputError` where the file is not such a matrix or a model is not in it.
    """
    located = locate(source)
    faults = Faults(located.file)
    text = read_text(located, check_encoding(encoding, located.file), faults)
    try:
        document = parse_json(text)
    except StrictJSONError as error:
        faults.stop(Fault(str(error), "write the file again as strict JSON", file=located.file))
    matrix = _checked(document, located.file, faults)
    if keys.items_outer:
        matrix = _turned(matrix)
    tiers = dict(keys.tiers) or {model: model for model in matrix}
    for model in tiers.values():
        if model not in matrix:
            known = list(matrix)
            faults.add(
                Fault(
                    f"there is no model {quoted(model)}{did_you_mean(model, known)}",
                    f"the outer keys are {listed([quoted(m, 60) for m in known], 20)}; if those are items, "
                    "say --items-outer",
                    file=located.file,
                )
            )
    faults.raise_if_any()
    return _build(located.file, matrix, tiers, keys)


def _checked(document: Any, file: str, faults: Faults) -> dict[str, dict[str, Any]]:
    sound = (
        isinstance(document, dict)
        and bool(document)
        and all(isinstance(row, dict) and row for row in document.values())
    )
    if not sound:
        faults.stop(
            Fault(
                "is not an object of objects",
                "a matrix is {model: {item: {...}}}; for a list of records see evalkit import long",
                file=file,
            )
        )
    matrix: dict[str, dict[str, Any]] = document
    return matrix


def _turned(matrix: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    turned: dict[str, dict[str, Any]] = {}
    for outer, row in matrix.items():
        for inner, cell in row.items():
            turned.setdefault(inner, {})[outer] = cell
    return turned


def _build(
    file: str, matrix: Mapping[str, Mapping[str, Any]], tiers: Mapping[str, str], keys: MatrixKeys
) -> Imported:
    builder = RowBuilder(file, list(tiers))
    items = list(dict.fromkeys(item for model in tiers.values() for item in matrix[model]))
    kinds = {
        tier: mark_kind([c.get(keys.ok) for c in matrix[model].values() if isinstance(c, dict)])
        for tier, model in tiers.items()
    }
    for item in items:
        for tier, model in tiers.items():
            where = f"{model}, {item}"
            cell = matrix[model].get(item)
            if not isinstance(cell, dict):
                builder.cannot(
                    "no entry for an item" if cell is None else "an entry that is no object", Cell(where, cell)
                )
                continue
            texts: dict[str, Any] = {"model": model, **{f: cell.get(key) for f, key in keys.texts.items()}}
            builder.add(
                nfc(item),
                tier,
                cell.get(keys.ok),
                kinds[tier],
                f"{where}, {keys.ok}",
                texts=texts,
                numbers={m.field: (cell.get(m.source), m.divisor, m.source) for m in keys.measures},
            )
    return builder.done()
