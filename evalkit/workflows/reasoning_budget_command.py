"""The reasoning-budget command: options in, files and a printed summary out, an exit code back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import Fault, InputError, visible
from evalkit.study.reasoning import override_reasoning, read_reasoning_study
from evalkit.workflows.reasoning_budget import LadderInputs, ReasoningBudget, read_ladder, reasoning_budget
from evalkit.workflows.run_files import report_folder, write_files

__all__ = ["LadderOptions", "run_ladder"]


@dataclass(frozen=True)
class LadderOptions:
    """What the command line gave; None means not given."""

    study: Path | None = None
    out: Path | None = None
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    seed: int | None = None
    quiet: bool = False


def run_ladder(options: LadderOptions) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    if options.study is None:
        what, fix = (
            "no study is named, and none is bundled for reasoning budgets yet",
            "give the path of a study file",
        )
        raise InputError(Fault(what, fix, field="STUDY"))
    study = read_reasoning_study(options.study)
    inputs = read_ladder(override_reasoning(study, seed=options.seed))
    for note in inputs.notices:
        print(f"note: {visible(note, 600)}", file=sys.stderr)
    judged = reasoning_budget(inputs)
    report = _write(options, inputs, judged)
    _print(options, judged, report)
    from evalkit.reporting import exit_code

    return exit_code(judged.document)


def _write(options: LadderOptions, inputs: LadderInputs, judged: ReasoningBudget) -> Path:
    """Render everything, then write each file whole; nothing is written before all of it is rendered."""
    from evalkit.reporting import dump_json, render_junit
    from evalkit.reporting.reasoning import render_ladder_html, render_ladder_markdown

    folder = options.out if options.out is not None else report_folder(inputs.study.name)
    document = judged.document
    files: dict[Path, bytes] = {
        folder / "report.html": render_ladder_html(document).encode("utf-8"),
        folder / "result.json": dump_json(document),
        folder / "items.jsonl.gz": judged.items_gz,
    }
    if options.json_file is not None:
        files[options.json_file] = dump_json(document)
    if options.junit is not None:
        files[options.junit] = render_junit(document).encode("utf-8")
    if options.markdown is not None:
        files[options.markdown] = render_ladder_markdown(document).encode("utf-8")
    write_files(files)
    return folder / "report.html"


def _print(options: LadderOptions, judged: ReasoningBudget, report: Path) -> None:
    from evalkit.reporting.reasoning import advice, render_ladder_terminal

    if options.quiet:
        print(visible(judged.document["verdict"]["headline"], 300))
        print(visible(advice(judged.document).choice, 600))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False, legacy_windows=False)
    render_ladder_terminal(judged.document, console)
    print(f"report: {visible(report, 400)}")
