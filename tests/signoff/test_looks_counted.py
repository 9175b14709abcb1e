"""Looks that nobody recorded are not taken for few."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.signoff.evaluate import policy_gates
from tests.signoff.facts import AT, gate_row, run_facts, write_policy


@pytest.mark.parametrize(("recorded", "state"), [(True, "pass"), (False, "open")])
def test_a_look_that_could_not_be_recorded_keeps_no_limit_on_their_number(
    tmp_path: Path, recorded: bool, state: str
) -> None:
    """In a folder that takes no record every run is the first look."""
    policy = write_policy(
        tmp_path / "gates.yaml", "policy: p\nattempts: {max: 1}\nrisk: {critical: {max_under_route: 0.05}}\n"
    )
    looks = {"declared": 1, "this": 1, "delta": 0.05, "recorded": recorded}
    run = run_facts(gate_row(), policy_sha256=policy.sha256, looks=looks)
    (gate,) = (g for g in policy_gates(policy, (run,), AT) if g.id == "support:attempts")
    assert gate.state == state
    assert ("cannot be counted" in gate.gate.message) is not recorded
