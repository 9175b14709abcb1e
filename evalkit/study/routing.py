"""`read_study`: a routing study from its YAML file, checked whole; every fault names file, line, field and fix."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalkit.errors import Fault, InputError, visible
from evalkit.study.checks import check_replay, check_risk, check_router, weight_notices
from evalkit.study.common import MAX_SEED, Kind, read_common, read_kind
from evalkit.study.fields import Section
from evalkit.study.fingerprint import study_fingerprint
from evalkit.study.models import RoutingStudy
from evalkit.study.names import SECTIONS, elsewhere
from evalkit.study.router_section import read_routers
from evalkit.study.sections import MOST_LOSS_USD, read_limits, read_risk, read_tiers
from evalkit.study.sources import Folder, read_file
from evalkit.study.thresholds import parse_thresholds, threshold_problems

__all__ = ["only_router", "override", "read_study"]


def read_study(path: str | Path, *, files_exist: bool = True) -> RoutingStudy:
    """The routing study in the YAML file `path`.

    Files it names are looked for beside it; they have to exist unless `files_exist` is False (a command that needs
    the tiers only runs before there are outcomes). Their content is not read. Literal secrets are dropped and
    named in `notices`. Raises `InputError` with every fault of the file.
    """
    return read_kind(path, Kind("routing", SECTIONS, elsewhere), _study, files_exist=files_exist)


def _study(top: Section, path: Path, base: Folder, notices: tuple[str, ...]) -> RoutingStudy | None:
    common = read_common(top, base)
    tiers = read_tiers(top)
    routers = read_routers(top, base)
    risk = read_risk(top)
    limits = read_limits(top)
    contract_failure_cost = top.number("contract_failure_cost", high=MOST_LOSS_USD)
    near_total = top.number("near_total_escalation", low=0.5, high=1)
    audit = read_file(top, "audit", base)
    check_risk(top, risk)
    for router in routers:
        check_router(router, tiers, risk, limits)
    check_replay(top, tiers, [router.value for router in routers])
    if common["name"] is None or common["labels"] is None or not routers:
        return None
    return RoutingStudy(
        **common,
        path=path,
        base=path.parent,
        tiers=tiers,
        router=routers[0].value,
        routers=tuple(router.value for router in routers) if len(routers) > 1 else (),
        risk={key: entry.value for key, entry in risk.items()},
        audit=audit,
        contract_failure_cost=contract_failure_cost or 0.0,
        limits=limits,
        near_total_escalation=0.95 if near_total is None else near_total,
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
