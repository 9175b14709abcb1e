"""Sign-offs that approve, reject and leave open, each of real small studies run through the commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from evalkit.cli.app import main
from tests.workflows.ladders import write_ladder, write_runs
from tests.workflows.studies import write_items, write_study

SIGNED_OFF = {"approve": 0, "reject": 1, "insufficient_evidence": 3}
"""The exit code of each verdict."""

POLICY = """\
policy: support-release
risk:
  critical: {max_under_route: 0.04}
  high: {max_failure: 0.05}
limits: {min_answered_share: 0.98, max_cost_per_request: 0.015}
baseline: {arm: ["always:frontier", "think-4k"], margin_points: 2.0}
attempts: {max: 1}
release:
  rollout: ["5 % of traffic for one day", "all of it"]
  rollback_when: the pass rate falls below 90 % on a day
  rollback_how: set the threshold to 0
  owner: support team
  expires: "2027-03-01"
signers:
  - {role: approver}
"""


def make_studies(folder: Path, decision: str = "approve", policy: str = POLICY) -> tuple[Path, Path, Path]:
    """(policy, routing study, ladder) in `folder`; the routing study leads to `decision`.

    reject: every threshold costs more than the policy allows. insufficient_evidence: so few items that nothing can
    be certified.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = policy
    if decision == "reject":
        text = policy.replace("max_cost_per_request: 0.015", "max_cost_per_request: 0.0005")
    file = folder / "gates.yaml"
    file.write_text(text, encoding="utf-8")
    routing, ladder = folder / "routing", folder / "ladder"
    routing.mkdir(exist_ok=True)
    ladder.mkdir(exist_ok=True)
    write_items(routing, 80 if decision == "insufficient_evidence" else 400)
    write_study(routing, policy="../gates.yaml", bootstrap_replicates=100)
    write_runs(ladder, 300)
    limits = {"min_pass_rate": 0.9, "p95_task_seconds": 60}
    write_ladder(ladder, policy="../gates.yaml", limits=limits)
    return file, routing, ladder


def run_studies(routing: Path, ladder: Path) -> tuple[Path, Path]:
    """The folders of a run of each."""
    runs = routing / "run", ladder / "run"
    assert main(["route-sweep", str(routing / "study.yaml"), "--out", str(runs[0]), "--quiet"]) in {0, 1, 3}
    assert main(["reasoning-budget", str(ladder / "study.yaml"), "--out", str(runs[1]), "--quiet"]) in {0, 1, 3}
    return runs


def make_signoff(folder: Path, decision: str = "approve", *options: str, policy: str = POLICY) -> Path:
    """The folder of a sign-off with this verdict, made below `folder`; its runs and studies stay beside it."""
    file, routing, ladder = make_studies(folder, decision, policy)
    runs = run_studies(routing, ladder)
    out = folder / "signoff"
    code = main(["sign-off", "--policy", str(file), *map(str, runs), "--out", str(out), "--quiet", *options])
    assert code == SIGNED_OFF[decision], (decision, code)
    return out


def copy_of(folder: Path, to: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(folder, to)
    return to


def changed_json(path: Path, change: Any) -> None:
    """Rewrite a JSON file as `change` leaves it."""
    import json

    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
