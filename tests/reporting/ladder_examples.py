"""Results of reasoning-budget studies for the tests of their outputs: real runs on small files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from evalkit.study.reasoning import read_reasoning_study
from evalkit.workflows.reasoning_budget import read_ladder, reasoning_budget
from tests.workflows.ladders import passing, write_ladder, write_runs
from tests.workflows.studies import write_csv

Result = dict[str, Any]

ATTACKS = (
    "</td><script>document.title='pwned'</script>",
    "<img src=x onerror=document.title='pwned'>",
    "&lt;already escaped&gt; a & b < c \"d\" 'e'",
    "{{ 7*7 }} {% raw %} ${x}",
    "a | b | `code` **bold** @someone",
)


def _judged(prepare: Callable[[Path], None]) -> Result:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        return reasoning_budget(read_ladder(read_reasoning_study(folder / "study.yaml"))).document


def _approve(folder: Path) -> None:
    write_runs(folder)
    write_ladder(folder)


def _priced_next(folder: Path) -> None:
    """The step beyond the chosen arm gains measurably, so that the next point has a price."""

    def outcome(i: int, arm: str, s: int) -> dict[str, Any]:
        share = {"plain": 60, "think-1k": 93, "think-4k": 99}[arm]
        return passing(i, arm, s) | {"status": "ok" if (7 * i) % 100 < share else "wrong"}

    write_runs(folder, outcome=outcome)
    write_ladder(folder, risk={"high": {"max_failure": 0.15}, "low": {}}, limits={"min_pass_rate": 0.85})


def _reject(folder: Path) -> None:
    write_runs(folder, 200, outcome=lambda i, a, s: passing(i, a, s) | {"status": "ok" if i % 3 else "wrong"})
    write_ladder(folder)


def _insufficient(folder: Path) -> None:
    def outcome(i: int, arm: str, s: int) -> dict[str, Any]:
        row = passing(i, arm, s)
        if arm == "think-1k" and i % 16 == 9:  # what plain gets wrong too
            row["status"] = "wrong"
        return row | {"status": "budget_exhausted"} if arm == "think-4k" and (i + s) % 11 == 0 else row

    write_runs(folder, 48, samples=3, outcome=outcome)
    write_ladder(folder)


def _unknown_costs(folder: Path) -> None:
    write_runs(folder, 60, outcome=lambda i, a, s: passing(i, a, s) | {"cost_usd": ""})
    write_ladder(folder)


def _one_arm(folder: Path) -> None:
    write_runs(folder, 1, arms=("plain",))
    write_ladder(folder, arms=[{"name": "plain"}], risk=None)
    write_csv(folder / "tasks.csv", [{"id": "t0"}])


def _nothing(folder: Path) -> None:
    write_runs(folder, 20, outcome=lambda i, a, s: {"status": "error", "error": f"HTTP 401 {ATTACKS[0]}"})
    write_ladder(folder)


def _hostile(folder: Path) -> None:
    """Names of arms, models and classes, ids, tasks and replies attack; evalkit's own words stay."""
    names = tuple(f"{attack} {i}"[:95] for i, attack in enumerate(ATTACKS))
    write_runs(
        folder,
        30,
        arms=names,
        outcome=lambda i, a, s: passing(i, "plain", s) | {"reply": ATTACKS[i % 5] + " \x1b[31m\u202e", "model": a},
    )
    rows = [
        {"id": f"{ATTACKS[i % 5]} {i}", "prompt": ATTACKS[(i + 1) % 5] * 40, "risk": ATTACKS[1]} for i in range(30)
    ]
    text = (folder / "runs.csv").read_text(encoding="utf-8")
    for i in reversed(range(30)):
        quoted = '"' + rows[i]["id"].replace('"', '""') + '"'
        text = text.replace(f"\nt{i},", f"\n{quoted},")
    (folder / "runs.csv").write_text(text, encoding="utf-8")
    write_csv(folder / "tasks.csv", rows)
    arms = [{"name": name, "model": name} for name in names]
    write_ladder(folder, arms=arms, risk={ATTACKS[1]: {"max_failure": 0.5}}, description=" ".join(ATTACKS))


ALL: dict[str, Callable[[Path], None]] = {
    "approve": _approve,
    "priced_next": _priced_next,
    "reject": _reject,
    "insufficient": _insufficient,
    "unknown_costs": _unknown_costs,
    "one_arm": _one_arm,
    "nothing_measured": _nothing,
    "hostile": _hostile,
}


@cache
def result(name: str) -> Result:
    """The result of one example; read it only."""
    return _judged(ALL[name])
