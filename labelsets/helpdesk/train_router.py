"""Trains the router on `train.jsonl` alone and scores the certifying items: `scores.csv`.

The score is the probability, from the text of the prompt, that a request needs more than the cheap tier. The
settings were written down before any result and were not tuned. Run: `python labelsets/helpdesk/train_router.py`.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SEED = 7
FOLDS = 5
DECIMALS = 6  # Production must round the same way before it compares with a threshold.

Row = dict[str, Any]


def make_router() -> Any:
    """Character n-grams, weighted by tf-idf, into a logistic regression with the library's own settings."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2, sublinear_tf=True),
        LogisticRegression(max_iter=2000, random_state=SEED),
    )


def read_rows(name: str) -> list[Row]:
    """The rows of a label file of this study."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").rstrip("\n").split("\n")]


def needs_stronger(rows: list[Row]) -> list[bool]:
    """Whether each item needs more than the cheap tier."""
    return [row["required_tier"] != "cheap" for row in rows]


def router_scores(train: list[Row], rows: list[Row]) -> list[float]:
    """The scores of `rows` by a router trained on `train`, rounded to `DECIMALS`."""
    router = make_router()
    router.fit([row["prompt"] for row in train], needs_stronger(train))
    return [round(float(score), DECIMALS) for score in router.predict_proba([row["prompt"] for row in rows])[:, 1]]


def cross_validated_auc(train: list[Row]) -> float:
    """AUC of the pooled out-of-fold scores on the training items, folds by group."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold

    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=SEED)
    needs = needs_stronger(train)
    scores = [0.0] * len(train)
    for fit_at, score_at in folds.split(train, needs, [row["group"] for row in train]):
        found = router_scores([train[i] for i in fit_at], [train[i] for i in score_at])
        for i, score in zip(score_at, found, strict=True):
            scores[i] = score
    return float(roc_auc_score(needs, scores))


def seconds_per_request(train: list[Row], rows: list[Row]) -> float:
    """Median seconds to score one prompt by itself."""
    router = make_router()
    router.fit([row["prompt"] for row in train], needs_stronger(train))
    times = []
    for row in rows:
        started = time.perf_counter()
        router.predict_proba([row["prompt"]])
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> int:
    """Train, score, write, and print what was measured."""
    from sklearn.metrics import roc_auc_score

    train, rows = read_rows("train.jsonl"), read_rows("labels.jsonl")
    scores = router_scores(train, rows)
    with (HERE / "scores.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "score"])
        writer.writerows([row["id"], f"{score:.{DECIMALS}f}"] for row, score in zip(rows, scores, strict=True))
    print(f"AUC by group folds on {len(train)} training items: {cross_validated_auc(train):.3f}")
    print(f"AUC on {len(rows)} certifying items: {roc_auc_score(needs_stronger(rows), scores):.3f}")
    print(f"median seconds to score one request: {seconds_per_request(train, rows):.6f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
