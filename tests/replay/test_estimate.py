from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.replay import Ledger, PlanCandidate, RunSettings, Unpriced, estimate_run, plan_cells
from evalkit.replay.pricing import prompt_bound, prompt_bytes
from evalkit.testing import ScriptedProvider
from tests.replay.support import DOWN, FAST, PRICING, WRONG, go, item, ok, plan_for

NAMES = [f"q{n}" for n in range(10)]


def test_a_new_run_asks_for_everything() -> None:
    plan = plan_for(NAMES)
    found = estimate_run(plan, None, PRICING, RunSettings())
    bytes_, [bound, _] = prompt_bytes(next(iter(plan)).first), prompt_bound(next(iter(plan)).first)
    assert (found.calls, found.in_ledger, found.seconds) == (10, 0, None)
    [one] = found.candidates
    assert one.prompt_tokens_low == 10 * (bytes_ // 4)
    assert one.prompt_tokens_high == 10 * (bound or 0)
    assert one.output_tokens_high == 1000
    assert found.usd_low == Decimal(10 * (bytes_ // 4) * 2) / 10**6
    assert found.usd_high == Decimal(10 * (bound or 0) * 2 + 1000 * 8) / 10**6
    assert str(found).startswith("10 calls (0 in the ledger), 0.0002 to 0.0")


def test_what_the_ledger_has_is_not_asked_again(tmp_path: Path) -> None:
    provider = ScriptedProvider({**dict.fromkeys(NAMES[2:], ok(request_s=2.0)), "q0": WRONG, "q1": DOWN})
    go(tmp_path, plan_for(NAMES), provider, replace(FAST, max_attempts=1))
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        found = estimate_run(plan_for(NAMES, samples=2), ledger, PRICING, RunSettings(concurrency=2))
        assert (found.calls, found.in_ledger) == (11, 9)  # the failure that passes, and the second sample
        assert found.seconds == pytest.approx(11 * 2.0 / 2)
        again = estimate_run(plan_for(NAMES), ledger, PRICING, RunSettings(retry_failed=True))
        assert (again.calls, again.in_ledger) == (2, 8)
        # What is estimated is what is done.
        assert estimate_run(plan_for(NAMES), ledger, PRICING, RunSettings()).calls == 1
    cured = ScriptedProvider(lambda _: ok())
    assert go(tmp_path, plan_for(NAMES), cured).calls == 1


def test_steps_that_follow_count_and_bound_what_comes_before_them() -> None:
    arm = PlanCandidate("s", "demo/mid", {"max_tokens": 100}, follow_ups=("check", "answer"))
    plain = PlanCandidate("p", "demo/mid", {"max_tokens": 100})
    found = estimate_run(plan_cells([item("q1")], [arm]), None, PRICING, RunSettings())
    assert found.calls == 3
    # The first step of the arm is the plain call: it is asked once.
    both = estimate_run(plan_cells([item("q1")], [plain, arm]), None, PRICING, RunSettings())
    assert both.calls == 3
    [one] = found.candidates
    assert one.output_tokens_high == 300
    first, _ = prompt_bound(next(iter(plan_cells([item("q1")], [arm]))).first)
    assert one.prompt_tokens_high is not None
    assert one.prompt_tokens_high > 3 * (first or 0) + 100 + 200  # replies of 100 tokens each go into what follows


def test_limits_per_minute_bound_the_time() -> None:
    settings = RunSettings(requests_per_minute=60.0)
    assert estimate_run(plan_for(NAMES), None, PRICING, settings).seconds == 10
    two = [PlanCandidate("a", "one/a"), PlanCandidate("b", "two/b")]
    assert estimate_run(plan_for(NAMES, candidates=two), None, PRICING, settings).seconds == 10  # side by side
    same = [PlanCandidate("a", "one/a"), PlanCandidate("b", "one/b")]
    assert estimate_run(plan_for(NAMES, candidates=same), None, PRICING, settings).seconds == 20


def test_a_price_that_is_not_known_is_said() -> None:
    plan = plan_for(NAMES, candidates=[PlanCandidate("new", "demo/new", {"max_tokens": 5})])
    found = estimate_run(plan, None, PRICING, RunSettings())
    assert (found.usd_low, found.usd_high) == (None, None)
    assert "USD not known (new: " in str(found)
    assert "demo/new" in str(found)
    assert "USD not known" in str(estimate_run(plan, None, Unpriced(), RunSettings()))
    open_ended = plan_for(NAMES, params={})
    found = estimate_run(open_ended, None, PRICING, RunSettings())
    assert found.usd_low is not None
    assert found.usd_high is None
    assert "max_tokens" in found.reasons[0]
