"""The compare command: two run folders in, what differs out, an exit code by the conditions that were asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, redact
from evalkit.workflows.run_files import refuse_to_overwrite, write_files

__all__ = ["CompareOptions", "compare_folders", "run"]


@dataclass(frozen=True)
class CompareOptions:
    """What the command line gave."""

    base: Path
    candidate: Path
    base_arm: str | None = None
    candidate_arm: str | None = None
    fail_on: tuple[str, ...] = ()
    json_file: Path | None = None
    markdown: Path | None = None
    quiet: bool = False


def run(options: CompareOptions) -> int:
    """Compare and print; the exit code. Raises InputError for whatever cannot be used."""
    from evalkit.signoff.fail_on import exit_code, parse_conditions

    conditions = parse_conditions(options.fail_on)
    asked = [path for path in (options.json_file, options.markdown) if path is not None]
    read = [folder / name for folder in (options.base, options.candidate) for name in _READ]
    refuse_to_overwrite(read, asked)
    arms = options.base_arm, options.candidate_arm
    document = compare_folders(options.base, options.candidate, conditions, arms)
    from evalkit.reporting.comparison import render_comparison_markdown, render_comparison_terminal

    files: dict[Path, bytes] = {}
    if options.json_file is not None:
        files[options.json_file] = _json(document)
    if options.markdown is not None:
        files[options.markdown] = render_comparison_markdown(document).encode("utf-8")
    write_files(files)
    if not options.quiet:
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=False, legacy_windows=False)
        with console.capture() as printed:  # printed as plain text below: rich makes a lost reader exit code 1
            render_comparison_terminal(document, console)
        print(printed.get(), end="")
    return exit_code(document["fail_on"])


_READ = ("result.json", "items.jsonl.gz", "report.html")


def compare_folders(
    base: Path,
    candidate: Path,
    conditions: tuple[tuple[str, str | None], ...] = (),
    arms: tuple[str | None, str | None] = (None, None),
) -> dict[str, Any]:
    """The comparison of two run folders, with `fail_on` judged; `arms` of ladders other than those they show.

    InputError with the faults of both folders.
    """
    from evalkit.signoff.compare import compare
    from evalkit.signoff.fail_on import judge_conditions
    from evalkit.signoff.run_folder import Run, read_run

    faults: list[Fault] = []
    runs: list[Run] = []
    for folder, arm in zip((base, candidate), arms, strict=True):
        try:
            runs.append(read_run(folder, arm))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    document = compare(*runs)
    return document | {"fail_on": judge_conditions(document, conditions)}


def _json(document: dict[str, Any]) -> bytes:
    """Strict JSON, the same bytes for the same comparison, secrets hidden."""
    text = json.dumps(_hidden(document), indent=1, ensure_ascii=False, allow_nan=False)
    # A lone surrogate has no UTF-8 form; JSON's own escape keeps it.
    return (text + "\n").encode("utf-8", "backslashreplace")


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _hidden(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value
