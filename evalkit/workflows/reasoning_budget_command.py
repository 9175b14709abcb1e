"""The reasoning-budget command: options in, files and a printed summary out, an exit code back."""

from __future__ import annotations

from pathlib import Path

from evalkit.study.bundled import bundled_path
from evalkit.study.reasoning import override_reasoning, read_reasoning_study
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.workflows.evidence_bundle import keep_evidence
from evalkit.workflows.evidence_format import RunOptions
from evalkit.workflows.evidence_study import check_study
from evalkit.workflows.judge_command import (
    JudgeOptions,
    notes,
    outcomes_first,
    output_files,
    print_result,
    write_result,
)
from evalkit.workflows.looks import looks_text
from evalkit.workflows.reasoning_budget import looks_record, read_ladder, reasoning_budget
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["BUNDLED", "run_ladder"]

BUNDLED = "word-problems"
"""The bundled study of this kind."""


def run_ladder(options: JudgeOptions) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    path = options.study if options.study is not None else bundled_path(BUNDLED)
    written = override_reasoning(read_reasoning_study(path), seed=options.seed)
    study = outcomes_first(written, options)
    inputs = read_ladder(study)
    notes(inputs.notices)
    refuse_to_overwrite(_read_files(study), output_files(options, study.name))  # before a look is booked
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
    from evalkit.reporting import exit_code
    from evalkit.reporting.reasoning import (
        advice,
        render_ladder_html,
        render_ladder_markdown,
        render_ladder_terminal,
    )

    document = judged.document
    report = write_result(
        options,
        study.name,
        document,
        judged.items_gz,
        evidence,
        html=render_ladder_html,
        markdown=render_ladder_markdown,
    )
    print_result(options, document, report, render_ladder_terminal, advice(document).choice)
    return exit_code(document)


def _read_files(study: ReasoningStudy) -> list[Path | None]:
    """Every file that the run reads, the record of looks included."""
    tables = [source.path for source in (study.labels, study.outcomes) if source is not None]
    return [study.path, looks_record(study), study.prices, study.rubric, study.policy, *tables]
