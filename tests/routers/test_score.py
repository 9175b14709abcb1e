"""The seam to a study: each kind gives scores, says what it truly is, and refuses what it was trained on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from router_cases import labels_of, planted, router_of, study_of

from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.outcomes.scores import read_scores
from evalkit.routers.fit import fit_router
from evalkit.routers.folder import router_files
from evalkit.routers.options import options_of
from evalkit.routers.score import leaks_of, score_items
from evalkit.study.models import Router, Source
from evalkit.tabular.write import write_table


def stored(folder: Path, labels: LabelSet, *, crossed: bool = False, **given: object) -> Path:
    fitted = fit_router(labels, options_of("classifier", given or {"features": ["words"]}), cross_fitted=crossed)
    folder.mkdir()
    for name, data in router_files(fitted).items():
        (folder / name).write_bytes(data)
    return folder


def said(router: Router, labels: LabelSet, folder: Path) -> str:
    with pytest.raises(InputError) as raised:
        score_items(study_of(folder, router), router, labels)
    return str(raised.value)


def written(folder: Path, labels: LabelSet, name: str = "train.jsonl") -> Source:
    columns: dict[str, Any] = {
        "id": labels.ids,
        "prompt": labels.prompts,
        "required_tier": [labels.required_name(i) for i in range(len(labels))],
    }
    write_table(folder / name, columns)
    return Source(name, folder / name)


# Rules


def test_rules_are_untrained_unless_their_author_looked(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules: [{category: law, score: 2}]\notherwise: -1\n", encoding="utf-8")
    labels = labels_of([None, "b"], [1, 0], category=["law", None])
    router = router_of("rules", path=tmp_path / "rules.yaml")
    found = score_items(study_of(tmp_path, router), router, labels)
    assert found.score.tolist() == [2, -1]
    assert found.trained_on == "untrained"
    assert found.facts["met"] == [["rules[0]", 1], ["otherwise", 1]]
    looked = replace(router, trained_on="these_items")
    assert score_items(study_of(tmp_path, looked), looked, labels).trained_on == "these_items"


def test_rules_that_read_text_need_it_and_unmet_rules_are_told(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "rules: [{name: never, patterns: zebra, score: 2}]\notherwise: 0\n", encoding="utf-8"
    )
    router = router_of("rules", path=tmp_path / "rules.yaml")
    assert '1 items have neither prompt nor messages, which the rules read: "q1"' in said(
        router, labels_of(["a", None], [0, 1]), tmp_path
    )
    found = score_items(study_of(tmp_path, router), router, labels_of(["a", "b"], [0, 1]))
    assert found.notices == (f'{tmp_path / "rules.yaml"}: no item meets "never"',)


def test_the_fingerprint_is_that_of_the_same_scores_in_a_file(tmp_path: Path) -> None:
    rules = "rules: [{max_characters: 3, score: 0.5}]\notherwise: 1\n"
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    router = router_of("rules", path=tmp_path / "rules.yaml")
    labels = labels_of(["b", "aaaaa", "c"], [0, 1, 0], ids=["z", "a", "m"])
    found = score_items(study_of(tmp_path, router), router, labels)
    write_table(tmp_path / "scores.csv", {"id": ["m", "z", "a"], "score": [0.5, 0.5, 1.0]})
    read = read_scores(tmp_path / "scores.csv", ids=labels.ids, tiers=("cheap", "strong"), cascade=False)
    assert found.fingerprint == read.fingerprint


# Fitted


def test_a_frozen_router_says_what_it_is(tmp_path: Path) -> None:
    path = stored(tmp_path / "model", planted(100, 1))
    router = router_of("classifier", path=path)
    found = score_items(study_of(tmp_path, router), router, planted(50, 2, start=1000))
    assert (found.trained_on, found.leaks, found.fold) == ("other_items", (), None)
    assert found.facts["training"]["items"] == 100
    assert found.facts["kind"] == "classifier"
    json.dumps(dict(found.facts), allow_nan=False)
    assert len(found.facts["model_sha256"]) == len(found.facts["sha256"]) == 64


def test_the_items_it_was_trained_on_are_refused_in_any_dress(tmp_path: Path) -> None:
    train = planted(60, 1)
    router = router_of("classifier", path=stored(tmp_path / "model", train), leaks="drop")
    assert "was trained on these very items" in said(router, train, tmp_path)
    renamed = labels_of(
        [f"{p}!" for p in train.prompts], train.required.tolist(), ids=[f"x{i}" for i in range(60)]
    )
    assert "was trained on these very items" in said(router, renamed, tmp_path)


def test_the_same_ids_with_other_prompts_are_told(tmp_path: Path) -> None:
    router = router_of("classifier", path=stored(tmp_path / "model", planted(60, 1)))
    fresh = planted(40, 2, start=1000)
    numbered = labels_of(list(fresh.prompts), fresh.required.tolist(), ids=["q1", "q2", *fresh.ids[2:]])
    found = score_items(study_of(tmp_path, router), router, numbered)
    assert found.leaks == ()
    assert found.notices == (
        '2 ids stand in the training labels too, with other prompts, so as other items: "q1", "q2"',
    )


def test_leaks_are_named_and_left_to_the_caller(tmp_path: Path) -> None:
    train, judged = planted(60, 1), planted(40, 2, start=1000)
    both = labels_of(
        [*judged.prompts, train.prompts[7]], [*judged.required.tolist(), 1], ids=[*judged.ids, "again"]
    )
    router = router_of("classifier", path=stored(tmp_path / "model", train))
    found = score_items(study_of(tmp_path, router), router, both)
    assert [(leak.id, leak.training, leak.kind) for leak in found.leaks] == [("again", "q7", "exact")]
    assert len(found.score) == 41


def test_training_labels_of_a_router_that_only_gives_scores_leak_too(tmp_path: Path) -> None:
    train = planted(20, 1)
    router = replace(router_of("rules"), spec=None, train=written(tmp_path, train))
    judged = labels_of([train.prompts[3], "something else"], [0, 1], ids=["a", "b"])
    assert [(k.id, k.training) for k in leaks_of(router, judged, study_of(tmp_path, router))] == [("a", "q3")]
    assert leaks_of(replace(router, train=None), judged, study_of(tmp_path, router)) == ()


def test_cross_fitted_on_the_judged_items(tmp_path: Path) -> None:
    judged = planted(150, 1)
    router = router_of("classifier", options={"features": ["words"], "folds": 3}, trained_on="cross_fitted")
    found = score_items(study_of(tmp_path, router), router, judged)
    assert found.trained_on == "cross_fitted"
    assert found.fold is not None
    assert np.bincount(found.fold).tolist() == [50, 50, 50]
    again = score_items(study_of(tmp_path, router), router, judged)
    assert np.array_equal(again.score, found.score)
    # The same from a folder: every item by the model that did not see it.
    path = stored_crossed(tmp_path, judged)
    kept = router_of("classifier", path=path)
    same = score_items(study_of(tmp_path, kept), kept, judged)
    assert same.trained_on == "cross_fitted"
    assert np.array_equal(same.score, found.score)
    assert np.array_equal(same.fold, found.fold)


def stored_crossed(folder: Path, labels: LabelSet) -> Path:
    fitted = fit_router(labels, options_of("classifier", {"features": ["words"], "folds": 3}), seed=7,
                        cross_fitted=True)  # fmt: skip
    (folder / "crossed").mkdir()
    for name, data in router_files(fitted).items():
        (folder / "crossed" / name).write_bytes(data)
    return folder / "crossed"


def test_a_cross_fitted_model_is_frozen_to_items_that_no_fold_saw(tmp_path: Path) -> None:
    router = router_of("classifier", path=stored_crossed(tmp_path, planted(90, 1)))
    fresh = planted(30, 2, start=1000)
    found = score_items(study_of(tmp_path, router), router, fresh)
    assert (found.trained_on, found.fold) == ("other_items", None)
    mixed = labels_of([*fresh.prompts, planted(90, 1).prompts[0]], [*fresh.required.tolist(), 1])
    assert score_items(study_of(tmp_path, router), router, mixed).trained_on == "cross_fitted"


def test_a_cross_fitted_model_whose_training_was_emptied_is_refused_on_what_it_was_fitted_on(
    tmp_path: Path,
) -> None:
    """With no training item left to find, fold models would be frozen to the very items that they saw."""
    labels = planted(90, 1)
    folder = stored_crossed(tmp_path, labels)
    rows = [json.loads(line) for line in (folder / "training.jsonl").read_text("utf-8").splitlines()]
    for i, row in enumerate(rows[1:]):
        row |= {"id": f"z{i}", "text": f"{i:032x}", "group": None, "level": 0, "sketch": ""}
    training = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "training.jsonl").write_bytes(training)
    manifest = json.loads((folder / "router.json").read_text("utf-8"))
    manifest["files"]["training.jsonl"] = hashlib.sha256(training).hexdigest()
    (folder / "router.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "was trained on these very items" in said(router_of("classifier", path=folder), labels, tmp_path)


@pytest.mark.parametrize(
    ("fields", "tiers", "text"),
    [
        (
            {"options": {"features": ["characters"]}},
            2,
            "field router.features: is ['characters'], and the model was",
        ),
        ({}, 3, "was fitted for 2 tiers, and the study has 3"),
    ],
)
def test_a_model_that_is_not_what_the_study_says(
    tmp_path: Path, fields: dict[str, Any], tiers: int, text: str
) -> None:
    router = router_of("classifier", path=stored(tmp_path / "model", planted(60, 1)), **fields)
    study = study_of(tmp_path, router, [f"t{k}" for k in range(tiers)])
    with pytest.raises(InputError) as raised:
        score_items(study, router, planted(20, 2, start=1000))
    assert text in str(raised.value)


def test_kinds_are_not_mixed_up(tmp_path: Path) -> None:
    path = stored(tmp_path / "model", planted(60, 1))
    assert "is a classifier, and the study says semantic" in said(
        router_of("semantic", path=path), planted(9, 2), tmp_path
    )
    assert "model is required" in said(router_of("classifier"), planted(9, 2), tmp_path).replace(": ", " ")


# Python

MODULE = """
import random

