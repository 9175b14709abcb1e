"""A run in a process of its own: `python -m tests.replay.child FOLDER CONFIG`, to be interrupted and killed.

Prints `started` before the first call and the summary as one line of JSON at the end; progress goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalkit.costs import PriceCard, PricePeriod, Rates
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
from evalkit.replay.progress import Lines
from tests.replay.http_provider import HttpProvider


def plan_of_config(config: dict[str, Any]) -> Plan:
    items = [PlanItem(name, ({"role": "user", "content": name},)) for name in config["items"]]
    params = {"max_tokens": config.get("max_tokens", 20)}
    names = config.get("models", ["mid"])
    return plan_cells(
        items,
        [PlanCandidate(name, f"openai/{name}", params, stream=config.get("stream", False)) for name in names],
    )


def pricing_of_config(config: dict[str, Any]) -> CardPricing:
    prices = config.get("prices", {})
    card = {
        f"openai/{name}": (PricePeriod(Rates(Decimal(price["input"]), Decimal(price["output"]))),)
        for name, price in prices.items()
    }
    return CardPricing(PriceCard(card))


async def main(folder: Path, config: dict[str, Any]) -> RunSummary:
    settings = RunSettings(**config.get("settings", {}))
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        print("started", flush=True)
        return await run(
            plan_of_config(config),
            lambda _: HttpProvider(config["url"]),
            ledger,
            settings,
            Lines(sys.stderr),
            pricing=pricing_of_config(config),
        )


if __name__ == "__main__":
    summary = asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
    fields = (
        "run",
        "ended",
        "cells",
        "replied",
        "from_ledger",
        "calls",
        "attempts",
        "possibly_paid_twice",
        "exit_code",
    )
    print(json.dumps({name: getattr(summary, name) for name in fields}), flush=True)
    sys.exit(summary.exit_code)
