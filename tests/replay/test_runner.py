from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import PriceCard, PricePeriod, Rates
from evalkit.errors import InputError
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay import CardPricing, Ledger, PlanCandidate, RunSettings, cells_of, plan_cells, plan_of
from evalkit.replay.adaptive import Concurrency
from evalkit.testing import After, ScriptedProvider, last_text
from tests.replay.support import BUSY, CARD, COST_USD, DOWN, FAST, LOST, NO_KEY, WRONG, go, item, ok, plan_for

NAMES = [f"q{n}" for n in range(20)]


def sent(provider: ScriptedProvider) -> list[str]:
    return sorted(last_text(request) for request in provider.requests)


def test_every_cell_gets_its_reply_once_and_never_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda request: ok(f"to {last_text(request)}"))
    first = go(tmp_path, plan_for(NAMES), provider)
    assert (first.cells, first.replied, first.from_ledger, first.calls, first.attempts) == (20, 20, 0, 20, 20)
    assert first.spent_low_usd == first.spent_high_usd == first.charged_usd == 20 * COST_USD
    assert (first.ended, first.exit_code, first.unreached) == ("done", 0, 0)
    again = go(tmp_path, plan_for(NAMES), provider)
    assert (again.replied, again.from_ledger, again.calls) == (20, 20, 0)
    assert (again.spent_low_usd, again.spent_high_usd, again.charged_usd) == (0, 0, 20 * COST_USD)
    assert sent(provider) == sorted(NAMES)
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        for record in cells_of(ledger, plan_for(NAMES)):
            assert isinstance(record.result, Reply)
            assert record.result.text == f"to {record.cell.item}"
            assert record.cost.usd == COST_USD
            assert record.run == first.run
            assert (record.fresh(first.run), record.fresh(again.run)) == (True, False)


def test_failures_that_pass_are_tried_again_with_backoff(tmp_path: Path) -> None:
    busy = replace(BUSY, retry_after_s=0.05, request_s=0.25)
    provider = ScriptedProvider({"q1": [busy, DOWN, ok(request_s=2.0)], "q2": ok()})
    found = go(tmp_path, plan_for(["q1", "q2"]), provider, replace(FAST, backoff_s=0.02, most_backoff_s=0.02))
    assert (found.replied, found.calls, found.attempts) == (2, 2, 4)
    assert found.attempts_failed == {FailureKind.RATE_LIMIT: 1, FailureKind.SERVER: 1}
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        record, _ = cells_of(ledger, plan_for(["q1", "q2"]))
        waits = [attempt.waited_s for attempt in record.steps[0].attempts]
        assert waits[0] == 0
        assert 0.05 < waits[1] < 0.053
        assert 0.01 <= waits[2] <= 0.02
        assert record.task_s == pytest.approx(sum(waits) + 0.25 + 0.0 + 2.0)
        assert record.request_s == 2.0
        assert record.attempts == 3
        assert record.cost.usd == COST_USD


def test_a_failure_that_stays_is_named_and_tried_anew_by_the_next_run(tmp_path: Path) -> None:
    provider = ScriptedProvider({"q1": [DOWN, DOWN, DOWN, ok()], "q2": ok()})
    said: list[str] = []
    settings = replace(FAST, max_attempts=3)
    first = go(tmp_path, plan_for(["q1", "q2"]), provider, settings, progress=Heard(said))
    assert (first.replied, first.failed, first.exit_code) == (1, {FailureKind.SERVER: 1}, 4)
    assert [(f.item, f.kind, f.attempts) for f in first.failures] == [("q1", FailureKind.SERVER, 3)]
    assert any("q1" in line and "server_error after 3 attempts" in line for line in said)
    second = go(tmp_path, plan_for(["q1", "q2"]), provider, settings)
    assert (second.replied, second.from_ledger, second.exit_code) == (2, 1, 0)


