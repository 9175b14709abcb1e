"""evidence.zip: everything that a run read, so that its figures can be computed again elsewhere.

In it: the study file, every file that it names, the judge's prompt, people's grades and the schema that its rubric
names, the scores and facts of routers that evalkit ran, the record of looks as this run saw it, and `files.json`:

    schema   "evalkit.evidence/1"
    study    name of the study file in the zip
    options  {thresholds, seed}: what the command line put in place of the study's own; null where it did not;
             router: the one of several that it asked for, where it did
    sent     arm -> body that went out, where a replay recorded it and the study does not state it
    files    [{role, written, name, sha256, bytes}]: role (labels, outcomes, ...), the name that the study uses,
             the name in the zip
    hidden   role -> fingerprint of the table as it was read: its copy here has keys and passwords taken out of its
             texts, which no figure depends on
    absent   [{role, written, why}]: what is named and cannot be in the zip, such as a dataset of the hub

Names in the zip are made of role and file name; a path outside of the study's folder is never reproduced.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalkit.errors import HIDDEN, Fault, InputError, redact, visible
from evalkit.signoff.redacted import redacted
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import RoutingStudy, Source
from evalkit.study.prices_base import GENAI_PRICES
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.study.router_section import name_problem
from evalkit.workflows.evidence_rubric import RUBRIC_ROLES, rubric_files
from evalkit.workflows.evidence_secrets import without_secrets
from evalkit.workflows.replay_facts import replay_summary
from evalkit.workflows.router_scores import Recorded, role_of

__all__ = [
    "EVIDENCE",
    "FILES",
    "Bundle",
    "RunOptions",
    "check_study",
    "evidence_zip",
    "keep_evidence",
    "named_files",
    "open_evidence",
]

EVIDENCE = "evidence.zip"
FILES = "files.json"
SCHEMA = "evalkit.evidence/1"
TABLES = ("labels", "outcomes", "scores", "decisions")
_ROUTED = ("scores", "decisions")
_PROSE = ("rubric", "system_prompt", "prompt", *RUBRIC_ROLES)

MOST_BYTES = 8 * 2**30
"""Content of a bundle beyond this is not unpacked."""
MOST_FILES = 128
_MOST_INDEX = 2**24
_CHUNK = 2**20

AnyStudy = RoutingStudy | ReasoningStudy


@dataclass(frozen=True)
class RunOptions:
    """What the command line put in place of what the study says."""

    thresholds: tuple[str, ...] = ()
    seed: int | None = None
    router: str | None = None


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle: the study file, and by role the name that it uses and where the file is now."""

    folder: Path
    study: Path
    written: Mapping[str, str]
    paths: Mapping[str, Path]
    options: RunOptions
    sent: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)


def check_study(study: AnyStudy) -> None:
    """Raises InputError where the study file holds a secret that cannot be taken out of a bundle."""
    _study_bytes(study)


def keep_evidence(
    document: dict[str, Any],
    study: AnyStudy,
    options: RunOptions,
    looks: str,
    *,
    declared_outcomes: bool,
    keep: bool,
    computed: Sequence[Recorded] = (),
) -> bytes | None:
    """The bundle of a judged run, named with its hash in the provenance of its document; None without `keep`.

    computed: what is kept of routers that evalkit ran.
    """
    if not keep:
        document["provenance"]["evidence"] = {"left_out": "the run was asked to keep no evidence"}
        return None
    facts = document["provenance"]
    read = {role: _hash_of(facts[role]) for role in TABLES if facts.get(role)}
    for row in facts.get("routers") or ():
        read |= {f"{role}.{row['name']}": _hash_of(row[role]) for role in _ROUTED if row.get(role)}
    content, hidden = _bundle(
        study, options, looks, declared_outcomes=declared_outcomes, fingerprints=read, computed=computed
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
) -> bytes:
    """The bundle of a run of `study` as bytes; the same files give the same bytes.

    looks: the text of the record of looks, after this run's was booked. declared_outcomes: the study file itself
    names the outcomes, so that nothing was replayed. fingerprints: of the tables as they were read. Raises
    InputError where a file cannot be read any more, or a secret cannot be taken out of the study file.
    """
    return _bundle(study, options, looks, declared_outcomes=declared_outcomes, fingerprints=fingerprints)[0]


