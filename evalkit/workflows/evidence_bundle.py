"""evidence.zip: everything that a run read, so that its figures can be computed again elsewhere.

In it: the study file, every file that it names, the judge's prompt, people's grades and the schema that its rubric
names, the source of its checks in Python (which nothing that reads a bundle ever runs), the scores and facts of
routers that evalkit ran, the record of looks as this run saw it, and `files.json`:

    schema   "evalkit.evidence/1"
    study    name of the study file in the zip
    options  {thresholds, seed}: what the command line put in place of the study's own; null where it did not;
             router: the one of several that it asked for, where it did
    sent     arm -> body that went out, where a replay recorded it and the study does not state it
    files    [{role, written, name, sha256, bytes}]: role (labels, outcomes, ...), the name that the study uses,
             the name in the zip. Of labels of the hub (written: hf://...) the parsed records, as JSON lines
    hidden   role -> fingerprint of the table as it was read: its copy here has keys and passwords taken out of its
             texts, which no figure depends on
    absent   [{role, written, why}]: what is named and cannot be in the zip, such as a check in an installed module

Names in the zip are made of role and file name; a path outside of the study's folder is never reproduced.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalkit.errors import redact
from evalkit.labels.labelset import LabelSet
from evalkit.signoff.redacted import redacted
from evalkit.study.models import RoutingStudy, Source
from evalkit.study.prices_base import GENAI_PRICES
from evalkit.workflows.evidence_format import (
    EVIDENCE,
    FILES,
    LABELS,
    ROUTED,
    SCHEMA,
    TABLES,
    AnyStudy,
    RunOptions,
    is_table,
    safe_name,
)
from evalkit.workflows.evidence_labels import labels_jsonl
from evalkit.workflows.evidence_rubric import CHECK, RUBRIC_ROLES, rubric_files
from evalkit.workflows.evidence_secrets import without_secrets
from evalkit.workflows.evidence_study import read_bytes, study_bytes
from evalkit.workflows.replay_facts import replay_summary
from evalkit.workflows.router_scores import Recorded, role_of

__all__ = ["evidence_zip", "keep_evidence", "named_files"]

_PROSE = ("rubric", "system_prompt", "prompt", *RUBRIC_ROLES)


def keep_evidence(
    document: dict[str, Any],
    study: AnyStudy,
    options: RunOptions,
    looks: str,
    *,
    declared_outcomes: bool,
    keep: bool,
    labels: LabelSet | None = None,
    computed: Sequence[Recorded] = (),
) -> bytes | None:
    """The bundle of a judged run, named with its hash in the provenance of its document; None without `keep`.

    labels: all that were read, for those of the hub. computed: what is kept of routers that evalkit ran.
    """
    if not keep:
        document["provenance"]["evidence"] = {"left_out": "the run was asked to keep no evidence"}
        return None
    facts = document["provenance"]
    read = {role: _hash_of(facts[role]) for role in TABLES if facts.get(role)}
    for row in facts.get("routers") or ():
        read |= {f"{role}.{row['name']}": _hash_of(row[role]) for role in ROUTED if row.get(role)}
    content, hidden = _bundle(
        study,
        options,
        looks,
        declared_outcomes=declared_outcomes,
        fingerprints=read,
        labels=labels,
        computed=computed,
    )
    named: dict[str, Any] = {"file": EVIDENCE, "sha256": hashlib.sha256(content).hexdigest()}
    document["provenance"]["evidence"] = named | ({"hidden_in": sorted(hidden)} if hidden else {})
    return content


def _hash_of(row: Mapping[str, Any]) -> str:
    return str(row["hash"]).removeprefix("sha256:")


def evidence_zip(
    study: AnyStudy,
    options: RunOptions,
    looks: str,
    *,
    declared_outcomes: bool,
    fingerprints: Mapping[str, str] = MappingProxyType({}),
    labels: LabelSet | None = None,
) -> bytes:
    """The bundle of a run of `study` as bytes; the same files give the same bytes.

    looks: the text of the record of looks, after this run's was booked. declared_outcomes: the study file itself
    names the outcomes, so that nothing was replayed. fingerprints: of the tables as they were read. labels: all
    that were read. Raises InputError where a file cannot be read any more, or a secret cannot be taken out of the
    study file.
    """
    return _bundle(
        study, options, looks, declared_outcomes=declared_outcomes, fingerprints=fingerprints, labels=labels
    )[0]


def _bundle(
    study: AnyStudy,
    options: RunOptions,
    looks: str,
    *,
    declared_outcomes: bool,
    fingerprints: Mapping[str, str],
    labels: LabelSet | None,
    computed: Sequence[Recorded] = (),
) -> tuple[bytes, Mapping[str, str]]:
    """The bundle, and the fingerprints of tables whose copy in it is not byte for byte the one that was read."""
    parts: dict[str, bytes] = {}
    rows: list[dict[str, Any]] = []
    absent: list[dict[str, str]] = []
    hidden: dict[str, str] = {}

    def add(role: str, written: str, name: str, content: bytes) -> None:
        parts[name] = content
        digest = hashlib.sha256(content).hexdigest()
        rows.append(
            {"role": role, "written": redact(written), "name": name, "sha256": digest, "bytes": len(content)}
        )

    summary = replay_summary(study)
    replayed = [] if summary is None else [("replay", summary.name, summary)]
    graded = [] if study.rubric is None else rubric_files(study.rubric)
    for role, written, path in [*named_files(study), *replayed, *graded]:
        found = _content(study, role, path, labels)
        if found is None:
            absent.append({"role": role, "written": redact(written), "why": "it is no file beside the study"})
            continue
        file, content = found
        kept = without_secrets(content, file) if is_table(role) or _is_prose(role) else content
        if kept != content and role in fingerprints:
            hidden[role] = fingerprints[role]
        add(role, written, f"{role}/{safe_name(file)}", kept)
    for role, written, name, content in computed:
        kept = without_secrets(content, name)
        if kept != content and role in fingerprints:
            hidden[role] = fingerprints[role]
        add(role, written, f"{role}/{name}", kept)
    add("looks", "", "looks.json", looks.encode("utf-8"))
    name = safe_name(study.path.name)
    add("study", study.path.name, name, study_bytes(study))
    index = {
        "schema": SCHEMA,
        "study": name,
        "options": {
            "thresholds": list(options.thresholds) or None,
            "seed": options.seed,
            **({} if options.router is None else {"router": options.router}),
        },
        "sent": {} if declared_outcomes else _sent(study),
        "hidden": hidden,
        "files": sorted(rows, key=lambda row: str(row["name"])),
        "absent": absent,
    }
    text = json.dumps(redacted(index), ensure_ascii=True, allow_nan=False, indent=1, sort_keys=True) + "\n"
    parts[FILES] = text.encode("ascii")
    return _zip(parts), hidden


def _content(study: AnyStudy, role: str, path: Path | None, labels: LabelSet | None) -> tuple[str, bytes] | None:
    """(name, content) of what a study names; of labels of the hub their records as they were read. None for what
    cannot be taken in."""
    if path is not None:
        return path.name, read_bytes(path)
    if role != "labels" or labels is None:
        return None
    records = labels_jsonl(labels, study.labels.columns)
    return None if records is None else (LABELS, records)


def named_files(study: AnyStudy) -> list[tuple[str, str, Path | None]]:
    """(role, name that the study uses, its file) of all that a study names; None for what is no file beside it."""
    found: list[tuple[str, str, Path | None]] = []
    sources: dict[str, Source | None] = {"labels": study.labels, "outcomes": study.outcomes}
    if isinstance(study, RoutingStudy):
        for router in study.all_routers:
            sources[role_of(study, router, "scores")] = router.scores
            sources[role_of(study, router, "decisions")] = router.decisions
    for role, source in sources.items():
        if source is not None:
            found.append((role, source.written, source.path))
    files = {
        "prices": study.prices,
        "rubric": study.rubric,
        "policy": study.policy,
        "audit": study.audit if isinstance(study, RoutingStudy) else None,
        "system_prompt": study.calls.system_prompt,
        "prompt": study.calls.prompt,
    }
    for role, path in files.items():
        if path is not None:
            found.append((role, path.name, None if path == Path(GENAI_PRICES) else path))
    return found


def _is_prose(role: str) -> bool:
    """Text that no table is, which may hold a key all the same."""
    return role in _PROSE or role.startswith(f"{CHECK}.")


def _sent(study: AnyStudy) -> dict[str, Any]:
    """What a replay recorded of the bodies that went out, which the study file does not state."""
    if isinstance(study, RoutingStudy):
        return {}
    return {arm.name: json.loads(json.dumps(arm.sent, default=str)) for arm in study.arms if arm.sent is not None}


def _zip(parts: Mapping[str, bytes]) -> bytes:
    """A zip whose bytes depend on names and content alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for name in sorted(parts):
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o100644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, parts[name])
    return buffer.getvalue()
