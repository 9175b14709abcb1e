"""Replay through models: the plan of a run, the runner, and the ledger that loses and repeats nothing."""

from evalkit.replay.cells import CellRecord, StepRecord, cells_of
from evalkit.replay.estimate import CandidateEstimate, Estimate, estimate_run
from evalkit.replay.export import export_jsonl
from evalkit.replay.ledger import Attempt, Ledger
from evalkit.replay.manifest import FREE_FIELDS, Change, keep_manifest
from evalkit.replay.plan import Cell, Plan, PlanCandidate, PlanItem, plan_cells, plan_of
from evalkit.replay.pricing import CardPricing, Pricing, Unpriced
from evalkit.replay.progress import Progress, Silent, progress_on
from evalkit.replay.repeats import repeat_notices
from evalkit.replay.runner import run
from evalkit.replay.settings import RunSettings
from evalkit.replay.summary import CellFailure, EndpointSummary, RunSummary, Tally

__all__ = [
    "FREE_FIELDS",
    "Attempt",
    "CandidateEstimate",
    "CardPricing",
    "Cell",
    "CellFailure",
    "CellRecord",
    "Change",
    "EndpointSummary",
    "Estimate",
    "Ledger",
    "Plan",
    "PlanCandidate",
    "PlanItem",
    "Pricing",
    "Progress",
    "RunSettings",
    "RunSummary",
    "Silent",
    "StepRecord",
    "Tally",
    "Unpriced",
    "cells_of",
    "estimate_run",
    "export_jsonl",
    "keep_manifest",
    "plan_cells",
    "plan_of",
    "progress_on",
    "repeat_notices",
    "run",
]
