"""The arms of a reasoning-budget study: each entry read and checked before anything could be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from evalkit.errors import visible
from evalkit.study import nodes
from evalkit.study.calls_section import read_secrets
from evalkit.study.fields import Section, clean_name, shown
from evalkit.study.nodes import Scalar, join_path
from evalkit.study.reasoning_models import EFFORTS, Arm, Effort, Fallback
from evalkit.study.reasoning_names import REASONING_SECTIONS, reasoning_elsewhere
from evalkit.study.sections import read_params
from evalkit.study.wire import min_budget

__all__ = ["read_arms"]

MAX_ARMS = 100
_ROOM = 1024  # tokens left for the answer in what a fault proposes
_MOST_TOKENS = 10**9
_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_DECLINES = ("no_final_answer", "provider_refusal", "contract_fail")


@dataclass(frozen=True)
class _Entry:
    arm: Arm
    section: Section


def read_arms(top: Section) -> tuple[Arm, ...]:
    """At least one arm, in budget order; a `budget_sweep` becomes one arm a budget."""
    node = top.get("arms", missing="list the arms in budget order: - {name: plain, model: ...}")
    if node is None:
        return ()
    if not isinstance(node, nodes.Sequence):
        top.fault(
            "arms", f"is {shown(node)}, not a list", "write - {name: plain, model: ...}, a line for each arm"
        )
        return ()
    entries: list[_Entry] = []
    lines: dict[str, int] = {}
    for index, item in enumerate(node.items):
        path = join_path("arms", index)
        if not isinstance(item, nodes.Mapping):
            like = item.text if isinstance(item, Scalar) and item.text else "plain"
            fix = f"write {{name: {visible(like, 60)}}}"
            top.report.add(item.line, path, f"is {shown(item)}, not a mapping", fix)
            continue
        keys = REASONING_SECTIONS["arms[]"]
        section = Section(top.report, item, path, keys, lambda key: reasoning_elsewhere("arms[]", key))
        for arm in _arms(section):
            if arm.name in lines:
                what = f'"{visible(arm.name, 60)}" names an arm on line {lines[arm.name]} already'
                top.report.add(item.line, f"{path}.name", what, "give every arm its own name")
                continue
            lines[arm.name] = item.line
            entries.append(_Entry(arm, section))
    if not 1 <= len(node.items) <= MAX_ARMS or len(entries) > MAX_ARMS:
        top.fault("arms", f"has {len(node.items)} entries", f"list 1 to {MAX_ARMS} arms, in budget order")
    _check_references(entries)
    return tuple(entry.arm for entry in entries)


def _arms(section: Section) -> list[Arm]:
    name = section.text("name", missing="write name: and the arm's name")
    params = read_params(section)
    model = section.text("model")
    steps, instructions = _steps(section)
    arm = Arm(
        name=name or "",
        model=model,
        params=params,
        cost_usd=section.decimal("cost_usd"),
        effort=_effort(section, params),
        max_tokens=_max_tokens(section, params),
        steps=steps,
        instructions=instructions,
        of=section.text("of"),
        vote=section.integer("vote", low=2, high=1000),
        at_once=section.flag("at_once") is not False,
        loop=section.integer("loop", low=2, high=1000),
        check_usd=section.decimal("check_usd") or Decimal(0),
        check_seconds=section.number("check_seconds") or 0.0,
        declines_as=_declines(section),
        fallback=_fallback(section),
        sent=_body(section, "sent"),
        secrets=read_secrets(section),
    )
    budgets = _budgets(section, arm)
    if name is None:
        return []
    problem = clean_name(name)
    if problem is not None:
        section.fault("name", problem, "give the arm another name")
        return []
    _check_derived(section, arm)
    if section.has("budget_sweep"):
        return [replace(arm, name=f"{name}-{budget}", budget_tokens=budget) for budget in budgets]
    return [replace(arm, budget_tokens=budgets[0] if budgets else None)]


def _budgets(section: Section, arm: Arm) -> list[int]:
    """The budgets of the arm that can be asked for; those that cannot are faults, never clamped."""
    least = section.integer("min_budget_tokens", low=0, high=_MOST_TOKENS)
    least = min_budget(arm.model) if least is None else least
    single, key = section.integer("budget_tokens", low=0, high=_MOST_TOKENS), "budget_tokens"
    nested = _nested(arm.params, "thinking", "budget_tokens")
    if single is None and nested is not None:
        single, key = nested, "params"
    elif single is not None and nested is not None and nested != single:
        section.fault("budget_tokens", f"is {single}, and params.thinking asks for {nested}", "keep one of them")
    swept = _sweep(section)
    asked = {"budget_tokens": single is not None, "budget_sweep": bool(swept), "effort": arm.effort is not None}
    given = [name for name, there in asked.items() if there]
    if len(given) > 1:
        section.fault(given[1], f"stands beside {given[0]}", "ask for one budget: tokens, a sweep, or an effort")
    values = [] if single is None else [(single, key)]
    values += [(value, "budget_sweep") for value in swept]
    fits = [v for v, _ in values if _misfit(v, arm.max_tokens, least) is None]
    for value, where in values:
        wrong = _misfit(value, arm.max_tokens, least)
        if wrong is None:
            continue
        what, fix = wrong
        if where == "budget_sweep" and fits:
            fix += f"; of this sweep {', '.join(str(v) for v in fits)} can be asked for"
        label = "budget_tokens: " if where != "budget_tokens" else ""
        section.fault(where, f"{label}{what}", fix)
    return fits


def _nested(params: Mapping[str, object], key: str, inner: str) -> int | None:
    found = params.get(key)
    value = found.get(inner) if isinstance(found, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _misfit(value: int, cap: int | None, least: int | None) -> tuple[str, str] | None:
    """(what, fix) where a budget leaves no room for an answer, or is below what the provider takes; 0 is off."""
    if cap is not None and value >= cap:
        return (
            f"is {value}, and it must be below max_tokens, which is {cap}",
            f"raise max_tokens to budget and room for the answer, say {value + _ROOM} = {value} + {_ROOM}, or "
            "lower the budget",
        )
    if least is not None and 0 < value < least:
        return (
            f"is {value}, below the provider's minimum of {least}",
            f"write {least} or more, or 0 for no thinking; nothing is raised silently",
        )
    return None


def _sweep(section: Section) -> list[int]:
    node = section.get("budget_sweep")
    if node is None:
        return []
    if not isinstance(node, nodes.Sequence) or not node.items:
        section.fault("budget_sweep", f"is {shown(node)}, not a list of budgets", "write [1024, 4096]")
        return []
    found = []
    for index, item in enumerate(node.items):
        path = join_path(section.where("budget_sweep"), index)
        value = section.number_of(item, item.line, path, low=0, high=_MOST_TOKENS)
        if value is not None and value != value.to_integral_value():
            section.report.add(
                item.line, path, f"is {value}, not a whole number", "write a whole number of tokens"
            )
        elif value is not None:
            found.append(int(value))
    return found


def _max_tokens(section: Section, params: Mapping[str, object]) -> int | None:
    own = section.integer("max_tokens", low=1, high=_MOST_TOKENS)
    in_params = [(key, value) for key in _CAPS if isinstance(value := params.get(key), int)]
    caps = {value for _, value in in_params if not isinstance(value, bool)}
    if own is not None:
        caps.add(own)
    if len(caps) > 1:
        section.fault(
            "max_tokens" if own is not None else "params",
            f"says more than one cap on output: {', '.join(str(c) for c in sorted(caps))}",
            "keep one max_tokens",
        )
    return min(caps) if caps else None


def _effort(section: Section, params: Mapping[str, object]) -> Effort | None:
    own = section.choice("effort", EFFORTS)
    nested = params.get("reasoning_effort")
    if nested is not None and nested not in EFFORTS:
        what = f'reasoning_effort is "{visible(nested, 60)}"; allowed: {", ".join(EFFORTS)}'
        section.fault("params", what, "write one of them as effort")
        return None
    if own is not None and nested is not None and own != nested:
        what = f"is {own}, and params.reasoning_effort asks for {visible(nested, 60)}"
        section.fault("effort", what, "keep one of them")
    return cast("Effort | None", own if own is not None else nested)


def _steps(section: Section) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(names, instructions): a number, a list of names, or a list of `name: instruction`."""
    node = section.get("steps")
    if node is None:
        return (), ()
    if not isinstance(node, nodes.Sequence):
        count = section.integer("steps", low=1, high=100)
        return (() if count is None else tuple(f"step {i}" for i in range(1, count + 1))), ()
    found = [_step(item) for item in node.items]
    steps = [step for step in found if step is not None]
    told = [text for _, text in steps if text is not None]
    if len(steps) != len(found) or not steps or len(told) not in {0, len(steps)}:
        what = "is a list with something else than names, or than a name and an instruction for each step"
        section.fault("steps", what, 'write [plan, solve, check], or - plan: "Make a plan." a line for each')
        return (), ()
    return tuple(name for name, _ in steps), tuple(told)


