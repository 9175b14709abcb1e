"""A sign-off from end to end: runs gathered under a policy, judged again from their evidence, one document."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import Fault, InputError, visible
from evalkit.signoff.document import signoff_document
from evalkit.signoff.model import Paired, RunFacts
from evalkit.signoff.policy import Policy
from evalkit.signoff.run_folder import Run
from evalkit.workflows.rejudge import Rejudged
from evalkit.workflows.run_check import FILES, UNSOUND, CheckedRun, check_run

__all__ = ["BASELINE", "POLICY", "Gathered", "build_document", "copied_files", "gather", "run_ids"]

POLICY = "policy.yaml"
"""The policy's name in the folder of a sign-off."""
BASELINE = "baseline"
"""The folder of today's run there."""

_FIX = "use the folder as the run wrote it, or run the study again"


@dataclass(frozen=True)
class Gathered:
    """A policy and its runs, each checked: (id, run). today: the run of today's policy, where one is named."""

    policy: Policy
    runs: tuple[tuple[str, CheckedRun], ...]
    today: CheckedRun | None


def gather(policy: Policy, folders: Sequence[Path], today: Path | None) -> Gathered:
    """Read and check every run. InputError with everything in any folder that is not what its evidence gives."""
    faults: list[Fault] = []
    same: dict[Path, Path] = {}
    for folder in folders:
        if folder.resolve() in same:
            faults.append(Fault("is named twice", "name every run once", file=str(folder)))
        same[folder.resolve()] = folder
    checked: list[CheckedRun] = []
    for folder in same.values():
        checked += _checked(folder, faults)
    before = [] if today is None else _checked(today, faults)
    if faults:
        raise InputError(faults)
    ids = run_ids([one.run for one in checked])
    return Gathered(policy, tuple(zip(ids, checked, strict=True)), before[0] if before else None)


def _checked(folder: Path, faults: list[Fault]) -> list[CheckedRun]:
    try:
        checked = check_run(folder)
    except InputError as error:
        faults.extend(error.faults)
        return []
    faults.extend(Fault(what, _FIX, file=str(folder / name)) for name, what in checked.faults)
    return [checked]


def run_ids(runs: Sequence[Run]) -> list[str]:
    """A plain folder name for each run: that of its study, numbered where it comes again."""
    ids: list[str] = []
    for run in runs:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", str(run.document["study"]))[:60].strip(".-_") or "run"
        name, number = plain, 1
        while name.casefold() in {known.casefold() for known in ids}:
            number += 1
            name = f"{plain}-{number}"
        ids.append(name)
    return ids


def build_document(gathered: Gathered, created_at: str, manifest: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """signoff.json of what was gathered. InputError where a run does not hold what one holds."""
    today = gathered.today
    facts = [_facts(gathered.policy, id_, checked, today) for id_, checked in gathered.runs]
    try:
        return signoff_document(
            gathered.policy, facts, created_at=created_at, manifest=manifest, baseline=_baseline(gathered)
        )
    except UNSOUND as error:
        said = visible(error, 200)
        what = f"a run's result.json does not hold what a run writes ({type(error).__name__}: {said})"
        raise InputError(Fault(what, _FIX)) from None


def copied_files(gathered: Gathered) -> dict[str, bytes]:
    """Every file that a sign-off keeps a copy of, by its name in the folder: policy, runs, today's run."""
    files = {POLICY: gathered.policy.content}
    places = [(f"runs/{id_}", checked) for id_, checked in gathered.runs]
    if gathered.today is not None:
        places.append((BASELINE, gathered.today))
    for place, checked in places:
        for key, name in FILES.items():
            if checked.hashes[key] is not None:
                files[f"{place}/{name}"] = (checked.run.folder / name).read_bytes()
    return dict(sorted(files.items()))


def _facts(policy: Policy, id_: str, checked: CheckedRun, today: CheckedRun | None) -> RunFacts:
    paired, missing = _pairs(policy, checked, today)
    before = None
    if today is not None and today.run.kind == checked.run.kind:
        before = RunFacts("today", today.run.kind, today.run.document, today.hashes, today.evidence).shown
    return RunFacts(
        id=id_,
        kind=checked.run.kind,
        result=checked.run.document,
        hashes=checked.hashes,
        evidence=checked.evidence,
        paired=paired,
        paired_missing=missing,
        today=before,
        hidden_in=() if checked.rejudged is None else tuple(sorted(checked.rejudged.hidden)),
    )


def _pairs(
    policy: Policy, checked: CheckedRun, today: CheckedRun | None
) -> tuple[dict[str, Paired], dict[str, str]]:
    """The run against each baseline of the policy that goes with it, or why it cannot be held against it."""
    paired: dict[str, Paired] = {}
    missing: dict[str, str] = {}
    if policy.baseline is None:
        return paired, missing
    again = checked.rejudged
    if policy.baseline.today is not None:
        if today is not None and today.run.kind == checked.run.kind:
            found = _with_today(checked, today)
            if isinstance(found, str):
                missing["today"] = found
            else:
                paired["today"] = found
        return paired, missing
    for arm in policy.baseline.arms:
        if again is None:
            missing[arm] = checked.evidence
            continue
        other = again.arms.get(arm)
        found_pair = None if other is None else again.against(other)
        if found_pair is not None:
            paired[arm] = found_pair
        else:
            missing[arm] = "the run has no tier of this name" if again.arms else "there are no outcomes"
    return paired, missing


def _with_today(checked: CheckedRun, today: CheckedRun) -> Paired | str:
    """Paired by item with the run of today's policy, or why not: both must judge the same items."""
    again, before = checked.rejudged, today.rejudged
    if again is None:
        return checked.evidence
    if before is None or today.evidence != "recomputed":
        return f"of the run of today: {today.evidence}"
    if again.passed is None or before.passed is None:
        return "there are no outcomes"
    if set(again.ids) != set(before.ids):
        common = len(set(again.ids) & set(before.ids))
        return f"the run of today judged other items ({common:,} of {len(again.ids):,} are the same)"
    paired = again.against(_in_order(before, again.ids))
    if paired is None:
        return "there are no outcomes"
    document = today.run.document
    if today.run.kind == "route-sweep":
        searched = "today's threshold was chosen on these items" if document.get("judged") is None else None
        return replace(paired, approximate=paired.approximate or searched)
    return replace(paired, baseline_of=max(1, len(document["arms"])))


def _in_order(before: Rejudged, ids: Sequence[str]) -> NDArray[np.float64]:
    assert before.passed is not None
    at = {name: place for place, name in enumerate(before.ids)}
    return before.passed[[at[name] for name in ids]]


def _baseline(gathered: Gathered) -> dict[str, Any] | None:
    baseline, today = gathered.policy.baseline, gathered.today
    if baseline is None:
        return None
    found: dict[str, Any] = {"margin_points": round(100 * baseline.margin, 9), "arms": list(baseline.arms)}
    if today is not None:
        found |= {
            "study": today.run.document["study"],
            "folder": BASELINE,
            **{f"{key}_sha256": today.hashes[key] for key in FILES},
        }
    return found
