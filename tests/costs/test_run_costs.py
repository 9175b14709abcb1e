"""What was spent in a run and what the decision costs are two ledgers, and neither holds a guess."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.costs import CallCost, Cost, cost_on_card, normal_usage, run_costs
from evalkit.study.prices import read_price_card


def case(shared: Path, name: str) -> tuple[Path, dict[str, Any]]:
    folder = shared / "cases" / name
    return folder, json.loads((folder / "expect.json").read_text(encoding="utf-8"))


def test_c12_a_recorded_answer_costs_its_price_and_spends_nothing(shared: Path) -> None:
    folder, expected = case(shared, "C12-replay-cost-latency")
    hit = json.loads((folder / "hit.json").read_text(encoding="utf-8"))
    cost = cost_on_card(normal_usage(hit), read_price_card(folder / "prices.json"), hit["model"])
    call = CallCost(cost, fresh=not hit["cached"], recorded_in=hit["recorded_run"], latency_s=hit["latency_s"])
    costs, values = run_costs([call]), expected["values"]
    assert costs.decision_usd == Decimal(values["decision_cost_usd"]) == Decimal("0.007")
    assert costs.spent_low_usd == costs.spent_high_usd == Decimal(values["run_spend_usd"]) == 0
    assert costs.measured_latencies == values["measured_latencies"] == 0
    assert costs.replayed_latencies == values["replayed_latencies"] == 1
    assert costs.lines() == [
        "cost of the decision in USD: 0.007 (1 call)",
        "spent in this run in USD: 0",
        "answered from recordings: 1 of 1 attempt, recorded in run-2026-01-10",
        "latencies: no fresh figures, 1 replayed",
    ]


def test_c06_a_stream_without_usage_has_no_cost_and_says_what_to_ask_for(shared: Path) -> None:
    folder, expected = case(shared, "C06-stream-without-usage")
    card = read_price_card(folder / "prices.json")
    calls = []
    for name in ("stream_no_usage.jsonl", "stream_usage_last.jsonl"):
        chunks = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
        usage = next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), None)
        calls.append(CallCost(cost_on_card(normal_usage(usage), card, "demo/mid"), reserved_usd=Decimal("0.01")))
    costs, values = run_costs(calls), expected["values"]
    assert calls[0].cost.usd is None
    assert costs.decision_usd is None
    assert costs.decision.known_usd == Decimal(values["known_cost_usd"]) == Decimal("0.00036")
    assert (costs.decision.priced, costs.decision.calls) == (values["priced"], values["calls"]) == (1, 2)
    lines = costs.lines()
    assert lines[0] == "cost of the decision in USD: >= 0.00036 (1 of 2 calls priced)"
    assert lines[1] == "spent in this run in USD: 0.00036 to 0.01036 (1 attempt without a price)"
    for tokens in expected["message_must_contain"]:
        assert any(all(token in line for token in tokens) for line in lines), tokens
    assert lines[-1].endswith("Fix: ask for it, in a stream with stream_options: {include_usage: true}.")


def test_c07_a_model_without_a_price_is_named_with_what_to_write(shared: Path) -> None:
    folder, expected = case(shared, "C07-unknown-model-price")
    card = read_price_card(folder / "prices.json")
    rows = [json.loads(line) for line in (folder / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    costs = run_costs(CallCost(cost_on_card(normal_usage(row), card, row["model"])) for row in rows)
    lines = costs.lines()
    assert lines[0] == "cost of the decision in USD: >= 0.0028 (2 of 3 calls priced)"
    assert lines[1] == "spent in this run in USD: >= 0.0028 (1 attempt without a price)"
    for tokens in expected["message_must_contain"]:
        assert any(all(token in line for token in tokens) for line in lines), tokens
    assert lines[-1].count("Fix: ") == 1


def test_c10_a_reply_costs_what_the_model_that_gave_it_costs(shared: Path) -> None:
    folder, expected = case(shared, "C10-served-by-other-model")
    card = read_price_card(folder / "prices.json")
    response = json.loads((folder / "response.json").read_text(encoding="utf-8"))
    asked = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    usage, values = normal_usage(response), expected["values"]
    assert cost_on_card(usage, card, asked["model"]).usd == Decimal(values["wrong_usd"])
    served = run_costs([CallCost(cost_on_card(usage, card, response["model"]))])
    assert served.spent_low_usd == served.decision_usd == Decimal(values["spend_usd"]) == Decimal("0.007")


def test_a_call_without_a_reply_makes_spend_a_range_and_is_no_part_of_the_decision() -> None:
    costs = run_costs(
        [
            CallCost(Cost(Decimal("0.01")), latency_s=1.0),
            CallCost(Cost(Decimal(0)), "no"),  # a 429
            CallCost(Cost(None, "it may have been charged"), "unknown", Decimal("0.02")),
            CallCost(Cost(Decimal("0.003")), "yes"),  # a failure that reports its usage
        ]
    )
    assert (costs.spent_low_usd, costs.spent_high_usd) == (Decimal("0.013"), Decimal("0.033"))
    assert (costs.possibly_billed, costs.unpriced, costs.decision_usd) == (1, 0, Decimal("0.013"))
    assert costs.lines()[1] == "spent in this run in USD: 0.013 to 0.033 (1 attempt possibly billed)"
    assert costs.lines()[2] == "latencies: 1 measured now, 0 replayed"
    assert run_costs([CallCost(Cost(None, "?"), "unknown")]).spent_high_usd is None


calls = st.builds(
    CallCost,
    cost=st.one_of(
        st.builds(Cost, st.decimals(0, 5, places=6)),
        st.sampled_from([Cost(None, "no price"), Cost(None, "no usage")]),
    ),
    billed=st.sampled_from(["yes", "no", "unknown"]),
    reserved_usd=st.one_of(st.none(), st.decimals(5, 9, places=6)),
    fresh=st.booleans(),
)


@given(st.lists(calls, max_size=20), st.randoms(use_true_random=False))
def test_the_ledgers_of_parts_add_up_in_any_order(some: list[CallCost], rng: Any) -> None:
    whole = run_costs(some)
    cut = rng.randrange(len(some) + 1)
    parts = [run_costs(some[:cut]), run_costs(some[cut:])]
    assert whole.spent_low_usd == sum(part.spent_low_usd for part in parts)
    highs = [part.spent_high_usd for part in parts]
    assert whole.spent_high_usd == (None if None in highs else sum(high for high in highs if high is not None))
    assert whole.decision.known_usd == sum(part.decision.known_usd for part in parts)
    shuffled = list(some)
    rng.shuffle(shuffled)
    again = run_costs(shuffled)
    assert (again.spent_low_usd, again.spent_high_usd) == (whole.spent_low_usd, whole.spent_high_usd)
    assert whole.spent_high_usd is None or whole.spent_low_usd <= whole.spent_high_usd
    assert sum(count for _, _, count in whole.fixes) == whole.decision.calls - whole.decision.priced


@pytest.mark.parametrize("fresh", [True, False])
def test_an_unknown_cost_is_never_0(fresh: bool) -> None:
    costs = run_costs([CallCost(Cost(None, "no usage was returned"), fresh=fresh)])
    assert costs.decision_usd is None
    assert (costs.spent_high_usd is None) == fresh