@pytest.mark.parametrize("kind", [FailureKind.BAD_REQUEST, FailureKind.REFUSAL])
def test_a_failure_for_good_is_kept_unless_it_is_asked_for(tmp_path: Path, kind: FailureKind) -> None:
    provider = ScriptedProvider({"q1": [replace(WRONG, kind=kind), ok()]})
    first = go(tmp_path, plan_for(["q1"]), provider)
    assert (first.failed, first.final, first.attempts, first.exit_code) == ({kind: 1}, 1, 1, 0)
    assert go(tmp_path, plan_for(["q1"]), provider).calls == 0
    again = go(tmp_path, plan_for(["q1"]), provider, replace(FAST, retry_failed=True))
    assert (again.replied, again.calls) == (1, 1)


def test_a_wrong_key_stops_a_candidate_after_a_few_calls_and_no_other(tmp_path: Path) -> None:
    two = [PlanCandidate("bad", "locked/model"), PlanCandidate("mid", "demo/mid")]
    plan = plan_cells([item(f"q{n}") for n in range(300)], two)
    refusing, answering = ScriptedProvider(lambda _: NO_KEY), ScriptedProvider(lambda _: ok())
    said: list[str] = []
    found = go(tmp_path, plan, {"bad": refusing, "mid": answering}, progress=Heard(said))
    assert len(refusing.requests) <= 3 + FAST.concurrency
    assert found.replied == 300
    assert found.failed == {FailureKind.AUTHENTICATION: len(refusing.requests)}
    assert found.unreached == 300 - len(refusing.requests)
    assert list(found.stopped) == ["bad"]
    assert sum("evalkit doctor" in line for line in said) == 1
    assert found.exit_code == 4
    cured = ScriptedProvider(lambda _: ok())
    assert go(tmp_path, plan, {"bad": cured, "mid": answering}).exit_code == 0


def test_a_dead_endpoint_is_left_and_starves_nobody(tmp_path: Path) -> None:
    two = [PlanCandidate("dead", "gone/model"), PlanCandidate("mid", "demo/mid")]
    plan = plan_cells([item(f"q{n}") for n in range(200)], two)
    gone = Failure(FailureKind.CONNECTION, "connection refused")
    dead, mid = ScriptedProvider(lambda _: After(0.005, gone)), ScriptedProvider(lambda _: ok())
    found = go(tmp_path, plan, {"dead": dead, "mid": mid}, replace(FAST, max_attempts=2))
    assert found.replied == 200
    assert len(dead.requests) <= 2 * (10 + FAST.concurrency)
    assert "10 requests in a row got no reply from gone" in found.stopped["dead"]


def test_a_slow_endpoint_starves_nobody(tmp_path: Path) -> None:
    two = [PlanCandidate("slow", "slow/model"), PlanCandidate("mid", "demo/mid")]
    plan = plan_cells([item(f"q{n}") for n in range(50)], two)
    mid = ScriptedProvider(lambda _: ok())
    slow = ScriptedProvider(lambda _: After(None))
    settings = replace(FAST, run_timeout_s=1.0, grace_s=0.0)
    found = go(tmp_path, plan, {"slow": slow, "mid": mid}, settings)
    assert (found.replied, found.ended) == (50, "time limit")
    assert len(slow.requests) == FAST.concurrency


def test_equal_requests_of_two_candidates_are_one_call(tmp_path: Path) -> None:
    params = {"max_tokens": 100}
    two = [
        PlanCandidate("plain", "demo/mid", params),
        PlanCandidate("twice", "demo/mid", params, follow_ups=("again",)),
    ]
    plan = plan_cells([item("q1"), item("q2")], two)
    provider = ScriptedProvider(lambda _: ok(), delay_s=0.005)
    found = go(tmp_path, plan, provider)
    assert sent(provider) == ["again", "again", "q1", "q2"]
    assert (found.replied, found.calls) == (4, 4)
    assert found.spent_low_usd == 4 * COST_USD
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        costs = {(r.cell.candidate, r.cell.item): r.cost.usd for r in cells_of(ledger, plan)}
        assert costs == {
            ("plain", "q1"): COST_USD, ("plain", "q2"): COST_USD,
            ("twice", "q1"): 2 * COST_USD, ("twice", "q2"): 2 * COST_USD,
        }  # fmt: skip
        assert len(list(ledger.steps())) == 6


