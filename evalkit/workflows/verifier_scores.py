"""`evalkit router score-replies`: what a verifier says of the replies of each tier but the top, for a cascade."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evalkit.errors import Fault, InputError, fitted, visible
from evalkit.grading.items import Item
from evalkit.grading.preflight import rubric_faults
from evalkit.grading.read_rubric import read_rubric
from evalkit.grading.rubric import Rubric
from evalkit.labels.labelset import LabelSet
from evalkit.labels.read import read_labels
from evalkit.routers.verifiers.replies import TierReplies, blind_items, read_replies
from evalkit.routers.verifiers.scores import (
    TierScores,
    by_rubric,
    check_rubric,
    log_probability,
    self_consistency,
)
from evalkit.study.models import RoutingStudy
from evalkit.study.routing import read_study
from evalkit.tabular.write import check_table_suffix, write_table
from evalkit.workflows.replay import LEDGER, OUTCOMES, RunOptions, run_folder
from evalkit.workflows.run_files import refuse_to_overwrite

__all__ = ["VERIFIERS", "Verifier", "VerifierOptions", "score_replies"]

Verifier = Literal["self_consistency", "log_probability", "rubric", "judge"]
VERIFIERS: tuple[Verifier, ...] = ("self_consistency", "log_probability", "rubric", "judge")
_WHY = {
    "self_consistency": "it takes two samples or more, and an answer",
    "log_probability": "the outcomes have no mean_logprob there: replay with params: {logprobs: true}",
    "rubric": "there is no reply, or the rubric gives it no score",
    "judge": "there is no reply, or the judge gave no verdict",
}


@dataclass(frozen=True)
class VerifierOptions:
    """What the command line gave. `replies`: outcomes with replies in place of the study's own."""

    study: Path
    verifier: Verifier
    out: Path
    replies: Path | None = None
    rubric: Path | None = None
    run: RunOptions = field(default_factory=RunOptions)
    quiet: bool = False


def score_replies(options: VerifierOptions) -> int:
    """Score, write and say what was written; returns the exit code. Raises `InputError` with every fault."""
    study = read_study(options.study, files_exist=False)  # it may name the scores that are made here
    check_table_suffix(options.out)
    source, columns, encoding = _source(study, options)
    rubric_file = options.rubric
    needs_rubric = options.verifier in {"rubric", "judge"}
    if needs_rubric and rubric_file is None:
        fix = "name one that needs no reference with --rubric; the study's own may know the answers"
        raise InputError(Fault(f"is {options.verifier}, which takes a rubric", fix, field="--verifier"))
    if not needs_rubric and rubric_file is not None:
        fix = "leave it out, or take --verifier rubric or judge"
        raise InputError(Fault(f"is given, and {options.verifier} takes none", fix, field="--rubric"))
    read = [study.path, study.labels.path, source, rubric_file, study.rubric, study.prices]
    refuse_to_overwrite(read, [options.out])
    labels = read_labels(
        study.labels.address,
        tiers=study.tier_names,
        risk_classes=study.risk_classes,
        columns=dict(study.labels.columns) or None,
        encoding=study.labels.encoding,
        require_required_tier=False,
    )
    below = study.tier_names[:-1]
    replies = read_replies(source, ids=labels.ids, tiers=below, columns=columns, encoding=encoding)
    notices = list(labels.notices)
    items = blind_items(labels)
    if not needs_rubric:
        by = self_consistency if options.verifier == "self_consistency" else log_probability
        scores = [by(one) for one in replies]
    else:
        assert rubric_file is not None
        rubric = _rubric(rubric_file, items, labels, judged=options.verifier == "judge")
        notices += rubric.notices
        if options.verifier == "rubric":
            scores = [by_rubric(rubric, items, one) for one in replies]
        else:
            scores, said = _judged(study, rubric, labels, items, replies, options)
            notices += said
    _check(scores, options)
    write_table(options.out, _columns(labels.ids, scores))
    for note in dict.fromkeys([*notices, *_notices(scores, replies, options, study)]):
        print(fitted(f"note: {visible(note, 600)}", sys.stderr), file=sys.stderr)
    if not options.quiet:
        print("\n".join(_lines(scores, options, study)))
    return 0


