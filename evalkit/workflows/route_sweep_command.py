"""The route-sweep command: options in, files and a printed summary out, an exit code back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import Fault, InputError, visible
from evalkit.study import override, read_study
from evalkit.study.bundled import bundled_path
from evalkit.study.models import RoutingStudy
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
from evalkit.workflows.route_sweep import looks_record, read_inputs, route_sweep
from evalkit.workflows.run_files import refuse_to_overwrite
from evalkit.workflows.target import target_escalation_lines

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options(JudgeOptions):
    """What the command line gave; None or empty means not given."""

    thresholds: tuple[str, ...] = ()
    router: str | None = None
    target_escalation: str | None = None


def run(options: Options) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    target = None if options.target_escalation is None else _rate("--target-escalation", options.target_escalation)
    written = _study(options)
    study = written if written.rubric is None else outcomes_first(written, options)
    inputs = read_inputs(study)
    if target is not None:
        for line in target_escalation_lines(inputs, target):
            print(line)
        return 0
    notes(inputs.notices)
    refuse_to_overwrite(_read_files(study), output_files(options, study.name))  # before a look is booked
    if options.evidence:
        check_study(study)
    judged = route_sweep(inputs)
    evidence = keep_evidence(
        judged.document,
        study,
        RunOptions(options.thresholds, options.seed, options.router),
        looks_text(looks_record(study), inputs.labels.fingerprint),
        declared_outcomes=written.outcomes is not None,
        keep=options.evidence,
        labels=inputs.all_labels,
        computed=inputs.recorded,
    )
    from evalkit.reporting import exit_code, render_html, render_markdown, render_terminal

    document = judged.document
    report = write_result(
        options, study.name, document, judged.items_gz, evidence, html=render_html, markdown=render_markdown
    )
    print_result(options, document, report, render_terminal)
    return exit_code(document)


def _study(options: Options) -> RoutingStudy:
    study = read_study(options.study if options.study is not None else bundled_path())
    if options.thresholds or options.seed is not None or options.router is not None:
        thresholds = list(options.thresholds) or None
        study = override(study, threshold=thresholds, seed=options.seed, router=options.router)
    return study


def _read_files(study: RoutingStudy) -> list[Path | None]:
    """Every file that the run reads, the record of looks included."""
    sources = [study.labels, study.outcomes]
    sources += [source for r in study.all_routers for source in (r.scores, r.decisions, r.train)]
    tables = [source.path for source in sources if source is not None]
    rules = [router.spec.path for router in study.all_routers if router.spec is not None]
    named = [study.prices, study.rubric, study.policy, study.audit]
    return [study.path, looks_record(study), *named, *tables, *rules]


def _rate(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise InputError(
            Fault(f'"{visible(text, 60)}" is not a share from 0 to 1', "give for example 0.3", field=option)
        )
    return value
