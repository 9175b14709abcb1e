"""`evalkit router fit` and `score`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from router_cases import labels_of, planted

from evalkit.cli.app import main
from evalkit.labels.labelset import LabelSet
from evalkit.tabular.read import read_table
from evalkit.tabular.write import write_table

STUDY = """study: planted
kind: routing
labels: labels.jsonl
tiers: [{name: cheap, model: demo/cheap}, {name: strong, model: demo/strong}]
rubric: rubric.yaml
risk:
  low: {under_route_loss: 0.5, max_under_route: 0.10}
seed: 7
"""
ONE = "router: {kind: classifier, features: [words], train: train.jsonl, model: model, cost_usd: 0%s}\n"


def write(folder: Path, name: str, labels: LabelSet) -> None:
    columns: dict[str, Any] = {
        "id": labels.ids,
        "prompt": labels.prompts,
        "required_tier": [labels.required_name(i) for i in range(len(labels))],
        "category": labels.category or [None] * len(labels),
    }
    if name == "labels.jsonl":
        columns["risk"] = ["low"] * len(labels)  # training labels do without
    write_table(folder / name, columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "train.jsonl", planted(80, 1))
    write(tmp_path, "labels.jsonl", planted(60, 2, start=1000))
    (tmp_path / "rubric.yaml").write_text("", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(STUDY + ONE % "", encoding="utf-8")
    return tmp_path


def run(*arguments: object) -> int:
    return main(["router", *map(str, arguments)])


def test_fit_then_score(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", folder / "study.yaml", "--out", folder / "model", "--json", folder / "model.json") == 0
    said = capsys.readouterr()
    assert "classifier, logistic, one model, on 80 items" in said.out
    assert "In the study: model: model, trained_on: other_items" in said.out
    assert said.err == ""
    assert (folder / "model.json").read_bytes() == (folder / "model" / "router.json").read_bytes()
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == set()
    assert run("score", folder / "study.yaml", "--out", folder / "s.csv", "--json", folder / "s.json") == 0
    table = read_table(folder / "s.csv")
    assert (list(table.columns), table.n_rows) == (["id", "score"], 60)
    about = json.loads((folder / "s.json").read_text(encoding="utf-8"))
    assert about["trained_on"] == "other_items"
    assert about["leaks"] == []
    assert about["facts"]["training"]["items"] == 80


def test_the_same_command_writes_the_same_bytes_and_another_seed_does_not(folder: Path) -> None:
    study = folder / "study.yaml"
    for name, more in (("a", []), ("b", []), ("c", ["--seed", "8"])):
        assert run("fit", study, "--out", folder / name, "--quiet", *more) == 0
    files = {
        n: [(folder / n / f).read_bytes() for f in ("router.json", "model.skops", "training.jsonl")] for n in "abc"
    }
    assert files["a"] == files["b"]
    assert files["a"][1] != files["c"][1]


def test_a_router_that_is_there_is_replaced_only_by_force(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = folder / "study.yaml", folder / "model"
    assert run("fit", study, "--out", out) == 0
    before = (out / "model.skops").read_bytes()
    assert run("fit", study, "--out", out, "--seed", "9") == 2
    assert "holds a fitted router already. Fix: name another, or add --force" in capsys.readouterr().err
    assert (out / "model.skops").read_bytes() == before
    assert run("fit", study, "--out", out, "--seed", "9", "--force") == 0
    assert (out / "model.skops").read_bytes() != before


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_no_folder_of_the_user_is_replaced(
    folder: Path, force: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = folder / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    assert run("fit", folder / "study.yaml", "--out", mine, *force) == 2
    assert "holds other files" in capsys.readouterr().err
    (mine / "router.json").write_text("{}", encoding="utf-8")
    assert run("fit", folder / "study.yaml", "--out", mine, *force) == 2
    assert run("fit", folder / "study.yaml", "--out", folder / "train.jsonl", *force) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert {path.name for path in mine.iterdir()} == {"thesis.txt", "router.json"}


def test_training_on_the_judged_items_is_refused_where_it_is_seen_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, "train.jsonl", planted(60, 2, start=1000))
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 2
    assert 'train.jsonl: holds the very items that are judged, "labels.jsonl"' in capsys.readouterr().err
    assert not (folder / "model").exists()


def test_leaks_are_told_at_the_fit_and_refused_at_the_score(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train, judged = planted(80, 1), planted(60, 2, start=1000)
    prompts = [*judged.prompts, str(train.prompts[4]).upper()]
    write(folder, "labels.jsonl", labels_of(prompts, [*judged.required.tolist(), 1], ids=[*judged.ids, "again"]))
    study = folder / "study.yaml"
    assert run("fit", study, "--out", folder / "model") == 0
    assert (
        'notice: 1 judged item stands in these training labels too, and will be refused: "again" (exact "q4")'
        in (capsys.readouterr().err)
    )
    assert run("score", study, "--out", folder / "s.csv") == 2
    assert '"again" (the same prompt as "q4")' in capsys.readouterr().err
    assert not (folder / "s.csv").exists()
    study.write_text(STUDY + ONE % ", leaks: drop", encoding="utf-8")
    assert run("score", study, "--out", folder / "s.csv") == 0
    assert '1 of these items stand in the training labels too (leaks: drop): "again"' in capsys.readouterr().err
    assert run("fit", study, "--out", folder / "model", "--force") == 0
    assert "too, and will be left out for all routers (leaks: drop): " in capsys.readouterr().err


def test_a_router_is_fitted_before_the_judged_items_are_labelled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = planted(60, 2, start=1000)
    again = str(planted(80, 1).prompts[4])
    columns = {"id": [*judged.ids, "again"], "prompt": [*judged.prompts, again]}
    write_table(folder / "labels.jsonl", columns)
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 0
    assert (
        '1 judged item stands in these training labels too, and will be refused: "again"'
        in capsys.readouterr().err
    )


def test_cross_fitting_needs_no_other_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = folder / "study.yaml"
    study.write_text(
        STUDY + "router: {kind: classifier, features: [words], trained_on: cross_fitted, cost_usd: 0}\n",
        encoding="utf-8",
    )
    assert run("score", study, "--out", folder / "s.jsonl") == 0
    assert "approximate, no certificate" in capsys.readouterr().out
    rows = [json.loads(line) for line in (folder / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert np.bincount([row["fold"] for row in rows]).tolist() == [12] * 5
    assert run("fit", study, "--out", folder / "mean") == 0
    assert "5 models across folds" in capsys.readouterr().out
    kept = "router: {kind: classifier, model: mean, cost_usd: 0}\n"
    study.write_text(STUDY + kept, encoding="utf-8")
    assert run("score", study, "--out", folder / "again.jsonl") == 0
    assert (folder / "again.jsonl").read_bytes() == (folder / "s.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("router", "command", "text"),
    [
        ("router: {kind: classifier, cost_usd: 0}", "fit", "names no labels to fit on"),
        ("router: {kind: classifier, cost_usd: 0}", "score", "router.model: is required where"),
        ("router: {kind: classifier, train: none.jsonl, cost_usd: 0}", "fit", "none.jsonl"),
        ("router: {kind: classifier, train: train.jsonl, estimator: forest, cost_usd: 0}", "fit", "estimator"),
        ("router: {kind: rules, rules: rules.yaml, cost_usd: 0}", "fit", "kind: classifier or semantic"),
        ("router: {kind: rules, rules: rules.yaml, cost_usd: 0}", "score", "rules.yaml: there is no such file"),
        ("router: {scores: s.csv, higher_means: needs_stronger, trained_on: untrained, cost_usd: 0}", "score",
         "has no router that evalkit can do this with"),
        ("routers:\n  - {name: a, kind: classifier, train: train.jsonl, cost_usd: 0}\n"
         "  - {name: b, kind: classifier, train: train.jsonl, cost_usd: 0}", "fit", "has several routers: a, b"),
    ],
)  # fmt: skip
def test_faults(folder: Path, capsys: pytest.CaptureFixture[str], router: str, command: str, text: str) -> None:
    (folder / "study.yaml").write_text(STUDY + router + "\n", encoding="utf-8")
    assert run(command, folder / "study.yaml", "--out", folder / ("out" if command == "fit" else "out.csv")) == 2
    said = capsys.readouterr()
    assert text in said.err
    assert "Fix: " in said.err
    assert said.out == ""
    assert not (folder / "out").exists()
    assert not (folder / "out.csv").exists()


def test_one_of_several_routers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rules.yaml").write_text("rules: [{category: law, score: 1}]\notherwise: 0\n", encoding="utf-8")
    (folder / "study.yaml").write_text(
        STUDY + "routers:\n  - {name: words, kind: classifier, train: train.jsonl, model: m, cost_usd: 0}\n"
        "  - {name: keys, kind: rules, rules: rules.yaml, cost_usd: 0}\n",
        encoding="utf-8",
    )
    assert run("fit", folder / "study.yaml", "--out", folder / "m") == 0  # the only one that is fitted
    assert run("score", folder / "study.yaml", "--out", folder / "s.csv", "--router", "keys") == 0
    assert run("score", folder / "study.yaml", "--out", folder / "s.csv", "--router", "kesy") == 2
    assert 'did you mean "keys"' in capsys.readouterr().err
    assert run("fit", folder / "study.yaml", "--out", folder / "n", "--router", "keys") == 2
    assert "is not fitted by evalkit" in capsys.readouterr().err


def test_scores_do_not_overwrite_what_they_are_made_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 0
    for out in ("labels.jsonl", "train.jsonl"):
        assert run("score", folder / "study.yaml", "--out", folder / out) == 2
        assert "is a file that this run reads" in capsys.readouterr().err
    assert run("score", folder / "study.yaml", "--out", folder / "scores.txt") == 2


def test_missing_packages_say_how_to_get_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    from evalkit.routers import embeddings

    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 2
    assert 'pip install "evalkit[router]"' in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "wordllama", None)
    embeddings._folder.cache_clear()
    embeddings._model.cache_clear()
    (folder / "study.yaml").write_text(
        STUDY + "router: {kind: semantic, train: train.jsonl, cost_usd: 0}\n", encoding="utf-8"
    )
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 2
    assert 'pip install "evalkit[semantic]"' in capsys.readouterr().err
    assert not (folder / "model").exists()


def test_the_example_of_the_page_prints_what_is_shown(repo: Path, tmp_path: Path) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("examples", repo / "docs" / "examples.py")
    assert spec is not None
    assert spec.loader is not None
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    text = (repo / "docs" / "routers.md").read_text(encoding="utf-8")
    assert examples.with_output(text, tmp_path) == text
    assert (tmp_path / "models" / "words" / "model.skops").is_file()
