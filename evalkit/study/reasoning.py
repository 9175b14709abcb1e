"""`read_reasoning_study`: a reasoning-budget study from its YAML file, checked whole; faults name line and fix."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import cast

from evalkit.errors import Fault, InputError, visible
from evalkit.study import nodes
from evalkit.study.arms import read_arms
from evalkit.study.common import MAX_SEED, Kind, read_common, read_kind
from evalkit.study.fields import Section, clean_name, shown
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import GateOn
from evalkit.study.nodes import join_path
from evalkit.study.reasoning_models import Arm, ArmLimits, Client, ReasoningRisk, ReasoningStudy
from evalkit.study.reasoning_names import REASONING_SECTIONS, reasoning_elsewhere
from evalkit.study.sources import Folder

__all__ = ["override_reasoning", "read_reasoning_study"]

_KIND = Kind("reasoning-budget", REASONING_SECTIONS, reasoning_elsewhere)


def read_reasoning_study(path: str | Path, *, files_exist: bool = True) -> ReasoningStudy:
    """The reasoning-budget study in the YAML file `path`.

    Files it names are looked for beside it and have to exist unless `files_exist` is False. Literal secrets are
    dropped and named in `notices`. Raises `InputError` with every fault of the file.
    """
    return read_kind(path, _KIND, _study, files_exist=files_exist)


def _study(top: Section, path: Path, base: Folder, notices: tuple[str, ...]) -> ReasoningStudy | None:
    common = read_common(top, base)
    arms = read_arms(top)
    risk = _read_risk(top)
    limits = _read_limits(top)
    gain = top.number("smallest_worthwhile_gain", high=100)
    if gain == 0:
        what = "is 0, and no evidence shows that a gain is below it"
        top.fault("smallest_worthwhile_gain", what, "write points above 0, such as 1.0")
    client = top.choice("client", ("litellm", "other"))
    value = top.number("value_per_point_usd")
    _check_replay(top, arms)
    if common["name"] is None or common["labels"] is None:
        return None
    return ReasoningStudy(
        **common,
        path=path,
        base=path.parent,
        arms=arms,
        risk=risk,
        limits=limits,
        value_per_point_usd=value,
        smallest_worthwhile_gain=gain,
        client=cast(Client, client or "other"),
        notices=notices,
    )


def _read_risk(top: Section) -> dict[str, ReasoningRisk]:
    """The risk classes in declared order; a study may have none."""
    node = top.get("risk")
    if node is None:
        return {}
    like = "{max_failure: 0.05}"
    if not isinstance(node, nodes.Mapping) or not node.entries:
        top.fault(
            "risk", f"is {shown(node)} without classes", f"write a line for each class, such as high: {like}"
        )
        return {}
    classes: dict[str, ReasoningRisk] = {}
    sections: list[Section] = []
    for name, entry in node.entries.items():
        path = join_path("risk", name)
        problem = clean_name(name)
        if problem is not None:
            top.report.add(entry.line, path, problem, "give the class another name")
            continue
        if not isinstance(entry.node, nodes.Mapping):
            fix = f"write {like}, or {{}} for a class without a limit"
            top.report.add(entry.line, path, f"is {shown(entry.node)}, not a mapping", fix)
            continue
        section = _KIND.section(top.report, entry.node, path, "risk.<class>")
        limit = section.number("max_failure", high=1)
        gate_on = section.choice("gate_on", ("bound", "estimate"))
        if limit == 1:
            section.fault("max_failure", "is 1, which nothing can break", "write a share below 1, or leave it out")
        if gate_on is not None and not section.has("max_failure"):
            section.fault("gate_on", "stands without a limit", "write max_failure, or delete gate_on")
        classes[unicodedata.normalize("NFC", name)] = ReasoningRisk(limit, cast(GateOn, gate_on or "bound"))
        sections.append(section)
    limits = [risk.max_failure for risk in classes.values() if risk.max_failure is not None]
    strictest = [at for at, risk in enumerate(classes.values()) if limits and risk.max_failure == min(limits)]
    if strictest and all(list(classes.values())[at].gate_on == "estimate" for at in strictest):
        what = "is estimate for the class with the strictest limit, which must be certified"
        sections[strictest[0]].fault("gate_on", what, "write bound")
    return classes


def _read_limits(top: Section) -> ArmLimits:
    node = top.get("limits")
    if node is None:
        return ArmLimits()
    if not isinstance(node, nodes.Mapping):
        top.fault("limits", f"is {shown(node)}, not a mapping", "write {min_pass_rate: 0.85, ...}")
        return ArmLimits()
    section = _KIND.section(top.report, node, "limits", "limits")
    floor = section.number("min_pass_rate", high=1)
    if floor == 0:
        section.fault("min_pass_rate", "is 0, which nothing can break", "write a share above 0, or leave it out")
    return ArmLimits(
        min_pass_rate=floor,
        max_cost_per_request=section.number("max_cost_per_request"),
        p95_task_seconds=section.number("p95_task_seconds"),
    )


def _check_replay(top: Section, arms: tuple[Arm, ...]) -> None:
    """Without recorded outcomes the models have to be called and their replies graded."""
    if top.has("outcomes"):
        return
    without = [arm.name for arm in arms if arm.recorded and arm.model is None]
    if without:
        names = ", ".join(visible(name) for name in without)
        what = f"is missing, and these arms name no model to call: {names}"
        top.fault("outcomes", what, "name the file of recorded outcomes, or write model: for each arm")
    if not top.has("rubric"):
        what = "is missing, and without outcomes the replies have to be graded"
        top.fault("rubric", what, "name the file of recorded outcomes under outcomes, or a rubric")


def override_reasoning(study: ReasoningStudy, *, seed: int | None = None) -> ReasoningStudy:
    """The study with options of the command line in place of what its file says, and its new fingerprint."""
    if seed is None:
        return study
    if isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
        raise InputError(Fault(f"is {seed}", f"give a whole number from 0 to {MAX_SEED:,}", field="--seed"))
    changed = replace(study, seed=seed)
    return replace(changed, fingerprint=study_fingerprint(changed))
