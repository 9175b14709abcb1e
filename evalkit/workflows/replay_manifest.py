"""What a run folder was made with, as the ledger keeps it: what decides the replies, and what may change."""

from __future__ import annotations

from typing import Any

from evalkit import __version__
from evalkit.costs.decimals import plain_decimal
from evalkit.replay import RunSettings
from evalkit.workflows.replay_setup import ReplayInputs

__all__ = ["manifest_of"]


def manifest_of(inputs: ReplayInputs, settings: RunSettings, *, batch: bool = False) -> dict[str, Any]:
    """Every field by name, as this run has it: those of `evalkit.replay.manifest.FREE_FIELDS` may differ from what
    the folder was made with, the others stop a run that differs."""
    candidates, cap = inputs.candidates, settings.max_spend_usd
    return {
        "study": inputs.study.name,
        "labels_sha256": inputs.labels.fingerprint.removeprefix("sha256:"),
        "prompt_sha256": inputs.prompts.fingerprint,
        "models": {one.name: one.model for one in candidates},
        "endpoints": {one.name: one.endpoint for one in candidates},
        "params": {one.name: dict(one.params) for one in candidates},
        "steps": {one.name: list(one.instructions) for one in candidates if one.instructions},
        "weights": {one.name: one.weights for one in candidates if one.weights is not None},
        "samples": inputs.samples,
        "prices": inputs.prices,
        "batch": batch,
        "concurrency": settings.concurrency,
        "max_attempts": settings.max_attempts,
        "max_spend_usd": None if cap is None else plain_decimal(cap),
        "request_timeout_s": settings.request_timeout_s,
        "run_timeout_s": settings.run_timeout_s,
        "requests_per_minute": settings.requests_per_minute,
        "tokens_per_minute": settings.tokens_per_minute,
        "seed": settings.seed,
        "stream": inputs.study.calls.options.stream,
        "evalkit": __version__,
    }
