"""The reasoning-budget command: options in, files and a printed summary out, an exit code back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from evalkit.errors import fitted, visible
from evalkit.study.bundled import bundled_path
from evalkit.study.reasoning import override_reasoning, read_reasoning_study
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.workflows.evidence_bundle import keep_evidence
from evalkit.workflows.evidence_format import EVIDENCE, RunOptions
from evalkit.workflows.evidence_study import check_study
from evalkit.workflows.looks import looks_text
from evalkit.workflows.reasoning_budget import (
    LadderInputs,
    ReasoningBudget,
    looks_record,
    read_ladder,
    reasoning_budget,
)
from evalkit.workflows.run_files import refuse_to_overwrite, report_folder, write_files

__all__ = ["BUNDLED", "LadderOptions", "run_ladder"]

BUNDLED = "word-problems"
"""The bundled study of this kind."""


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
    max_spend_usd: Decimal | None = None
    models: Path | None = None
    evidence: bool = True


def run_ladder(options: LadderOptions) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    path = options.study if options.study is not None else bundled_path(BUNDLED)
    written = override_reasoning(read_reasoning_study(path), seed=options.seed)
    study = _collected(written, options)
    inputs = read_ladder(study)
    for note in inputs.notices:
        print(fitted(f"note: {visible(note, 600)}", sys.stderr), file=sys.stderr)
    refuse_to_overwrite(_read_files(study), list(_files(options, study)))  # before a look is booked
    if options.evidence:
        check_study(study)
    judged = reasoning_budget(inputs)
    evidence = keep_evidence(
        judged.document,
        study,
        RunOptions(seed=options.seed),
        looks_text(looks_record(study), inputs.labels.fingerprint),
        declared_outcomes=written.outcomes is not None,
        keep=options.evidence,
        labels=inputs.labels,
    )
    report = _write(options, inputs, judged, evidence)
    _print(options, judged, report)
    from evalkit.reporting import exit_code

    return exit_code(judged.document)


def _collected(study: ReasoningStudy, options: LadderOptions) -> ReasoningStudy:
    """The study with outcomes; where it names none its models are called first."""
    if study.outcomes is not None:
        return study
    from evalkit.workflows.replay import RunOptions
    from evalkit.workflows.replay_command import collected

    run = RunOptions(max_spend_usd=options.max_spend_usd, models=options.models)
    return collected(study, run, quiet=options.quiet)


def _files(options: LadderOptions, study: ReasoningStudy) -> list[Path]:
    """Every file that the run writes: report, result and items first."""
    folder = options.out if options.out is not None else report_folder(study.name)
    asked = [options.json_file, options.junit, options.markdown]
    names = ("report.html", "result.json", "items.jsonl.gz", EVIDENCE)
    return [*(folder / name for name in names), *(path for path in asked if path is not None)]


def _read_files(study: ReasoningStudy) -> list[Path | None]:
    """Every file that the run reads, the record of looks included."""
    tables = [source.path for source in (study.labels, study.outcomes) if source is not None]
    return [study.path, looks_record(study), study.prices, study.rubric, study.policy, *tables]


def _write(options: LadderOptions, inputs: LadderInputs, judged: ReasoningBudget, evidence: bytes | None) -> Path:
    """Render everything, then write each file whole; nothing is written before all of it is rendered."""
    from evalkit.reporting import dump_json, render_junit
    from evalkit.reporting.reasoning import render_ladder_html, render_ladder_markdown

    report, result, items, bundle = _files(options, inputs.study)[:4]
    document = judged.document
    files: dict[Path, bytes] = {
        report: render_ladder_html(document).encode("utf-8"),
        result: dump_json(document),
        items: judged.items_gz,
        **({} if evidence is None else {bundle: evidence}),
    }
    if options.json_file is not None:
        files[options.json_file] = dump_json(document)
    if options.junit is not None:
        files[options.junit] = render_junit(document).encode("utf-8")
    if options.markdown is not None:
        files[options.markdown] = render_ladder_markdown(document).encode("utf-8")
    write_files(files)
    return report


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
