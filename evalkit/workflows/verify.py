"""A sign-off folder held against itself: hashes, evidence, policy, document and views; each difference by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from evalkit.errors import InputError, visible
from evalkit.signoff.build import SOURCE
from evalkit.signoff.digest import MANIFEST, SIGNOFF, document_digest, folder_faults, read_signoff
from evalkit.signoff.policy import Policy, read_policy
from evalkit.signoff.strict import BrokenFileError
from evalkit.workflows.rejudge import differences
from evalkit.workflows.run_check import FILES, UNSOUND, CheckedRun, check_run, written_by
from evalkit.workflows.signoff import BASELINE, POLICY, Gathered, build_document, copied_files
from evalkit.workflows.signoff_command import JUNIT, MARKDOWN, PAGE, manifest_rows, views

__all__ = ["Finding", "verify_run", "verify_signoff"]

Finding = tuple[str, str]
"""(file below the folder, what is wrong with it)."""

MOST_FIELDS = 20
_SIGNATURES = "signoff.*.sig.json"


def verify_run(folder: Path) -> list[Finding]:
    """What in a run folder is not as its evidence gives. InputError where it is no run."""
    checked = check_run(folder)
    found = list(checked.faults)
    if checked.evidence != "recomputed":
        found.append((FILES["evidence"], checked.evidence))
    return found


def verify_signoff(folder: Path) -> list[Finding]:
    """What in a sign-off folder is not as it was written, or does not follow from its evidence.

    Hashes first (manifest.json, the digest), then every run from its bundle, the document from policy and runs,
    and page, Markdown and JUnit from the document. Signatures are apart.
    """
    found = folder_faults(folder)
    document = _document(folder)
    if document is None:
        found.append((SIGNOFF, "does not hold what a sign-off holds, so that nothing of it could be followed"))
    runs, run_faults = _runs(folder, document)
    found += run_faults
    today = None
    if (folder / BASELINE / FILES["result"]).is_file():
        today, faults = _run(folder, BASELINE)
        found += faults
    policy, faults = _policy(folder, document)
    found += faults
    if document is not None:
        found += _listing_faults(folder, document)
        if policy is not None and len(runs) == len(document["runs"]):
            found += _document_faults(document, Gathered(policy, tuple(runs), today))
        found += _view_faults(folder, document)
    return list(dict.fromkeys(found))


def _document(folder: Path) -> dict[str, Any] | None:
    """The document where enough of it is sound to follow; its faults are found by the hashes."""
    from evalkit.signoff.strict import strict_json

    try:
        return _sound(read_signoff(folder))
    except BrokenFileError:
        try:
            return _sound(strict_json((folder / SIGNOFF).read_bytes()))
        except (BrokenFileError, OSError):
            return None


def _sound(document: Any) -> dict[str, Any] | None:
    if not isinstance(document, dict) or not isinstance(document.get("created_at"), str):
        return None
    runs = document.get("runs")
    sound = isinstance(runs, list) and all(isinstance(r, dict) and isinstance(r.get("id"), str) for r in runs)
    return document if sound and isinstance(document.get("policy"), dict) else None


def _runs(folder: Path, document: dict[str, Any] | None) -> tuple[list[tuple[str, CheckedRun]], list[Finding]]:
    """Every run that the document names, or where it cannot be read every one that is there."""
    base = folder / "runs"
    there = sorted(p.name for p in base.iterdir() if p.is_dir()) if base.is_dir() else []
    named = there if document is None else [run["id"] for run in document["runs"]]
    runs: list[tuple[str, CheckedRun]] = []
    found: list[Finding] = []
    for id_ in named:
        if id_ not in there:
            found.append((SIGNOFF, f'names the run "{visible(id_)}", of which there is no folder'))
            continue
        run, faults = _run(folder, f"runs/{id_}")
        found += faults
        if run is not None:
            runs.append((id_, run))
    return runs, found


def _run(folder: Path, place: str) -> tuple[CheckedRun | None, list[Finding]]:
    try:
        checked = check_run(folder / place)
    except InputError as error:
        faults = []
        for fault in error.faults:
            name = Path(fault.file).name if fault.file else ""
            row = f", line {fault.line}" if fault.line else ""
            faults.append((f"{place}/{name}", f"{fault.what}{row}"))
        return None, faults
    return checked, [(f"{place}/{name}", what) for name, what in checked.faults]


def _policy(folder: Path, document: dict[str, Any] | None) -> tuple[Policy | None, list[Finding]]:
    try:
        policy = read_policy(folder / POLICY)
    except InputError as error:
        return None, [(POLICY, "; ".join(fault.what for fault in error.faults[:3]))]
    if document is None:
        return policy, []
    name, found = document["policy"].get("file"), []
    if document["policy"].get("sha256") != policy.sha256:
        found.append((POLICY, f"is not the policy that {SIGNOFF} was decided under: its bytes were changed"))
    if isinstance(name, str) and name and Path(name).name == name:
        policy = replace(policy, path=policy.path.with_name(name))
    return policy, found


def _listing_faults(folder: Path, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Files that a sign-off has and this one lacks, and files that none has and nobody vouches for.

    What belongs there follows from the document, whose own list is computed again from policy and runs.
    """
    from evalkit.signoff.strict import strict_json

    rows = document.get("manifest")
    copies = {row.get("path") for row in rows if isinstance(row, dict)} if isinstance(rows, list) else set()
    expected = {name for name in copies if isinstance(name, str)} | {SIGNOFF, PAGE, MARKDOWN, JUNIT}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    try:
        manifest = strict_json((folder / MANIFEST).read_bytes())
        files = manifest["files"] if isinstance(manifest, dict) else manifest
        listed = {row["path"] for row in files if isinstance(row["path"], str)}
    except (BrokenFileError, OSError, KeyError, TypeError):
        listed = expected  # what is wrong with it was said
    for name in sorted(expected - there):
        yield name, "is missing"
    own = {name for name in there if "/" not in name and Path(name).match(_SIGNATURES)} | {MANIFEST}
    for name in sorted(there - listed - own):
        yield name, f"is not in {MANIFEST}: nobody vouches for it"
    for name in sorted(listed - expected):
        yield name, f"is in {MANIFEST}, and no file of this sign-off"