def test_an_arm_of_steps_goes_on_in_the_middle(tmp_path: Path) -> None:
    steps = [PlanCandidate("s", "demo/mid", {"max_tokens": 100}, follow_ups=("check", "answer"))]
    plan = plan_cells([item("q1")], steps)
    provider = ScriptedProvider({"q1": ok("draft"), "check": [DOWN, ok("checked")], "answer": ok("42")})
    once = replace(FAST, max_attempts=1)
    first = go(tmp_path, plan, provider, once)
    assert (first.replied, first.failed) == (0, {FailureKind.SERVER: 1})
    second = go(tmp_path, plan, provider, once)
    assert (second.replied, second.from_ledger) == (1, 0)
    assert [last_text(request) for request in provider.requests] == ["q1", "check", "check", "answer"]
    assert [m["content"] for m in provider.requests[-1].messages] == ["q1", "draft", "check", "checked", "answer"]
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        [record] = cells_of(ledger, plan)
        assert isinstance(record.result, Reply)
        assert record.result.text == "42"
        assert record.cost.usd == 3 * COST_USD
        assert (record.attempts, record.fresh(second.run)) == (4, False)


def test_a_reply_without_text_ends_an_arm(tmp_path: Path) -> None:
    steps = [PlanCandidate("s", "demo/mid", {"max_tokens": 100}, follow_ups=("check",))]
    plan = plan_cells([item("q1")], steps)
    empty = replace(ok(), text=None, finish_reason="length", reasoning="long")
    provider = ScriptedProvider({"q1": empty})
    assert go(tmp_path, plan, provider).replied == 1
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        [record] = cells_of(ledger, plan)
        assert record.complete
        assert record.result == replace(empty, request_s=0.0)


class Wild:
    """A provider that breaks its promise."""

    async def call(self, request: Request) -> Reply | Failure:
        if last_text(request) == "q1":
            raise RuntimeError("sk-demo-1234567890abcdef broke\nit")
        if last_text(request) == "q2":
            raise TimeoutError
        return ok()

    async def aclose(self) -> None:
        pass


def test_a_provider_that_raises_costs_one_item(tmp_path: Path) -> None:
    found = go(tmp_path, plan_for(["q1", "q2", "q3"]), Wild(), replace(FAST, max_attempts=2))
    assert found.replied == 1
    assert found.failed == {FailureKind.OTHER: 1, FailureKind.TIMEOUT: 1}
    message = next(f.message for f in found.failures if f.item == "q1")
    assert message == "the provider raised RuntimeError: [hidden] broke\\nit"
    assert b"sk-demo" not in (tmp_path / "ledger.sqlite").read_bytes()


def test_an_unknown_cost_is_a_range_and_never_nothing(tmp_path: Path) -> None:
    silent = Reply("yes", served_model="demo/mid")
    provider = ScriptedProvider({"q1": silent, "q2": [LOST, ok()], "q3": BUSY, "q4": ok()})
    found = go(tmp_path, plan_for(["q1", "q2", "q3", "q4"]), provider, replace(FAST, max_attempts=2))
    assert found.spent_low_usd == 2 * COST_USD
    assert found.possibly_billed == 2
    assert found.spent_high_usd is not None
    assert found.spent_high_usd > 2 * COST_USD
    assert found.charged_usd == found.spent_high_usd
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        costs = [record.cost for record in cells_of(ledger, plan_for(["q1", "q2", "q3", "q4"]))]
    assert [cost.usd for cost in costs] == [None, COST_USD, 0 if costs[2].usd == 0 else None, COST_USD]
    assert costs[0].reason is not None
    assert "usage" in costs[0].reason