def _judged(
    study: RoutingStudy,
    rubric: Rubric,
    labels: LabelSet,
    items: Sequence[Item],
    replies: Sequence[TierReplies],
    options: VerifierOptions,
) -> tuple[list[TierScores], list[str]]:
    from evalkit.replay import progress_on
    from evalkit.workflows.verifier_judge import judged_scores

    return judged_scores(
        study, rubric, labels, items, replies, options.run, lambda: progress_on(sys.stderr, quiet=options.quiet)
    )


def _source(study: RoutingStudy, options: VerifierOptions) -> tuple[Path, dict[str, str], str | None]:
    """The outcomes with the replies, the names of their columns and their encoding."""
    if options.replies is not None:
        return options.replies, {}, None
    if study.outcomes is not None and study.outcomes.path is not None:
        return study.outcomes.path, dict(study.outcomes.columns), study.outcomes.encoding
    replayed = run_folder(study) / OUTCOMES
    if replayed.is_file():
        return replayed, {}, None
    fix = "name outcomes that hold them with --replies, or run evalkit replay first"
    raise InputError(Fault("has no replies to verify: it names no outcomes", fix, file=str(study.path)))


def _rubric(path: Path, items: Sequence[Item], labels: LabelSet, *, judged: bool) -> Rubric:
    """The rubric, which has to do without what nobody knows in production."""
    rubric = read_rubric(path)
    faults = rubric_faults(rubric, items, file=labels.file)
    if faults:
        what = "a verifier sees no reference, label, risk class or metadata"
        raise InputError([*faults, Fault(what, "name a rubric that grades the reply by itself", file=str(path))])
    check_rubric(rubric, items, judged=judged)
    return rubric


def _check(scores: Sequence[TierScores], options: VerifierOptions) -> None:
    faults = [
        Fault(
            f"no reply of {visible(one.tier, 60)} has a score: {_WHY[options.verifier]}",
            "see the docs of verifiers",
        )
        for one in scores
        if one.missing == len(one.score)
    ]
    if faults:
        raise InputError(faults)


def _columns(ids: Sequence[str], scores: Sequence[TierScores]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"id": list(ids)}
    for one in scores:
        columns[f"score_{one.tier}"] = _blank(one.score)
    for one in scores:
        columns[f"verifier_usd_{one.tier}"] = _blank(one.usd)
    return columns


def _blank(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _notices(
    scores: Sequence[TierScores], replies: Sequence[TierReplies], options: VerifierOptions, study: RoutingStudy
) -> list[str]:
    out = []
    for one, seen in zip(scores, replies, strict=True):
        tier = visible(one.tier, 60)
        if one.missing:
            out.append(
                f"{one.missing:,} of {len(one.score):,} items have no score of {tier}: {_WHY[options.verifier]}. "
                "The study has to say what production does then: missing_scores: escalate or cheapest"
            )
        unknown = int((np.isnan(one.usd) & ~np.isnan(one.score)).sum())
        if unknown:
            why = "the samples have no cost_usd" if options.verifier == "self_consistency" else "it has no price"
            out.append(f"what verifying {unknown:,} replies of {tier} cost is unknown: {why}")
        if options.verifier != "self_consistency" and any(len(rows) > 1 for rows in seen.rows):
            out.append(f"{tier}: of several samples of an item the first was verified")
    if study.router.higher_means == "needs_stronger":
        out.append("a high score says that the reply is good enough: write higher_means: cheap_is_enough")
    return out


def _lines(scores: Sequence[TierScores], options: VerifierOptions, study: RoutingStudy) -> list[str]:
    lines = [f"{visible(options.out, 400)}: scores of replies by {options.verifier}"]
    for one in scores:
        known = one.score[~np.isnan(one.score)]
        cost = one.usd[~np.isnan(one.usd)]
        usd = f", ${1000 * float(cost.mean()):.4g} per 1,000 replies" if len(cost) else ""
        lines.append(
            f"  {visible(one.tier, 24)}: {len(known):,} scores from {known.min():.4g} to {known.max():.4g}, "
            f"median {float(np.median(known)):.4g}{usd}"
        )
    lines.append(f"In the study: router: {{policy: cascade, scores: {visible(options.out, 400)},")
    lines.append("  higher_means: cheap_is_enough, trained_on: untrained, cost_usd: 0}")
    lines.append("untrained: as long as nothing of the verifier was tuned on these items")
    if options.verifier == "judge":
        from evalkit.workflows.verifier_judge import verifier_folder

        lines.append(f"ledger: {visible(verifier_folder(study, options.run.folder) / LEDGER, 400)}")
    return lines
