"""The route-sweep command: options in, files and a printed summary out, an exit code back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.study import override, read_study
from evalkit.study.bundled import bundled_path
from evalkit.study.models import RoutingStudy
from evalkit.workflows.evidence_bundle import keep_evidence
from evalkit.workflows.evidence_format import EVIDENCE, RunOptions
from evalkit.workflows.evidence_study import check_study
from evalkit.workflows.looks import looks_text
from evalkit.workflows.route_sweep import Inputs, RouteSweep, looks_record, read_inputs, route_sweep
from evalkit.workflows.run_files import refuse_to_overwrite, report_folder, write_files
from evalkit.workflows.target import target_escalation_lines

__all__ = ["Options", "run"]


@dataclass(frozen=True)
class Options:
    """What the command line gave; None or empty means not given."""

    study: Path | None = None
    thresholds: tuple[str, ...] = ()
    router: str | None = None
    target_escalation: str | None = None
    out: Path | None = None
    json_file: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    seed: int | None = None
    quiet: bool = False
    max_spend_usd: Decimal | None = None
    models: Path | None = None
    evidence: bool = True


def run(options: Options) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    target = None if options.target_escalation is None else _rate("--target-escalation", options.target_escalation)
    written = _study(options)
    study = _collected(written, options)
    inputs = read_inputs(study)
    if target is not None:
        for line in target_escalation_lines(inputs, target):
            print(line)
        return 0
    for note in inputs.notices:
        print(fitted(f"note: {visible(note, 600)}", sys.stderr), file=sys.stderr)
    refuse_to_overwrite(_read_files(study), _files(options, study))  # before a look is booked
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
    paths = _write(options, inputs, judged, evidence)
    _print(options, judged, paths)
    from evalkit.reporting import exit_code

    return exit_code(judged.document)


def _study(options: Options) -> RoutingStudy:
    study = read_study(options.study if options.study is not None else bundled_path())
    if options.thresholds or options.seed is not None or options.router is not None:
        thresholds = list(options.thresholds) or None
        study = override(study, threshold=thresholds, seed=options.seed, router=options.router)
    return study


def _collected(study: RoutingStudy, options: Options) -> RoutingStudy:
    """The study with outcomes; where it names none and says how to grade, its models are called first."""
    if study.outcomes is not None or study.rubric is None:
        return study
    from evalkit.workflows.replay import RunOptions
    from evalkit.workflows.replay_command import collected

    run = RunOptions(max_spend_usd=options.max_spend_usd, models=options.models)
    return collected(study, run, quiet=options.quiet)


def _files(options: Options, study: RoutingStudy) -> list[Path]:
    """Every file that the run writes: report, result and items first."""
    folder = options.out if options.out is not None else report_folder(study.name)
    asked = [options.json_file, options.junit, options.markdown]
    names = ("report.html", "result.json", "items.jsonl.gz", EVIDENCE)
    return [*(folder / name for name in names), *(path for path in asked if path is not None)]


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


def _write(options: Options, inputs: Inputs, judged: RouteSweep, evidence: bytes | None) -> dict[str, Path]:
    """Render everything, then write each file whole; nothing is written before all of it is rendered."""
    from evalkit.reporting import dump_json, render_html, render_junit, render_markdown

    report, result, items, bundle = _files(options, inputs.study)[:4]
    document = judged.document
    files: dict[Path, bytes] = {
        report: render_html(document).encode("utf-8"),
        result: dump_json(document),
        items: judged.items_gz,
        **({} if evidence is None else {bundle: evidence}),
    }
    if options.json_file is not None:
        files[options.json_file] = dump_json(document)
    if options.junit is not None:
        files[options.junit] = render_junit(document).encode("utf-8")
    if options.markdown is not None:
        files[options.markdown] = render_markdown(document).encode("utf-8")
    write_files(files)
    return {"report": report, "result": result, "items": items}


def _print(options: Options, judged: RouteSweep, written: dict[str, Path]) -> None:
    from evalkit.reporting import render_terminal

    verdict, looks = judged.document["verdict"], judged.document["looks"]
    if not looks["recorded"]:
        what = "this look at the labels could not be recorded beside them, so later looks will count too few"
        print(fitted(f"note: {what}", sys.stderr), file=sys.stderr)
    if options.quiet:
        print(visible(verdict["headline"], 300))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=False, legacy_windows=False)
    with console.capture() as printed:  # printed as plain text below: rich makes a lost reader exit code 1
        render_terminal(judged.document, console)
    print(printed.get(), end="")
    print(f"report: {visible(written['report'], 400)}")
