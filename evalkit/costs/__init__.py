"""Token counts in one normal form, price cards, and exact costs; pure."""

from evalkit.costs.cost import Cost, CostTotal, cost_on_card, cost_usd, total_usd
from evalkit.costs.layouts import LAYOUTS, Layout
from evalkit.costs.prices import (
    Kind,
    Price,
    PriceCard,
    PricePeriod,
    Rates,
    Tier,
    card_fingerprint,
    layered,
    same_prices,
)
from evalkit.costs.run_costs import CallCost, RunCosts, run_costs
from evalkit.costs.usage import Reading, Usage, constant_counts, normal_usage

__all__ = [
    "LAYOUTS",
    "CallCost",
    "Cost",
    "CostTotal",
    "Kind",
    "Layout",
    "Price",
    "PriceCard",
    "PricePeriod",
    "Rates",
    "Reading",
    "RunCosts",
    "Tier",
    "Usage",
    "card_fingerprint",
    "constant_counts",
    "cost_on_card",
    "cost_usd",
    "layered",
    "normal_usage",
    "run_costs",
    "same_prices",
    "total_usd",
]
