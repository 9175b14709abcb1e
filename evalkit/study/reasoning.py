"""`read_reasoning_study`: a reasoning-budget study from its YAML file, checked whole; faults name line and fix."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import cast

from evalkit.errors import Fault, InputError, visible
from evalkit.study import nodes
from evalkit.study.arms import read_arms
from evalkit.study.calls_section import read_calls
from evalkit.study.fields import Report, Section, clean_name, shown
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import GateOn, LabelsKind, MissingOutcomes
from evalkit.study.nodes import join_path
from evalkit.study.reasoning_models import Arm, ArmLimits, Client, ReasoningRisk, ReasoningStudy
from evalkit.study.reasoning_names import REASONING_SECTIONS, reasoning_elsewhere
from evalkit.study.routing import MAX_SEED
from evalkit.study.secrets import hide_secrets
from evalkit.study.sections import read_name
from evalkit.study.sources import Folder, read_file, read_prices, read_source
from evalkit.study.strict_yaml import load_yaml

__all__ = ["override_reasoning", "read_reasoning_study"]


def read_reasoning_study(path: str | Path, *, files_exist: bool = True) -> ReasoningStudy:
    """The reasoning-budget study in the YAML file `path`.

    Files it names are looked for beside it and have to exist unless `files_exist` is False. Literal secrets are
    dropped and named in `notices`. Raises `InputError` with every fault of the file.
    """
    document, notices = hide_secrets(load_yaml(path))
    report = Report(document.file, document.faults, document.secrets)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(document.root.line, None, "is not a study: it holds no keys", "write study: and the other keys")
        raise InputError(report.in_order())
    _refuse_other_kinds(report, document.root)
    top = Section(report, document.root, "", REASONING_SECTIONS[""], lambda key: reasoning_elsewhere("", key))
    study = _study(top, Path(path), notices, files_exist=files_exist)
    if report.faults or study is None:
        raise InputError(report.in_order())
    return replace(study, fingerprint=study_fingerprint(study))


def _refuse_other_kinds(report: Report, root: nodes.Mapping) -> None:
    entry = root.entries.get("kind")
    if entry is not None and nodes.plain(entry.node) == "routing":
        report.faults = []
        what = "is routing, and this command reads reasoning-budget studies"
        report.add(entry.line, "kind", what, f"run evalkit route-sweep {report.file}")
        raise InputError(report.faults)


def _study(top: Section, path: Path, notices: tuple[str, ...], *, files_exist: bool) -> ReasoningStudy | None:
    base = Folder(path.parent, must_exist=files_exist)
    name = read_name(top)
    top.choice("kind", ("reasoning-budget",), missing="write kind: reasoning-budget")
    labels = read_source(top, "labels", base, missing="name the file of tasks")
    outcomes = read_source(top, "outcomes", base)
    arms = read_arms(top)
    risk = _read_risk(top)
    limits = _read_limits(top)
    pass_at = top.number("pass_at", high=1)
    if pass_at == 0:
        top.fault("pass_at", "is 0, at which every reply passes", "write a score above 0, at most 1")
    confidence = top.number("confidence", low=0.5, high=1)
    if confidence == 1:
        top.fault("confidence", "is 1, which no data can reach", "write a number below 1, such as 0.95")
    gain = top.number("smallest_worthwhile_gain", high=100)
    if gain == 0:
        what = "is 0, and no evidence shows that a gain is below it"
        top.fault("smallest_worthwhile_gain", what, "write points above 0, such as 1.0")
    labels_kind = top.choice("labels_kind", ("human", "author_rule", "derived", "model"))
    missing_outcomes = top.choice("missing_outcomes", ("error", "unanswered"))
    client = top.choice("client", ("litellm", "other"))
    value = top.number("value_per_point_usd")
    looks = top.integer("looks", low=1, high=50)
    seed = top.integer("seed", low=0, high=MAX_SEED)
    replicates = top.integer("bootstrap_replicates", low=100, high=100_000)
    description = top.text("description")
    prices = read_prices(top, base)
    rubric = read_file(top, "rubric", base)
    policy = read_file(top, "policy", base)
    calls = read_calls(top, base)
    _check_replay(top, arms)
    if name is None or labels is None:
        return None
    return ReasoningStudy(
        name=name,
        path=path,
        base=path.parent,
        labels=labels,
        arms=arms,
        risk=risk,
        description=description,
        labels_kind=cast(LabelsKind, labels_kind or "human"),
        outcomes=outcomes,
        prices=prices,
        rubric=rubric,
        policy=policy,
        missing_outcomes=cast(MissingOutcomes, missing_outcomes or "error"),
        pass_at=1.0 if pass_at is None else pass_at,
        limits=limits,
        value_per_point_usd=value,
        smallest_worthwhile_gain=gain,
        samples=calls.samples if top.has("samples") else None,
        client=cast(Client, client or "other"),
        confidence=0.95 if confidence is None else confidence,
        looks=1 if looks is None else looks,
        seed=seed or 0,
        bootstrap_replicates=2000 if replicates is None else replicates,
        calls=calls,
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
        keys = REASONING_SECTIONS["risk.<class>"]
        section = Section(top.report, entry.node, path, keys, lambda key: reasoning_elsewhere("risk.<class>", key))
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
    keys = REASONING_SECTIONS["limits"]
    section = Section(top.report, node, "limits", keys, lambda key: reasoning_elsewhere("limits", key))
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
