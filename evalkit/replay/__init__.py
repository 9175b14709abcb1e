"""Replay through models: the plan of a run, the runner, and the ledger that loses nothing and pays nothing twice."""

from evalkit.replay.ledger import Attempt, Ledger
from evalkit.replay.plan import Cell, Plan, PlanCandidate, PlanItem, plan_cells, plan_of
from evalkit.replay.pricing import CardPricing, Pricing, Unpriced
from evalkit.replay.progress import Progress, Silent, progress_on
from evalkit.replay.runner import run
from evalkit.replay.settings import RunSettings
from evalkit.replay.summary import CellFailure, EndpointSummary, RunSummary, Tally

__all__ = [
    "Attempt",
    "CardPricing",
    "Cell",
    "CellFailure",
    "EndpointSummary",
    "Ledger",
    "Plan",
    "PlanCandidate",
    "PlanItem",
    "Pricing",
    "Progress",
    "RunSettings",
    "RunSummary",
    "Silent",
    "Tally",
    "Unpriced",
    "plan_cells",
    "plan_of",
    "progress_on",
    "run",
]
