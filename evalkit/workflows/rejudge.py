"""A finished run judged again from its evidence bundle, and what then differs from what it wrote."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import InputError, visible
from evalkit.routing.analysis import RoutingResult
from evalkit.routing.paired_walk import PairedWalk, paired_walk
from evalkit.routing.search import certifying_items
from evalkit.signoff.build import SOURCE
from evalkit.signoff.digest import file_sha256
from evalkit.signoff.model import Paired
from evalkit.signoff.strict import BrokenFileError, strict_json
from evalkit.study.models import RoutingStudy, Source
from evalkit.study.reasoning_models import ReasoningStudy
from evalkit.workflows.evidence_bundle import named_files
from evalkit.workflows.evidence_format import RunOptions
from evalkit.workflows.evidence_open import Bundle, open_evidence
from evalkit.workflows.notice_check import without_places
from evalkit.workflows.replay_facts import SUMMARY
from evalkit.workflows.router_scores import role_of

if TYPE_CHECKING:
    from evalkit.workflows.route_sweep import Inputs

AnyStudy = TypeVar("AnyStudy", RoutingStudy, ReasoningStudy)
AnyInputs = TypeVar("AnyInputs")

__all__ = ["NOT_COMPARED", "Difference", "IncompleteError", "Rejudged", "differences", "rejudge"]

NOT_COMPARED = frozenset(
    {
        ("notices",),  # they name files by where they are: `notice_check`
        ("evalkit_version",),
        ("provenance", "started_at"),
        ("provenance", "finished_at"),
        ("provenance", "evidence"),
        ("provenance", SOURCE),
        ("provenance", "python"),
        ("provenance", "dependencies"),
    }
)
"""Parts of result.json that the evidence says nothing of."""

TOLERANCE = 1e-9
"""Numbers that differ relatively by less are the same: they come of another order of summing."""


class IncompleteError(Exception):
    """A run cannot be judged from its bundle alone; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not what the evidence gives."""

    field: str
    written: str
    computed: str

    def __str__(self) -> str:
        return f"{self.field} is {self.written}, and the evidence gives {self.computed}"


@dataclass(frozen=True)
class Rejudged:
    """What the evidence gives: result.json and items.jsonl, parsed; passes by item where the run sends it.

    passed (N,), weight (N,), group (N,) or None: of the tier or arm shown. arms: the same passes by baseline
    (`always:<tier>`, an arm). hidden: tables whose copies lost secrets. walk: of a threshold that was searched
    for, the path to it against a baseline's passes (N,). approximate: why nothing of it is certified. notices:
    those of the run, without the places of files.
    """

    document: dict[str, Any]
    items: list[dict[str, Any]]
    ids: tuple[str, ...]
    passed: NDArray[np.float64] | None
    weight: NDArray[np.float64]
    group: NDArray[np.int64] | None
    arms: Mapping[str, NDArray[np.float64]]
    hidden: frozenset[str]
    walk: Callable[[NDArray[np.float64]], PairedWalk | None] | None = None
    approximate: str | None = None
    notices: tuple[str, ...] = ()

    def against(self, other: NDArray[np.float64]) -> Paired | None:
        """Paired with the passes of something else on the same items; None where there are no outcomes."""
        if self.passed is None:
            return None
        walk = None if self.walk is None else self.walk(other)
        return Paired(self.passed - other, self.weight, self.group, walk, self.approximate)


def rejudge(evidence: Path, kind: str, *, recorded: bool) -> Rejudged:
    """Judge a run again from its bundle, with the look that it was; books nothing.

    kind: route-sweep or reasoning-budget. recorded: its look could be recorded. Only files of the bundle are read,
    and only beside them is anything written, whatever its study names. Raises BrokenFileError where the bundle is
    not as it should be or cannot be judged, IncompleteError where its labels are elsewhere.
    """
    with tempfile.TemporaryDirectory(prefix="evalkit-") as folder:
        bundle = open_evidence(evidence, Path(folder))
        try:
            judged = _routing(bundle, recorded) if kind == "route-sweep" else _ladder(bundle, recorded)
            files = [bundle.study, *bundle.paths.values()]
            return replace(judged, notices=without_places(judged.document["notices"], files))
        except InputError as error:
            said = "; ".join(str(fault).replace(f"{folder}/", "") for fault in error.faults[:5])
            raise BrokenFileError(f"cannot be judged: {said}") from None


def _routing(bundle: Bundle, recorded: bool) -> Rejudged:
    from evalkit.study import override, read_study
    from evalkit.workflows.provenance import utc_now
    from evalkit.workflows.route_sweep import look_at, looks_record, read_inputs, route_sweep

    study = read_study(bundle.study, files_exist=False)
    options = bundle.options
    if options != RunOptions():
        thresholds = list(options.thresholds) or None
        study = override(study, threshold=thresholds, seed=options.seed, router=options.router)
    study = _moved_routers(_moved(study, bundle), bundle)
    _place_summary(bundle)
    inputs = _routers_as_read(_as_read(read_inputs(study, bundle.paths, bundle.hidden), bundle), bundle)
    _place(bundle, looks_record(study))
    look = replace(look_at(inputs, utc_now(), book=False), recorded=recorded)
    judged = route_sweep(inputs, look)
    data, tier = judged.result.measures.data, judged.result.tier.astype(np.int64)
    passed, arms = None, {}
    if data.passed is not None:
        passed = np.take_along_axis(data.passed, tier[:, None], axis=1)[:, 0]
        arms = {f"always:{name}": data.passed[:, j] for j, name in enumerate(data.tiers)}
    return Rejudged(
        _plain(judged.document),
        _rows(judged.items_gz),
        inputs.labels.ids,
        passed,
        data.weight,
        data.group,
        arms,
        frozenset(bundle.hidden),
        None if judged.result.judged is not None else partial(_walk, judged.result),
        None if judged.result.measures.settings.certifiable else "the scores are cross-fitted",
    )


def _walk(result: RoutingResult, baseline: NDArray[np.float64]) -> PairedWalk | None:
    certifying = certifying_items(result.measures.data)
    return paired_walk(result.search, result.place, baseline if certifying is None else baseline[certifying])


def _moved_routers(study: RoutingStudy, bundle: Bundle) -> RoutingStudy:
    """The study with the scores and decisions of the bundle; what evalkit ran is not run again but read there."""
    moved = [
        replace(
            router,
            scores=_at(router.scores, role_of(study, router, "scores"), bundle),
            decisions=_at(router.decisions, role_of(study, router, "decisions"), bundle),
        )
        for router in study.all_routers
    ]
    audit = bundle.paths.get("audit", study.audit)
    return replace(study, router=moved[0], routers=tuple(moved) if study.routers else (), audit=audit)


def _routers_as_read(inputs: Inputs, bundle: Bundle) -> Inputs:
    """As `_as_read`, for the tables of the routers."""
    if not bundle.hidden:
        return inputs
    given = []
    for one in inputs.given:
        found: dict[str, Any] = {}
        for table in ("scores", "decisions"):
            fingerprint = bundle.hidden.get(role_of(inputs.study, one.router, table))
            read = getattr(one, table)
            if fingerprint is not None and read is not None:
                found[table] = _under(read, fingerprint)
        given.append(replace(one, **found))
    return replace(inputs, given=tuple(given))


def _under(table: Any, fingerprint: str) -> Any:
    prefix = "sha256:" if table.fingerprint.startswith("sha256:") else ""
    return replace(table, fingerprint=prefix + fingerprint)


def _ladder(bundle: Bundle, recorded: bool) -> Rejudged:
    from evalkit.study.reasoning import override_reasoning, read_reasoning_study
    from evalkit.workflows.provenance import utc_now
    from evalkit.workflows.reasoning_budget import look_at, looks_record, read_ladder, reasoning_budget

    written = override_reasoning(read_reasoning_study(bundle.study, files_exist=False), seed=bundle.options.seed)
    study = _moved(written, bundle)
    if bundle.sent:
        arms = tuple(replace(arm, sent=arm.sent or bundle.sent.get(arm.name)) for arm in study.arms)
        study = replace(study, arms=arms)
    _place_summary(bundle)
    inputs = _as_read(read_ladder(study), bundle)
    _place(bundle, looks_record(study))
    look = replace(look_at(inputs, utc_now(), book=False), recorded=recorded)
    judged = reasoning_budget(inputs, look)
    result = judged.result
    passed = result.tasks.passed
    return Rejudged(
        _plain(judged.document),
        _rows(judged.items_gz),
        inputs.labels.ids,
        passed[:, result.shown],
        result.data.weight,
        result.data.group,
        {name: passed[:, a] for a, name in enumerate(result.data.arms)},
        frozenset(bundle.hidden),
    )


def _moved(study: AnyStudy, bundle: Bundle) -> AnyStudy:
    """The study with the files of the bundle in place of its own; what it says, and its fingerprint, stay.

    A bundle comes from elsewhere, so that its study could name any file of this machine: what it names and does
    not hold is never looked for.
    """
    if study.labels.path is None and "labels" not in bundle.paths:
        raise IncompleteError(f"labels: {study.labels.written}")
    lacking = [role for role, _, path in named_files(study) if path is not None and role not in bundle.paths]
    if lacking:
        raise BrokenFileError(f"does not hold what its study names: {', '.join(lacking)}")
    calls = replace(
        study.calls,
        system_prompt=bundle.paths.get("system_prompt", study.calls.system_prompt),
        prompt=bundle.paths.get("prompt", study.calls.prompt),
    )
    outcomes = _at(study.outcomes, "outcomes", bundle)
    if outcomes is None and "outcomes" in bundle.paths:  # a replay made them
        outcomes = Source(written=bundle.written["outcomes"], path=bundle.paths["outcomes"])
    labels = _at(study.labels, "labels", bundle)
    assert labels is not None
    return replace(
        study,
        labels=labels,
        outcomes=outcomes,
        prices=bundle.paths.get("prices", study.prices),
        rubric=bundle.paths.get("rubric", study.rubric),
        policy=bundle.paths.get("policy", study.policy),
        calls=calls,
    )


def _at(source: Source | None, role: str, bundle: Bundle) -> Source | None:
    if source is None or role not in bundle.paths:
        return source
    return replace(source, path=bundle.paths[role])


def _as_read(inputs: AnyInputs, bundle: Bundle) -> AnyInputs:
    """The tables under the fingerprints that they had before keys and passwords were taken out of their copies."""
    made: Any = replace
    found: dict[str, Any] = {}
    for role in ("labels", "outcomes"):
        table = getattr(inputs, role)
        if table is not None and role in bundle.hidden:
            found[role] = _under(table, bundle.hidden[role])
    return made(inputs, **found) if found else inputs


def _place(bundle: Bundle, record: Path) -> None:
    """The record of looks where the look is numbered from."""
    if not record.resolve().is_relative_to(bundle.folder.resolve()):
        raise BrokenFileError("its labels are outside of it")
    record.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(bundle.paths["looks"], record)


def _place_summary(bundle: Bundle) -> None:
    """The summary of the replay beside its outcomes, where it was found."""
    if "replay" in bundle.paths and "outcomes" in bundle.paths:
        beside = bundle.paths["outcomes"].with_name(SUMMARY)
        shutil.copyfile(bundle.paths["replay"], beside)
        if "outcomes" in bundle.hidden:  # the summary names its outcomes by their hash
            document = strict_json(beside.read_bytes())
            if not isinstance(document, dict) or not isinstance(document.get("outcomes"), dict):
                raise BrokenFileError("its summary of the replay does not name the outcomes")
            document["outcomes"]["sha256"] = file_sha256(bundle.paths["outcomes"])
            beside.write_text(json.dumps(document), encoding="utf-8")


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """The document as result.json has it, parsed."""
    from evalkit.reporting import dump_json

    parsed: dict[str, Any] = json.loads(dump_json(document))
    return parsed


def _rows(items_gz: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(items_gz).splitlines()]


def differences(
    written: Any,
    computed: Any,
    path: tuple[str, ...] = (),
    *,
    apart: frozenset[tuple[str, ...]] = frozenset(),
) -> Iterator[Difference]:
    """Every field in which two parsed documents differ; numbers are compared to a relative 1e-9. apart: paths that
    are left out."""
    if path in apart:
        return
    if isinstance(written, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*written, *computed]):
            if key not in written or key not in computed:
                if (*path, key) not in apart:
                    here, there = ("missing", "it") if key not in written else ("there", "nothing")
                    yield Difference(_name((*path, key)), here, there)
            else:
                yield from differences(written[key], computed[key], (*path, key), apart=apart)
    elif isinstance(written, list) and isinstance(computed, list):
        if len(written) != len(computed):
            yield Difference(_name(path), f"{len(written)} entries", f"{len(computed)}")
            return
        for at, (one, other) in enumerate(zip(written, computed, strict=True)):
            name = one.get("name", one.get("id")) if isinstance(one, dict) else None
            step = f"[{visible(name, 60)}]" if isinstance(name, str) else f"[{at}]"
            yield from differences(one, other, (*path, step), apart=apart)
    elif not _same(written, computed):
        yield Difference(_name(path), visible(json.dumps(written), 80), visible(json.dumps(computed), 80))


def _same(one: Any, other: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other))
    if numbers:
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path).replace(".[", "[")
