"""The folder of a fitted router: `router.json` says what it is, `model.skops` is it, `training.jsonl` what it saw.

The training items are kept as hashes (`sketches`), to find leaks later; no text of them is kept. Everything
read from a folder is checked, as if a stranger had made it, and each file against the hash that `router.json`
has of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from evalkit.errors import Fault, InputError, visible
from evalkit.labels.labelset import UNSOLVABLE
from evalkit.routers.fit import FittedRouter, versions_of
from evalkit.routers.model_file import model_bytes, read_models
from evalkit.routers.options import EMBEDDED, WORDLLAMA, options_of
from evalkit.routers.sketches import MOST_HASHES, MOST_LEVEL, Hashes, Sketches, joined
from evalkit.study.files import read_text

__all__ = ["MANIFEST", "SCHEMA", "StoredRouter", "read_router", "router_files"]

SCHEMA = "evalkit.router/1"
MANIFEST, MODEL, TRAINING = "router.json", "model.skops", "training.jsonl"
MOST_BYTES = 1_000_000_000


@dataclass(frozen=True)
class StoredRouter:
    """A fitted router as read from a folder. `sha256` is that of its manifest, which has those of its files."""

    fitted: FittedRouter
    sha256: str
    model_sha256: str


def router_files(fitted: FittedRouter) -> dict[str, bytes]:
    """The files of a fitted router by name; the same router gives the same bytes."""
    model = model_bytes(fitted.models)
    rows = [json.dumps({"common": _packed(fitted.training.common)}) + "\n"]
    for i, name in enumerate(fitted.training.ids):
        start, end = fitted.training.edges[i], fitted.training.edges[i + 1]
        row: dict[str, Any] = {"id": name, "text": fitted.training.whole[i], "group": fitted.training.group[i]}
        if fitted.fold is not None:
            row["fold"] = int(fitted.fold[i])
        row["level"] = int(fitted.training.level[i])
        row["sketch"] = _packed(fitted.training.hashes[start:end])
        rows.append(json.dumps(row, ensure_ascii=True) + "\n")
    training = "".join(rows).encode("ascii")
    manifest = {
        "schema": SCHEMA,
        "kind": fitted.options.kind,
        "trained_on": fitted.trained_on,
        "tiers": list(fitted.tiers),
        "options": {k: v for k, v in fitted.options.as_json().items() if k != "kind"},
        "seed": fitted.seed,
        "models": len(fitted.models),
        "training": {
            "items": len(fitted.training),
            "sha256": fitted.training_sha256,
            "counts": dict(fitted.counts),
        },
        "embedding_sha256": fitted.embedding_sha256,
        "files": {MODEL: hashlib.sha256(model).hexdigest(), TRAINING: hashlib.sha256(training).hexdigest()},
        "versions": dict(fitted.versions),
    }
    text = json.dumps(manifest, ensure_ascii=True, indent=2) + "\n"
    return {MANIFEST: text.encode("ascii"), MODEL: model, TRAINING: training}


def read_router(folder: str | Path) -> StoredRouter:
    """The fitted router in a folder. Raises `InputError`: no such folder, a file that is missing, changed,
    damaged or holds what no fitted router has. Nothing in it is executed."""
    at = Path(folder)
    if not at.is_dir():
        what = "there is no such folder of a fitted router"
        raise InputError(Fault(what, "fit one: evalkit router fit STUDY --out DIR", file=str(folder)))
    manifest_file = str(at / MANIFEST)
    text = read_text(manifest_file)
    document = _object(text, manifest_file)
    said = _Said(document, manifest_file)
    if document.get("schema") != SCHEMA:
        raise said.fault("schema", f"is not {SCHEMA}")
    kind = said.one_of("kind", ("classifier", "semantic"))
    given = said.mapping("options")
    options = options_of(cast(Literal["classifier", "semantic"], kind), given, manifest_file, "options")
    trained_on = said.one_of("trained_on", ("other_items", "cross_fitted"))
    tiers = said.names("tiers")
    about = said.mapping("training")
    files = {name: _bytes(at / name) for name in (MODEL, TRAINING)}
    hashes = said.mapping("files")
    for name, data in files.items():
        if hashes.get(name) != hashlib.sha256(data).hexdigest():
            what = f"is not the file that {MANIFEST} was written with: it was changed or damaged"
            raise InputError(Fault(what, "fit the router again", file=str(at / name)))
    folds = said.number("models", 1, 20)
    crossed = trained_on == "cross_fitted"
    training, fold = _training(files[TRAINING], str(at / TRAINING), folds if crossed else None)
    models = read_models(files[MODEL], str(at / MODEL))
    if len(models) != folds or crossed != (folds > 1):
        raise said.fault("models", f"is {folds}, and the file holds {len(models)}")
    if about.get("items") != len(training):
        raise said.fault("training", f"counts other items than the {len(training):,} of {TRAINING}")
    for model in models:
        _check_classes(model, len(tiers), str(at / MODEL))
    embedded = document.get("embedding_sha256")
    if EMBEDDED in options.features and options.embedding == WORDLLAMA:
        _check_embedding(embedded, str(at))
    versions = said.mapping("versions")
    fitted = FittedRouter(
        options=options,
        tiers=tiers,
        trained_on=cast(Literal["other_items", "cross_fitted"], trained_on),
        seed=said.number("seed", 0, 2**32 - 1),
        models=tuple(models),
        training=training,
        counts=_counts(said, about, tiers),
        training_sha256=str(about.get("sha256")),
        versions=versions,
        embedding_sha256=embedded if isinstance(embedded, str) else None,
        fold=fold,
        notices=_versions(versions, str(at)),
    )
    return StoredRouter(fitted, hashlib.sha256(text.encode()).hexdigest(), str(hashes[MODEL]))


def _packed(hashes: Hashes) -> str:
    return base64.b64encode(hashes.astype("<u4").tobytes()).decode("ascii")


def _unpacked(text: Any) -> Hashes:
    """The hashes, ascending. Raises ValueError or TypeError where they are none."""
    found = np.frombuffer(base64.b64decode(text, validate=True), dtype="<u4").astype(np.uint32)
    if not bool((np.diff(found.astype(np.int64)) > 0).all()):
        raise ValueError("the hashes do not ascend")
    return found


class _Said:
    """Fields of a manifest, each checked as it is read."""

    def __init__(self, document: Mapping[str, Any], file: str) -> None:
        self.document, self.file = document, file

    def fault(self, field: str, what: str) -> InputError:
        return InputError(Fault(what, "fit the router again", file=self.file, field=field))

    def one_of(self, field: str, allowed: tuple[str, ...]) -> str:
        value = self.document.get(field)
        if value not in allowed:
            raise self.fault(field, f"is {visible(value)}; allowed: {', '.join(allowed)}")
        return str(value)

    def mapping(self, field: str) -> dict[str, Any]:
        value = self.document.get(field)
        if not isinstance(value, dict):
            raise self.fault(field, "is not an object")
        return value

    def names(self, field: str) -> tuple[str, ...]:
        value = self.document.get(field)
        if not isinstance(value, list) or not 2 <= len(value) <= 100 or not all(isinstance(v, str) for v in value):
            raise self.fault(field, "is not a list of names")
        return tuple(value)

    def number(self, field: str, low: int, high: int) -> int:
        value = self.document.get(field)
        if type(value) is not int or not low <= value <= high:
            raise self.fault(field, f"is {visible(value)}, not a whole number from {low} to {high}")
        return int(value)


def _object(text: str, file: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = f"is not JSON: {visible(error)}"
        raise InputError(Fault(what, "fit the router again", file=file)) from None
    if not isinstance(found, dict):
        raise InputError(Fault("is no JSON object", "fit the router again", file=file))
    return found


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            what = f"has more than {MOST_BYTES:,} bytes"
            raise InputError(Fault(what, "check that this is a fitted router", file=str(path)))
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read: {visible(error.strerror or error)}"
        raise InputError(Fault(what, "fit the router again", file=str(path))) from None


def _training(data: bytes, file: str, folds: int | None) -> tuple[Sketches, Any]:
    """Sketches and folds of the training items."""
    ids, whole, group, made, fold = [], [], [], [], []
    common: Hashes = np.empty(0, dtype=np.uint32)
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = json.loads(line)
            if number == 1:
                common = _unpacked(row["common"])
                continue
            hashes = _unpacked(row["sketch"])
            level = row["level"]
            texts = (row["text"], row["group"])
            sound = (
                isinstance(row["id"], str)
                and all(t is None or (isinstance(t, str) and len(t) == 32) for t in texts)
                and type(level) is int
                and 0 <= level <= MOST_LEVEL
                and len(hashes) <= MOST_HASHES
                and (folds is None or (type(row.get("fold")) is int and 0 <= row["fold"] < folds))
            )
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error):
            sound = False
        if not sound:
            what = "is not what is kept of a training item"
            raise InputError(Fault(what, "fit the router again", file=file, line=number))
        ids.append(row["id"])
        whole.append(row["text"])
        group.append(row["group"])
        made.append((level, hashes))
        fold.append(row.get("fold", -1))
    return joined(ids, whole, group, made, common), None if folds is None else np.array(fold, dtype=np.int16)


def _counts(said: _Said, about: Mapping[str, Any], tiers: tuple[str, ...]) -> dict[str, int]:
    counts = about.get("counts")
    if not isinstance(counts, dict) or set(counts) != {*tiers, UNSOLVABLE}:
        raise said.fault("training", "does not count the items by required tier")
    if not all(type(n) is int and n >= 0 for n in counts.values()):
        raise said.fault("training", "has counts that are no counts")
    if sum(counts.values()) != about.get("items"):
        raise said.fault("training", "counts other items by required tier than in all")
    return {name: counts[name] for name in (*tiers, UNSOLVABLE)}


def _check_classes(model: Any, tiers: int, file: str) -> None:
    """Its classes are places of tiers."""
    try:
        classes = np.asarray(model.classes_)
        sound = classes.ndim == 1 and classes.dtype.kind in "iu" and set(classes.tolist()) <= set(range(tiers))
    except Exception:  # noqa: BLE001 (whatever a file made of it)
        sound = False
    if not sound:
        what = "its classes are not the places of the tiers"
        raise InputError(Fault(what, "fit the router again", file=file))


def _check_embedding(recorded: object, file: str) -> None:
    from evalkit.routers.embeddings import wordllama_weights_sha256

    if recorded != wordllama_weights_sha256():
        what = "was fitted on embeddings of other weights than those of the wordllama that is installed"
        raise InputError(Fault(what, "install the version in router.json, or fit the router again", file=file))


def _versions(made: Mapping[str, Any], file: str) -> tuple[str, ...]:
    """A notice where a package that scores depend on is another version here."""
    here = versions_of(embedded="wordllama" in made)
    differ = [
        f"{name} {visible(made.get(name))} (here {here[name]})"
        for name in ("evalkit", "scikit-learn")
        if name in here and made.get(name) != here[name]
    ]
    return (f"{file}: was fitted with {', '.join(differ)}: its scores may differ a little",) if differ else ()
