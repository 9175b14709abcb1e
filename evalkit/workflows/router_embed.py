"""`evalkit router embed`: collect the embeddings that a semantic router needs, each paid for once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from evalkit.costs.decimals import plain_decimal
from evalkit.errors import Fault, InputError
from evalkit.labels.labelset import LabelSet
from evalkit.providers.call import Provider, Reply, Request
from evalkit.providers.key import request_key
from evalkit.replay import CardPricing, Ledger, RunSettings, RunSummary, progress_on, run
from evalkit.replay.plan import Cell, Plan, plan_of
from evalkit.replay.pricing import Pricing, Unpriced
from evalkit.routers.items import requests_of
from evalkit.routers.options import EMBEDDED, WORDLLAMA, FitOptions, fit_options
from evalkit.routers.score import read_train
from evalkit.routers.stored_embeddings import EMBEDDINGS, request_of
from evalkit.study.models import Router, RoutingStudy
from evalkit.study.prices import read_price_card
from evalkit.workflows.labels import show
from evalkit.workflows.replay import RunOptions, settings_of
from evalkit.workflows.router_score import judged_labels, router_named, study_with

__all__ = ["embed_command"]


def embed_command(
    study: Path, *, router: str | None, max_spend_usd: Decimal | None, dry_run: bool, quiet: bool
) -> int:
    """Ask for the embedding of every training and judged text that the ledger lacks; the exit code.

    Raises `InputError` with what is wrong with the study and its labels, or a cap that cannot be kept.
    """
    read = study_with(study, None)
    one = router_named(read, router, ("semantic",))
    options = _options(one, str(study))
    texts = _texts(read, one)
    card = None if read.prices is None else read_price_card(read.prices)
    pricing: Pricing = Unpriced() if card is None else CardPricing(card, read.calls.aliases)
    path = read.base / EMBEDDINGS
    requests = {request_key(request): request for request in _requests(options, texts)}
    if dry_run:
        wanted = _lacking(path, requests)
        show(_forecast(path, options, len(requests), wanted, pricing), [])
        return 0
    plan = plan_of(Cell(key, EMBEDDED, 0, request) for key, request in requests.items())
    settings = settings_of(read, RunOptions(max_spend_usd=max_spend_usd))
    with Ledger.open(path) as ledger:
        summary = asyncio.run(_ask(plan, ledger, settings, pricing, options.embedding, quiet=quiet))
        have = sum(isinstance(_result(ledger, key), Reply) for key in requests)
    line = f"{path}: {have:,} of {len(requests):,} texts have an embedding of {options.embedding}"
    show([] if quiet else [line], [])
    return summary.exit_code


def _options(router: Router, file: str) -> FitOptions:
    if router.spec is None or router.spec.kind != "semantic":
        raise InputError(Fault("is not of kind: semantic", "name one that is", file=file, field="--router"))
    options = fit_options(router, file)
    if options.embedding == WORDLLAMA:
        what = "embeds with wordllama, which calls nobody: there is nothing to collect"
        raise InputError(Fault(what, "fit it, or name a model: embedding: openai/NAME", file=file, field="router"))
    return options


def _texts(study: RoutingStudy, router: Router) -> list[str]:
    """The texts of the training and the judged items, each once."""
    sets: list[LabelSet] = []
    if router.train is not None:
        sets.append(read_train(router.train, study))
    sets.append(judged_labels(study))
    return list(dict.fromkeys(t for labels in sets for t in requests_of(labels).text if t.strip()))


def _requests(options: FitOptions, texts: Sequence[str]) -> list[Request]:
    return [request_of(options.embedding, options.dimensions, text) for text in texts]


def _result(ledger: Ledger, key: str) -> object:
    attempt = ledger.latest(key)
    return None if attempt is None else attempt.result


def _lacking(path: Path, requests: Mapping[str, Request]) -> list[Request]:
    if not path.is_file():
        return list(requests.values())
    with Ledger.read(path) as ledger:
        return [request for key, request in requests.items() if not isinstance(_result(ledger, key), Reply)]


def _forecast(
    path: Path, options: FitOptions, count: int, wanted: Sequence[Request], pricing: Pricing
) -> list[str]:
    known = [usd for request in wanted if (usd := pricing.least(request)) is not None]
    cost = "cost unknown: no price of it"
    if len(known) == len(wanted):
        cost = f"about {plain_decimal(sum(known, Decimal(0)))} USD"
    return [f"{path}: {len(wanted):,} of {count:,} texts are to be embedded by {options.embedding}, {cost}"]


async def _ask(
    plan: Plan, ledger: Ledger, settings: RunSettings, pricing: Pricing, model: str, *, quiet: bool
) -> RunSummary:
    from evalkit.routers.embedding_provider import LiteLLMEmbeddings

    provider: Provider = LiteLLMEmbeddings(timeout_s=settings.request_timeout_s)
    about = {"purpose": "embeddings", "model": model}
    progress = progress_on(sys.stderr, quiet=quiet)
    try:
        return await run(plan, lambda name: provider, ledger, settings, progress, pricing=pricing, about=about)
    finally:
        await provider.aclose()