def _step(item: nodes.Node) -> tuple[str, str | None] | None:
    """(name, instruction or None) of one step; None where it is neither."""
    if isinstance(item, Scalar):
        return (item.value, None) if isinstance(item.value, str) and item.value.strip() else None
    if not isinstance(item, nodes.Mapping) or len(item.entries) != 1:
        return None
    ((name, entry),) = item.entries.items()
    text = entry.node.value if isinstance(entry.node, Scalar) else None
    return (name, text) if isinstance(text, str) and text.strip() else None


def _declines(section: Section) -> tuple[str, ...]:
    node = section.get("declines_as")
    if node is None:
        return ()
    items = node.items if isinstance(node, nodes.Sequence) else (node,)
    found = []
    for item in items:
        value = item.value if isinstance(item, Scalar) else None
        if value not in _DECLINES:
            what = f"is {shown(item)}; allowed: {', '.join(_DECLINES)}"
            section.fault("declines_as", what, "name the status by which a recorded reply declines")
        else:
            found.append(str(value))
    return tuple(found)


def _fallback(section: Section) -> Fallback | None:
    node = section.get("fallback")
    if node is None:
        return None
    if isinstance(node, Scalar):
        name = section.text("fallback")
        return None if name is None else Fallback(arm=name)
    inner = section.section(
        "fallback", REASONING_SECTIONS["arms[].fallback"], like="{cost_usd: 2.50, seconds: 600}"
    )
    if inner is None:
        return None
    arm = inner.text("arm")
    if arm is not None and (inner.has("cost_usd") or inner.has("seconds")):
        inner.fault(
            "arm", "stands beside cost_usd or seconds", "an arm's own cost and time are measured; keep the arm"
        )
    missing = None if arm is not None else "write the USD that a declined task costs there; write 0 if it is free"
    cost = inner.decimal("cost_usd", missing=missing)
    return Fallback(arm=arm, cost_usd=cost or Decimal(0), seconds=inner.number("seconds") or 0.0)


