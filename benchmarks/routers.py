"""How well do the routers that evalkit fits route real questions, and does the leak check find what leaked?

    python benchmarks/routers.py --data DIR [--splits 20] [--train 1500] [--only TEXT]

DIR is the folder of RouteLLM's public evaluation data (Ong et al. 2024), with mmlu/mmlu_<subject>.csv: 14,042
questions, and whether a weak and a strong model answered each right. A question needs the strong model when only
that one is right; where neither is, it is unsolvable. In each split routers are fitted on 1,500 random questions
and judged on the rest, without what leaked.

APGR is the mean share of the gap in accuracy that is recovered, over all shares of calls to the strong model:
about .5 for chance. Its interval is for the mean over the splits: 2.5 to 97.5 % of 1,000 Poisson bootstraps of the
questions. `sd` is that between fits on other 1,500 questions. The oracle sends up first what only the strong model
answers, last what only the weak one does.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalkit.labels.labelset import LabelSet
from evalkit.routers.fit import fit_router
from evalkit.routers.leaks import find_leaks
from evalkit.routers.options import FitOptions, options_of
from evalkit.routers.sketches import sketches_of
from evalkit.statistics.routing_indices import apgr
from evalkit.statistics.separation import separation

Floats = NDArray[np.float64]
WEAK, STRONG = "mistralai/Mixtral-8x7B-Instruct-v0.1", "gpt-4-1106-preview"
ROUTERS: dict[str, FitOptions] = {
    "look-up": options_of("classifier", {"estimator": "lookup"}),
    "classifier": options_of("classifier", {}),
    "semantic": options_of("semantic", {}),
    "semantic, neighbours": options_of("semantic", {"estimator": "neighbours"}),
    "semantic + category": options_of("semantic", {"features": ["embedding", "category"]}),
}
REPLICATES = 1_000


@dataclass(frozen=True)
class Mmlu:
    """Questions in a fixed order, and which model answers each right."""

    prompts: tuple[str, ...]
    subject: tuple[str, ...]
    weak: NDArray[np.bool_]
    strong: NDArray[np.bool_]

    def labels(self, which: Sequence[int] | NDArray[np.int64]) -> LabelSet:
        """The questions `which` with the tier they require."""
        at = np.asarray(which)
        required = np.where(self.weak, 0, np.where(self.strong, 1, 2))[at]
        n = len(at)
        return LabelSet(
            "mmlu", tuple(f"q{i}" for i in at), [self.prompts[i] for i in at], required.astype(np.int8),
            np.zeros(n, dtype=np.int16), np.ones(n), ("weak", "strong"), ("all",),
            category=tuple(self.subject[i] for i in at),
        )  # fmt: skip


@dataclass(frozen=True)
class Split:
    """The scores of one router on the judged questions of one split (positions `judged`)."""

    judged: NDArray[np.int64]
    score: Floats


def read_mmlu(data: Path) -> Mmlu:
    """All questions, subject by subject."""
    rows = []
    for path in sorted((data / "mmlu").glob("mmlu_*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            rows += [(row["prompt"], path.stem.removeprefix("mmlu_"), row[WEAK], row[STRONG])
                     for row in csv.DictReader(stream)]  # fmt: skip
    prompts, subject, weak, strong = zip(*rows, strict=True)
    return Mmlu(prompts, subject, np.array([w == "True" for w in weak]), np.array([s == "True" for s in strong]))


def contaminated(data: Path) -> list[tuple[str, str]]:
    """(training prompt, judged prompt) of the questions that the authors drop."""
    text = (data / "mmlu" / "contaminated_prompts.jsonl").read_text(encoding="utf-8")
    return [(row["train_prompt"], row["eval_prompt"]) for row in map(json.loads, text.splitlines())]


def leaks_found(mmlu: Mmlu, pairs: Sequence[tuple[str, str]]) -> tuple[int, int]:
    """(contaminated questions that are named, others that are), given the training prompts of the pairs."""
    n, none = len(pairs), np.zeros(len(pairs), dtype=np.int8)
    training = LabelSet(
        "train", tuple(f"t{i}" for i in range(n)), [t for t, _ in pairs], none, none.astype(np.int16), np.ones(n),
        ("weak", "strong"), ("all",),
    )  # fmt: skip
    judged = mmlu.labels(range(len(mmlu.prompts)))
    named = {mmlu.prompts[int(leak.id[1:])] for leak in find_leaks(sketches_of(training), sketches_of(judged))}
    wanted = {judged_prompt for _, judged_prompt in pairs}
    return len(named & wanted), len(named - wanted)


def splits_of(
    mmlu: Mmlu, count: int, train: int, seed: int = 0
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(training, judged) positions: `train` at random, and the rest without what leaked."""
    found = []
    for k in range(count):
        order = np.random.default_rng([seed, k]).permutation(len(mmlu.prompts))
        training, rest = order[:train], np.sort(order[train:])
        leaks = find_leaks(sketches_of(mmlu.labels(training)), sketches_of(mmlu.labels(rest)))
        leaked = {int(leak.id[1:]) for leak in leaks}
        found.append((training, np.array([i for i in rest if i not in leaked], dtype=np.int64)))
    return found


