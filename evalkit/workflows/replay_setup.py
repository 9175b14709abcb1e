"""What a replay needs, read and checked before anything is called or spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalkit.costs import PriceCard
from evalkit.errors import Fault, InputError
from evalkit.grading.human import HumanGrades, read_human_grades
from evalkit.grading.items import Item as GradedItem
from evalkit.grading.items import items_of as graded_items
from evalkit.grading.preflight import rubric_faults
from evalkit.grading.read_rubric import read_rubric
from evalkit.grading.rubric import Rubric
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.replay.plan import Plan, PlanCandidate, PlanItem, plan_cells
from evalkit.replay.pricing import CardPricing, Pricing, Unpriced
from evalkit.study import nodes
from evalkit.study.models import RoutingStudy
from evalkit.study.prices import read_price_card
from evalkit.study.reasoning import read_reasoning_study
from evalkit.study.routing import read_study
from evalkit.study.strict_yaml import load_yaml
from evalkit.workflows.candidates import AnyStudy, Candidate, candidates_of, connect, public_address
from evalkit.workflows.replay_items import Item, Prompts, items_of, read_prompts

__all__ = ["JUDGE", "ReplayInputs", "judge_candidate", "read_any_study", "read_replay"]

JUDGE = "judge"
"""What the judge is called among the candidates of its own plan."""


@dataclass(frozen=True)
class ReplayInputs:
    """Everything that a replay reads. `judge` is the judge as something to call, None where there is none.

    `prices` are hash and day of the price card. `samples` is how often each item is asked.
    """

    study: AnyStudy
    labels: LabelSet
    items: tuple[GradedItem, ...]
    plan: Plan
    candidates: tuple[Candidate, ...]
    judge: Candidate | None
    rubric: Rubric
    human: HumanGrades | None
    pricing: Pricing
    prices: dict[str, Any] | None
    prompts: Prompts
    samples: int
    notices: tuple[str, ...]


def read_any_study(path: str | Path) -> AnyStudy:
    """The study in `path`, of either kind. Raises `InputError` with every fault of the file."""
    root = load_yaml(path).root
    entry = root.entries.get("kind") if isinstance(root, nodes.Mapping) else None
    if entry is not None and nodes.plain(entry.node) == "reasoning-budget":
        return read_reasoning_study(path)
    return read_study(path)


def read_replay(study: AnyStudy, *, samples: int | None = None) -> ReplayInputs:
    """Read labels, prompts, rubric and prices of `study`, and plan its calls. `samples` goes before the study's.

    Raises `InputError` with every fault of all of them.
    """
    faults: list[Fault] = []

    def attempt(read: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return read(*arguments, **options)
        except InputError as error:
            faults.extend(error.faults)
            return None

    if study.rubric is None:
        fix = "write rubric: and the name of a rubric, which says how replies are graded"
        faults.append(Fault("is missing", fix, file=str(study.path), field="rubric"))
    labels: LabelSet | None = attempt(_labels, study)
    prompts: Prompts | None = attempt(read_prompts, study.calls)
    rubric: Rubric | None = None if study.rubric is None else attempt(read_rubric, study.rubric)
    candidates: tuple[Candidate, ...] = attempt(candidates_of, study) or ()
    card = None if study.prices is None else attempt(read_price_card, study.prices)
    judge: Candidate | None = None
    items: tuple[GradedItem, ...] = ()
    human: HumanGrades | None = None
    if rubric is not None and rubric.uses_judge:
        judge = attempt(judge_candidate, rubric)
    sent: list[Item] | None = None
    if labels is not None and prompts is not None:
        folder = study.base if study.labels.path is None else study.labels.path.parent
        sent = attempt(items_of, labels, prompts, folder)
    if labels is not None and rubric is not None:
        items = graded_items(labels)
        faults.extend(rubric_faults(rubric, items, file=labels.file))
        if rubric.human is not None:
            human = attempt(
                read_human_grades,
                rubric.human.path,
                ids=labels.ids,
                candidates=[candidate.name for candidate in candidates],
                columns=rubric.human.columns or None,
                encoding=rubric.human.encoding,
            )
    if faults or labels is None or prompts is None or rubric is None or sent is None:
        raise InputError(faults)
    asked = samples or study.calls.samples
    stream = study.calls.options.stream
    plan = plan_cells([_item(one) for one in sent], [_planned(one, stream=stream) for one in candidates], asked)
    parts: list[Any] = [study, labels, rubric, card, human]
    return ReplayInputs(
        study,
        labels,
        items,
        plan,
        candidates,
        judge,
        rubric,
        human,
        Unpriced() if card is None else CardPricing(card, study.calls.aliases),
        None if card is None else _prices(card),
        prompts,
        asked,
        tuple(note for part in parts if part is not None for note in part.notices),
    )


def _prices(card: PriceCard) -> dict[str, Any]:
    day = None if card.as_of is None else card.as_of.isoformat()
    return {"hash": f"sha256:{card.fingerprint}", "as_of": day}


def _labels(study: AnyStudy) -> LabelSet:
    routing = isinstance(study, RoutingStudy)
    return read_labels(
        study.labels.address,
        tiers=study.tier_names if isinstance(study, RoutingStudy) else (),
        risk_classes=study.risk_classes,
        columns=study.labels.columns or None,
        encoding=study.labels.encoding,
        require_required_tier=routing,
    )


def _item(item: Item) -> PlanItem:
    return PlanItem(
        item.id, item.messages, params={} if item.max_tokens is None else {"max_tokens": item.max_tokens}
    )


def _planned(candidate: Candidate, *, stream: bool) -> PlanCandidate:
    return PlanCandidate(
        name=candidate.name,
        model=candidate.model,
        params=candidate.params,
        endpoint=candidate.endpoint,
        follow_ups=candidate.instructions[1:],
        instruction=candidate.instructions[0] if candidate.instructions else None,
        stream=stream,
        files={} if candidate.weights is None else {"weights": candidate.weights},
    )


def judge_candidate(rubric: Rubric) -> Candidate:
    """The judge of a rubric as something to call. Raises `InputError` where it cannot be."""
    assert rubric.judge is not None
    judge = rubric.judge
    try:
        connection = connect(judge.params, judge.secrets, "judge")
    except InputError as error:
        raise InputError([replace(fault, file=str(rubric.path)) for fault in error.faults]) from None
    return Candidate(JUDGE, judge.model, judge.params, public_address(connection.api_base), connection)