def test_a_failure_that_reports_usage_is_part_of_the_decision(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "total_tokens": 1000}
    billed = Failure(FailureKind.CUT, "cut", billed=Billed.YES, usage=usage, served_model="demo/mid")
    provider = ScriptedProvider({"q1": [billed, ok()]})
    found = go(tmp_path, plan_for(["q1"]), provider)
    assert found.spent_low_usd == found.spent_high_usd == COST_USD + Decimal("0.002")
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        [record] = cells_of(ledger, plan_for(["q1"]))
        assert record.cost.usd == COST_USD + Decimal("0.002")


def test_a_model_without_a_price_has_no_bound(tmp_path: Path) -> None:
    plan = plan_for(["q1"], candidates=[PlanCandidate("new", "demo/new", {"max_tokens": 10})])
    found = go(tmp_path, plan, ScriptedProvider(lambda _: replace(ok(), served_model="demo/new")))
    assert (found.spent_low_usd, found.spent_high_usd, found.charged_usd) == (0, None, None)
    assert list(found.unpriced.values()) == [1]
    assert "demo/new" in next(iter(found.unpriced))


class Capacity:
    """An endpoint that takes so many calls at a time and says 429 to the rest."""

    def __init__(self, places: int) -> None:
        self.places, self.at_work, self.refused = places, 0, 0

    async def call(self, request: Request) -> Reply | Failure:
        if self.at_work >= self.places:
            self.refused += 1
            return replace(BUSY, retry_after_s=0.005)
        self.at_work += 1
        await asyncio.sleep(0.004)
        self.at_work -= 1
        return ok()

    async def aclose(self) -> None:
        pass


def test_concurrency_grows_and_shrinks_with_what_the_endpoint_takes(tmp_path: Path) -> None:
    endpoint = Capacity(12)
    settings = replace(FAST, concurrency=64, max_attempts=50)
    found = go(tmp_path, plan_for([f"q{n}" for n in range(600)]), endpoint, settings)
    lane = found.endpoints["demo"]
    assert found.replied == 600
    assert lane.peak > 12
    assert lane.slowed >= 1
    assert lane.lowest is not None
    assert lane.lowest <= lane.highest / 2 + 1
    assert endpoint.refused < 300  # 64 at a time without learning would be refused thousands of times


def test_server_errors_do_not_shrink_it(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda r: [DOWN, ok()] if last_text(r).endswith("3") else ok(), delay_s=0.001)
    found = go(tmp_path, plan_for([f"q{n}" for n in range(100)]), provider, replace(FAST, concurrency=8))
    lane = found.endpoints["demo"]
    assert (lane.slowed, lane.final, lane.peak) == (0, 8, 8)


def test_nobody_uses_up_attempts_while_the_endpoint_asks_to_wait(tmp_path: Path) -> None:
    class Window:
        """Refuses everything for a while from the first request on."""

        closed_until = 0.0

        async def call(self, request: Request) -> Reply | Failure:
            now = asyncio.get_running_loop().time()
            self.closed_until = self.closed_until or now + 0.3
            left = self.closed_until - now
            return replace(BUSY, retry_after_s=left) if left > 0 else ok()

        async def aclose(self) -> None:
            pass

    found = go(tmp_path, plan_for(NAMES), Window(), replace(FAST, max_attempts=2))
    assert found.replied == 20
    assert found.attempts_failed[FailureKind.RATE_LIMIT] <= FAST.concurrency
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        untouched = [r for r in cells_of(ledger, plan_for(NAMES)) if r.attempts == 1]
    assert len(untouched) >= 20 - FAST.concurrency
    assert all(
        record.task_s is not None and record.task_s < 0.2 for record in untouched
    )  # queueing is no task time


