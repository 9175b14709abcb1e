"""How good a judge is: how often it gives no verdict, how far it agrees with people, what its errors do to a rate.

A judge is never a gate by itself; these figures stand beside what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evalkit.errors import visible
from evalkit.grading.human import HumanGrades, Key

__all__ = ["Agreement", "JudgeErrors", "JudgeQuality", "judge_errors", "judge_quality"]


@dataclass(frozen=True, slots=True)
class JudgeErrors:
    """How many of `total` judged replies got no verdict. `limit` is `judge.max_error_share` of the rubric."""

    total: int
    passed: int
    errors: int
    limit: float

    @property
    def judged(self) -> int:
        """Replies with a verdict."""
        return self.total - self.errors

    @property
    def share(self) -> float | None:
        """errors / total; None without replies."""
        return self.errors / self.total if self.total else None

    @property
    def lower(self) -> float | None:
        """The pass rate if every reply without a verdict failed; None without replies."""
        return self.passed / self.total if self.total else None

    @property
    def upper(self) -> float | None:
        """The pass rate if every reply without a verdict passed; None without replies."""
        return (self.passed + self.errors) / self.total if self.total else None

    @property
    def exceeded(self) -> bool:
        """More is missing than the rubric allows: nothing can be decided on these grades."""
        return self.share is not None and self.share > self.limit

    @property
    def sentence(self) -> str:
        """What was judged: "2 of 3 judged pass; 5 of 8 not judged, 25.0 % to 87.5 %"."""
        if self.lower is None or self.upper is None:
            return "nothing was judged"
        said = f"{self.passed:,} of {self.judged:,} judged pass; {self.errors:,} of {self.total:,} not judged"
        return f"{said}, {_percent(self.lower)} to {_percent(self.upper)}"

    @property
    def message(self) -> str | None:
        """Why nothing is decided and what to do; None where enough was judged."""
        if not self.exceeded or self.share is None:
            return None
        return (
            f"not decided: the judge gave no verdict on {self.errors:,} of {self.total:,} replies, a share of "
            f"{self.share:.4g}, and judge.max_error_share is {self.limit:.4g}. The answers are kept; run the same "
            "command again, which asks only for the missing judgements whose call failed; where the judge did not "
            "answer with a listed word, correct its prompt, or ask those once more with --retry-failed"
        )


def judge_errors(verdicts: Iterable[bool | None], limit: float) -> JudgeErrors:
    """Count verdicts: True passes, False fails, None is a `judge_error`, which is neither."""
    counts = Counter(verdicts)
    return JudgeErrors(counts.total(), counts[True], counts[None], limit)


@dataclass(frozen=True, slots=True)
class Agreement:
    """On how many of `n` replies that both graded judge and people agree; `interval` is Wilson's, for display."""

    n: int
    agreed: int
    rate: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """A judge measured by human grades. Rates are fractions; None is "not known".

    `confusion` has the rows people pass, people fail and the columns judge pass, judge fail, no verdict.
    `sensitivity` = share of what people pass that the judge passes, `specificity` = share of what they fail that
    it fails. `pass_rate` is what the judge says of all `judged` replies, `pass_rate_corrected` the same corrected
    for its errors (Rogan and Gladen 1978), with its interval. `people_split` counts replies on which people are
    evenly split: they measure nothing. `items` are the items behind the replies that both graded.
    """

    replies: int
    judged: int
    unparseable: int
    unparseable_share: float | None
    agreement: Agreement
    by_risk: Mapping[str, Agreement]
    confusion: tuple[tuple[int, int, int], tuple[int, int, int]]
    sensitivity: float | None
    specificity: float | None
    ac1: float | None
    pass_rate: float | None
    pass_rate_corrected: float | None
    pass_rate_corrected_interval: tuple[float, float] | None
    confidence: float
    items: int
    people_split: int
    people_agreement: float | None
    people_alpha: float | None
    missing: str | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    def as_dict(self) -> dict[str, Any]:
        """For result.json: plain values, no NaN; `missing` says why the corrected rate is null."""
        found = asdict(self)
        found["confusion"] = [list(row) for row in self.confusion]
        found["by_risk"] = {name: asdict(one) for name, one in self.by_risk.items()}
        found["sentence"] = self.sentence
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @property
    def sentence(self) -> str:
        """For a report, in plain text; names of risk classes are made visible."""
        said = f"The judge gave no verdict on {self.unparseable:,} of {self.replies:,} replies"
        if self.unparseable_share is not None:
            said += f" ({_percent(self.unparseable_share)})"
        if self.agreement.rate is None or self.agreement.interval is None:
            return f"{said}. No reply was graded by a person too, so its agreement with people is not known."
        level = f"{100 * self.confidence:g} %"
        low, high = self.agreement.interval
        said += (
            f" and agreed with people on {self.agreement.agreed:,} of {self.agreement.n:,} that both graded "
            f"({_percent(self.agreement.rate)}, {level} interval {_percent(low)} to {_percent(high)})."
        )
        rated = {name: one for name, one in self.by_risk.items() if one.rate is not None}
        if len(rated) > 1:
            name, worst = min(rated.items(), key=lambda pair: (pair[1].rate or 0.0, pair[0]))
            said += f" Least in risk class {visible(name, 60)}: {worst.agreed:,} of {worst.n:,}."
        if self.pass_rate is not None:
            said += f" It passes {_percent(self.pass_rate)} of {self.judged:,} judged replies"
            if self.pass_rate_corrected is not None and self.pass_rate_corrected_interval is not None:
                low, high = self.pass_rate_corrected_interval
                said += (
                    f"; corrected for its errors {_percent(self.pass_rate_corrected)}, {level} interval "
                    f"{_percent(low)} to {_percent(high)}."
                )
            else:
                said += f"; a rate corrected for its errors is not statable: {self.missing}."
        return " ".join([said, *(f"{note}." for note in self.notes), "A judge is no gate by itself."])


