"""`replay.json`: what a replay called, what came of it, and what it cost, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalkit.costs.decimals import plain_decimal
from evalkit.costs.run_costs import RunCosts
from evalkit.replay import RunSummary
from evalkit.replay.manifest import Change
from evalkit.signoff.digest import file_sha256
from evalkit.signoff.redacted import document_bytes, redacted
from evalkit.workflows.provenance import dependency_versions
from evalkit.workflows.replay_costs import FolderFacts
from evalkit.workflows.replay_facts import SCHEMA
from evalkit.workflows.replay_grade import GradedRun
from evalkit.workflows.replay_setup import ReplayInputs

__all__ = ["replay_document", "replay_json"]


def replay_document(
    inputs: ReplayInputs,
    graded: GradedRun,
    summaries: Sequence[RunSummary],
    changes: Sequence[Change],
    folder: FolderFacts,
    outcomes: Path,
) -> dict[str, Any]:
    """Money is decimal text; unknown is null, with a reason beside it. `outcomes` is the file that was written."""
    return {
        "schema": SCHEMA,
        "study": inputs.study.name,
        "outcomes": {"file": outcomes.name, "sha256": file_sha256(outcomes)},
        "rubric": {"name": inputs.rubric.name, "hash": f"sha256:{inputs.rubric.fingerprint}"},
        "prices": inputs.prices,
        "samples": inputs.samples,
        "batch": folder.batch,
        "candidates": {
            one.name: {
                "requested_model": one.model,
                "sent": graded.sent.get(one.name),
                "statuses": dict(sorted(graded.statuses[one.name].items())),
                "other_model": {
                    served: count
                    for (name, served), count in sorted(graded.other_model.items())
                    if name == one.name
                },
                "reasoning_taken_off": graded.stripped[one.name],
                "latencies_measured_now": graded.measured[one.name],
                "latencies_replayed": graded.replayed[one.name],
            }
            for one in inputs.candidates
        },
        "unreached": graded.unreached,
        "costs": _costs(graded.costs),
        "all_runs": {
            "runs": folder.runs,
            **_spent(folder.costs),
            "possibly_paid_twice": folder.possibly_paid_twice,
        },
        "judge": _judge(inputs, graded),
        "runs": [_run(summary) for summary in summaries],
        "changed_since_the_first_run": [
            {"field": change.field, "old": change.old, "new": change.new} for change in changes
        ],
        "notices": list(graded.notices),
        "versions": dict(dependency_versions()),
    }


def replay_json(document: dict[str, Any]) -> bytes:
    """The document as strict JSON with credentials hidden; the same document gives the same bytes."""
    return document_bytes(redacted(document))


def _costs(costs: RunCosts) -> dict[str, Any]:
    return {
        "decision_usd": None if costs.decision_usd is None else plain_decimal(costs.decision_usd),
        "decision_known_usd": plain_decimal(costs.decision.known_usd),
        "priced_calls": costs.decision.priced,
        "calls": costs.decision.calls,
        **_spent(costs),
        "recorded_in": list(costs.recorded_in),
        "unknown": [{"reason": reason, "fix": fix, "calls": count} for reason, fix, count in costs.fixes],
    }


def _spent(costs: RunCosts) -> dict[str, Any]:
    return {
        "spent_low_usd": plain_decimal(costs.spent_low_usd),
        "spent_high_usd": None if costs.spent_high_usd is None else plain_decimal(costs.spent_high_usd),
        "possibly_billed": costs.possibly_billed,
    }


def _judge(inputs: ReplayInputs, graded: GradedRun) -> dict[str, Any] | None:
    if graded.judged is None or inputs.judge is None:
        return None
    judged, quality = graded.judged, graded.quality
    return {
        "model": inputs.judge.model,
        "replies": judged.total,
        "judged": judged.judged,
        "unparseable": judged.errors,
        "unparseable_share": judged.share,
        "max_error_share": judged.limit,
        "exceeded": judged.exceeded,
        "agreement": None if quality is None else quality.agreement.rate,
        "quality": None if quality is None else quality.as_dict(),
    }


def _run(summary: RunSummary) -> dict[str, Any]:
    return {
        "run": summary.run,
        "ended": summary.ended,
        "cells": summary.cells,
        "replied": summary.replied,
        "from_ledger": summary.from_ledger,
        "failed": {kind.value: count for kind, count in sorted(summary.failed.items())},
        "calls": summary.calls,
        "attempts": summary.attempts,
        "attempts_failed": {kind.value: count for kind, count in sorted(summary.attempts_failed.items())},
        "possibly_paid_twice": summary.possibly_paid_twice,
        "charged_usd": None if summary.charged_usd is None else plain_decimal(summary.charged_usd),
        "endpoints": {
            name: {
                "peak": end.peak,
                "lowest": end.lowest,
                "highest": end.highest,
                "final": end.final,
                "slowed": end.slowed,
            }
            for name, end in sorted(summary.endpoints.items())
        },
        "stopped": dict(summary.stopped),
        "elapsed_s": round(summary.elapsed_s, 3),
    }