def test_what_is_in_flight_when_the_cap_is_reached_comes_to_its_end(tmp_path: Path) -> None:
    free = PlanCandidate("free", "local/free", {"max_tokens": 9})
    paid = PlanCandidate("mid", "demo/mid", {"max_tokens": 9})
    plan = plan_cells([item(name) for name in NAMES], [free, paid])
    prices = {**CARD.models, "local/free": (PricePeriod(Rates(Decimal(0), Decimal(0))),)}
    slow = ScriptedProvider(lambda _: replace(ok(), served_model="local/free"), delay_s=0.3)
    capped = replace(FAST, max_spend_usd=Decimal("0.001"), grace_s=0.0)  # one paid call
    said: list[str] = []
    providers = {"free": slow, "mid": ScriptedProvider(lambda _: ok(), delay_s=0.1)}
    pricing = CardPricing(PriceCard(prices))
    found = go(tmp_path, plan, providers, capped, pricing=pricing, progress=Heard(said))
    assert found.ended == "spend cap"
    assert found.replied == len(slow.requests) + 1 > 1
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        assert {attempt.state for attempt in ledger.every_attempt()} == {"reply"}
    assert any("cap of 0.001 USD" in line and "raise the cap" in line for line in said)


def test_limits_per_minute_hold(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda _: ok())
    settings = replace(FAST, requests_per_minute=1200.0, concurrency=50)
    found = go(tmp_path, plan_for([f"q{n}" for n in range(32)]), provider, settings)
    assert found.replied == 32
    assert found.elapsed_s >= (32 - 20) / 20  # a second's worth at once, then 20 a second


