from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.replay.spend import Budget

D = Decimal


def test_without_a_cap_everything_fits() -> None:
    async def main() -> Budget:
        budget = Budget()
        assert await budget.reserve(D("1e9"))
        budget.settle(D("1e9"), D("0.5"))
        return budget

    budget = asyncio.run(main())
    assert (budget.charged_usd, budget.reserved_usd) == (D("0.5"), D(0))


def test_a_call_waits_while_others_may_turn_out_cheaper() -> None:
    async def main() -> list[str]:
        budget, said = Budget(D(10)), []

        async def call(name: str, held: str, cost: str | None) -> None:
            assert await budget.reserve(D(held))
            said.append(name)
            await asyncio.sleep(0.01)
            budget.settle(D(held), None if cost is None else D(cost))

        await asyncio.gather(call("a", "6", "1"), call("b", "6", "1"), call("c", "3", "1"))
        assert budget.charged_usd == D(3)
        return said

    assert asyncio.run(main()) == ["a", "b", "c"]  # c has room at once, and does not overtake


def test_an_unknown_cost_keeps_what_was_reserved() -> None:
    async def main() -> None:
        budget = Budget(D(10))
        assert await budget.reserve(D(6))
        budget.settle(D(6), None)
        assert budget.charged_usd == D(6)
        assert await budget.reserve(D(4))
        assert not await asyncio.wait_for(_settling(budget), 1)

    async def _settling(budget: Budget) -> bool:
        waiting = asyncio.create_task(budget.reserve(D(1)))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(D(4), D(4))
        return await waiting

    asyncio.run(main())


def test_when_nothing_is_in_flight_there_is_nothing_to_wait_for() -> None:
    async def main() -> None:
        budget = Budget(D(1), charged_usd=D("0.5"))
        assert not await budget.reserve(D("0.6"))
        assert budget.exhausted
        assert not await budget.reserve(D("0.1"))

    asyncio.run(main())


def test_the_last_cent_can_be_spent() -> None:
    async def main() -> None:
        budget = Budget(D("0.3"), charged_usd=D("0.1"))
        assert await budget.reserve(D("0.2"))  # in binary fractions 0.1 + 0.2 > 0.3

    asyncio.run(main())


def test_a_call_that_is_cancelled_while_it_waits_holds_nothing() -> None:
    async def main() -> None:
        budget = Budget(D(10))
        assert await budget.reserve(D(8))
        waiting = [asyncio.create_task(budget.reserve(D(5))) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        budget.settle(D(8), D(1))
        assert await waiting[1]
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        assert (budget.charged_usd, budget.reserved_usd) == (D(1), D(5))

    asyncio.run(main())


cents = st.integers(0, 500).map(lambda n: D(n) / 100)
calls = st.lists(st.tuples(cents, st.floats(0, 1), st.booleans(), st.integers(0, 3)), max_size=40)


@given(cap=cents, before=cents, calls=calls)
def test_what_is_charged_and_held_never_passes_the_cap(
    cap: Decimal, before: Decimal, calls: list[tuple[Decimal, float, bool, int]]
) -> None:
    budget = Budget(cap, charged_usd=before)
    room = max(cap, before)

    async def call(most: Decimal, share: float, known: bool, ticks: int) -> Decimal:
        if not await budget.reserve(most):
            return D(0)
        assert budget.charged_usd + budget.reserved_usd <= room
        for _ in range(ticks):
            await asyncio.sleep(0)
        cost = (most * D(round(share * 100)) / 100) if known else None
        budget.settle(most, cost)
        assert budget.charged_usd + budget.reserved_usd <= room
        return most if cost is None else cost

    async def main() -> None:
        costs = await asyncio.wait_for(asyncio.gather(*(call(*c) for c in calls)), 30)
        assert budget.charged_usd == before + sum(costs, D(0))
        assert budget.reserved_usd == 0

    asyncio.run(main())
