"""`evalkit replay`: call the models of a study, keep every reply, and grade them into outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["replay"]


def replay(
    study: Annotated[
        Path | None, typer.Argument(help="A study of either kind (YAML). Without one the bundled routing study.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the run: ledger and outcomes (default: reports/<study>/replay)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls, tokens, USD and time, and stop.")
    ] = False,
    max_spend: Annotated[
        str | None,
        typer.Option("--max-spend", help="USD that all runs of the folder together never pass.", metavar="USD"),
    ] = None,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Ask each item so often.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Most calls in flight to one endpoint.")
    ] = None,
    request_timeout: Annotated[
        float | None, typer.Option("--request-timeout", help="Seconds after which a call is given up.")
    ] = None,
    run_timeout: Annotated[
        float | None, typer.Option("--run-timeout", help="Seconds after which the run ends in good order.")
    ] = None,
    requests_per_minute: Annotated[
        float | None, typer.Option("--requests-per-minute", help="For each endpoint.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option("--tokens-per-minute", help="For each endpoint.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option("--max-attempts", min=1, help="Attempts at one call in one run.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try anew what failed for good: bad requests and refusals.")
    ] = False,
    recorded: Annotated[
        list[Path] | None,
        typer.Option("--recorded", help="Answer from this recording or folder of them. May be repeated."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Call nobody: recordings and the ledger alone answer.")
    ] = False,
    models: Annotated[
        Path | None, typer.Option("--models", help="Folder with the GGUF files of local models.")
    ] = None,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Ask through provider batches: cheaper, within a day. Resumes like any run."),
    ] = False,
    poll_every: Annotated[
        float, typer.Option("--poll-every", min=0.01, help="Seconds between questions whether a batch has ended.")
    ] = 30.0,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Grade what the ledger holds anew; calls no model and no judge.")
    ] = False,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the ledger as JSONL, for --recorded.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write replay.json here too.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the jitter between attempts.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print one line and no progress.")] = False,
) -> None:
    """Collect graded outcomes: every model of a study on every item, each reply kept before it is counted.

    The same command resumes; what has a reply is never paid again. Exit codes: 0 complete, 2 usage or input error,
    3 the judge left too many replies without a verdict, 4 not complete yet (nothing is lost).
    """
    from evalkit.workflows.replay import RunOptions
    from evalkit.workflows.replay_command import ReplayOptions, run_replay
    from evalkit.workflows.replay_options import usd

    run = RunOptions(
        folder=out,
        samples=samples,
        concurrency=concurrency,
        request_timeout_s=request_timeout,
        run_timeout_s=run_timeout,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        max_attempts=max_attempts,
        max_spend_usd=usd("--max-spend", max_spend),
        retry_failed=retry_failed,
        recorded=tuple(recorded or ()),
        live=not offline,
        models=models,
        seed=seed,
        batch=batch,
        poll_s=poll_every,
    )
    options = ReplayOptions(
        study=study,
        run=run,
        dry_run=dry_run,
        regrade=regrade,
        export=export,
        json_file=json_file,
        quiet=quiet,
    )
    raise typer.Exit(run_replay(options))