class Heard:
    """Keeps what it is told."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def start(self, tally: Any) -> None:
        pass

    def update(self, tally: Any) -> None:
        pass

    def notice(self, text: str) -> None:
        self.said.append(text)

    def close(self, tally: Any) -> None:
        pass


def test_samples_are_draws_of_their_own_and_fewer_use_fewer(tmp_path: Path) -> None:
    """Case R03: 3 repeats, then 5, then 2."""
    answers = ["yes", "no", "yes", "no", "no"]
    provider = ScriptedProvider(lambda request: ok(answers[request.sample]))
    warm = {"temperature": 1.0, "max_tokens": 10}

    def texts(samples: int) -> list[str | None]:
        with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
            results = [
                record.result for record in cells_of(ledger, plan_for(["q1"], samples=samples, params=warm))
            ]
        return [result.text if isinstance(result, Reply) else None for result in results]

    assert go(tmp_path, plan_for(["q1"], samples=3, params=warm), provider).calls == 3
    assert texts(3) == ["yes", "no", "yes"]
    assert go(tmp_path, plan_for(["q1"], samples=3, params=warm), provider).calls == 0
    assert go(tmp_path, plan_for(["q1"], samples=5, params=warm), provider).calls == 2
    assert [request.sample for request in provider.requests] == [0, 1, 2, 3, 4]
    assert texts(2) == ["yes", "no"]


def test_what_is_asked_for_and_bound_to_fail_is_refused_before_any_call(tmp_path: Path) -> None:
    three = [
        PlanCandidate("open", "demo/mid"),
        PlanCandidate("new", "demo/new", {"max_tokens": 10}),
        PlanCandidate("mid", "demo/mid", {"max_tokens": 10}),
    ]
    provider = ScriptedProvider(lambda _: ok())
    capped = replace(FAST, max_spend_usd=Decimal(1))
    with pytest.raises(InputError) as caught:
        go(tmp_path, plan_for(NAMES, candidates=three), provider, capped)
    first, second = (str(fault) for fault in caught.value.faults)
    assert "open cannot run under a spend cap: it has no max_tokens" in first
    assert "new cannot run under a spend cap" in second
    assert "prices.yaml" in second
    assert provider.requests == []


def test_a_later_cap_counts_what_earlier_runs_were_charged(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda _: ok())
    go(tmp_path, plan_for(NAMES[:10]), provider)  # 0.006 USD
    capped = replace(FAST, max_spend_usd=Decimal("0.01"))
    found = go(tmp_path, plan_for(NAMES), provider, capped)
    assert found.ended == "spend cap"
    assert found.exit_code == 4
    assert found.charged_usd is not None
    assert Decimal("0.008") <= found.charged_usd <= Decimal("0.01")
    assert len(provider.requests) == 10 + found.attempts
    more = go(tmp_path, plan_for(NAMES), provider, replace(FAST, max_spend_usd=Decimal(1)))
    assert (more.replied, more.exit_code) == (20, 0)
    assert len(provider.requests) == 20


@given(
    cap=st.integers(0, 20).map(lambda n: Decimal(n) / 1000),
    kinds=st.lists(st.sampled_from(["ok", "lost", "busy", "silent"]), min_size=1, max_size=12),
    concurrency=st.integers(1, 12),
)
def test_the_cap_is_never_passed(
    tmp_path_factory: pytest.TempPathFactory, cap: Decimal, kinds: list[str], concurrency: int
) -> None:
    steps: dict[str, Any] = {"ok": ok(), "lost": [LOST, ok()], "busy": [BUSY, ok()], "silent": Reply("x")}
    provider = ScriptedProvider({f"q{n}": steps[kind] for n, kind in enumerate(kinds)})
    settings = replace(FAST, max_spend_usd=cap, concurrency=concurrency, backoff_s=0.0)
    plan = plan_for([f"q{n}" for n in range(len(kinds))])
    found = go(tmp_path_factory.mktemp("run"), plan, provider, settings)
    assert found.charged_usd is not None
    assert found.charged_usd <= cap
    assert found.spent_high_usd == found.charged_usd
    assert found.over_bound == 0
    assert (found.ended == "spend cap") == (found.replied < len(kinds))


def test_a_reply_that_costs_more_than_its_bound_ends_a_capped_run(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 10**6, "completion_tokens": 10**6, "total_tokens": 2 * 10**6}
    provider = ScriptedProvider(lambda _: replace(ok(), usage=usage))
    settings = replace(FAST, max_spend_usd=Decimal("0.1"), concurrency=1)
    found = go(tmp_path, plan_for(NAMES), provider, settings)
    assert (found.attempts, found.over_bound, found.ended) == (1, 1, "spend cap")
    assert found.charged_usd == 10  # it is said, not hidden


def test_an_empty_plan_is_complete(tmp_path: Path) -> None:
    found = go(tmp_path, plan_of([]), ScriptedProvider({}))
    assert (found.cells, found.exit_code, found.endpoints) == (0, 0, {})


def test_no_task_or_thread_outlives_a_run(tmp_path: Path) -> None:
    async def main() -> None:
        from evalkit.replay import run
        from tests.replay.support import PRICING

        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            provider = ScriptedProvider(lambda _: After(None))
            settings = replace(FAST, run_timeout_s=0.1, grace_s=0.05)
            found = await run(plan_for(NAMES), lambda _: provider, ledger, settings, pricing=PRICING)
        assert found.ended == "time limit"
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert provider.in_flight == 0

    asyncio.run(main())
    assert threading.active_count() == 1


def test_settings_that_cannot_be_are_named() -> None:
    for field, value in [
        ("concurrency", 0), ("max_attempts", 0), ("request_timeout_s", 0.0), ("run_timeout_s", float("nan")),
        ("requests_per_minute", -1.0), ("grace_s", -1.0), ("max_spend_usd", Decimal("NaN")),
        ("max_spend_usd", 1.5),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"`{field}` parameter of `RunSettings` must"):
            replace(RunSettings(), **{field: value})


def test_keys_of_a_plan_are_those_of_the_ledger(tmp_path: Path) -> None:
    go(tmp_path, plan_for(NAMES), ScriptedProvider(lambda _: ok()))
    with Ledger.read(tmp_path / "ledger.sqlite") as ledger:
        assert {step.key for step in ledger.steps()} == {request_key(cell.first) for cell in plan_for(NAMES)}
        assert Concurrency(8).allowed == 4
