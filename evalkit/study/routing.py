"""`read_study`: a routing study from its YAML file, checked whole; every fault names file, line, field and fix."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from evalkit.errors import Fault, InputError, visible
from evalkit.study import nodes
from evalkit.study.calls_section import read_calls
from evalkit.study.checks import check_replay, check_risk, check_router, weight_notices
from evalkit.study.fields import Report, Section
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import LabelsKind, MissingOutcomes, RoutingStudy
from evalkit.study.names import SECTIONS, elsewhere
from evalkit.study.router_section import read_routers
from evalkit.study.secrets import hide_secrets
from evalkit.study.sections import MOST_LOSS_USD, read_limits, read_name, read_risk, read_tiers
from evalkit.study.sources import Folder, read_file, read_prices, read_source
from evalkit.study.strict_yaml import load_yaml
from evalkit.study.thresholds import parse_thresholds, threshold_problems

__all__ = ["only_router", "override", "read_study"]

MAX_SEED = 2**32 - 1


def read_study(path: str | Path, *, files_exist: bool = True) -> RoutingStudy:
    """The routing study in the YAML file `path`.

    Files it names are looked for beside it; they have to exist unless `files_exist` is False (a command that needs
    the tiers only runs before there are outcomes). Their content is not read. Literal secrets are dropped and
    named in `notices`. Raises `InputError` with every fault of the file.
    """
    document, notices = hide_secrets(load_yaml(path))
    report = Report(document.file, document.faults, document.secrets)
    if document.root is None:
        raise InputError(report.in_order())
    if not isinstance(document.root, nodes.Mapping):
        report.add(document.root.line, None, "is not a study: it holds no keys", "write study: and the other keys")
        raise InputError(report.in_order())
    _refuse_other_kinds(report, document.root)
    top = Section(report, document.root, "", SECTIONS[""], lambda key: elsewhere("", key))
    study = _study(top, Path(path), notices, files_exist=files_exist)
    if report.faults or study is None:
        raise InputError(report.in_order())
    return replace(study, fingerprint=study_fingerprint(study))


def _refuse_other_kinds(report: Report, root: nodes.Mapping) -> None:
    """A reasoning-budget study is told where it belongs, not that its keys are unknown."""
    entry = root.entries.get("kind")
    kind = nodes.plain(entry.node) if entry is not None else None
    if kind == "reasoning-budget":
        what = "is reasoning-budget, and this command reads routing studies"
        report.faults = []
        report.add(entry.line if entry else None, "kind", what, f"run evalkit reasoning-budget {report.file}")
        raise InputError(report.faults)


def _study(top: Section, path: Path, notices: tuple[str, ...], *, files_exist: bool) -> RoutingStudy | None:
    base = Folder(path.parent, must_exist=files_exist)
    name = read_name(top)
    top.choice("kind", ("routing",), missing="write kind: routing")
    labels = read_source(top, "labels", base, missing="name the file of labels")
    outcomes = read_source(top, "outcomes", base)
    tiers = read_tiers(top)
    routers = read_routers(top, base)
    risk = read_risk(top)
    limits = read_limits(top)
    labels_kind = top.choice("labels_kind", ("human", "author_rule", "derived", "model"))
    missing_outcomes = top.choice("missing_outcomes", ("error", "unanswered"))
    pass_at = top.number("pass_at", high=1)
    if pass_at == 0:
        top.fault("pass_at", "is 0, at which every reply passes", "write a score above 0, at most 1")
    contract_failure_cost = top.number("contract_failure_cost", high=MOST_LOSS_USD)
    confidence = top.number("confidence", low=0.5, high=1)
    if confidence == 1:
        top.fault("confidence", "is 1, which no data can reach", "write a number below 1, such as 0.95")
    looks = top.integer("looks", low=1, high=50)
    seed = top.integer("seed", low=0, high=MAX_SEED)
    near_total = top.number("near_total_escalation", low=0.5, high=1)
    replicates = top.integer("bootstrap_replicates", low=100, high=100_000)
    description = top.text("description")
    prices = read_prices(top, base)
    rubric = read_file(top, "rubric", base)
    policy = read_file(top, "policy", base)
    audit = read_file(top, "audit", base)
    calls = read_calls(top, base)
    check_risk(top, risk)
    for router in routers:
        check_router(router, tiers, risk, limits)
    check_replay(top, tiers, [router.value for router in routers])
    if name is None or labels is None or not routers:
        return None
    return RoutingStudy(
        name=name,
        path=path,
        base=path.parent,
        labels=labels,
        tiers=tiers,
        router=routers[0].value,
        routers=tuple(router.value for router in routers) if len(routers) > 1 else (),
        risk={key: entry.value for key, entry in risk.items()},
        description=description,
        labels_kind=cast(LabelsKind, labels_kind or "human"),
        outcomes=outcomes,
        prices=prices,
        rubric=rubric,
        policy=policy,
        audit=audit,
        missing_outcomes=cast(MissingOutcomes, missing_outcomes or "error"),
        pass_at=1.0 if pass_at is None else pass_at,
        contract_failure_cost=contract_failure_cost or 0.0,
        limits=limits,
        confidence=0.95 if confidence is None else confidence,
        looks=1 if looks is None else looks,
        seed=seed or 0,
        near_total_escalation=0.95 if near_total is None else near_total,
        bootstrap_replicates=2000 if replicates is None else replicates,
        calls=calls,
        samples=calls.samples if top.has("samples") else None,
        notices=notices + tuple(weight_notices(risk)),
    )


def only_router(study: RoutingStudy, name: str) -> RoutingStudy:
    """The study with one of its several routers; it was picked out of all, so it shares the error rate with them.

    Raises `InputError` where there is no such router.
    """
    if not study.routers:
        what = "is given, and the study has one router, without a name"
        raise InputError(Fault(what, "leave it out", field="--router"))
    chosen = next((r for r in study.routers if r.name == unicodedata.normalize("NFC", name)), None)
    if chosen is None:
        names = ", ".join(visible(r.name) for r in study.routers)
        what = f'"{visible(name, 60)}" is none of its routers: {names}'
        raise InputError(Fault(what, "name one of them", field="--router"))
    return replace(study, router=replace(chosen, routers=-(-study.shared // chosen.policies)), routers=())


def override(
    study: RoutingStudy,
    *,
    threshold: str | float | Sequence[float | str] | None = None,
    seed: int | None = None,
    router: str | None = None,
) -> RoutingStudy:
    """The study with options of the command line in place of what its file says, and its new fingerprint.

    `threshold`: in the user's units; one number, several, or text such as `0.3,0.6`. `seed`: from 0 to 2^32 - 1.
    `router`: the name of the one router to judge of several; it still counts as picked out of all of them.
    Raises `InputError` that names the option.
    """
    faults: list[Fault] = []
    changed = study = study if router is None else only_router(study, router)
    if threshold is not None:
        if study.routers:
            names = ", ".join(visible(r.name) for r in study.routers)
            what = f"the study has several routers: {names}; a threshold belongs to one of them"
            raise InputError(Fault(what, "name it with --router", field="--threshold"))
        values = parse_thresholds(threshold, "--threshold")
        if study.router.decisions is not None:
            faults.append(
                Fault("the study judges decisions, which have no threshold", "leave it out", field="--threshold")
            )
        problems = threshold_problems(
            values,
            study.tier_names,
            study.router.higher_means,
            single_score=study.router.policy != "cascade",
            probability=study.router.probability,
        )
        faults.extend(Fault(what, fix, field="--threshold") for what, fix in problems)
        changed = replace(changed, router=replace(changed.router, thresholds=values))
    if seed is not None:
        if isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
            faults.append(Fault(f"is {seed}", f"give a whole number from 0 to {MAX_SEED:,}", field="--seed"))
        changed = replace(changed, seed=seed)
    if faults:
        raise InputError(faults)
    return replace(changed, fingerprint=study_fingerprint(changed))