def _document_faults(document: dict[str, Any], gathered: Gathered) -> Iterator[Finding]:
    """Fields of signoff.json that do not follow from its policy and runs."""
    try:
        again = build_document(gathered, document["created_at"], manifest_rows(copied_files(gathered)))
    except InputError as error:
        yield SIGNOFF, f"cannot be computed again: {error.faults[0].what}"
        return
    by = written_by(document)
    if by:  # its own version and build are no figures
        version, facts = document.get("evalkit_version"), document.get("provenance")
        again["evalkit_version"] = again["provenance"]["evalkit_version"] = version
        again["provenance"].pop(SOURCE)
        if isinstance(facts, dict) and SOURCE in facts:
            again["provenance"][SOURCE] = facts[SOURCE]
        again["digest"] = document_digest(again)
    wrong = list(islice(differences(document, again), MOST_FIELDS + 1))
    for one in wrong[:MOST_FIELDS]:
        yield SIGNOFF, f"{one}{by}"
    if len(wrong) > MOST_FIELDS:
        yield SIGNOFF, f"and more fields differ{by}"


def _view_faults(folder: Path, document: Mapping[str, Any]) -> list[Finding]:
    """Page, Markdown and JUnit must be those of the document, in one of the languages."""
    from evalkit.reporting.language import LANGUAGES

    try:
        made = [views(document, lang) for lang in LANGUAGES]
    except UNSOUND as error:
        return [(SIGNOFF, f"no page can be made of it: {visible(error, 200)}")]
    found: list[Finding] = []
    for name in (PAGE, MARKDOWN, JUNIT):
        path = folder / name
        if path.is_file() and path.read_bytes() not in [one[name] for one in made]:
            found.append((name, f"is not what {SIGNOFF} gives{written_by(document)}"))
    return found
