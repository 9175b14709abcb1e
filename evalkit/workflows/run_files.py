"""Where the files of a run go, each written whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from evalkit.errors import Fault, InputError

__all__ = ["refuse_to_overwrite", "report_folder", "write_files"]


def report_folder(name: str) -> Path:
    """The folder of a study's reports where none is named: reports/<its name as one plain folder name>."""
    kept = "".join(ch if ch.isalnum() or ch in "-_." else "-" for ch in name).strip(".-")
    short = kept.encode("utf-8")[:200].decode("utf-8", "ignore")  # bytes: that is what systems limit in a name
    return Path("reports") / (short or "study")


def refuse_to_overwrite(inputs: Iterable[Path | None], outputs: Sequence[Path]) -> None:
    """Raises InputError where a file to write is one that the run reads, or is asked for twice."""
    read = {_same(path) for path in inputs if path is not None}
    faults = []
    written: set[Path] = set()
    for path in outputs:
        if _same(path) in read:
            faults.append(Fault("is a file that this run reads", "name another file to write", file=str(path)))
        elif _same(path) in written and (path.is_file() or not path.exists()):
            faults.append(Fault("is to be written twice", "name a file of its own for each", file=str(path)))
        written.add(_same(path))
    if faults:
        raise InputError(faults)


def _same(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write all files, making their folders, and only then put them in place: where the system refuses one, raises
    InputError and leaves all that stood there as it was."""
    from evalkit.tabular.write import atomic_path

    with ExitStack() as stack:
        for path, content in files.items():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(atomic_path(path)).write_bytes(content)
            except OSError as error:
                what = f"cannot be written: {error.strerror or error.__class__.__name__}"
                fix = "name a folder that can be written with --out, and check the space left"
                raise InputError(Fault(what, fix, file=str(path))) from None
