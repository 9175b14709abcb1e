"""From a study to what can be called: candidates with their requests, and how each is reached."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from evalkit.errors import HIDDEN, Fault, InputError, remember_secret, visible
from evalkit.providers.call import Connection
from evalkit.providers.key import TRANSPORT_PARAMS
from evalkit.study.models import RoutingStudy, Tier
from evalkit.study.reasoning_models import Arm, ReasoningStudy

__all__ = ["AnyStudy", "Candidate", "candidates_of", "connect", "public_address"]

AnyStudy = RoutingStudy | ReasoningStudy

_BASES = ("api_base", "base_url")
_HEADERS = "extra_headers"
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_VARIABLE = re.compile(r"^(?:os\.environ/|env:)(\w+)$|^\$\{?(\w+)\}?$")
_SPLIT = re.compile(r"\.(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tier or arm that can be called. `params` and `endpoint` hold no secret; `connection` holds them all.

    `instructions` are the user turns of an arm of several steps, empty for a plain call. `weights` is the SHA-256
    of a local model's file.
    """

    name: str
    model: str
    params: Mapping[str, Any]
    endpoint: str | None
    connection: Connection
    instructions: tuple[str, ...] = ()
    weights: str | None = None
    max_tokens: int | None = field(default=None)

    @property
    def is_local(self) -> bool:
        """The model is run by evalkit itself, on this machine."""
        return self.weights is not None


def candidates_of(study: AnyStudy) -> tuple[Candidate, ...]:
    """Every candidate of `study` that has replies of its own, in declared order.

    Raises `InputError` with every fault: a candidate without a model, a variable of the environment that is not
    set, steps without instructions, a local model whose file the study does not name.
    """
    found: list[Candidate] = []
    faults: list[Fault] = []
    noun = "arms" if isinstance(study, ReasoningStudy) else "tiers"
    for tier in study.tiers:
        where = f"{noun}.{visible(tier.name, 60)}"
        try:
            found.append(_candidate(study, tier, where))
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError([Fault(f.what, f.fix, file=str(study.path), field=f.field) for f in faults])
    return tuple(found)


def _candidate(study: AnyStudy, tier: Tier | Arm, where: str) -> Candidate:
    if tier.model is None:
        raise InputError(Fault("is missing", "name the model to call", field=f"{where}.model"))
    steps = tier.steps if isinstance(tier, Arm) else ()
    instructions = tier.instructions if isinstance(tier, Arm) else ()
    if steps and not instructions:
        fix = 'write what each step asks for: steps: a list with a line - plan: "Make a plan." for each'
        raise InputError(Fault("names steps without instructions", fix, field=f"{where}.steps"))
    connection = connect(tier.params, tier.secrets, where)
    params = {name: value for name, value in tier.params.items() if name not in TRANSPORT_PARAMS}
    weights = None
    if tier.model.startswith("local/"):
        known = study.calls.local_models.get(tier.model)
        weights = "installed" if known is None else known.sha256
    if isinstance(tier, Arm):
        params |= _thinking(tier)
    return Candidate(
        name=tier.name,
        model=tier.model,
        params=params,
        endpoint=public_address(connection.api_base),
        connection=connection,
        instructions=instructions,
        weights=weights,
        max_tokens=next((int(v) for cap in _CAPS if isinstance(v := params.get(cap), int)), None),
    )


def _thinking(arm: Arm) -> dict[str, Any]:
    """What the budget, effort and cap of an arm are as parameters, where its `params` do not say so already."""
    out: dict[str, Any] = {}
    if arm.max_tokens is not None and not any(cap in arm.params for cap in _CAPS):
        out["max_tokens"] = arm.max_tokens
    if arm.effort is not None and "reasoning_effort" not in arm.params:
        out["reasoning_effort"] = arm.effort
    if arm.budget_tokens is not None and "thinking" not in arm.params:
        on = {"type": "enabled", "budget_tokens": arm.budget_tokens}
        out["thinking"] = on if arm.budget_tokens else {"type": "disabled"}
    return out


def connect(params: Mapping[str, Any], secrets: Mapping[str, str], where: str) -> Connection:
    """How a candidate is reached: its address, key and headers with what was hidden put back.

    A value such as `os.environ/NAME` is read from the environment. Raises `InputError` where it is not set.
    """
    faults: list[Fault] = []

    def value(path: str, given: object) -> str | None:
        if given is None:
            return None
        text = secrets.get(path, str(given))
        match = _VARIABLE.match(text)
        if match is None:
            return text
        name = match[1] or match[2]
        found = os.environ.get(name)
        if not found:
            what = f"names the environment variable {name}, which is not set"
            faults.append(Fault(what, f"set {name}", field=f"{where}.params.{path}"))
            return None
        if path not in _BASES:  # of an address only parts are secret
            remember_secret(found)
        return found

    base = next(((key, params[key]) for key in _BASES if params.get(key) is not None), None)
    given = params.get(_HEADERS)
    headers: dict[str, str] = {}
    for name, text in given.items() if isinstance(given, Mapping) else ():
        path = next((p for p in secrets if _SPLIT.split(p) in ([_HEADERS, name], [_HEADERS, f'"{name}"'])), "")
        found = value(path or f"{_HEADERS}.{name}", text)
        if found is not None:
            headers[str(name)] = found
    connection = Connection(
        api_base=None if base is None else value(*base),
        api_key=value("api_key", params.get("api_key")),
        headers=headers,
    )
    if faults:
        raise InputError(faults)
    _remember_address(connection.api_base)
    return connection


def _remember_address(address: str | None) -> None:
    """What is secret in an address is hidden from now on, wherever it is quoted."""
    try:
        parts = urlsplit(address or "")
        words = [parts.password, *(word for _, word in parse_qsl(parts.query))]
    except ValueError:
        words = [address]
    for word in words:
        remember_secret(word or "")


def public_address(address: str | None) -> str | None:
    """The part of an address that may be shown and hashed: no user, password, query or fragment."""
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return HIDDEN
    return urlunsplit((parts.scheme, f"[{host}]{port}" if ":" in host else host + port, parts.path, "", ""))
