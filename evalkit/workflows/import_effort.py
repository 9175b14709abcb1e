"""`evalkit import effort`: read a log of reasoning runs, list its ladders, write one as the files of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evalkit.errors import Fault, InputError
from evalkit.outcomes.importers.effort import (
    EFFORT_ORDER,
    PLAIN,
    EffortColumns,
    EffortLog,
    LadderTable,
    published_rates,
    read_effort,
)
from evalkit.tabular.write import check_table_suffix, write_atomic, write_table
from evalkit.workflows.labels import show

__all__ = ["ladder_lines", "run_effort", "study_text"]


def run_effort(
    file: Path,
    *,
    columns: EffortColumns,
    task: str | None,
    model: str | None,
    arms: Sequence[str],
    out: Path | None,
    tasks_out: Path | None,
    study_out: Path | None,
    runs: Path | None,
    encoding: str | None,
    quiet: bool,
) -> None:
    """List the ladders of a log or, with `out`, write one; `runs` is checked for rates that drop failures."""
    if out is not None:
        check_table_suffix(out)
    if tasks_out is not None:
        check_table_suffix(tasks_out)
    if out is None and (tasks_out is not None or study_out is not None):
        what = "--tasks-out and --study-out belong to --out"
        raise InputError(Fault(what, "give --out too", field="--out"))
    if study_out is not None and tasks_out is None:
        raise InputError(Fault("--study-out needs --tasks-out", "give both", field="--study-out"))
    log = read_effort(file, columns, encoding=encoding)
    notices = list(log.notices)
    if out is None:
        lines = ladder_lines(log, task, model)
    else:
        lines = _written(log.table(task, model, arms), out, tasks_out, study_out)
    if runs is not None:
        differing, total = published_rates(runs)
        lines.append(f"{runs}: {len(differing):,} of {total:,} runs publish a rate that drops failed runs")
        notices += [rate.sentence() for rate in differing]
    show([] if quiet else lines, notices)


def ladder_lines(log: EffortLog, task: str | None = None, model: str | None = None) -> list[str]:
    """A line for each arm of every ladder of two arms or more: pass rate with failures as wrong, tokens, gaps."""
    lines, single = [f"{log.file}: {len(log):,} rows"], 0
    for t, j, arms in log.ladders():
        if (task is not None and log.tasks[t] != task) or (model is not None and log.models[j] != model):
            continue
        if len(arms) < 2 and model is None:
            single += 1
            continue
        lines.append(f"{log.models[j]} on {log.tasks[t] or 'its tasks'}")
        rows = log.rows_of(t, j)
        for a in arms:
            lines.append("  " + _arm_line(log, rows[log.arm[rows] == a], log.arms[a]))
    if single:
        lines.append(f"{single:,} pairs of tasks and model have one arm only: no ladder")
    return lines


def _arm_line(log: EffortLog, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]], name: str) -> str:
    right = int((log.mark[rows] == 1).sum())
    parts = [f"{name}: {len(rows):,} rows, {100 * right / len(rows):.2f} % right, failures counted as wrong"]
    output = log.numbers.get("output_tokens")
    if output is not None:
        known = output[rows][~np.isnan(output[rows])]
        if len(known):
            parts.append(f"{known.mean():,.0f} output tokens on average")
        if len(known) < len(rows):
            parts.append(f"{len(rows) - len(known):,} rows without usage")
        reasoning = log.numbers.get("reasoning_tokens")
        if reasoning is not None:
            above = int((reasoning[rows] > output[rows]).sum())
            if above:
                parts.append(f"{above:,} rows have more reasoning than output")
    ungraded = int((log.mark[rows] < 0).sum())
    if ungraded:
        parts.append(f"{ungraded:,} ungraded")
    return "; ".join(parts)


def _written(ladder: LadderTable, out: Path, tasks_out: Path | None, study_out: Path | None) -> list[str]:
    write_table(out, ladder.columns)
    rows = len(ladder.columns["id"])
    lines = [f"{out}: {rows:,} rows, {len(ladder.items):,} tasks, arms {', '.join(ladder.arms)}"]
    if tasks_out is not None:
        write_table(tasks_out, {"id": list(ladder.items)})
        lines.append(f"{tasks_out}: {len(ladder.items):,} tasks; add prompt and risk where you have them")
    if study_out is not None and tasks_out is not None:
        write_atomic(study_out, study_text(ladder, out, tasks_out, study_out))
        lines.append(f"{study_out}: a study to complete with limits and prices")
    return lines


def study_text(ladder: LadderTable, outcomes: Path, tasks: Path, study: Path) -> str:
    """A reasoning-budget study of the ladder, without limits: what they are is for its owner to say."""
    name = "".join(ch if ch.isalnum() or ch in "-_." else "-" for ch in f"{ladder.task or 'tasks'}-{ladder.model}")
    lines = [
        f"study: {name.strip('.-')[:80]}",
        "kind: reasoning-budget",
        f"labels: {_beside(tasks, study)}",
        f"outcomes: {_beside(outcomes, study)}",
        "arms:",
    ]
    for arm in ladder.arms:
        asked = []
        for part in arm.split("+"):
            if part.startswith("budget-"):
                asked.append(f"budget_tokens: {part.removeprefix('budget-')}, min_budget_tokens: 0")
            elif part in EFFORT_ORDER:
                asked.append(f'effort: "{part}"')
        said = f", {asked[0]}" if len(asked) == 1 and arm != PLAIN else ""
        lines.append(f'  - {{name: "{_escaped(arm)}", model: "{_escaped(ladder.model)}"{said}}}')
    lines += ["# prices: prices.yaml", "# limits: {min_pass_rate: 0.85}", "# value_per_point_usd: 0.002"]
    return "\n".join(lines) + "\n"


def _beside(file: Path, study: Path) -> str:
    """The name of a file as the study gives it: relative to its folder where it is below it."""
    whole, folder = file.resolve(), study.resolve().parent
    name = whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else whole.as_posix()
    return f'"{_escaped(name)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
