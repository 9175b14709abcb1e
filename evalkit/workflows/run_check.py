"""A run folder held against its own evidence: every file of it that is not what the evidence gives, by name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit import __version__
from evalkit.errors import visible
from evalkit.signoff.build import SOURCE, source_sha256
from evalkit.signoff.digest import file_sha256, plain_hex
from evalkit.signoff.run_folder import Run, read_run
from evalkit.signoff.strict import BrokenFileError
from evalkit.workflows.evidence_format import EVIDENCE
from evalkit.workflows.notice_check import wrong_notices
from evalkit.workflows.rejudge import (
    NOT_COMPARED,
    Difference,
    IncompleteError,
    Rejudged,
    differences,
    rejudge,
)

__all__ = ["FILES", "UNSOUND", "CheckedRun", "check_run", "of_another_version", "written_by"]

FILES = {"result": "result.json", "report": "report.html", "items": "items.jsonl.gz", "evidence": EVIDENCE}
"""The files of a run folder, by what signoff.json calls their hashes."""

UNSOUND = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a document from elsewhere may raise that does not hold what evalkit writes."""

MOST_NAMED = 20
_THIS = f"this is {__version__}"


@dataclass(frozen=True)
class CheckedRun:
    """A run and what was found. hashes: SHA-256 in hex by the names of FILES, None where the file is missing.

    evidence: "recomputed", or why the figures were not computed again. faults: (file, what is wrong).
    """

    run: Run
    hashes: Mapping[str, str | None]
    evidence: str
    rejudged: Rejudged | None
    faults: tuple[tuple[str, str], ...]


def check_run(folder: Path) -> CheckedRun:
    """Compute the figures of a run again from its bundle and compare every file of the folder with them.

    InputError where the folder holds no run that can be read.
    """
    run = read_run(folder)
    hashes = {
        key: file_sha256(folder / name) if (folder / name).is_file() else None for key, name in FILES.items()
    }
    faults: list[tuple[str, str]] = []
    rejudged: Rejudged | None = None
    named = run.document["provenance"].get("evidence")
    why = "the run kept no evidence bundle, so its figures cannot be computed again; run it without --no-evidence"
    if isinstance(named, Mapping) and "sha256" in named:
        why = f"{EVIDENCE} is missing from the run's folder"
        if hashes["evidence"] is not None:
            if plain_hex(named["sha256"]) != hashes["evidence"]:
                faults.append((EVIDENCE, "is not the one that result.json names: its bytes were changed"))
            why, rejudged = _again(run, folder, faults, named.get("hidden_in", []))
    elif hashes["evidence"] is not None:
        why = f"result.json does not name the {EVIDENCE} that is there"
    faults += _report_faults(run, folder)
    return CheckedRun(run, hashes, why, rejudged, tuple(faults))


def _again(
    run: Run, folder: Path, faults: list[tuple[str, str]], hidden_in: object
) -> tuple[str, Rejudged | None]:
    recorded = run.document.get("looks", {}).get("recorded") is not False
    try:
        again = rejudge(folder / EVIDENCE, run.kind, recorded=recorded)
    except IncompleteError as error:
        return f"not everything is in the bundle ({visible(error)})", None
    except BrokenFileError as error:
        faults.append((EVIDENCE, str(error)))
        return f"{EVIDENCE} cannot be used", None
    if hidden_in != sorted(again.hidden):
        faults.append((EVIDENCE, "hides keys or passwords in other tables than result.json says"))
    found = sorted(differences(run.document, again.document, apart=NOT_COMPARED), key=_inputs_first)
    if "outcomes" in again.hidden:  # then the summary of their replay had to name the copy
        found = [one for one in found if one.field != "provenance.replay.hash"]
    by = written_by(run.document)
    said = [*map(str, found), *wrong_notices(run.document.get("notices"), again.notices)]
    faults += [("result.json", f"{one}{by}") for one in said[:MOST_NAMED]]
    if len(said) > MOST_NAMED:
        faults.append(("result.json", f"and more fields differ{by}"))
    faults += [("items.jsonl.gz", f"{what}{by}") for what in _item_faults(folder / FILES["items"], again.items)]
    return "recomputed", again


def _inputs_first(one: Difference) -> bool:
    """False, so first, for what was read: from it the rest follows."""
    return not one.field.startswith(("provenance.", "looks."))


def _item_faults(path: Path, computed: list[dict[str, Any]]) -> Iterator[str]:
    """Items that are not what the evidence gives; the first of them by id and field."""
    with gzip.open(path, "rb") as file:
        written = [json.loads(line) for line in file]
    if len(written) != len(computed):
        yield f"holds {len(written):,} items, and the evidence has {len(computed):,}"
        return
    wrong = 0
    for one, other in zip(written, computed, strict=True):
        found = next(differences(one, other), None)
        if found is not None:
            wrong += 1
            if wrong <= 3:
                yield f"item {visible(one.get('id'))}: {found}"
    if wrong > 3:
        yield f"{wrong:,} items differ from the evidence in all"


def written_by(document: Mapping[str, Any]) -> str:
    """What to add to a difference where another version or build of evalkit wrote the document, else nothing."""
    version = document.get("evalkit_version")
    if version != __version__:
        return f" (written by evalkit {visible(version, 40)}, {_THIS})"
    facts = document.get("provenance")
    source = facts.get(SOURCE) if isinstance(facts, Mapping) else None
    if source == source_sha256():
        return ""
    other = f"of source {visible(source[:12])}" if isinstance(source, str) else "that names no source"
    return f" (written by another build of evalkit {__version__}, {other}, {_this_build()})"


def _this_build() -> str:
    return f"this is of source {source_sha256()[:12]}"


def of_another_version(what: str) -> bool:
    """Whether a finding is about what another version or build wrote, which this one may compute or lay out
    otherwise."""
    return what.endswith((f", {_THIS})", f", {_this_build()})"))


def _report_faults(run: Run, folder: Path) -> list[tuple[str, str]]:
    """The page must be the one that result.json gives; where another version of evalkit made it, that is said."""
    path = folder / FILES["report"]
    if not path.is_file():
        return [(FILES["report"], "is missing")]
    from evalkit.reporting import render_html
    from evalkit.reporting.reasoning import render_ladder_html

    render = render_html if run.kind == "route-sweep" else render_ladder_html
    try:
        page = render(run.document).encode("utf-8")
    except UNSOUND as error:
        return [(FILES["result"], f"no page can be made of it: {visible(error, 200)}")]
    if path.read_bytes() == page:
        return []
    return [(FILES["report"], f"is not the page that result.json gives{written_by(run.document)}")]
