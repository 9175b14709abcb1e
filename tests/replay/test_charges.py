"""What earlier runs were charged, when a cap comes later than they did."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from evalkit.errors import InputError
from evalkit.providers.call import Reply
from evalkit.replay import Ledger, PlanCandidate, Unpriced
from evalkit.replay.charges import charged_so_far
from evalkit.replay.pricing import Pricing
from evalkit.testing import After, ScriptedProvider
from tests.replay.support import BUSY, COST_USD, FAST, LOST, PRICING, go, ok, plan_for


def charged(folder: Path, pricing: Pricing = PRICING) -> tuple[Decimal, int]:
    with Ledger.read(folder / "ledger.sqlite") as ledger:
        found = charged_so_far(ledger, pricing)
    return found.usd, found.unbounded


def test_what_had_no_price_then_is_priced_now(tmp_path: Path) -> None:
    script = {"q1": ok(), "q2": [BUSY, ok()], "q3": Reply("no usage")}
    first = go(tmp_path, plan_for(["q1", "q2", "q3"]), ScriptedProvider(script), pricing=Unpriced())
    assert (first.spent_low_usd, first.spent_high_usd, first.charged_usd) == (0, None, None)
    assert charged(tmp_path, Unpriced()) == (0, 3)
    bound = PRICING.most(next(iter(plan_for(["q3"]))).first).usd
    assert bound is not None
    assert charged(tmp_path) == (2 * COST_USD + bound, 0)


def test_what_was_abandoned_stays_charged(tmp_path: Path) -> None:
    provider = ScriptedProvider({"q1": After(None), "q2": ok()})
    go(tmp_path, plan_for(["q1", "q2"]), provider, replace(FAST, run_timeout_s=0.3, grace_s=0.0))
    bound = PRICING.most(next(iter(plan_for(["q1"]))).first).usd
    assert bound is not None
    assert charged(tmp_path) == (COST_USD + bound, 0)
    # Sent once more, and then both are charged: the first may have been answered.
    again = go(tmp_path, plan_for(["q1", "q2"]), ScriptedProvider(lambda _: ok()))
    assert again.possibly_paid_twice == 1
    assert charged(tmp_path) == (2 * COST_USD + bound, 0)


def test_a_cap_is_refused_where_earlier_attempts_may_have_cost_any_amount(tmp_path: Path) -> None:
    new = [PlanCandidate("new", "demo/new")]
    go(tmp_path, plan_for(["q1"], candidates=new), ScriptedProvider({"q1": LOST}), replace(FAST, max_attempts=1))
    provider = ScriptedProvider(lambda _: ok())
    with pytest.raises(InputError, match="1 earlier attempt of this run folder may have cost any amount"):
        go(tmp_path, plan_for(["q2"]), provider, replace(FAST, max_spend_usd=Decimal(1)))
    assert provider.requests == []
