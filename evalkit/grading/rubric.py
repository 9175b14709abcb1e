"""`Rubric`: how replies are graded, as read from a file. Frozen values; nothing here reads, calls or grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from evalkit.errors import Fault, InputError, visible
from evalkit.grading.checks import Check
from evalkit.grading.contract import Contract
from evalkit.grading.entry_point import PythonCheck
from evalkit.grading.final_answer import THINK_TAGS
from evalkit.grading.items import Item
from evalkit.grading.judge_prompt import JudgePrompt
from evalkit.grading.patterns import Pattern
from evalkit.grading.registry import parse_check

__all__ = ["MAX_ERROR_SHARE", "Decider", "FromItem", "Grader", "Human", "Judge", "Rubric", "parse_grader"]

MAX_ERROR_SHARE = 0.05
"""Up to this share of judgements may be missing where a rubric does not say."""


class Decider(StrEnum):
    """Who grades an answer where no check does."""

    JUDGE = "judge"
    HUMAN = "human"
    CONTRACT = "contract"
    """Nobody: an answer that keeps the contract passes."""


Grader = Check | PythonCheck | Decider


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that grades. `params` hold no secret (`secrets` does, by its path in them, as with a tier).

    `words` maps each verdict word to the score it gives, 0..1; with `pairwise` the score is 1 where the answer in
    first place is better, 0 where the second is, 0.5 for a tie. `json_field` is where a reply in JSON has its
    verdict. `scale` are the ends of a graded scale. `tie_on_disagreement`: two orders that disagree are a tie, and
    no error.
    """

    model: str
    prompt: JudgePrompt
    params: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    system: str | None = None
    words: Mapping[str, float] = field(default_factory=dict)
    json_field: str | None = None
    fenced_ok: bool = False
    scale: tuple[int, int] | None = None
    pairwise: bool = False
    tie_on_disagreement: bool = False
    think_tags: tuple[tuple[str, str], ...] = THINK_TAGS
    max_error_share: float = MAX_ERROR_SHARE


@dataclass(frozen=True, slots=True)
class Human:
    """A file of grades that people gave; `grades` is read by `read_human_grades`."""

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Rubric:
    """How replies become grades.

    `default` grades every item whose category is not in `by_category`; `from_item` is set where the items name
    checks of their own (`metadata.check`). A score passes from `pass_at` on. `fingerprint` is the SHA-256 of what
    the rubric says, with the schema, the prompt and the source of a Python check.
    """

    name: str
    path: Path
    default: Grader | FromItem | None
    by_category: Mapping[str, Grader | FromItem] = field(default_factory=dict)
    description: str = ""
    think_tags: tuple[tuple[str, str], ...] = THINK_TAGS
    answer_pattern: Pattern | None = None
    contract: Contract | None = None
    judge: Judge | None = None
    human: Human | None = None
    pass_at: float = 1.0
    fingerprint: str = ""
    notices: tuple[str, ...] = ()

    def grader_for(self, item: Item) -> Grader:
        """What grades the replies to `item`. Raises `InputError` where nothing does."""
        grader = self.by_category.get(item.category or "", self.default)
        if grader is None:
            known = ", ".join(visible(name, 60) for name in self.by_category)
            raise InputError(
                Fault(
                    f"no check of the rubric is for the category {visible(item.category)!r} (it names: {known})",
                    "add it to check.by_category of the rubric, or a default",
                    id=item.id,
                    field="category",
                )
            )
        return _own(item, self) if isinstance(grader, FromItem) else grader

    @property
    def uses_judge(self) -> bool:
        """Some item may be graded by the judge."""
        graders = [*self.by_category.values(), self.default]
        own = any(isinstance(grader, FromItem) for grader in graders)
        return self.judge is not None and (own or any(grader is Decider.JUDGE for grader in graders))


@dataclass(frozen=True, slots=True)
class FromItem:
    """`check: {from: item}`."""


def _own(item: Item, rubric: Rubric) -> Grader:
    """The check that the item names; a label file is data, so it can name no code."""
    spec = item.metadata.get("check")
    try:
        if spec is None:
            raise InputError(
                Fault("is missing", 'give the item a check, such as {"kind": "exact"}', field="check")
            )
        grader = parse_grader(spec)
        if grader is Decider.CONTRACT and rubric.contract is None:
            raise InputError(Fault("is contract", "write contract: in the rubric", field="check.kind"))
        if grader is Decider.JUDGE and rubric.judge is None:
            raise InputError(Fault("is judge", "write judge: in the rubric", field="check.kind"))
        if grader is Decider.HUMAN and rubric.human is None:
            raise InputError(Fault("is human", "write human: in the rubric", field="check.kind"))
        return grader
    except InputError as error:
        raise InputError(
            [Fault(f.what, f.fix, line=item.line, id=item.id, field=f"metadata.{f.field}") for f in error.faults]
        ) from None


def parse_grader(spec: object) -> Check | Decider:
    """A check by its spec, or who decides: `{"kind": "judge"}`. Raises `InputError` as `parse_check` does."""
    if isinstance(spec, Mapping) and set(spec) == {"kind"} and spec["kind"] in set(Decider):
        return Decider(str(spec["kind"]))
    return parse_check(spec)
