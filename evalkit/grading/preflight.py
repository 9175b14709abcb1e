"""What a rubric cannot grade, found before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evalkit.errors import Fault, InputError, visible
from evalkit.grading.entry_point import PythonCheck
from evalkit.grading.items import Item
from evalkit.grading.judge import requests_of
from evalkit.grading.rubric import Decider, Rubric

__all__ = ["rubric_faults"]

_REFERENCE_FREE = {"regex"}


def rubric_faults(rubric: Rubric, items: Iterable[Item], *, file: str | None = None) -> list[Fault]:
    """Every item that `rubric` cannot grade, with its place in the label file `file`.

    An item without a check for its category, with a check that is none, with a reference that its check cannot
    compare, or without what the judge's prompt asks for.
    """
    found: list[Fault] = []
    for item in items:
        try:
            faults = _of_item(rubric, item)
        except InputError as error:
            faults = list(error.faults)
        found += [replace(fault, file=file, line=item.line, id=item.id) for fault in faults]
    return found


def _of_item(rubric: Rubric, item: Item) -> list[Fault]:
    grader = rubric.grader_for(item)
    if grader is Decider.JUDGE and rubric.judge is not None:
        if not requests_of(rubric.judge, item, "?"):
            what = "makes the judge's prompt too long, whatever the answer"
            return [Fault(what, "shorten the prompt, or leave the item out", field="prompt")]
        return []
    if isinstance(grader, Decider | PythonCheck) or grader.kind.value in _REFERENCE_FREE:
        return []
    if not item.references:
        what = f"is missing, and the check {visible(grader.kind.value)} compares with it"
        return [Fault(what, "add the right answer", field="reference")]
    faults = (grader.reference_fault(reference) for reference in item.references)
    return [replace(fault, field="reference") for fault in faults if fault is not None]