def scores_of(mmlu: Mmlu, options: FitOptions, training: NDArray[np.int64], judged: NDArray[np.int64]) -> Split:
    """Fit on the one, score the other."""
    router = fit_router(mmlu.labels(training), options, seed=0)
    return Split(judged, router.score(mmlu.labels(judged))[0])


def mean_apgr(mmlu: Mmlu, splits: Sequence[Split], weight: Floats | None = None) -> Floats:
    """APGR of each split; `weight` (questions,) counts each question so often."""
    found = []
    for split in splits:
        w = np.ones(len(split.judged)) if weight is None else weight[split.judged]
        gain = mmlu.strong[split.judged].astype(float) - mmlu.weak[split.judged]
        order = np.argsort(-split.score, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(split.score[order])), len(order) - 1)  # ties go up together
        share = np.append(0.0, np.cumsum(w[order])[ends] / w.sum())
        quality = np.append(0.0, np.cumsum((w * gain)[order])[ends] / w.sum())
        value = apgr(np.minimum(share, 1.0), quality, 0.0, float((w * gain).sum() / w.sum()))
        found.append(np.nan if value is None else value)
    return np.array(found)


def interval(
    mmlu: Mmlu, splits: Sequence[Split], replicates: int = REPLICATES, seed: int = 1
) -> tuple[float, float]:
    """2.5 and 97.5 % of the mean APGR over the splits, questions drawn anew."""
    rng = np.random.default_rng(seed)
    means = [
        float(mean_apgr(mmlu, splits, rng.poisson(1.0, len(mmlu.prompts)).astype(float)).mean())
        for _ in range(replicates)
    ]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def main() -> int:
    """Print the table; 1 where a router is not above chance, chance is not .5, or a leak is missed or made up."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--data", type=Path, required=True, help="the folder that holds mmlu/")
    asked.add_argument("--splits", type=int, default=20)
    asked.add_argument("--train", type=int, default=1500)
    asked.add_argument("--replicates", type=int, default=REPLICATES)
    asked.add_argument("--only", default="", help="routers whose name holds this text")
    given = asked.parse_args()
    mmlu = read_mmlu(given.data)
    wrong = []
    pairs = contaminated(given.data)
    hit, extra = leaks_found(mmlu, pairs)
    print(f"leaks: {hit} of {len(pairs)} contaminated questions named, {extra} others, of {len(mmlu.prompts):,}")
    if hit < len(pairs) or extra:
        wrong.append("leaks")
    splits = splits_of(mmlu, given.splits, given.train)
    judged = np.mean([len(j) for _, j in splits])
    print(f"{given.splits} splits: {given.train:,} training, {judged:,.1f} judged, "
          f"{len(mmlu.prompts) - given.train - judged:,.1f} leaked and left out (means)")  # fmt: skip
    print(f"{'router':<22} {'APGR':>6} {'interval':>16} {'sd':>6} {'AUC':>6} {'s CPU a split':>14}")
    rng = np.random.default_rng(2)
    gain = mmlu.strong.astype(float) - mmlu.weak
    for name in ("random", *ROUTERS, "oracle"):
        if given.only not in name:
            continue
        start = time.process_time()
        if name == "random":
            found = [Split(j, rng.random(len(j))) for _, j in splits]
        elif name == "oracle":
            found = [Split(j, gain[j]) for _, j in splits]
        else:
            found = [scores_of(mmlu, ROUTERS[name], t, j) for t, j in splits]
        seconds = (time.process_time() - start) / len(splits)
        each = mean_apgr(mmlu, found)
        low, high = interval(mmlu, found, given.replicates)
        auc = np.mean([auc_of(mmlu, split) for split in found])
        span = f"{low:.3f} to {high:.3f}"
        sd = each.std(ddof=1)
        print(f"{name:<22} {each.mean():>6.3f} {span:>16} {sd:>6.3f} {auc:>6.3f} {seconds:>14.1f}", flush=True)
        if abs(each.mean() - 0.5) > 0.01 if name == "random" else low <= 0.5:
            wrong.append(name)
    if wrong:
        print(f"FAILED: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def auc_of(mmlu: Mmlu, split: Split) -> float:
    """How well the score tells needs of the strong model from all other questions."""
    needs = ~mmlu.weak[split.judged] & mmlu.strong[split.judged]
    found = separation(split.score, needs)
    return np.nan if found is None else found.auc


if __name__ == "__main__":
    raise SystemExit(main())
