"""Replay from end to end: call what the ledger lacks, grade what it holds, write the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, Incomplete, InputError, visible
from evalkit.providers.batch import BATCH_PROVIDERS
from evalkit.providers.call import Request
from evalkit.replay import CardPricing, Ledger, Pricing, Progress, RunSettings, RunSummary, Silent, run
from evalkit.replay.batch_ledger import open_batches
from evalkit.replay.batch_run import run_in_batches
from evalkit.replay.estimate import estimate_run
from evalkit.replay.manifest import Change, check_manifest, keep_manifest
from evalkit.study.models import Source
from evalkit.tabular.write import write_atomic, write_table
from evalkit.workflows.candidates import AnyStudy
from evalkit.workflows.replay_costs import folder_facts
from evalkit.workflows.replay_facts import SUMMARY
from evalkit.workflows.replay_grade import GradedRun, grade_run
from evalkit.workflows.replay_judge import judge_calls, judge_plan
from evalkit.workflows.replay_manifest import manifest_of
from evalkit.workflows.replay_providers import Providers
from evalkit.workflows.replay_result import replay_document, replay_json
from evalkit.workflows.replay_setup import ReplayInputs
from evalkit.workflows.run_files import report_folder

__all__ = [
    "LEDGER",
    "OUTCOMES",
    "RESULT",
    "Replayed",
    "RunOptions",
    "estimate",
    "regrade",
    "replay",
    "run_folder",
    "settings_of",
    "with_outcomes",
]

LEDGER, OUTCOMES, RESULT = "ledger.sqlite", "outcomes.jsonl", SUMMARY
"""The files of a run folder."""


@dataclass(frozen=True)
class RunOptions:
    """How to collect; None: as the study says. None of it changes an answer but `samples`.

    `live` False calls nobody: `recorded` alone answers. With `batch` the
    candidates are asked through provider batches, whose state is asked for every `poll_s` seconds.
    """

    folder: Path | None = None
    samples: int | None = None
    concurrency: int | None = None
    request_timeout_s: float | None = None
    run_timeout_s: float | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_attempts: int | None = None
    max_spend_usd: Decimal | None = None
    retry_failed: bool = False
    recorded: tuple[Path, ...] = ()
    live: bool = True
    models: Path | None = None
    seed: int | None = None
    batch: bool = False
    poll_s: float = 30.0


@dataclass(frozen=True)
class Replayed:
    """What a replay came to. `summaries` are of the candidates' run and, where there is one, the judge's."""

    folder: Path
    graded: GradedRun
    summaries: tuple[RunSummary, ...]
    changes: tuple[Change, ...]
    document: dict[str, Any]
    notices: tuple[str, ...] = field(default_factory=tuple)

    @property
    def outcomes(self) -> Path:
        """The table of outcomes."""
        return self.folder / OUTCOMES

    @property
    def exit_code(self) -> int:
        """4 where a later run has to go on; 3 where the judge's errors leave the grades undecided; else 0."""
        if self.graded.unreached or any(summary.exit_code for summary in self.summaries):
            return Incomplete.exit_code
        judged = self.graded.judged
        return 3 if judged is not None and judged.exceeded else 0


def run_folder(study: AnyStudy, folder: Path | None = None) -> Path:
    """Where a study's ledger and outcomes are: `folder`, or reports/<study>/replay."""
    return folder if folder is not None else report_folder(study.name) / "replay"


def settings_of(study: AnyStudy, options: RunOptions) -> RunSettings:
    """The settings of the study with those of the command line in their place.

    Raises `InputError` with every one that no run can keep to.
    """
    base = RunSettings.of(
        study.calls.options,
        max_spend_usd=options.max_spend_usd,
        retry_failed=options.retry_failed,
        seed=study.seed if options.seed is None else options.seed,
    )
    given: dict[str, Any] = {
        "concurrency": options.concurrency,
        "request_timeout_s": options.request_timeout_s,
        "run_timeout_s": options.run_timeout_s,
        "requests_per_minute": options.requests_per_minute,
        "tokens_per_minute": options.tokens_per_minute,
        "max_attempts": options.max_attempts,
    }
    faults = []
    settings = base
    for name, value in given.items():
        if value is None:
            continue
        try:
            settings = replace(settings, **{name: value})
        except ValueError:
            what = f"is {value}, which no run can keep to"
            faults.append(
                Fault(what, "give a number above 0", field="--" + name.removesuffix("_s").replace("_", "-"))
            )
    if faults:
        raise InputError(faults)
    return settings


def estimate(inputs: ReplayInputs, options: RunOptions) -> str:
    """What a run would take, in a line. Opens the ledger, where there is one, to read only."""
    path = run_folder(inputs.study, options.folder) / LEDGER
    settings = settings_of(inputs.study, options)
    if not path.is_file():
        return _to_do(inputs, None, settings, batch=options.batch)
    with Ledger.read(path) as ledger:
        old = ledger.manifest()
        if old:
            check_manifest(old, manifest_of(inputs, settings, batch=options.batch), file=path)
        return _to_do(inputs, ledger, settings, batch=options.batch)


def _to_do(inputs: ReplayInputs, ledger: Ledger | None, settings: RunSettings, *, batch: bool) -> str:
    said = str(estimate_run(inputs.plan, ledger, _pricing(inputs, batch=batch), settings))
    judged = judge_calls(inputs)
    if judged:
        most = f"{judged:,} call" if judged == 1 else f"{judged:,} calls"
        said += f"; and at most {most} to the judge, who is asked about the replies (not in these figures)"
    return said


