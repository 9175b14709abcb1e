"""Labels from decisions: one row an item, with what each annotator said and, where it is settled, the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.labelling.adjudicate import Annotator
from evalkit.labelling.decisions import Decision
from evalkit.labelling.items import Items

__all__ = ["Export", "export_columns"]


@dataclass(frozen=True)
class Export:
    """columns: of a labels file. undecided: ids that nobody decided; disputed: ids on which annotators differ and
    nobody settled it, on_risk those of them that differ on the risk class alone; settled: how many conflicts were;
    single: ids that only one of several annotators decided."""

    columns: dict[str, list[Any]]
    undecided: tuple[str, ...]
    disputed: tuple[str, ...]
    single: tuple[str, ...]
    on_risk: tuple[str, ...] = ()
    settled: int = 0


def export_columns(
    items: Items, annotators: Sequence[Annotator], settled: Annotator | None, *, partial: bool = False
) -> Export:
    """The labels of every item in file order.

    Where annotators agree, theirs; where they differ, that of `settled`; where that has none, `required_tier`
    stays blank, so that no command takes the row for a label, and `risk` is that of the first annotator. `labels`
    holds what each annotator said, never the adjudicator. With `partial`, items that nobody decided are left out.
    """
    rows: list[int] = []
    tiers: list[str | None] = []
    risks: list[str | None] = []
    said: list[dict[str, str] | None] = []
    notes: list[dict[str, str]] = []
    undecided, disputed, single, on_risk = [], [], [], []
    ended = 0
    for i, name in enumerate(items.ids):
        by = {one.header.annotator: one.work.of(name) for one in annotators}
        found = {who: decision for who, decision in by.items() if decision is not None}
        if not found:
            undecided.append(name)
            if partial:
                continue
        final = None if settled is None else settled.work.of(name)
        label = _agreed(list(found.values()), final)
        differ = len({(d.required_tier, d.risk) for d in found.values()}) > 1
        ended += differ and label is not None
        if differ and label is None:
            disputed.append(name)
            if len({d.required_tier for d in found.values()}) == 1:
                on_risk.append(name)
        if len(found) == 1 < len(annotators):
            single.append(name)
        first = next(iter(found.values()), None)
        rows.append(i)
        tiers.append(None if label is None else label.required_tier)
        risks.append(label.risk if label is not None else first.risk if first is not None else items.risk[i])
        said.append({who: decision.required_tier for who, decision in found.items()} or None)
        remarks = {who: decision.note for who, decision in found.items() if decision.note}
        if settled is not None and final is not None and final.note:
            remarks[settled.header.annotator] = final.note
        notes.append(remarks)
    columns = _columns(items, rows, tiers, risks, said, notes)
    return Export(columns, tuple(undecided), tuple(disputed), tuple(single), tuple(on_risk), ended)


def _agreed(found: list[Decision], final: Decision | None) -> Decision | None:
    """The decision that holds; None where there is none, or several and nothing settles them."""
    if not found:
        return None
    if len({(d.required_tier, d.risk) for d in found}) == 1:
        return found[0]
    return final


def _columns(
    items: Items,
    rows: list[int],
    tiers: list[str | None],
    risks: list[str | None],
    said: list[dict[str, str] | None],
    notes: list[dict[str, str]],
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"id": [items.ids[i] for i in rows]}
    if any(items.prompts[i] is not None for i in rows):
        columns["prompt"] = [items.prompts[i] for i in rows]
    if items.messages is not None:
        columns["messages"] = [items.messages[i] for i in rows]
    columns |= {"required_tier": tiers, "risk": risks}
    for name, values in (("category", items.category), ("group", items.group)):
        if values is not None:
            columns[name] = [values[i] for i in rows]
    for name in ("weight", "reference"):
        if name in items.kept:
            columns[name] = [items.kept[name][i] for i in rows]
    columns["labels"] = list(said)
    metadata = items.kept.get("metadata")
    if metadata is not None or any(notes):
        columns["metadata"] = [
            _with_notes(None if metadata is None else metadata[i], remarks)
            for i, remarks in zip(rows, notes, strict=True)
        ]
    return columns


def _with_notes(metadata: Any, remarks: dict[str, str]) -> Any:
    """The metadata of an item with the notes of its annotators under `label_notes`."""
    if not remarks:
        return metadata
    kept = metadata if isinstance(metadata, dict) else {} if metadata is None else {"metadata": metadata}
    return kept | {"label_notes": remarks}
