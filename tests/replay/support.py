"""What the tests of replay share: a small plan, a card, and a run in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalkit.costs import PriceCard, PricePeriod, Rates
from evalkit.providers.call import Billed, Failure, FailureKind, Provider, Reply
from evalkit.replay import (
    CardPricing,
    Ledger,
    Plan,
    PlanCandidate,
    PlanItem,
    RunSettings,
    RunSummary,
    plan_cells,
    run,
)

USAGE = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
COST_USD = Decimal("0.0006")  # 100 x 2 + 50 x 8, per million
BUSY = Failure(FailureKind.RATE_LIMIT, "429: slow down", status_code=429)
DOWN = Failure(FailureKind.SERVER, "500: down", status_code=500)
LOST = Failure(FailureKind.CUT, "the stream was cut", billed=Billed.UNKNOWN)
WRONG = Failure(FailureKind.BAD_REQUEST, "400: no such parameter", status_code=400)
NO_KEY = Failure(FailureKind.AUTHENTICATION, "401: wrong key", status_code=401)

CARD = PriceCard({"demo/mid": (PricePeriod(Rates(Decimal(2), Decimal(8))),)}, file="prices.yaml")
PRICING = CardPricing(CARD)
FAST = RunSettings(concurrency=4, backoff_s=0.001, most_backoff_s=0.01, handle_signals=False)


def ok(text: str = "yes", **fields: Any) -> Reply:
    """A reply that cost `COST_USD`."""
    return Reply(text, finish_reason="stop", served_model="demo/mid", usage=USAGE, **fields)


def item(name: str, text: str | None = None) -> PlanItem:
    return PlanItem(name, ({"role": "user", "content": name if text is None else text},))


def plan_for(
    names: Sequence[str],
    *,
    samples: int = 1,
    candidates: Sequence[PlanCandidate] = (),
    params: dict[str, Any] | None = None,
) -> Plan:
    default = PlanCandidate("mid", "demo/mid", {"max_tokens": 100} if params is None else params)
    return plan_cells([item(name) for name in names], candidates or [default], samples)


def go(
    folder: Path, plan: Plan, provider: Provider | dict[str, Provider], settings: RunSettings = FAST, **more: Any
) -> RunSummary:
    """One run into the ledger of `folder`, opened and closed for it."""

    async def main() -> RunSummary:
        with Ledger.open(folder / "ledger.sqlite") as ledger:
            return await run(
                plan,
                lambda name: provider[name] if isinstance(provider, dict) else provider,
                ledger,
                settings,
                pricing=more.pop("pricing", PRICING),
                **more,
            )

    return asyncio.run(main())