def judge_quality(
    verdicts: Mapping[Key, bool | None],
    human: HumanGrades,
    *,
    risks: Mapping[str, str] | None = None,
    pass_at: float = 1.0,
    confidence: float = 0.95,
) -> JudgeQuality:
    """The `verdicts` of a judge (by item, candidate and sample; None is a `judge_error`) against people's grades.

    `risks` is the risk class of each item. People pass a reply whose score, the median of its annotators, reaches
    `pass_at`. The human grades have to be of replies that were drawn without regard to the verdict. Raises
    `ValueError` for a confidence outside 0..1.
    """
    from evalkit.statistics.agreement import gwet_ac1, krippendorff_alpha, raw_agreement
    from evalkit.statistics.judge import rogan_gladen

    table, items, split = [[0, 0, 0], [0, 0, 0]], set(), 0
    pairs: list[tuple[float, float]] = []
    seen: dict[str, list[int]] = {name: [0, 0] for name in sorted(set((risks or {}).values()))}
    for key in sorted(verdicts):
        if key not in human.by_reply:
            continue
        score = human.grade_of(*key, pass_at=pass_at)
        if score is None:
            split += 1
            continue
        good, judge = score >= pass_at, verdicts[key]
        table[not good][2 if judge is None else int(not judge)] += 1
        if judge is None:
            continue
        items.add(key[0])
        pairs.append((float(good), float(judge)))
        counts = seen.setdefault((risks or {}).get(key[0], ""), [0, 0])
        counts[0] += 1
        counts[1] += good == judge
    by_risk = {name: _agreement(agreed, n, confidence) for name, (n, agreed) in seen.items() if name}
    errors = judge_errors(verdicts.values(), 1.0)
    (found, missed, _), (false_pass, cleared, _) = table
    positives, negatives = found + missed, false_pass + cleared
    corrected = rogan_gladen(errors.passed, errors.judged, found, positives, cleared, negatives, confidence)
    people = _ratings(human, pass_at)
    return JudgeQuality(
        replies=errors.total,
        judged=errors.judged,
        unparseable=errors.errors,
        unparseable_share=errors.share,
        agreement=_agreement(found + cleared, len(pairs), confidence),
        by_risk=by_risk,
        confusion=((found, missed, table[0][2]), (false_pass, cleared, table[1][2])),
        sensitivity=found / positives if positives else None,
        specificity=cleared / negatives if negatives else None,
        ac1=gwet_ac1(pairs, 2) if pairs else None,
        pass_rate=errors.passed / errors.judged if errors.judged else None,
        pass_rate_corrected=None if corrected is None else corrected.value,
        pass_rate_corrected_interval=None if corrected is None else (corrected.lower, corrected.upper),
        confidence=confidence,
        items=len(items),
        people_split=split,
        people_agreement=raw_agreement(people) if people else None,
        people_alpha=krippendorff_alpha(people) if people else None,
        missing=None if corrected is not None else _why_not(positives, negatives, errors.judged),
        notes=tuple(_notes(len(pairs), len(items), split)),
    )


def _why_not(positives: int, negatives: int, judged: int) -> str:
    if not judged:
        return "the judge gave no verdict at all"
    if not positives:
        return "people passed no reply that the judge has judged"
    if not negatives:
        return "people failed no reply that the judge has judged"
    return "by these grades the judge is no better than chance"


def _notes(pairs: int, items: int, split: int) -> Iterable[str]:
    if pairs > items:
        of = f"{items:,} items" if items > 1 else "1 item"
        yield f"The {pairs:,} replies are of {of} and are taken as independent: the intervals are too narrow"
    if split:
        yield f"People are evenly split on {split:,} more, which measure nothing"


def _agreement(agreed: int, n: int, confidence: float) -> Agreement:
    from evalkit.statistics.bounds import wilson_interval

    return Agreement(n, agreed, agreed / n if n else None, wilson_interval(agreed, n, confidence))


def _ratings(human: HumanGrades, pass_at: float) -> list[list[float]]:
    """Pass or fail by reply and annotator, NaN where the annotator did not grade it."""
    names = sorted({name for given in human.by_reply.values() for name in given})
    if len(names) < 2:
        return []
    return [
        [float(given[name] >= pass_at) if name in given else float("nan") for name in names]
        for _, given in sorted(human.by_reply.items())
    ]


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"
