"""Fitted routers: what they learn, that they say the same again, and what they refuse to learn from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from router_cases import labels_of, planted
from scipy.stats import rankdata
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.routers.estimators import CategoryLookup, GroupCalibrated, NearestNeighbours, OrdinalTiers
from evalkit.routers.fit import DECIMALS, FittedRouter, fit_router
from evalkit.routers.folder import read_router, router_files
from evalkit.routers.items import sound_text
from evalkit.routers.options import FitOptions, options_of

KINDS: list[tuple[Any, dict[str, object]]] = [
    ("classifier", {"features": ["words", "category", "length"]}),
    ("classifier", {}),
    ("classifier", {"estimator": "lookup"}),
    ("semantic", {}),
    ("semantic", {"estimator": "neighbours"}),
]
NAMES = ["words", "all", "lookup", "semantic", "neighbours"]


def options(kind: Any = "classifier", **given: object) -> FitOptions:
    return options_of(kind, given or {"features": ["words"]})


def auc(score: Any, needs: Any) -> float:
    """Mann-Whitney: the share of pairs of a need and no need in the right order, ties half."""
    needs = np.asarray(needs, dtype=bool)
    rank = rankdata(score)
    n, m = int(needs.sum()), int((~needs).sum())
    return float((rank[needs].sum() - n * (n + 1) / 2) / (n * m))


@pytest.fixture(scope="module", params=list(zip(KINDS, NAMES, strict=True)), ids=NAMES)
def fitted(request: pytest.FixtureRequest) -> tuple[str, FittedRouter]:
    (kind, given), name = request.param
    return name, fit_router(planted(240, 1), options_of(kind, given), seed=3)


def test_it_ranks_other_items_by_what_was_planted(fitted: tuple[str, FittedRouter]) -> None:
    name, router = fitted
    judged = planted(300, 2, start=1000, noise=0.0)
    score, fold = router.score(judged)
    assert fold is None
    assert ((score >= 0) & (score <= 1)).all()
    # With 12 planted words the best possible is 1; a category that is right for 3 of 4 gives .75.
    assert auc(score, judged.required > 0) > {"lookup": 0.7, "neighbours": 0.9}.get(name, 0.95)


def test_the_score_of_an_item_does_not_depend_on_the_others(fitted: tuple[str, FittedRouter]) -> None:
    _, router = fitted
    judged = planted(60, 2, start=1000)
    score, _ = router.score(judged)
    order = np.random.default_rng(0).permutation(60)
    mixed, _ = router.score(take(judged, order))
    assert np.array_equal(mixed, score[order])
    alone = [router.score(take(judged, [i]))[0][0] for i in (0, 17, 59)]
    assert alone == [score[0], score[17], score[59]]


def test_the_same_seed_gives_the_same_bytes(fitted: tuple[str, FittedRouter]) -> None:
    _, router = fitted
    again = fit_router(planted(240, 1), router.options, seed=3)
    assert router_files(again) == router_files(router)


def test_the_bytes_are_the_same_in_another_process() -> None:
    code = (
        "import hashlib, sys; sys.path.insert(0, 'tests/routers')\n"
        "from router_cases import planted\n"
        "from evalkit.routers.fit import fit_router\n"
        "from evalkit.routers.options import options_of\n"
        "from evalkit.routers.folder import router_files\n"
        "files = router_files(fit_router(planted(60, 1), options_of('classifier', {}), seed=3))\n"
        "print(*(hashlib.sha256(files[name]).hexdigest() for name in sorted(files)))\n"
    )
    root = Path(__file__).resolve().parents[2]
    said = {
        subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_it_is_the_same_after_a_folder(fitted: tuple[str, FittedRouter], tmp_path: Path) -> None:
    _, router = fitted
    for name, data in router_files(router).items():
        (tmp_path / name).write_bytes(data)
    stored = read_router(tmp_path)
    judged = planted(50, 2, start=1000)
    assert np.array_equal(stored.fitted.score(judged)[0], router.score(judged)[0])
    assert router_files(stored.fitted) == router_files(router)
    assert stored.fitted.notices == ()


def test_no_text_of_a_training_item_is_kept(fitted: tuple[str, FittedRouter]) -> None:
    _, router = fitted
    for data in router_files(router).values():
        for word in (*planted(240, 1).prompts[0].split(), "deadlock", "indemnity"):  # type: ignore[union-attr]
            assert len(word) < 5 or word.encode() not in data


def test_hostile_prompts_are_scored(fitted: tuple[str, FittedRouter]) -> None:
    _, router = fitted
    texts = [
        "",
        "\0",
        "\ud800 half",
        "x" * 1_000_000,
        "(" * 5000,
        "계약해지 손해배상",
        "🙂" * 999,
        "\u202e" + "a" * 9,
        " ",
    ]
    judged = labels_of(texts, [0] * len(texts), category=["law"] * len(texts))
    score, _ = router.score(judged)
    assert np.isfinite(score).all()
    assert sound_text("\ud800 half") == "\ufffd half"


def take(labels: LabelSet, which: Any) -> LabelSet:
    which = [int(i) for i in which]
    return labels_of(
        [labels.prompts[i] for i in which],
        labels.required[which].tolist(),
        tiers=labels.tiers,
        ids=[labels.ids[i] for i in which],
        category=None if labels.category is None else [labels.category[i] for i in which],
    )


# What is learned


def test_three_tiers_give_one_ordered_score() -> None:
    train, judged = planted(450, 1, tiers=3, noise=0.0), planted(300, 2, tiers=3, start=1000, noise=0.0)
    router = fit_router(train, options(), seed=1)
    score, _ = router.score(judged)
    means = [score[judged.required == k].mean() for k in range(3)]
    assert means[0] < 0.25 < means[1] < 0.75 < means[2]
    # The share of tiers that are not enough is 0, 1/2 or 1; the score is its expectation.
    assert abs(score.mean() - judged.required.mean() / 2) < 0.04


def test_probabilities_are_calibrated_on_items_that_were_not_seen() -> None:
    router = fit_router(planted(600, 1, noise=0.5), options(), seed=1)
    judged = planted(4000, 2, start=5000, noise=0.5)
    score, _ = router.score(judged)
    needs = judged.required > 0
    # Half the labels are drawn anew: the truth is .25 or .75, which an uncalibrated fit to noise overshoots.
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        part = (score >= low) & (score < high)
        assert abs(score[part].mean() - needs[part].mean()) < 0.06


def test_a_lookup_is_the_smoothed_share_of_the_category() -> None:
    train = labels_of(
        ["a", "b", "c", "d"], [1, 1, 0, 0], category=["law", "law", "law", None], weight=[1, 1, 1, 3]
    )
    router = fit_router(train, options(estimator="lookup", smoothing=2), seed=0)
    asked = labels_of(["x", "y", "z"], [0, 0, 0], category=["law", "new", None])
    # Weights 1, 1, 1, 3 are scaled to 2/3, 2/3, 2/3, 2: overall (4/3) / 4 = 1/3; law (4/3 + 2/3) / (2 + 2).
    assert router.score(asked)[0].tolist() == [0.5, round(1 / 3, DECIMALS), round(1 / 3, DECIMALS)]


def test_unsolvable_items_are_no_needs() -> None:
    prompts = [f"{w} {i}" for i in range(40) for w in ("hello", "prove", "riddle")]
    required = [0, 1, 2] * 40
    asked = labels_of(["hello", "prove", "riddle"], [0, 0, 0])
    as_cheapest = fit_router(labels_of(prompts, required), options(), seed=0)
    left_out = fit_router(
        labels_of(prompts, required), options(features=["words"], unsolvable="leave_out"), seed=0
    )
    hello, prove, riddle = as_cheapest.score(asked)[0]
    assert riddle < 0.2 > hello
    assert prove > 0.8
    assert left_out.score(asked)[0][2] > 0.3  # not seen: near the overall share
    assert as_cheapest.counts == {"cheap": 40, "strong": 40, "unsolvable": 40}


def test_a_category_of_a_megabyte_is_a_category() -> None:
    long = "x" * 1_000_000
    train = labels_of(["a", "b", "c", "d"], [1, 1, 0, 0], category=[long, long, "law", "law"])
    router = fit_router(train, options(estimator="lookup", smoothing=0), seed=0)
    assert router.score(labels_of(["e", "f"], [0, 0], category=[long, "law"]))[0].tolist() == [1, 0]
    assert sum(len(data) for data in router_files(router).values()) < 20_000


def test_weights_count_as_repetition() -> None:
    y, X = np.array([0, 0, 1, 1, 1, 0]), np.array([["", c] for c in "aabbab"], dtype=object)
    weight = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])
    rows = np.repeat(np.arange(6), weight.astype(int))
    one = CategoryLookup(2, 5.0).fit(X, y, weight).predict_proba(X)
    assert np.allclose(one, CategoryLookup(2, 5.0).fit(X[rows], y[rows]).predict_proba(X))
    points = np.eye(6) + 0.3
    weighted = NearestNeighbours(2, 50, 5.0).fit(points, y, weight / weight.mean())
    repeated = NearestNeighbours(2, 50, 5.0).fit(points[rows], y[rows])
    # Weights are rescaled to mean 1, so the overall shares count for 5 items of 6 instead of 10.
    repeated.smoothing = 5.0 * 10 / 6
    assert np.allclose(weighted.predict_proba(points), repeated.predict_proba(points))


def test_an_estimator_of_the_user_takes_the_place_of_ours(tmp_path: Path) -> None:
    from sklearn.compose import ColumnTransformer

    counts = HashingVectorizer(n_features=512, alternate_sign=False)
    own = make_pipeline(ColumnTransformer([("text", counts, 0)]), MultinomialNB())
    router = fit_router(planted(200, 1), options(), seed=0, estimator=own)
    judged = planted(200, 2, start=1000, noise=0.0)
    score, _ = router.score(judged)
    assert auc(score, judged.required > 0) > 0.95
    for name, data in router_files(router).items():
        (tmp_path / name).write_bytes(data)
    assert np.array_equal(read_router(tmp_path).fitted.score(judged)[0], score)


@pytest.mark.parametrize(
    "estimator",
    [
        CategoryLookup(3, 4.0),
        NearestNeighbours(3, 7, 2.0),
        OrdinalTiers(GroupCalibrated(LogisticRegression(C=2)), 3),
    ],
    ids=["lookup", "neighbours", "ordinal"],
)
def test_estimators_follow_scikit_learn(estimator: Any) -> None:
    from sklearn.base import clone

    twin = clone(estimator)
    assert twin.get_params(deep=False).keys() == estimator.get_params(deep=False).keys()
    twin.set_params(tiers=2)
    assert twin.get_params()["tiers"] == 2
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    if isinstance(estimator, CategoryLookup):
        X = np.array([["", "abc"[k]] for k in rng.integers(0, 3, 60)], dtype=object)
    fitted = clone(estimator).fit(X, y)
    chance = fitted.predict_proba(X)
    assert chance.shape == (60, 3)
    assert np.allclose(chance.sum(axis=1), 1)
    assert (chance >= 0).all()
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert (fitted.predict(X) == fitted.classes_[chance.argmax(axis=1)]).all()


# Cross-fitting


def test_cross_fitted_scores_are_those_of_models_that_did_not_see_the_item() -> None:
    rng = np.random.default_rng(0)
    # Nothing to learn: an in-sample fit would still look right.
    train = labels_of([" ".join(f"w{rng.integers(10**6)}" for _ in range(8)) for _ in range(300)],
                      rng.integers(0, 2, 300).tolist())  # fmt: skip
    seen, _ = fit_router(train, options(features=["words"], regularisation=100), seed=0).score(train)
    crossed = fit_router(train, options(features=["words"], regularisation=100), seed=0, cross_fitted=True)
    score, fold = crossed.score(train)
    assert auc(seen, train.required > 0) == 1.0
    assert abs(auc(score, train.required > 0) - 0.5) < 0.1
    assert fold is not None
    assert np.bincount(fold).tolist() == [60] * 5
    assert np.array_equal(fold, crossed.fold)


def test_no_fold_shares_a_group_or_nearly_the_same_prompt_with_another() -> None:
    base = planted(60, 1)
    prompts = [p for p in base.prompts for _ in range(3)]
    prompts = [f"{p}{'!' * (i % 3)}" for i, p in enumerate(prompts)]  # the same but for marks
    group = [None if i % 2 else f"g{i // 12}" for i in range(180)]
    train = labels_of(prompts, np.repeat(base.required, 3).tolist(), group=group)
    router = fit_router(train, options(), seed=0, cross_fitted=True)
    assert router.fold is not None
    for i in range(0, 180, 3):
        assert len({int(f) for f in router.fold[i : i + 3]}) == 1
    for g in {g for g in group if g}:
        assert len({int(router.fold[i]) for i in range(180) if group[i] == g}) == 1


def test_new_items_are_scored_by_the_mean_of_the_fold_models() -> None:
    router = fit_router(planted(120, 1), options(), seed=0, cross_fitted=True)
    judged = planted(30, 2, start=1000)
    score, fold = router.score(judged)
    assert fold is not None
    assert (fold == -1).all()
    each = [replace(router, models=(m,), fold=None).score(judged)[0] for m in router.models]
    assert np.allclose(score, np.mean(each, axis=0), atol=1e-8)


# What is refused


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (
            labels_of(["a", "b"], [0, 0]),
            'all 2 items require "cheap". Fix: add items that require a stronger tier',
        ),
        (labels_of(["a", "b"], [1, 1]), 'all 2 items require "strong". Fix: add items that require another tier'),
        (labels_of(["a", "b"], [0, 2]), 'all 2 items require "cheap"'),
        (labels_of(["a", "b"], [0, 1], weight=[1, 0]), 'all 1 items require "cheap"'),
        (labels_of(["a", "b"], [0, -1]), '1 of 2 items have no required tier: "q1"'),
        (labels_of(["a", None], [0, 1]), '1 of 2 items have neither prompt nor messages: "q1"'),
        (labels_of([], []), "there is no item to learn from"),
    ],
)
def test_labels_that_nothing_can_be_learned_from(labels: LabelSet, said: str) -> None:
    with pytest.raises(InputError, match=r"labels\.jsonl") as raised:
        fit_router(labels, options(), seed=0)
    assert said in str(raised.value)


def test_too_few_groups_for_the_folds() -> None:
    labels = labels_of(["a", "b", "c", "d"], [0, 1, 0, 1], group=["x", "x", "y", "y"])
    with pytest.raises(InputError, match="2 groups of items cannot be dealt to 5 folds"):
        fit_router(labels, options(), seed=0, cross_fitted=True)


def test_two_items_are_enough_to_say_that_there_are_few() -> None:
    router = fit_router(labels_of(["hello", "prove"], [0, 1]), options(), seed=0)
    assert router.notices == ("labels.jsonl: 1 of 2 training items are needs: little to learn from",)


def test_a_lookup_needs_categories() -> None:
    with pytest.raises(InputError, match="no item has a category"):
        fit_router(labels_of(["a", "b"], [0, 1]), options(estimator="lookup"), seed=0)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("classifier", {"estimator": "forest"}, "logistic, lookup"),
        ("classifier", {"features": ["embedding"]}, "words, characters, category, length"),
        ("classifier", {"features": []}, "write a list of them"),
        ("classifier", {"estimator": "lookup", "features": ["words"]}, "mean nothing for estimator: lookup"),
        ("semantic", {"features": ["category"]}, "lack embedding"),
        ("semantic", {"dimensions": 100}, "64, 128 or 256"),
        ("classifier", {"regularisation": 0}, "from 0.000001 to 1000000"),
        ("classifier", {"folds": 1.5}, "a whole number from 2 to 20"),
        ("classifier", {"folds": True}, "a whole number from 2 to 20"),
        ("classifier", {"unsolvable": "strongest"}, "cheapest, leave_out"),
        ("classifier", {"estimater": "lookup"}, "is no option"),
    ],
)
def test_faults_of_options(kind: Any, given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match="router") as raised:
        options_of(kind, given, "study.yaml")
    assert said in str(raised.value)
    assert len(raised.value.faults) == 1


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), n=st.integers(20, 60), tiers=st.integers(2, 4))
def test_lookups_keep_the_order_of_needs(seed: int, n: int, tiers: int) -> None:
    """Whatever the data: scores lie from 0 to 1, and with no smoothing they are the mean place of the category."""
    rng = np.random.default_rng(seed)
    required = rng.integers(0, tiers, n)
    required[:2] = 0, tiers - 1
    category = [f"c{k}" for k in rng.integers(0, 4, n)]
    names = [f"t{k}" for k in range(tiers)]
    labels = labels_of(["x"] * n, required.tolist(), tiers=names, category=category)
    score, _ = fit_router(labels, options(estimator="lookup", smoothing=0), seed=0).score(labels)
    for name in set(category):
        part = np.array([c == name for c in category])
        assert np.allclose(score[part], required[part].mean() / (tiers - 1), atol=1e-8)
