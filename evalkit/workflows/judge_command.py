"""What the two commands that judge a study have in common: options, models called first, files written, notes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from evalkit.errors import fitted, visible
from evalkit.workflows.candidates import AnyStudy
from evalkit.workflows.evidence_format import EVIDENCE
from evalkit.workflows.run_files import report_folder, write_files

__all__ = ["JudgeOptions", "note", "notes", "outcomes_first", "output_files", "print_result", "write_result"]

S = TypeVar("S", bound=AnyStudy)

Document = Mapping[str, Any]


@dataclass(frozen=True)
class JudgeOptions:
    """What the command line gave; None means not given."""

    study: Path | None = None
    out: Path | None = None
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    seed: int | None = None
    quiet: bool = False
    max_spend_usd: Decimal | None = None
    models: Path | None = None
    evidence: bool = True


def note(text: str) -> None:
    """Say what somebody should know beside the result, where it cannot be taken for one."""
    print(fitted(f"note: {visible(text, 600)}", sys.stderr), file=sys.stderr)


def notes(texts: Iterable[str]) -> None:
    """Each of them as a `note`."""
    for text in texts:
        note(text)


def outcomes_first(study: S, options: JudgeOptions) -> S:
    """The study with outcomes; where it names none its models are called first."""
    if study.outcomes is not None:
        return study
    from evalkit.workflows.replay import RunOptions
    from evalkit.workflows.replay_command import collected

    run = RunOptions(max_spend_usd=options.max_spend_usd, models=options.models)
    return collected(study, run, quiet=options.quiet)


def output_files(options: JudgeOptions, name: str) -> list[Path]:
    """Every file that judging the study of that name writes: report, result, items and evidence first."""
    folder = options.out if options.out is not None else report_folder(name)
    asked = [options.json_file, options.junit, options.markdown]
    names = ("report.html", "result.json", "items.jsonl.gz", EVIDENCE)
    return [*(folder / file for file in names), *(path for path in asked if path is not None)]


def write_result(
    options: JudgeOptions,
    name: str,
    document: Document,
    items_gz: bytes,
    evidence: bytes | None,
    *,
    html: Callable[[Document], str],
    markdown: Callable[[Document], str],
) -> Path:
    """Render everything, then write each file whole; nothing is written before all of it is rendered.

    The path of the report.
    """
    from evalkit.reporting import dump_json, render_junit

    report, result, items, bundle = output_files(options, name)[:4]
    files: dict[Path, bytes] = {
        report: html(document).encode("utf-8"),
        result: dump_json(document),
        items: items_gz,
        **({} if evidence is None else {bundle: evidence}),
    }
    if options.json_file is not None:
        files[options.json_file] = dump_json(document)
    if options.junit is not None:
        files[options.junit] = render_junit(document).encode("utf-8")
    if options.markdown is not None:
        files[options.markdown] = markdown(document).encode("utf-8")
    write_files(files)
    return report


def print_result(
    options: JudgeOptions, document: Document, report: Path, terminal: Callable[[Document, Any], None], *more: str
) -> None:
    """The verdict and where the report is; with `--quiet` the verdict in one line, and `more` below it."""
    if not document["looks"]["recorded"]:
        note("this look at the labels could not be recorded beside them, so later looks will count too few")
    if options.quiet:
        print(visible(document["verdict"]["headline"], 300))
        for line in more:
            print(visible(line, 600))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False, legacy_windows=False)
    with console.capture() as printed:  # printed as plain text below: rich makes a lost reader exit code 1
        terminal(document, console)
    print(printed.get(), end="")
    print(f"report: {visible(report, 400)}")
