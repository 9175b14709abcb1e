"""The fingerprint of a study: a hash of what it says, with every default filled in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from pathlib import Path

from evalkit.costs.decimals import plain_decimal
from evalkit.study.calls import Calls
from evalkit.study.models import Router, RouterSpec, RoutingStudy, Source
from evalkit.study.reasoning_models import ReasoningStudy

__all__ = ["study_fingerprint"]

_NOT_CONTENT = {"path", "base", "fingerprint", "notices", "calls", "policy", "audit"}
# What a study said before it could say this hashes as it did.
_WHERE_GIVEN = {"instructions": (), "name": "", "spec": None, "train": None, "leaks": "error", "routers": ()}


def study_fingerprint(study: RoutingStudy | ReasoningStudy) -> str:
    """sha256 as 64 hex digits.

    Comments, order of keys, number forms (0.05, 0.050) and the folder do not change it; the order of tiers and
    risk classes does. Secrets are dropped before, so they have no influence.
    """
    content = {
        item.name: getattr(study, item.name)
        for item in fields(study)
        if item.name not in _NOT_CONTENT and not _as_before(item.name, getattr(study, item.name))
    }
    if isinstance(study, RoutingStudy) and study.samples is None:
        del content["samples"]  # likewise
    content["prices"] = _relative(study.prices, study.base)
    content["rubric"] = _relative(study.rubric, study.base)
    if study.policy is not None:
        content["policy"] = _relative(study.policy, study.base)
    if isinstance(study, RoutingStudy) and study.audit is not None:
        content["audit"] = _relative(study.audit, study.base)
    if study.calls != Calls():
        calls = {
            item.name: getattr(study.calls, item.name) for item in fields(study.calls) if item.name != "options"
        }
        calls["system_prompt"] = _relative(study.calls.system_prompt, study.base)
        calls["prompt"] = _relative(study.calls.prompt, study.base)
        content["calls"] = calls
    content["risk"] = [[name, risk] for name, risk in study.risk.items()]
    text = json.dumps(
        ["evalkit.study/1", _canonical(content)],
        ensure_ascii=True,
        sort_keys=True,
        separators=(",", ":"),
        allow_nan=False,
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _as_before(name: str, value: object) -> bool:
    return name in _WHERE_GIVEN and value == _WHERE_GIVEN[name]


def _relative(path: Path | None, base: Path) -> str | None:
    if path is None:
        return None
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def _canonical(value: object) -> object:
    if isinstance(value, Source):
        return {"written": value.written, "columns": dict(value.columns), "encoding": value.encoding}
    if isinstance(value, RouterSpec):  # where its file is does not matter
        return [value.kind, value.written, value.function, _canonical(value.options)]
    if is_dataclass(value) and not isinstance(value, type):
        said = {
            item.name: _canonical(getattr(value, item.name))
            for item in fields(value)
            if item.name != "secrets" and not _as_before(item.name, getattr(value, item.name))
        }
        return {**said, "kind": None} if isinstance(value, Router) else said  # a field that was always empty
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, Decimal):
        return plain_decimal(value)
    if isinstance(value, float) and value == 0:
        return 0.0
    return value
