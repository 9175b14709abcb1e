"""The replay command: options in, a run folder and a printed summary out, an exit code back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from evalkit.errors import Incomplete, Undecided, fitted, visible
from evalkit.replay import Progress
from evalkit.study.bundled import bundled_path
from evalkit.workflows.candidates import AnyStudy
from evalkit.workflows.replay import (
    LEDGER,
    Replayed,
    RunOptions,
    estimate,
    regrade,
    replay,
    run_folder,
    with_outcomes,
)
from evalkit.workflows.replay_result import replay_json
from evalkit.workflows.replay_setup import read_any_study, read_replay
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["ReplayOptions", "collected", "run_replay"]


S = TypeVar("S", bound=AnyStudy)


@dataclass(frozen=True)
class ReplayOptions:
    """What the command line gave; None or empty means not given."""

    study: Path | None = None
    run: RunOptions = field(default_factory=RunOptions)
    dry_run: bool = False
    regrade: bool = False
    export: Path | None = None
    json_file: Path | None = None
    quiet: bool = False


def run_replay(options: ReplayOptions) -> int:
    """Run the command; returns its exit code. Raises InputError for whatever cannot be used."""
    study = read_any_study(options.study if options.study is not None else bundled_path())
    inputs = read_replay(study, samples=options.run.samples)
    folder = run_folder(study, options.run.folder)
    asked = [path for path in (options.export, options.json_file) if path is not None]
    tables = [study.labels.path, study.outcomes.path if study.outcomes is not None else None]
    read = [study.path, study.prices, study.rubric, folder / LEDGER, *tables, *options.run.recorded]
    refuse_to_overwrite(read, [folder / "outcomes.jsonl", folder / "replay.json", *asked])
    if options.dry_run:
        print(f"replay {visible(study.name, 100)}: {estimate(inputs, options.run)}")
        return 0
    if options.regrade:
        replayed = regrade(inputs, options.run)
    else:
        replayed = replay(inputs, options.run, lambda: _progress(options.quiet), _say(options.quiet))
    for note in dict.fromkeys(replayed.notices):
        print(fitted(f"note: {visible(note, 600)}", sys.stderr), file=sys.stderr)
    _write(options, replayed)
    print("\n".join(_summary(study, replayed, quiet=options.quiet)))
    for line in _left(replayed, regraded=options.regrade):
        print(line, file=sys.stderr)
    return replayed.exit_code


def collected(study: S, options: RunOptions, *, quiet: bool) -> S:
    """The study with outcomes: its own, or those of a replay that is run first.

    Raises `Incomplete` where the replay has to be gone on with, and `Undecided` where the judge gave no verdict on
    more replies than the rubric allows.
    """
    if study.outcomes is not None:
        return study
    inputs = read_replay(study, samples=options.samples)
    replayed = replay(inputs, options, lambda: _progress(quiet), _say(quiet))
    if not quiet:
        print("\n".join(_summary(study, replayed, quiet=False)), file=sys.stderr)
    if replayed.exit_code == Incomplete.exit_code:
        raise Incomplete("\n".join(_left(replayed, regraded=False)))
    judged = replayed.graded.judged
    if judged is not None and judged.message is not None:
        raise Undecided(judged.message)
    return cast("S", with_outcomes(study, replayed))


def _say(quiet: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        if not quiet:
            print(fitted(f"to do: {visible(text, 600)}", sys.stderr), file=sys.stderr)

    return say


def _progress(quiet: bool) -> Progress:
    from evalkit.replay import progress_on

    return progress_on(sys.stderr, quiet=quiet)


def _write(options: ReplayOptions, replayed: Replayed) -> None:
    if options.export is not None:
        from evalkit.replay import Ledger
        from evalkit.replay.export import export_jsonl

        with Ledger.read(replayed.folder / LEDGER) as ledger:
            export_jsonl(ledger, options.export)
    if options.json_file is not None:
        from evalkit.tabular.write import write_atomic

        write_atomic(options.json_file, replay_json(replayed.document))


def _summary(study: AnyStudy, replayed: Replayed, *, quiet: bool) -> list[str]:
    """What stdout says: outcomes by candidate and status, both ledgers, the files."""
    graded = replayed.graded
    rows = sum(sum(counts.values()) for counts in graded.statuses.values())
    head = f"replay {visible(study.name, 100)}: {rows:,} outcomes"
    if replayed.summaries:
        kept = replayed.summaries[0].from_ledger
        head += f", {kept:,} of them from the ledger" if kept else ""
    if graded.unreached:
        head += f", {graded.unreached:,} not collected yet"
    if quiet:
        return [head]
    lines = [head]
    width = min(24, max((len(visible(name, 24)) for name in graded.statuses), default=0))
    for name, counts in graded.statuses.items():
        told = ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items(), key=_by_count))
        lines.append(f"  {visible(name, 24):<{width}}  {told or 'nothing yet'}")
    lines += graded.costs.lines()
    if graded.judged is not None:
        lines.append(f"judge: {graded.judged.sentence}")
    if graded.quality is not None:
        lines.append(visible(graded.quality.sentence, 2000))
    lines.append(f"outcomes: {visible(replayed.outcomes, 400)}")
    lines.append(f"ledger: {visible(replayed.folder / LEDGER, 400)}")
    return lines


def _by_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def _left(replayed: Replayed, *, regraded: bool) -> list[str]:
    """What is still to be done, and how."""
    lines = []
    if replayed.exit_code == Incomplete.exit_code:
        ended = [summary.ended for summary in replayed.summaries if summary.ended != "done"]
        failed = sum(sum(summary.failed.values()) - summary.final for summary in replayed.summaries)
        why = [f"the run ended early: {visible(', '.join(ended), 200)}"] if ended else []
        if failed:
            why.append(f"{failed:,} calls failed that may work later")
        if replayed.graded.unreached:
            why.append(f"{replayed.graded.unreached:,} outcomes are not collected yet")
        fix = (
            "run evalkit replay on it"
            if regraded
            else "run the same command again: it resumes, and pays nothing twice"
        )
        lines.append(f"incomplete: {'; '.join(why)}. Nothing that was received is lost. Fix: {fix}.")
    judged = replayed.graded.judged
    if judged is not None and judged.message is not None:
        lines.append(visible(judged.message, 600))
    return lines
