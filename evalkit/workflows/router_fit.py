"""`evalkit router fit`: fit a router on labels and write it as a folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.routers.fit import FittedRouter, fit_router, training_sha256
from evalkit.routers.folder import MANIFEST, router_files
from evalkit.routers.leaks import find_leaks
from evalkit.routers.options import fit_options
from evalkit.routers.score import read_train
from evalkit.routers.sketches import sketches_of
from evalkit.routers.stored_embeddings import EMBEDDINGS, embeddings_in
from evalkit.study.models import Router, RoutingStudy
from evalkit.tabular.names import quoted
from evalkit.tabular.write import write_atomic
from evalkit.workflows.labels import show
from evalkit.workflows.router_score import judged_labels, router_named, study_with
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["fit_command", "write_folder"]

_FITTED = ("classifier", "semantic")


def fit_command(
    study: Path,
    *,
    router: str | None,
    out: Path,
    force: bool,
    seed: int | None,
    json_file: Path | None,
    quiet: bool,
) -> None:
    """Fit the router of a study on its training labels. Raises `InputError` with what is wrong with them."""
    read = study_with(study, seed)
    one = router_named(read, router, _FITTED)
    if one.spec is None or one.spec.kind not in _FITTED:
        what = "is not fitted by evalkit"
        raise InputError(
            Fault(what, "name a router of kind: classifier or semantic", file=str(study), field="router")
        )
    _check_target(out, force=force)
    if json_file is not None:
        refuse_to_overwrite([study, read.labels.path, None if one.train is None else one.train.path], [json_file])
    options = fit_options(one, str(study))
    labels, crossed = _training(read, one)
    with embeddings_in(read.base / EMBEDDINGS):
        fitted = fit_router(labels, options, seed=read.seed, cross_fitted=crossed)
    notices = [*read.notices, *labels.notices, *fitted.notices]
    if not crossed:
        notices += _leaks(read, one, fitted)
    files = router_files(fitted)
    write_folder(out, files, force=force)
    if json_file is not None:
        write_atomic(json_file, files[MANIFEST])
    show([] if quiet else _lines(out, fitted, read.base), notices)


def _training(study: RoutingStudy, router: Router) -> tuple[LabelSet, bool]:
    """The labels to fit on, and whether they are those that are judged, so that it is cross-fitted."""
    if router.train is not None:
        return read_train(router.train, study), False
    if router.trained_on == "cross_fitted":
        return judged_labels(study), True
    what = "names no labels to fit on"
    fix = "write train: and a file of labels that are not judged, or trained_on: cross_fitted"
    raise InputError(Fault(what, fix, file=str(study.path), field="router.train"))


def _leaks(study: RoutingStudy, router: Router, fitted: FittedRouter) -> list[str]:
    """Notices of judged items that the router was fitted on, as far as the judged labels are there already.

    Raises `InputError` where the training labels are those that are judged.
    """
    path = study.labels.path
    if path is None or not path.exists():
        return []
    judged = read_train(study.labels, study)  # they may be drawn and not labelled yet
    sketches = sketches_of(judged)
    leaks = find_leaks(fitted.training, sketches)
    if training_sha256(judged, sketches) == fitted.training_sha256 or len(leaks) == len(judged):
        what = f"holds the very items that are judged, {quoted(study.labels.written)}"
        fix = "train on others, or write trained_on: cross_fitted without train"
        written = router.train.written if router.train is not None else ""
        raise InputError(Fault(what, fix, file=written))
    if not leaks:
        return []
    named = ", ".join(f"{quoted(leak.id)} ({leak.kind} {quoted(leak.training)})" for leak in leaks[:10])
    more = f" and {len(leaks) - 10:,} more" if len(leaks) > 10 else ""
    items = "judged item stands" if len(leaks) == 1 else "judged items stand"
    then = "will be left out for all routers (leaks: drop)" if router.leaks == "drop" else "will be refused"
    return [f"{len(leaks):,} {items} in these training labels too, and {then}: {named}{more}"]


def _check_target(out: Path, *, force: bool) -> None:
    """A folder to write: none, an empty one or, with --force, one that holds a fitted router and nothing else."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise InputError(Fault("is not a folder", "name a folder that is not there yet", file=str(out)))
    inside = {path.name for path in out.iterdir()}
    if not inside:
        return
    if MANIFEST not in inside or not inside <= {MANIFEST, "model.skops", "training.jsonl"}:
        raise InputError(Fault("is a folder that holds other files", "name a folder of its own", file=str(out)))
    if not force:
        raise InputError(Fault("holds a fitted router already", "name another, or add --force", file=str(out)))


def write_folder(out: Path, files: Mapping[str, bytes], *, force: bool = False) -> None:
    """Write all files into the folder `out`, which then is there whole or not at all. Raises `InputError`."""
    _check_target(out, force=force)
    mark = secrets.token_hex(6)
    made, old = (out.with_name(f".{out.name[:60]}.{mark}.{kind}") for kind in ("part", "old"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        made.mkdir()
        try:
            for name, data in files.items():
                with (made / name).open("wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
            if out.exists():
                out.rename(old)
            try:
                made.rename(out)
            except OSError:
                with contextlib.suppress(OSError):
                    old.rename(out)
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        fix = "check the folder, its permissions and the space left"
        raise InputError(Fault(what, fix, file=str(out))) from None


def _lines(out: Path, fitted: FittedRouter, base: Path) -> list[str]:
    counts = ", ".join(f"{name} {count:,}" for name, count in fitted.counts.items())
    how = f"{len(fitted.models)} models across folds" if fitted.fold is not None else "one model"
    lines = [f"{out}: {fitted.options.kind}, {fitted.options.estimator}, {how}, on {len(fitted.training):,} items"]
    lines.append(f"required: {counts}")
    if fitted.fold is not None:
        lines.append("Cross-fitted: approximate on these labels, certifiable on labels that it has not seen.")
    written = Path(os.path.relpath(out, base)).as_posix()
    lines.append(f"In the study: model: {written}, trained_on: {fitted.trained_on}")
    return lines