def _bundle(
    study: AnyStudy,
    options: RunOptions,
    looks: str,
    *,
    declared_outcomes: bool,
    fingerprints: Mapping[str, str],
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
        if path is None:
            absent.append({"role": role, "written": redact(written), "why": "it is no file beside the study"})
        else:
            content = _read(path)
            kept = without_secrets(content, path.name) if _is_table(role) or role in _PROSE else content
            if kept != content and role in fingerprints:
                hidden[role] = fingerprints[role]
            add(role, written, f"{role}/{_safe(path.name)}", kept)
    for role, written, name, content in computed:
        kept = without_secrets(content, name)
        if kept != content and role in fingerprints:
            hidden[role] = fingerprints[role]
        add(role, written, f"{role}/{name}", kept)
    add("looks", "", "looks.json", looks.encode("utf-8"))
    name = _safe(study.path.name)
    add("study", study.path.name, name, _study_bytes(study))
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


def _safe(name: str) -> str:
    """A file name that every system can unpack; its end, by which readers know the format, stays."""
    kept = "".join(ch if ch.isprintable() and ch not in '\\/:*?"<>|' else "-" for ch in name).lstrip(".")
    return redact(kept)[-120:] or "file"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read for the evidence bundle: {error.strerror or type(error).__name__}"
        fix = "put the file back, or leave the bundle out with --no-evidence"
        raise InputError(Fault(what, fix, file=str(path))) from None


def _sent(study: AnyStudy) -> dict[str, Any]:
    """What a replay recorded of the bodies that went out, which the study file does not state."""
    if isinstance(study, RoutingStudy):
        return {}
    return {arm.name: json.loads(json.dumps(arm.sent, default=str)) for arm in study.arms if arm.sent is not None}


def _study_bytes(study: AnyStudy) -> bytes:
    """The study file byte for byte; where it holds a secret as text, with the secret hidden."""
    from evalkit.study.nodes import walk
    from evalkit.study.secrets import hide_secrets
    from evalkit.study.strict_yaml import load_yaml

    content = _read(study.path)
    before = load_yaml(study.path)
    hidden, _ = hide_secrets(before)
    text = content.decode("utf-8-sig")
    if not hidden.secrets and redact(text) == text:
        return content
    shown = {} if hidden.root is None else {path: scalar.text for path, _, scalar in walk(hidden.root)}
    for path, secret in sorted(hidden.secrets.items(), key=lambda item: len(item[1]), reverse=True):
        kept = json.dumps(shown.get(path, HIDDEN), ensure_ascii=False)
        for quote in ('"', "'"):
            text = text.replace(f"{quote}{secret}{quote}", kept)
        text = text.replace(f": {secret}", f": {kept}").replace(secret, HIDDEN)
    lines = [line.partition("#") for line in text.splitlines(keepends=True)]
    text = "".join(head + (mark + redact(rest) if mark else "") for head, mark, rest in lines)
    _check_hidden(study, text)
    return text.encode("utf-8")


def _check_hidden(study: AnyStudy, text: str) -> None:
    """The study without its secrets must still say the same."""
    import tempfile

    from evalkit.study.nodes import plain
    from evalkit.study.secrets import hide_secrets
    from evalkit.study.strict_yaml import load_yaml

    said = hide_secrets(load_yaml(study.path))[0].root
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        again = hide_secrets(load_yaml(path))[0]
    if again.root is None or said is None or again.secrets or plain(again.root) != plain(said):
        what = "holds a secret as plain text that cannot be taken out of its copy in the evidence bundle"
        fix = "put it into an environment variable (os.environ/NAME), or leave the bundle out with --no-evidence"
        raise InputError(Fault(what, fix, file=str(study.path)))


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


def open_evidence(path: Path, folder: Path) -> Bundle:
    """Unpack a bundle into the empty `folder`. Raises BrokenFileError with every file that is not as it should be.

    What files.json does not name is refused; no name of the zip is used as a path.
    """
    try:
        with zipfile.ZipFile(path) as file:
            return _opened(file, folder)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise BrokenFileError(f"is no zip that can be read: {visible(error, 200)}") from None


def _opened(file: zipfile.ZipFile, folder: Path) -> Bundle:
    infos = {info.filename: info for info in file.infolist()}
    if len(infos) != len(file.infolist()):
        raise BrokenFileError("holds a name twice")
    if len(infos) > MOST_FILES or sum(info.file_size for info in infos.values()) > MOST_BYTES:
        raise BrokenFileError("holds more than a bundle does")
    index = _index(file, infos)
    faults = [f"{visible(name)} is not named in {FILES}" for name in sorted(set(infos) - {FILES, *_names(index)})]
    written: dict[str, str] = {}
    paths: dict[str, Path] = {}
    for row in index["files"]:
        role, name = row["role"], row["name"]
        if name not in infos:
            faults.append(f"{visible(name)} is missing")
            continue
        target = folder / role / _safe(name.rsplit("/", 1)[-1])
        digest, size = _unpack(file, infos[name], target)
        if digest != row["sha256"] or size != row["bytes"]:
            faults.append(f"{visible(name)} is not as {FILES} says: its bytes were changed")
        written[role], paths[role] = str(row["written"]), target
    if faults:
        raise BrokenFileError("; ".join(faults))
    if "study" not in paths or "looks" not in paths:
        raise BrokenFileError("holds no study and record of looks")
    for role in index["hidden"]:
        if role not in paths or not _hides(paths[role]):
            raise BrokenFileError(f"{FILES} says that something is hidden in its {role}, and nothing is")
    options = index["options"]
    return Bundle(
        folder,
        paths.pop("study"),
        written,
        paths,
        RunOptions(tuple(options["thresholds"] or ()), options["seed"], options.get("router")),
        index["sent"],
        tuple(f"{row['role']}: {row['written']}" for row in index["absent"]),
        index["hidden"],
    )


def _hides(path: Path) -> bool:
    """Whether anything was taken out of this copy."""
    content = path.read_bytes()
    try:
        raw = gzip.decompress(content) if path.name.lower().endswith(".gz") else content
    except (OSError, EOFError, zlib.error):
        return False
    return HIDDEN.encode() in raw


def _index(file: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if FILES not in infos or infos[FILES].file_size > _MOST_INDEX:
        raise BrokenFileError(f"holds no {FILES} that can be read")
    index = strict_json(file.read(infos[FILES]))
    if not isinstance(index, dict) or index.get("schema") != SCHEMA:
        raise BrokenFileError(f"{FILES} is none of this version")
    options, rows = index.get("options"), index.get("files")
    sound = (
        isinstance(rows, list)
        and all(_is_row(row) for row in rows)
        and len({row["role"] for row in rows}) == len(rows)
        and isinstance(options, dict)
        and set(options) in ({"thresholds", "seed"}, {"thresholds", "seed", "router"})
        and isinstance(options.get("router"), str | None)
        and isinstance(options["thresholds"], list | None)
        and all(isinstance(text, str) for text in options["thresholds"] or ())
        and type(options["seed"]) in {int, type(None)}
        and isinstance(index.get("sent"), dict)
        and all(isinstance(body, dict) for body in index["sent"].values())
        and isinstance(index.get("hidden"), dict)
        and all(_is_table(role) for role in index["hidden"])
        and all(isinstance(text, str) for text in index["hidden"].values())
        and isinstance(index.get("absent"), list)
        and all(isinstance(row, dict) and _texts(row, "role", "written") for row in index["absent"])
    )
    if not sound:
        raise BrokenFileError(f"{FILES} does not hold what it should")
    return index


_ROLES = {
    "labels",
    "outcomes",
    "scores",
    "decisions",
    "prices",
    "replay",
    "rubric",
    "policy",
    "audit",
    "system_prompt",
    "prompt",
    "looks",
    "study",
    "routers",
    *RUBRIC_ROLES,
}


def _is_table(role: str) -> bool:
    """A table, or one of those that several routers have each: `scores.<name>`, where the name is one."""
    table, point, name = role.partition(".")
    return role in TABLES or (table in _ROUTED and bool(point) and name_problem(name) is None)


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and set(row) == {"role", "written", "name", "sha256", "bytes"}
        and isinstance(row["role"], str)
        and (row["role"] in _ROLES or _is_table(row["role"]))
        and _texts(row, "written", "name", "sha256")
        and type(row["bytes"]) is int
    )


def _texts(row: Mapping[str, Any], *keys: str) -> bool:
    return all(isinstance(row.get(key), str) for key in keys)


def _names(index: Mapping[str, Any]) -> set[str]:
    return {row["name"] for row in index["files"]}


def _unpack(file: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> tuple[str, int]:
    """(sha256, bytes) of a file of the zip, written to `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with file.open(info) as source, target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > info.file_size:
                raise BrokenFileError(f"{visible(info.filename)} is longer than the zip says")
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest(), size
