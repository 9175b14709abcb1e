"""`evalkit import`: result files of other tools become outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalkit.cli.lazy import WholeGroup

__all__ = ["app"]

app = typer.Typer(
    help="Turn result files and logs of other tools into outcomes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=WholeGroup,
)

_Out = Annotated[Path, typer.Option("--out", help="Outcomes to write: .parquet, .jsonl or .csv.")]
_Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of a file that is not UTF-8.")]
_Records = Annotated[
    str | None, typer.Option("--records", metavar="KEY", help="In a JSON file: the key of the list of records.")
]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but notices.")]


@app.command()
def wide(
    files: Annotated[list[Path], typer.Argument(help="CSV, JSONL, JSON or Parquet, read in this order.")],
    tier: Annotated[
        list[str],
        typer.Option(
            "--tier", metavar="TIER=COLUMN", help="A tier and the column that marks it right (or scores it)."
        ),
    ],
    out: _Out,
    id_column: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="The column of ids.")] = None,
    id_from_row: Annotated[
        bool, typer.Option("--id-from-row", help="Make ids of the file name and the data row, as virology:12.")
    ] = False,
    cost: Annotated[list[str] | None, typer.Option("--cost", metavar="TIER=COLUMN", help="Cost in USD.")] = None,
    input_tokens: Annotated[list[str] | None, typer.Option("--input-tokens", metavar="TIER=COLUMN")] = None,
    cache_read_tokens: Annotated[
        list[str] | None, typer.Option("--cache-read-tokens", metavar="TIER=COLUMN")
    ] = None,
    cache_write_tokens: Annotated[
        list[str] | None, typer.Option("--cache-write-tokens", metavar="TIER=COLUMN")
    ] = None,
    output_tokens: Annotated[list[str] | None, typer.Option("--output-tokens", metavar="TIER=COLUMN")] = None,
    reasoning_tokens: Annotated[
        list[str] | None, typer.Option("--reasoning-tokens", metavar="TIER=COLUMN")
    ] = None,
    latency_s: Annotated[
        list[str] | None, typer.Option("--latency-s", metavar="TIER=COLUMN", help="Seconds to the answer.")
    ] = None,
    latency_ms: Annotated[
        list[str] | None, typer.Option("--latency-ms", metavar="TIER=COLUMN", help="The same in ms.")
    ] = None,
    request_s: Annotated[
        list[str] | None, typer.Option("--request-s", metavar="TIER=COLUMN", help="Seconds of the last request.")
    ] = None,
    request_ms: Annotated[list[str] | None, typer.Option("--request-ms", metavar="TIER=COLUMN")] = None,
    ttft_s: Annotated[
        list[str] | None, typer.Option("--ttft-s", metavar="TIER=COLUMN", help="Seconds to the first token.")
    ] = None,
    ttft_ms: Annotated[list[str] | None, typer.Option("--ttft-ms", metavar="TIER=COLUMN")] = None,
    status: Annotated[
        list[str] | None, typer.Option("--status", metavar="TIER=COLUMN", help="A status of evalkit.")
    ] = None,
    error: Annotated[
        list[str] | None,
        typer.Option("--error", metavar="TIER=COLUMN", help="An error text; such a row is unanswered."),
    ] = None,
    reply: Annotated[
        list[str] | None, typer.Option("--reply", metavar="TIER=COLUMN", help="The text replied.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="TIER=NAME", help="The model's name.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", metavar="FIELD=COLUMN", help="Keep a column as a label field; @file is the file's name."
        ),
    ] = None,
    labels_out: Annotated[
        Path | None, typer.Option("--labels-out", help="Items to write, with the fields of --keep.")
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option("--exclude", help="A file with values whose rows are left out.")
    ] = None,
    exclude_column: Annotated[
        str | None, typer.Option("--exclude-column", metavar="COLUMN", help="Its column of values.")
    ] = None,
    exclude_on: Annotated[
        str | None, typer.Option("--exclude-on", metavar="COLUMN", help="The column compared with them.")
    ] = None,
    encoding: _Encoding = None,
    records: _Records = None,
    quiet: _Quiet = False,
) -> None:
    """One row an item, one column a model: true and false, 1 and 0, or a score from 0 to 1.

    What cannot be mapped is counted and listed, never guessed. Exit codes: 0 written, 2 input error.
    """
    from evalkit.errors import Fault, InputError
    from evalkit.workflows.import_outcomes import run_wide

    left_out = None
    if exclude is not None or exclude_column is not None or exclude_on is not None:
        if exclude is None or exclude_column is None or exclude_on is None:
            raise InputError(
                Fault("--exclude needs --exclude-column and --exclude-on", "give all three", field="--exclude")
            )
        left_out = (exclude, exclude_column, exclude_on)
    run_wide(
        files,
        id_column=id_column,
        id_from_row=id_from_row,
        tiers=tier,
        measures={
            "cost": cost or (),
            "input-tokens": input_tokens or (),
            "cache-read-tokens": cache_read_tokens or (),
            "cache-write-tokens": cache_write_tokens or (),
            "output-tokens": output_tokens or (),
            "reasoning-tokens": reasoning_tokens or (),
            "latency-s": latency_s or (),
            "latency-ms": latency_ms or (),
            "request-s": request_s or (),
            "request-ms": request_ms or (),
            "ttft-s": ttft_s or (),
            "ttft-ms": ttft_ms or (),
        },
        texts={"status": status or (), "error": error or (), "reply": reply or ()},
        models=model or (),
        keep=keep or (),
        labels_out=labels_out,
        exclude=left_out,
        encoding=encoding,
        records=records,
        out=out,
        quiet=quiet,
    )


_Key = "KEY"


@app.command()
def matrix(
    file: Annotated[Path, typer.Argument(help="JSON: {model: {item: {...}}}.")],
    ok: Annotated[str, typer.Option("--ok", metavar=_Key, help="The key with right or wrong, or a score.")],
    out: _Out,
    models: Annotated[
        str | None, typer.Option("--models", help="Models to take as tiers, in this order: a,b. Default: all.")
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option("--tier", metavar="TIER=MODEL", help="A tier and the model it is.")
    ] = None,
    items_outer: Annotated[
        bool, typer.Option("--items-outer", help="The file is {item: {model: {...}}}.")
    ] = False,
    cost: Annotated[str | None, typer.Option("--cost", metavar=_Key, help="Cost in USD.")] = None,
    input_tokens: Annotated[str | None, typer.Option("--input-tokens", metavar=_Key)] = None,
    cache_read_tokens: Annotated[str | None, typer.Option("--cache-read-tokens", metavar=_Key)] = None,
    cache_write_tokens: Annotated[str | None, typer.Option("--cache-write-tokens", metavar=_Key)] = None,
    output_tokens: Annotated[str | None, typer.Option("--output-tokens", metavar=_Key)] = None,
    reasoning_tokens: Annotated[str | None, typer.Option("--reasoning-tokens", metavar=_Key)] = None,
    latency_s: Annotated[
        str | None, typer.Option("--latency-s", metavar=_Key, help="Seconds to the answer.")
    ] = None,
    latency_ms: Annotated[str | None, typer.Option("--latency-ms", metavar=_Key, help="The same in ms.")] = None,
    request_s: Annotated[
        str | None, typer.Option("--request-s", metavar=_Key, help="Seconds of the last request.")
    ] = None,
    request_ms: Annotated[str | None, typer.Option("--request-ms", metavar=_Key)] = None,
    ttft_s: Annotated[
        str | None, typer.Option("--ttft-s", metavar=_Key, help="Seconds to the first token.")
    ] = None,
    ttft_ms: Annotated[str | None, typer.Option("--ttft-ms", metavar=_Key)] = None,
    status: Annotated[str | None, typer.Option("--status", metavar=_Key, help="A status of evalkit.")] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar=_Key, help="An error text; such an entry is unanswered.")
    ] = None,
    reply: Annotated[str | None, typer.Option("--reply", metavar=_Key, help="The text replied.")] = None,
    encoding: _Encoding = None,
    quiet: _Quiet = False,
) -> None:
    """A JSON object of models, each with an object of items.

    What cannot be mapped is counted and listed, never guessed. Exit codes: 0 written, 2 input error.
    """
    from evalkit.workflows.import_outcomes import run_matrix

    run_matrix(
        file,
        ok=ok,
        measures={
            "cost": cost,
            "input-tokens": input_tokens,
            "cache-read-tokens": cache_read_tokens,
            "cache-write-tokens": cache_write_tokens,
            "output-tokens": output_tokens,
            "reasoning-tokens": reasoning_tokens,
            "latency-s": latency_s,
            "latency-ms": latency_ms,
            "request-s": request_s,
            "request-ms": request_ms,
            "ttft-s": ttft_s,
            "ttft-ms": ttft_ms,
        },
        texts={"status": status, "error": error, "reply": reply},
        models=models,
        tiers=tier or (),
        items_outer=items_outer,
        encoding=encoding,
        out=out,
        quiet=quiet,
    )


@app.command()
def long(
    file: Annotated[Path, typer.Argument(help="CSV, JSONL, JSON or Parquet.")],
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="The column of ids.")],
    tier_column: Annotated[
        str, typer.Option("--tier-column", metavar="COLUMN", help="The column that names the model or policy.")
    ],
    ok: Annotated[str, typer.Option("--ok", metavar="COLUMN", help="Right or wrong, or a score.")],
    out: _Out,
    tier: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="TIER=NAME", help="A tier and its name in the file. Default: all names."),
    ] = None,
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="COLUMN", help="The number of the sample.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="COLUMN", help="The model that answered.")
    ] = None,
    cost: Annotated[str | None, typer.Option("--cost", metavar="COLUMN", help="Cost in USD.")] = None,
    input_tokens: Annotated[str | None, typer.Option("--input-tokens", metavar="COLUMN")] = None,
    cache_read_tokens: Annotated[str | None, typer.Option("--cache-read-tokens", metavar="COLUMN")] = None,
    cache_write_tokens: Annotated[str | None, typer.Option("--cache-write-tokens", metavar="COLUMN")] = None,
    output_tokens: Annotated[str | None, typer.Option("--output-tokens", metavar="COLUMN")] = None,
    reasoning_tokens: Annotated[str | None, typer.Option("--reasoning-tokens", metavar="COLUMN")] = None,
    latency_s: Annotated[
        str | None, typer.Option("--latency-s", metavar="COLUMN", help="Seconds to the answer.")
    ] = None,
    latency_ms: Annotated[
        str | None, typer.Option("--latency-ms", metavar="COLUMN", help="The same in ms.")
    ] = None,
    request_s: Annotated[
        str | None, typer.Option("--request-s", metavar="COLUMN", help="Seconds of the last request.")
    ] = None,
    request_ms: Annotated[str | None, typer.Option("--request-ms", metavar="COLUMN")] = None,
    ttft_s: Annotated[
        str | None, typer.Option("--ttft-s", metavar="COLUMN", help="Seconds to the first token.")
    ] = None,
    ttft_ms: Annotated[str | None, typer.Option("--ttft-ms", metavar="COLUMN")] = None,
    status: Annotated[str | None, typer.Option("--status", metavar="COLUMN", help="A status of evalkit.")] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="COLUMN", help="An error text; such a row is unanswered.")
    ] = None,
    reply: Annotated[str | None, typer.Option("--reply", metavar="COLUMN", help="The text replied.")] = None,
    encoding: _Encoding = None,
    records: _Records = None,
    quiet: _Quiet = False,
) -> None:
    """One row an item and model (or policy).

    What cannot be mapped is counted and listed, never guessed. Exit codes: 0 written, 2 input error.
    """
    from evalkit.workflows.import_outcomes import run_long

    run_long(
        file,
        id_column=id_column,
        tier_column=tier_column,
        ok=ok,
        measures={
            "cost": cost,
            "input-tokens": input_tokens,
            "cache-read-tokens": cache_read_tokens,
            "cache-write-tokens": cache_write_tokens,
            "output-tokens": output_tokens,
            "reasoning-tokens": reasoning_tokens,
            "latency-s": latency_s,
            "latency-ms": latency_ms,
            "request-s": request_s,
            "request-ms": request_ms,
            "ttft-s": ttft_s,
            "ttft-ms": ttft_ms,
        },
        texts={"status": status, "error": error, "reply": reply},
        model=model,
        sample=sample,
        tiers=tier or (),
        encoding=encoding,
        records=records,
        out=out,
        quiet=quiet,
    )


@app.command()
def effort(
    file: Annotated[Path, typer.Argument(help="A log with one row a run: CSV, JSONL or Parquet (.gz is fine).")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Outcomes of one ladder to write. Without it the ladders are listed."),
    ] = None,
    tasks_out: Annotated[Path | None, typer.Option("--tasks-out", help="Its tasks, by id, to write.")] = None,
    study_out: Annotated[
        Path | None, typer.Option("--study-out", help="A study of it to write, to be completed with limits.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The set of tasks to take.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="The model to take.")] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option("--arm", help="An arm to take, in budget order (low, budget-16000). Default: all."),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="A file of runs: those whose published rate drops failed runs are named."),
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN")] = "sample_id",
    mark: Annotated[str, typer.Option("--mark", metavar="COLUMN", help="Right or wrong.")] = "correct",
    effort_column: Annotated[str, typer.Option("--effort", metavar="COLUMN")] = "effort",
    budget: Annotated[str, typer.Option("--budget", metavar="COLUMN")] = "budget_tokens",
    sample: Annotated[str, typer.Option("--sample", metavar="COLUMN")] = "epoch",
    task_column: Annotated[str, typer.Option("--task-column", metavar="COLUMN")] = "task",
    model_column: Annotated[str, typer.Option("--model-column", metavar="COLUMN")] = "model",
    latency_s: Annotated[str, typer.Option("--latency-s", metavar="COLUMN")] = "total_time_s",
    encoding: _Encoding = None,
    quiet: _Quiet = False,
) -> None:
    """Logs of reasoning runs by effort or thinking budget: list their ladders, or write one as a study's files.

    Ungraded runs count as unanswered, never left out. Token counts stay as they are; the study settles whether
    reasoning stands inside the output or beside it. Exit codes: 0 done, 2 input error.
    """
    from evalkit.outcomes.importers.effort import EffortColumns
    from evalkit.workflows.import_effort import run_effort

    run_effort(
        file,
        columns=EffortColumns(
            id=id_column,
            mark=mark,
            model=model_column,
            task=task_column,
            sample=sample,
            effort=effort_column,
            budget=budget,
            task_s=latency_s,
        ),
        task=task,
        model=model,
        arms=arm or (),
        out=out,
        tasks_out=tasks_out,
        study_out=study_out,
        runs=runs,
        encoding=encoding,
        quiet=quiet,
    )


@app.command()
def logs(
    files: Annotated[
        list[Path], typer.Argument(help="Logs as JSONL, JSON or CSV (.gz is fine), in any mix of formats.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Outcomes to write, to be graded: .parquet, .jsonl or .csv.")
    ] = None,
    requests_out: Annotated[
        Path | None, typer.Option("--requests-out", help="Requests to write, for evalkit labels sample.")
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="TIER=MODEL", help="A tier and its model in the log. Default: all models."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model of calls whose log names none, as a batch's failures do not."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="A price card, to compute cost_usd beside the logged cost.")
    ] = None,
    encoding: _Encoding = None,
    quiet: _Quiet = False,
) -> None:
    """Logs of LiteLLM, OpenTelemetry GenAI, OpenInference, Langfuse, Helicone, batches and RouterArena.

    Token counts come in one normal form. No log knows whether a reply was good enough, so no row is right or
    wrong unless the log holds a grade. What cannot be mapped is counted and listed, never guessed. Exit codes:
    0 written, 2 input error.
    """
    from evalkit.workflows.import_logs import run_logs

    run_logs(
        files,
        out=out,
        requests_out=requests_out,
        tiers=tier or (),
        model=model,
        prices=prices,
        encoding=encoding,
        quiet=quiet,
    )
