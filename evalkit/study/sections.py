"""The sections of a routing study, each read for itself; what concerns several of them is in `checks`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from typing import Generic, NamedTuple, TypeVar, cast

from evalkit.errors import visible
from evalkit.study import nodes
from evalkit.study.calls_section import read_secrets
from evalkit.study.fields import Section, clean_name, shown
from evalkit.study.models import GateOn, Limits, Risk, Tier
from evalkit.study.names import SECTIONS, elsewhere
from evalkit.study.nodes import Scalar, join_path

__all__ = ["Read", "floats", "read_limits", "read_name", "read_params", "read_risk", "read_tiers"]

T = TypeVar("T")


class Read(NamedTuple, Generic[T]):
    """A section's value together with its place in the file, for checks over several sections."""

    value: T
    section: Section


MAX_TIERS = 100
MAX_CLASSES = 100
MOST_USD = 1_000_000
"""No request costs more (outcomes are read with the same limit)."""
MOST_LOSS_USD = 1_000_000_000_000
"""Above it the costs beside a loss are lost to rounding."""
_RESERVED = {"unsolvable"}


def read_name(top: Section) -> str | None:
    """The name of the study, which also names its folder of reports."""
    name = top.text("study", missing="write study: and a short name, such as support-routing")
    if name is None:
        return None
    problem = clean_name(name)
    if problem is None and not all(ch.isalnum() or ch in "-_. " for ch in name):
        problem = f'"{visible(name, 60)}" holds signs that no folder name should have'
    if problem is None and (name.startswith(".") or name.endswith(".")):
        problem = f'"{visible(name, 60)}" starts or ends with a point'
    if problem is not None:
        top.fault("study", problem, "use letters, digits, - and _; the name is the folder of the reports too")
        return None
    return name


def read_tiers(top: Section) -> tuple[Tier, ...]:
    """At least two tiers, least capable first."""
    node = top.get("tiers", missing="list two tiers or more, least capable first: - {name: cheap, model: ...}")
    if node is None:
        return ()
    if not isinstance(node, nodes.Sequence):
        top.fault(
            "tiers", f"is {shown(node)}, not a list", "write - {name: cheap, model: ...}, a line for each tier"
        )
        return ()
    tiers: list[Tier] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(node.items):
        path = join_path("tiers", index)
        if not isinstance(item, nodes.Mapping):
            like = item.text if isinstance(item, Scalar) and item.text else "cheap"
            top.report.add(
                item.line, path, f"is {shown(item)}, not a mapping", f"write {{name: {visible(like, 60)}}}"
            )
            continue
        tier = _tier(Section(top.report, item, path, SECTIONS["tiers[]"], lambda key: elsewhere("tiers[]", key)))
        if tier is None:
            continue
        if tier.name in lines:
            what = f'"{visible(tier.name, 60)}" names a tier on line {lines[tier.name]} already'
            top.report.add(item.line, f"{path}.name", what, "give every tier its own name")
            continue
        lines[tier.name] = item.line
        tiers.append(tier)
    if not 2 <= len(node.items) <= MAX_TIERS:
        fix = f"list 2 to {MAX_TIERS} tiers, least capable first"
        top.fault("tiers", f"has {len(node.items)} entries", fix)
    return tuple(tiers)


def _tier(section: Section) -> Tier | None:
    name = section.text("name", missing="write name: and the tier's name")
    model = section.text("model")
    cost = section.decimal("cost_usd", high=MOST_USD)
    params = read_params(section)
    if name is None:
        return None
    problem = clean_name(name)
    if problem is None and name in _RESERVED:
        problem = f'"{name}" is the label of items that no tier can solve'
    if problem is not None:
        section.fault("name", problem, "give the tier another name")
        return None
    return Tier(name=name, model=model, params=params, cost_usd=cost, secrets=read_secrets(section))


def read_params(section: Section) -> Mapping[str, object]:
    """The parameters of a request, as they go to a provider."""
    node = section.get("params")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping):
        section.fault("params", f"is {shown(node)}, not a mapping", "write {max_tokens: 400, ...}")
        return {}
    return cast("dict[str, object]", floats(nodes.plain(node)))


def floats(value: object) -> object:
    """A plain value of YAML as JSON has it: decimals become floats."""
    if isinstance(value, dict):
        return {key: floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [floats(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def read_risk(top: Section) -> dict[str, Read[Risk]]:
    """The risk classes in declared order."""
    like = "{under_route_loss: 1.0, max_under_route: 0.05}"
    node = top.get("risk", missing=f"write risk: and, for each class, {like}")
    if node is None:
        return {}
    if not isinstance(node, nodes.Mapping) or not node.entries:
        top.fault("risk", f"is {shown(node)} without classes", f"write a line for each class, such as low: {like}")
        return {}
    if len(node.entries) > MAX_CLASSES:
        top.fault(
            "risk",
            f"has {len(node.entries):,} classes",
            f"write at most {MAX_CLASSES}; each needs its own evidence",
        )
        return {}
    classes: dict[str, Read[Risk]] = {}
    for name, entry in node.entries.items():
        path = join_path("risk", name)
        problem = clean_name(name)
        if problem is not None:
            top.report.add(entry.line, path, problem, "give the class another name")
            continue
        if not isinstance(entry.node, nodes.Mapping):
            top.report.add(entry.line, path, f"is {shown(entry.node)}, not a mapping", f"write {like}")
            continue
        keys = SECTIONS["risk.<class>"]
        section = Section(top.report, entry.node, path, keys, lambda key: elsewhere("risk.<class>", key))
        risk = _risk(section)
        if risk is not None:
            classes[unicodedata.normalize("NFC", name)] = Read(risk, section)
    return classes


def _risk(section: Section) -> Risk | None:
    loss = section.number(
        "under_route_loss",
        high=MOST_LOSS_USD,
        missing="write the USD that one under-routed request of the class loses",
    )
    limit = section.number("max_under_route", high=1)
    gate_on = section.choice("gate_on", ("bound", "estimate"))
    weight = section.number("weight")
    if gate_on is not None and not section.has("max_under_route"):
        section.fault("gate_on", "stands without a limit", "write max_under_route, or delete gate_on")
    if loss is None:
        return None
    return Risk(
        under_route_loss=loss,
        max_under_route=limit,
        gate_on=cast(GateOn, gate_on or "bound"),
        weight=loss if weight is None else weight,
    )


def read_limits(top: Section) -> Limits:
    """The limits of the whole study."""
    node = top.get("limits")
    if node is None:
        return Limits()
    if not isinstance(node, nodes.Mapping):
        top.fault("limits", f"is {shown(node)}, not a mapping", "write {min_pass_rate: 0.85, ...}")
        return Limits()
    section = Section(top.report, node, "limits", SECTIONS["limits"], lambda key: elsewhere("limits", key))
    return Limits(
        min_pass_rate=section.number("min_pass_rate", high=1),
        max_cost_per_request=section.number("max_cost_per_request"),
        p95_task_seconds=section.number("p95_task_seconds"),
        max_escalation=section.number("max_escalation", high=1),
    )
