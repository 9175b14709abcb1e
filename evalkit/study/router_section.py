"""The router section of a routing study, or its list of routers: where each score or decision comes from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from evalkit.errors import visible
from evalkit.study import nodes
from evalkit.study.fields import Section, clean_name, shown
from evalkit.study.models import (
    Direction,
    Leaks,
    MissingScores,
    Policy,
    Router,
    RouterKind,
    RouterSpec,
    Source,
    TrainedOn,
)
from evalkit.study.names import ROUTER_OPTIONS, SECTIONS, elsewhere
from evalkit.study.nodes import Node, Scalar, join_path
from evalkit.study.sections import MOST_USD, Read, floats
from evalkit.study.sources import Folder, read_file, read_folder, read_source

__all__ = ["MAX_ROUTERS", "name_problem", "read_routers"]

MAX_ROUTERS = 32
"""More routers than this share an error rate so small that no label set certifies anything."""
MAX_NAME = 60
_KINDS = ("rules", "classifier", "semantic", "python")
_FITTED = ("classifier", "semantic")
_ROUTER_FIX = (
    "write a router section: scores (or kind), higher_means, trained_on and cost_usd, or decisions and cost_usd"
)
_LIST_FIX = "write - {name: ..., scores: ..., higher_means: ..., trained_on: ..., cost_usd: ...}, a line a router"
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_OF_KIND = {"rules": ("rules",), "model": _FITTED, "function": ("python",)}
"""Which kinds each key of a router that evalkit runs belongs to."""


class _Given(NamedTuple):
    """What a router section names: scores, decisions or kind (`key`); "" where it names several or none."""

    key: str
    scores: Source | None
    decisions: Source | None
    kind: RouterKind | None


def read_routers(top: Section, base: Folder) -> list[Read[Router]]:
    """All routers of the study, one where it has a `router` section. Those without a usable cost are left out."""
    if not top.has("routers"):
        node = top.get("router", missing=_ROUTER_FIX)
        if node is None:
            return []
        if not isinstance(node, nodes.Mapping):
            top.fault("router", f"is {shown(node)}, not a mapping", _ROUTER_FIX)
            return []
        read = _router(Section(top.report, node, "router", SECTIONS["router"], _one), base, "")
        return [] if read is None else [read]
    if top.has("router"):
        top.fault("routers", "stands beside router", "keep one: router for one, routers for two or more")
    node = top.get("routers")
    if not isinstance(node, nodes.Sequence):
        if node is not None:
            top.fault("routers", f"is {shown(node)}, not a list", _LIST_FIX)
        return []
    if not 2 <= len(node.items) <= MAX_ROUTERS:
        fix = f"list 2 to {MAX_ROUTERS} routers, or write router: for a single one"
        top.fault("routers", f"has {len(node.items)} entries", fix)
    found: list[Read[Router]] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(node.items):
        path = join_path("routers", index)
        if not isinstance(item, nodes.Mapping):
            top.report.add(item.line, path, f"is {shown(item)}, not a mapping", _LIST_FIX)
            continue
        section = Section(top.report, item, path, SECTIONS["routers[]"], lambda key: elsewhere("routers[]", key))
        name = _name(section, lines)
        read = _router(section, base, name)
        if read is not None:
            found.append(read)
    return found


def _one(key: str) -> tuple[str, str] | None:
    if key == "name":
        return "names one of several routers, and this is the only one", "delete it, or list the routers: routers:"
    return elsewhere("router", key)


def _name(section: Section, lines: dict[str, int]) -> str:
    """The name of one of several routers: it names files too, and no two may be one on any file system."""
    name = section.text("name", missing="write name: and a short name of the router")
    if name is None:
        return ""
    problem = name_problem(name)
    if problem is not None:
        section.fault("name", problem, "use letters, digits, - and _; the name is part of file names")
        return ""
    key = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    if key in lines:
        what = f'"{visible(name, 60)}" names a router on line {lines[key]} already'
        section.fault("name", what, "give every router its own name; capitals do not tell two names apart")
        return ""
    lines[key] = section.line()
    return name


def name_problem(name: str) -> str | None:
    """What is wrong with `name` as the name of one of several routers; None where it is fine."""
    problem = clean_name(name)
    if problem is None and len(name) > MAX_NAME:
        problem = f"has {len(name)} characters, and at most {MAX_NAME} are taken"
    if problem is None and not all(ch.isalnum() or ch in "-_." for ch in name):
        problem = f'"{visible(name, 60)}" holds signs that no file name should have'
    if problem is None and (name.startswith((".", "-")) or name.endswith(".")):
        problem = f'"{visible(name, 60)}" starts with a point or a hyphen, or ends with a point'
    return problem


def _router(section: Section, base: Folder, name: str) -> Read[Router] | None:
    policy = section.choice("policy", ("direct", "cascade", "both"))
    given = _given(section, base)
    direction, trained_on = _meaning(section, given)
    spec = None if given.kind is None else _spec(section, base, given.kind, trained_on)
    train = read_source(section, "train", base)
    if train is not None and spec is not None and spec.kind in _FITTED and trained_on == "cross_fitted":
        what = "stands beside trained_on: cross_fitted, which fits on the judged items across folds"
        section.fault("train", what, "delete it, or fit on it: evalkit router fit, then name the folder as model")
    leaks = section.choice("leaks", ("error", "drop"))
    if leaks is not None and not _may_leak(section, spec):
        section.fault("leaks", "stands without training labels", "name them under train, or delete it")
    if given.key == "decisions":
        for key in ("thresholds", "higher_means", "missing_scores", "probability"):
            if section.has(key):
                section.fault(key, "means nothing for decisions", "delete it")
        if policy == "both":
            section.fault("policy", "is both, and decisions come from one policy", "write direct or cascade")
    if given.kind is not None and section.has("missing_scores"):
        section.fault("missing_scores", "means nothing where evalkit scores every item", "delete it")
    cost = section.decimal(
        "cost_usd", high=MOST_USD, missing="write the USD a request costs to route; write 0 if it is free"
    )
    seconds = section.number("seconds")
    missing_scores = section.choice("missing_scores", ("escalate", "cheapest"))
    probability = section.flag("probability")
    thresholds = _thresholds(section)
    routers = section.integer("routers", low=1, high=10_000)
    if cost is None:
        return None
    router = Router(
        cost_usd=cost,
        policy=cast(Policy, policy or "direct"),
        scores=given.scores,
        higher_means=direction,
        trained_on=trained_on,
        seconds=seconds,
        thresholds=thresholds,
        decisions=given.decisions,
        missing_scores=cast("MissingScores | None", missing_scores),
        probability=bool(probability),
        routers=1 if routers is None else routers,
        name=name,
        spec=spec,
        train=train,
        leaks=cast("Leaks", leaks or "error"),
    )
    return Read(router, section)


def _may_leak(section: Section, spec: RouterSpec | None) -> bool:
    """The router names what it was trained on: as labels, or as a model that remembers them."""
    return section.has("train") or (spec is not None and spec.path is not None and spec.kind in _FITTED)


def _given(section: Section, base: Folder) -> _Given:
    scores = read_source(section, "scores", base)
    decisions = read_source(section, "decisions", base)
    kind = section.choice("kind", _KINDS)
    given = [key for key in ("scores", "decisions", "kind") if section.has(key)]
    if not given:
        section.fault(
            "scores",
            "is required where there are no decisions",
            "name the file of scores, or of decisions, or the kind of router that evalkit is to run",
        )
    elif "kind" in given and len(given) > 1:
        what = f"stands beside {given[0]}: the router is run, or what it gave is read"
        section.fault("kind", what, f"keep one: kind to run it, {given[0]} to read what it gave")
    elif len(given) == 2:
        section.fault(
            "decisions", "stands beside scores", "keep one: scores to judge a score, decisions to judge a policy"
        )
    if len(given) != 1:
        return _Given("", None, None, None)
    return _Given(given[0], scores, decisions, cast("RouterKind | None", kind))


def _meaning(section: Section, given: _Given) -> tuple[Direction | None, TrainedOn | None]:
    """(what a high score asks for, what the router was trained on), with the defaults of each kind."""
    declared = given.key == "scores" or given.kind == "python"
    direction = section.choice(
        "higher_means",
        ("needs_stronger", "cheap_is_enough"),
        missing=(
            "write needs_stronger (a high score asks for a stronger tier) or cheap_is_enough; it is never guessed"
            if declared
            else None
        ),
    )
    if given.kind in _FITTED and direction == "cheap_is_enough":
        what = f"is cheap_is_enough, and a {given.kind} that evalkit fits scores what needs a stronger tier"
        section.fault("higher_means", what, "delete it, or write needs_stronger")
    without = given.kind in _FITTED and not section.has("model")
    trained_on = section.choice(
        "trained_on",
        ("other_items", "cross_fitted", "these_items", "untrained"),
        missing="write other_items, cross_fitted, these_items or untrained" if declared else None,
    )
    if given.kind == "rules" and trained_on is None:
        trained_on = "untrained"
    if given.kind is not None and direction is None:
        direction = "needs_stronger"
    if without and trained_on is not None and trained_on != "cross_fitted":
        what = f"is {trained_on}, and there is no model that was fitted on other items"
        section.fault("trained_on", what, "name its folder under model, or write cross_fitted")
    return cast("Direction | None", direction), cast("TrainedOn | None", trained_on)


def _spec(section: Section, base: Folder, kind: RouterKind, trained_on: TrainedOn | None) -> RouterSpec:
    """The router that evalkit runs, and what it needs for that."""
    for key, kinds in _OF_KIND.items():
        if kind not in kinds and section.has(key):
            section.fault(
                key, f"means nothing for kind: {kind}", f"delete it; it belongs to {' and '.join(kinds)}"
            )
    for key in ROUTER_OPTIONS:
        if kind not in ROUTER_OPTIONS[key] and section.has(key):
            belongs = " and ".join(ROUTER_OPTIONS[key])
            section.fault(key, f"means nothing for kind: {kind}", f"delete it; it belongs to {belongs}")
    written, path, function = "", None, None
    if kind == "rules":
        if section.get("rules", missing="name the YAML file of rules") is not None:
            path = read_file(section, "rules", base)
            written = section.text("rules") or ""
    elif kind == "python":
        function = section.text("function", missing='write "module:function"')
        if function is not None and not _FUNCTION.fullmatch(function):
            what = f'"{visible(function, 60)}" is not module:function'
            section.fault("function", what, "write it as routers:score")
        written = function or ""
    else:
        path, written = _model(section, base, trained_on)
    return RouterSpec(kind, written, path, function, _options(section, kind))


def _model(section: Section, base: Folder, trained_on: TrainedOn | None) -> tuple[Path | None, str]:
    if section.has("model"):
        return read_folder(section, "model", base), section.text("model") or ""
    if trained_on is None and base.must_exist:
        fix = "fit it with evalkit router fit and name its folder under model, or write trained_on: cross_fitted"
        section.fault("model", "is required where the router is not cross-fitted", fix)
    return None, ""


def _options(section: Section, kind: RouterKind) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for key, kinds in ROUTER_OPTIONS.items():
        node = section.get(key) if kind in kinds else None
        if node is not None:
            found[key] = floats(nodes.plain(node))
    return found


def _thresholds(section: Section) -> tuple[float, ...] | None:
    node = section.get("thresholds")
    if node is None:
        return None
    if not isinstance(node, nodes.Sequence):
        section.fault("thresholds", f"is {shown(node)}, not a list", _list_fix(node))
        return None
    numbers = [
        section.number_of(item, item.line, join_path(section.where("thresholds"), index))
        for index, item in enumerate(node.items)
    ]
    if not numbers:
        section.fault(
            "thresholds", "is an empty list", "write the thresholds, or leave the key out to search for them"
        )
    values = [float(number) for number in numbers if number is not None]
    return tuple(values) if numbers and len(values) == len(numbers) else None


def _list_fix(node: Node) -> str:
    return f"write [{visible(node.text, 60)}]" if isinstance(node, Scalar) else "write a list of numbers"