print("imported, and no result either")

def length(items):
    assert all(set(item) == {"prompt", "messages", "category"} for item in items)
    print("this is no result")
    return [len(item["prompt"]) for item in items]

def rank(items):
    order = sorted(range(len(items)), key=lambda i: items[i]["prompt"])
    return [order.index(i) / len(items) for i in range(len(items))]

def chance(items): return [random.random() for _ in items]
def short(items): return [1.0]
def nan(items): return [float("nan")] * len(items)
def huge(items): return [10 ** 400] * len(items)
def text(items): return ["0.5"] * len(items)
def flag(items): return [True] * len(items)
def none(items): return None
def leave(items): raise SystemExit(0)
def cancelled(items):
    import asyncio
    raise asyncio.CancelledError("no time")
def endless(items):
    import itertools
    return itertools.repeat(0.5)
def keyed(items): return {i: 0.5 for i in range(len(items))}
def unordered(items): return {i / 10 for i in range(len(items))}
def fail(items): raise ValueError("no \\x1b[31m model")
def spoil(items):
    for item in items:
        item["prompt"] = "spoilt"
        for message in item["messages"] or []:
            message["content"][0]["text"] = "spoilt"
    return [0.5] * len(items)

constant = 7

class Scorer:
    @staticmethod
    def score(items): return [0.25] * len(items)