def replay(
    inputs: ReplayInputs,
    options: RunOptions,
    progress: Callable[[], Progress] = Silent,
    said: Callable[[str], None] = lambda text: None,
) -> Replayed:
    """Call every model for what its ledger lacks, grade everything, and write outcomes and summary.

    The same command resumes. Raises `InputError` before any call where the run folder was made with other things,
    a cap cannot be kept, or the folder cannot be written; `Incomplete` where the ledger cannot be written on.
    """
    settings = settings_of(inputs.study, options)
    _check_judge(inputs, settings)
    if options.batch:
        _check_batch(inputs, options)
    folder = run_folder(inputs.study, options.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fix = "name a folder that can be written with --out"
        raise InputError(Fault(f"cannot be made: {error.strerror}", fix, file=str(folder))) from None
    providers = Providers(inputs, options.recorded, options.live, options.models)
    with Ledger.open(folder / LEDGER) as ledger:
        if not options.batch:
            _check_nothing_under_way(ledger)
        changes = keep_manifest(ledger, manifest_of(inputs, settings, batch=options.batch))
        said(_to_do(inputs, ledger, settings, batch=options.batch))
        summaries = asyncio.run(_collect(inputs, options, settings, providers, ledger, progress))
        return _finish(inputs, folder, ledger, summaries, changes, providers.notices)


def regrade(inputs: ReplayInputs, options: RunOptions) -> Replayed:
    """Grade what the ledger holds by the labels and the rubric as they are now. Calls no model and no judge."""
    folder = run_folder(inputs.study, options.folder)
    with Ledger.read(folder / LEDGER) as ledger:
        return _finish(inputs, folder, ledger, (), (), ())


def _finish(
    inputs: ReplayInputs,
    folder: Path,
    ledger: Ledger,
    summaries: tuple[RunSummary, ...],
    changes: tuple[Change, ...],
    notices: Sequence[str],
) -> Replayed:
    """Grade what the ledger holds, and write outcomes and summary."""
    graded = grade_run(inputs, ledger, [summary.run for summary in summaries])
    write_table(folder / OUTCOMES, graded.columns)
    document = replay_document(inputs, graded, summaries, changes, folder_facts(ledger), folder / OUTCOMES)
    write_atomic(folder / RESULT, replay_json(document))
    return Replayed(folder, graded, summaries, changes, document, (*inputs.notices, *notices, *graded.notices))


def _check_judge(inputs: ReplayInputs, settings: RunSettings) -> None:
    """Raises `InputError` where the judge cannot be asked under the cap, before anything is spent on replies."""
    if settings.max_spend_usd is None or inputs.judge is None:
        return
    asked = Request(inputs.judge.model, ({"role": "user", "content": ""},), inputs.judge.params)
    bound = inputs.pricing.most(asked)
    if bound.usd is None:
        what = f"the judge cannot run under a spend cap: {bound.reason}"
        fix = "give it params: {max_tokens: ...} and its model a price, or run without the cap"
        raise InputError(Fault(what, fix, file=str(inputs.rubric.path), field="judge"))


def _pricing(inputs: ReplayInputs, *, batch: bool) -> Pricing:
    """The prices of the candidates' calls."""
    pricing = inputs.pricing
    return replace(pricing, batch=True) if batch and isinstance(pricing, CardPricing) else pricing


def _check_batch(inputs: ReplayInputs, options: RunOptions) -> None:
    """Raises `InputError` where the candidates cannot be asked through batches."""
    faults = []
    if options.recorded or not options.live:
        what = "stands beside --recorded or --offline, which ask nobody"
        faults.append(Fault(what, "leave one of them out", field="--batch"))
    for one in inputs.candidates:
        provider, slash, _ = one.model.partition("/")
        if one.is_local or (slash and provider not in BATCH_PROVIDERS):
            what = f"{visible(one.name, 60)}: {visible(one.model, 100)} cannot be called in batches"
            fix = f"run it without --batch; batches are made at {', '.join(sorted(BATCH_PROVIDERS))}"
            faults.append(Fault(what, fix, file=str(inputs.study.path), field="model"))
    if faults:
        raise InputError(faults)


def _check_nothing_under_way(ledger: Ledger) -> None:
    """Raises `InputError` where a batch may yet answer what would be asked, and paid, a second time."""
    under_way = sum(len(batch.job.keys) for batch in open_batches(ledger))
    if under_way:
        what = f"{under_way:,} calls of this run folder are under way in provider batches"
        fix = "run the same command with --batch, which collects them, or use a new run folder with --out"
        raise InputError(Fault(what, fix, file=str(ledger.path)))


async def _collect(
    inputs: ReplayInputs,
    options: RunOptions,
    settings: RunSettings,
    providers: Providers,
    ledger: Ledger,
    progress: Callable[[], Progress],
) -> tuple[RunSummary, ...]:
    try:
        about = {"purpose": "candidate", "study": inputs.study.name, "prices": inputs.prices}
        pricing = _pricing(inputs, batch=options.batch)
        more: dict[str, Any] = {"pricing": pricing, "about": about}
        if options.batch:
            more["poll_s"] = options.poll_s
            first = await run_in_batches(inputs.plan, providers.batches, ledger, settings, progress(), **more)
        else:
            first = await run(inputs.plan, providers.of, ledger, settings, progress(), **more)
        if inputs.judge is None or first.ended != "done":
            return (first,)
        plan = judge_plan(inputs, ledger, again=settings.retry_failed)
        if not plan.count:
            return (first,)
        about |= {"purpose": "judge"}
        second = await run(
            plan, providers.judge, ledger, settings, progress(), pricing=inputs.pricing, about=about
        )
        return (first, second)
    finally:
        await providers.aclose()


def with_outcomes(study: AnyStudy, replayed: Replayed) -> AnyStudy:
    """The study with the outcomes of a replay; the summary beside them says what went out and what it cost."""
    return replace(study, outcomes=Source(written=OUTCOMES, path=replayed.outcomes))