def _body(section: Section, key: str) -> Mapping[str, object] | None:
    node = section.get(key)
    if node is None:
        return None
    if not isinstance(node, nodes.Mapping):
        section.fault(
            key, f"is {shown(node)}, not a mapping", "write the body that was sent, without its messages"
        )
        return None
    body = cast("dict[str, object]", nodes.plain(node))
    thought = _nested(body, "thinking", "budget_tokens")
    caps = [(cap, body[cap]) for cap in _CAPS if isinstance(body.get(cap), int)]
    for cap, most in caps:
        if thought is not None and isinstance(most, int) and thought >= most:
            what = f"thinking.budget_tokens is {thought}, and {cap} is {most}: providers refuse such a request"
            section.fault(
                key, what, "copy the body that was really sent, whose cap is above its budget, or leave sent out"
            )
    return body


def _check_derived(section: Section, arm: Arm) -> None:
    if arm.vote is not None and arm.loop is not None:
        section.fault("loop", "stands beside vote", "make two arms of them")
    made = [key for key in ("vote", "loop") if section.has(key)]
    if made and arm.of is None and not section.has("of"):
        section.fault(made[0], "does not say whose runs it takes", "write of: and the name of that arm")
    if arm.of is not None:
        if not made:
            section.fault("of", "stands without vote or loop", "write vote: 3, or loop: 3")
        for key in ("model", "params", "budget_tokens", "budget_sweep", "effort", "steps", "sent", "cost_usd"):
            if section.has(key):
                section.fault(key, f"belongs to the arm {visible(arm.of, 60)}, whose runs are taken", "delete it")
    for key, needs in (("at_once", "vote"), ("check_usd", "loop"), ("check_seconds", "loop")):
        if section.has(key) and not section.has(needs):
            section.fault(key, f"means nothing without {needs}", "delete it")
    if bool(arm.declines_as) != (arm.fallback is not None) and (
        section.has("declines_as") != section.has("fallback")
    ):
        if section.has("declines_as"):
            fix = "write fallback: another arm, or {cost_usd: ..., seconds: ...}"
            section.fault("declines_as", "does not say where a declined task goes", fix)
        else:
            fix = "write declines_as: no_final_answer, say"
            section.fault("fallback", "does not say which replies decline", fix)


def _check_references(entries: Sequence[_Entry]) -> None:
    """`of` and `fallback` name an arm with outcomes of its own that does not decline itself."""
    by_name: dict[str, Any] = {entry.arm.name: entry.arm for entry in entries}
    for entry in entries:
        arm, section = entry.arm, entry.section
        for key, name in (("of", arm.of), ("fallback", arm.fallback.arm if arm.fallback else None)):
            if name is None:
                continue
            other = by_name.get(name)
            if other is None:
                known = ", ".join(visible(n, 60) for n in by_name if n != arm.name)
                section.fault(key, f'there is no arm "{visible(name, 60)}"', f"name one of: {known}")
            elif other is arm:
                section.fault(key, "names the arm itself", "name another arm")
            elif not other.recorded or other.declines_as:
                what = f'"{visible(name, 60)}" is made of other runs itself'
                section.fault(key, what, "name an arm that has outcomes of its own and declines nothing")
