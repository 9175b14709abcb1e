from __future__ import annotations

import itertools

import pytest

from evalkit.providers.call import Reply
from evalkit.providers.key import request_key
from evalkit.replay import PlanCandidate, PlanItem, plan_cells, plan_of
from evalkit.replay.plan import endpoint_of, next_step
from tests.replay.support import item, plan_for

TWO = [PlanCandidate("a", "demo/a"), PlanCandidate("b", "demo/b")]


def test_every_item_by_every_candidate_for_every_sample() -> None:
    plan = plan_cells([item("q1"), item("q2")], TWO, samples=2)
    found = [(cell.item, cell.candidate, cell.sample) for cell in plan]
    assert found == [
        ("q1", "a", 0), ("q1", "b", 0), ("q2", "a", 0), ("q2", "b", 0),
        ("q1", "a", 1), ("q1", "b", 1), ("q2", "a", 1), ("q2", "b", 1),
    ]  # fmt: skip
    assert plan.count == 8
    assert found == [(cell.item, cell.candidate, cell.sample) for cell in plan]  # it can be asked again


def test_all_requests_have_keys_of_their_own() -> None:
    plan = plan_cells([item("q1", "same"), item("q2", "same"), item("q3", "other")], TWO, samples=3)
    assert len({request_key(cell.first) for cell in plan}) == 18
    assert [cell.first.occurrence for cell in plan.of("a")] == [0, 1, 0] * 3


def test_files_make_items_differ() -> None:
    message = ({"role": "user", "content": "what is in it?"},)
    plan = plan_cells(
        [PlanItem("q1", message, {"a.png": "00"}), PlanItem("q2", message, {"a.png": "11"})], TWO[:1]
    )
    assert [cell.first.occurrence for cell in plan] == [0, 0]


def test_cells_are_made_when_they_are_asked_for() -> None:
    plan = plan_cells([item(str(n)) for n in range(1000)], TWO, samples=10_000)
    assert plan.count == 20_000_000
    assert [cell.item for cell in itertools.islice(plan, 4)] == ["0", "0", "1", "1"]


def test_a_candidate_that_has_fewer_cells_does_not_end_the_others() -> None:
    cells = list(plan_for(["q1", "q2", "q3"], candidates=TWO))
    plan = plan_of(cell for cell in cells if cell.candidate == "a" or cell.item == "q1")
    assert [(cell.item, cell.candidate) for cell in plan] == [("q1", "a"), ("q1", "b"), ("q2", "a"), ("q3", "a")]


@pytest.mark.parametrize("samples", [0, -1])
def test_samples_below_one_are_refused(samples: int) -> None:
    with pytest.raises(ValueError, match=f"`samples`.*{samples}"):
        plan_cells([item("q1")], TWO, samples)


def test_two_candidates_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="names of their own"):
        plan_cells([item("q1")], [TWO[0], TWO[0]])


def test_a_step_sends_the_visible_reply_and_the_next_turn() -> None:
    cell = next(iter(plan_for(["q1"], candidates=[PlanCandidate("s", "demo/s", follow_ups=("check", "answer"))])))
    second = next_step(cell, 0, cell.first, Reply("draft", reasoning="secret thought"))
    assert second is not None
    assert [m["content"] for m in second.messages] == ["q1", "draft", "check"]
    assert "secret thought" not in str(second)
    third = next_step(cell, 1, second, Reply("checked"))
    assert third is not None
    assert [m["role"] for m in third.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert next_step(cell, 2, third, Reply("done")) is None
    assert next_step(cell, 0, cell.first, Reply(None, reasoning="all of it")) is None
    assert next_step(cell, 0, cell.first, Reply(" \n")) is None


def test_the_endpoint_is_the_address_or_the_provider() -> None:
    [cell] = plan_for(["q1"])
    assert endpoint_of(cell.first) == "demo"
    [cell] = plan_for(["q1"], candidates=[PlanCandidate("x", "openai/x", endpoint="http://gw.example/v1")])
    assert endpoint_of(cell.first) == "http://gw.example/v1"