"""


def python(name: str, folder: Path) -> Router:
    (folder / "own_router.py").write_text(MODULE, encoding="utf-8")
    return router_of("python", function=f"own_router:{name}", trained_on="other_items")


def test_a_function_beside_the_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    router = python("length", tmp_path)
    messages = [[{"role": "user", "content": [{"type": "text", "text": text}]}] for text in ("abc", "a", "")]
    labels = labels_of(["abc", "a", ""], [0, 1, 0], messages=messages)
    found = score_items(study_of(tmp_path, router), router, labels)
    assert found.score.tolist() == [3, 1, 0]
    assert found.trained_on == "other_items"
    assert len(found.facts["sha256"]) == 64
    assert capsys.readouterr().out == ""
    spoil = python("spoil", tmp_path)
    assert score_items(study_of(tmp_path, spoil), spoil, labels).score.tolist() == [0.5] * 3
    assert labels.prompts[0] == "abc"
    assert messages[0][0]["content"] == [{"type": "text", "text": "abc"}]
    assert capsys.readouterr().out == ""
    method = python("Scorer.score", tmp_path)
    assert score_items(study_of(tmp_path, method), method, labels).score.tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rank", "among all items and"),
        ("chance", "without chance"),
        ("short", "returned 1 scores for 9 items"),
        ("nan", 'returned nan for "q0"'),
        ("huge", "return finite numbers"),
        ("text", "returned '0.5' for \"q0\""),
        ("flag", 'returned True for "q0"'),
        ("none", "raised TypeError"),
        ("leave", "raised SystemExit"),
        ("cancelled", "raised CancelledError: no time"),
        ("endless", "returned more scores than 9 items"),
        ("keyed", "returned a dict, which has no order"),
        ("unordered", "returned a set, which has no order"),
        ("fail", "raised ValueError: no \\u001b[31m model"),
        ("constant", "is no function"),
        ("missing", "cannot be imported: AttributeError"),
    ],
)
def test_faults_of_a_function(tmp_path: Path, name: str, text: str) -> None:
    labels = labels_of([f"p{i * 7 % 9}" for i in range(9)], [0] * 9)
    found = said(python(name, tmp_path), labels, tmp_path)
    assert text in found
    assert "\n" not in found
    assert found.startswith(f'{tmp_path / "study.yaml"}: field router.function: "own_router:{name}"')


def test_a_module_that_is_not_there_or_broken(tmp_path: Path) -> None:
    labels = labels_of(["a"], [0])
    missing = router_of("python", function="no_such_router:f", trained_on="untrained")
    assert "cannot be imported: ModuleNotFoundError" in said(missing, labels, tmp_path)
    (tmp_path / "broken.py").write_text("def f(:", encoding="utf-8")
    broken = router_of("python", function="broken:f", trained_on="untrained")
    assert "cannot be imported: SyntaxError" in said(broken, labels, tmp_path)
    installed = router_of("python", function="statistics:fmean", trained_on="untrained")
    assert "raised TypeError" in said(installed, labels, tmp_path)
