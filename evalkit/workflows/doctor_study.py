"""What can be checked about the models of a study before anything is called: keys, endpoints, prices.

Of a key only the name of its variable is ever shown, and whether it is set. Nothing is sent unless `live` asks for
it, and then one request for the list of models to each address that the study names.
"""

from __future__ import annotations

import http.client
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from evalkit.costs.prices import PriceCard
from evalkit.errors import InputError, visible
from evalkit.workflows.candidates import AnyStudy, Candidate, candidates_of
from evalkit.workflows.doctor_checks import Check

__all__ = ["base_prices", "candidates", "endpoints", "keys", "prices"]

_OLD_DAYS = 90
_TIMEOUT_S = 10.0


def candidates(study: AnyStudy) -> tuple[tuple[Candidate, ...], list[Check]]:
    """What the study lets be called, and what is wrong with it."""
    try:
        return candidates_of(study), []
    except InputError as error:
        return (), [Check(visible(f.field or "study", 60), "problem", f.what, f.fix) for f in error.faults]


def keys(found: Sequence[Candidate]) -> Iterator[Check]:
    """For each model whether the variables that its provider needs are set; never a value."""
    remote = [one for one in found if not one.is_local]
    seen: set[str] = set()
    for one in remote:
        name = f"key of {visible(one.name, 40)}"
        if one.connection.api_key is not None:
            yield Check(name, "ok", "the study gives it")
        elif one.endpoint is not None:
            yield Check(
                name, "ok", f"{visible(one.endpoint, 60)} is called without one; params: api_key gives one"
            )
        elif one.model not in seen:
            seen.add(one.model)
            yield _environment(name, one.model)


def _environment(name: str, model: str) -> Check:
    from evalkit.providers.litellm_client import load_litellm

    litellm = load_litellm()
    shown = visible(model, 60)
    try:
        litellm.get_llm_provider(model)
    except Exception:  # noqa: BLE001 - its own exceptions, of several kinds
        fix = "write it as provider/model, or give params: {api_base: ...}"
        return Check(name, "problem", f"LiteLLM knows no provider of {shown}", fix)
    missing = [str(key) for key in litellm.validate_environment(model)["missing_keys"]]
    if missing:
        either = " or " if {"GEMINI_API_KEY", "GOOGLE_API_KEY"} <= set(missing) else " and "
        what = f"{shown} needs {either.join(missing)}, not set"
        return Check(name, "problem", what, f"set {either.join(missing)} in the environment")
    return Check(name, "ok", f"what {shown} needs is set in the environment")


def endpoints(found: Sequence[Candidate], *, live: bool) -> Iterator[Check]:
    """Each address that the study names: whether it answers, asked only where `live`."""
    own = {one.endpoint: one for one in reversed(found) if one.endpoint is not None}
    if not live:
        yield Check("endpoints", "ok", "not checked; --live sends one request to each address of the study")
        return
    if not own:
        yield Check("endpoints", "ok", "the study names no address; providers' own addresses are not asked")
    for endpoint, one in sorted(own.items()):
        yield _ask(endpoint, one)


class _NoRedirect(HTTPRedirectHandler):
    """A key goes to the address that the study names, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _ask(endpoint: str, one: Candidate) -> Check:
    name, shown = "endpoint", visible(endpoint, 80)
    fix = "check the address and that the server runs"
    try:
        parts = urlsplit(one.connection.api_base or endpoint)
        if parts.scheme not in {"http", "https"}:
            return Check(name, "problem", f"{shown} is no http address", "write https://host/v1")
        host = parts.netloc.rpartition("@")[2]
        address = urlunsplit((parts.scheme, host, f"{parts.path.rstrip('/')}/models", parts.query, ""))
        headers = dict(one.connection.headers)
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers.setdefault("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
        elif one.connection.api_key is not None:
            headers.setdefault("Authorization", f"Bearer {one.connection.api_key}")
        with build_opener(_NoRedirect).open(Request(address, headers=headers), timeout=_TIMEOUT_S) as answer:
            return Check(name, "ok", f"{shown} answers ({answer.status})")
    except HTTPError as error:
        error.close()
        if error.code in {401, 403}:
            return Check(name, "problem", f"{shown} refuses the key ({error.code})", "set the key of this address")
        if error.code >= 500:
            return Check(name, "warning", f"{shown} answers {error.code}", "try again later")
        return Check(name, "ok", f"{shown} answers ({error.code} for its list of models)")
    except (URLError, OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        return Check(name, "problem", f"{shown} does not answer: {visible(reason, 120)}", fix)


def prices(study: AnyStudy, found: Sequence[Candidate], today: date) -> Iterator[Check]:
    """The card of the study: its day, and whether it has a price for each candidate."""
    from evalkit.study.prices import read_price_card

    if study.prices is None:
        fix = "write prices: prices.yaml, or prices: genai-prices"
        yield Check("prices", "warning", "the study names no price card: every cost is unknown", fix)
        return
    try:
        card = read_price_card(study.prices)
    except InputError as error:
        for fault in error.faults:
            place = f"{Path(fault.file or '').name}:{fault.line or 1}"
            yield Check("prices", "problem", f"{place} {fault.field or ''}: {fault.what}", fault.fix)
        return
    yield _aged(card, today)
    for notice in card.notices:
        yield Check("prices", "warning", notice)
    for one in found:
        name = f"price of {visible(one.name, 40)}"
        price = card.price(one.model)
        if price is None:
            fault = card.missing(one.model)
            yield Check(name, "problem", fault.what, fault.fix)
        elif one.max_tokens is None and not one.is_local:
            what = f"{visible(price.model, 60)} is priced; without max_tokens it cannot run under a spend cap"
            yield Check(name, "warning", what, "write params: {max_tokens: ...} or run without --max-spend")
        else:
            origin = Path(card.origin(one.model) or "").name
            yield Check(name, "ok", f"{visible(price.model, 60)} by {visible(origin, 60)} ({price.period.kind})")


def _aged(card: PriceCard, today: date) -> Check:
    shown = visible(Path(card.file).name, 60)
    if card.base is not None:
        shown += f" above {card.base.source}"
    if card.as_of is None:
        return Check("prices", "warning", f"{shown} has no date", "write as_of on the card")
    age = (today - card.as_of).days
    if age > _OLD_DAYS:
        fix = "compare it with the providers' prices, and write the new day"
        return Check("prices", "warning", f"{shown} is of {card.as_of}, {age:,} days old", fix)
    return Check("prices", "ok", f"{shown} is of {card.as_of}")


def base_prices(today: date) -> Check:
    """The prices that come with the genai-prices package."""
    from evalkit.study.prices_base import base_card

    return _aged(base_card(), today)
