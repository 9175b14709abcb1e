"""What evalkit computed of routers is recorded, verified from there, and never run again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.router_studies import KEYWORDS, NOISE, VENDOR, verified, write_routers
from tests.workflows.studies import Ran, evalkit


@pytest.fixture
def ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ran:
    write_routers(tmp_path, KEYWORDS | {"trained_on": "untrained"}, VENDOR, NOISE)
    return evalkit(capsys, tmp_path)


def test_what_was_run_is_verified_without_running_it(
    ran: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        names = set(file.namelist())
        rows = [json.loads(line) for line in file.read("scores.keywords/scores.jsonl").splitlines()]
    assert {"scores.vendor/scores.csv", "scores.noise/noise.csv", "routers/routers.json"} < names
    assert [row["score"] for row in rows[:3]] == [0.9, 0.9, 0.9]
    (tmp_path / "rules.yaml").unlink()

    def never(*_: Any) -> None:
        raise AssertionError("a router was run")

    import evalkit.routers.score

    monkeypatch.setattr(evalkit.routers.score, "score_items", never)
    code, said = verified(capsys, ran.folder)
    assert (code, "every figure of this run follows from its evidence" in said) == (0, True)
    facts = ran.result["provenance"]["routers"][0]
    assert facts["kind"] == "rules"
    assert facts["scores"]["computed_by"] == "rules"
    assert len(facts["facts"]["sha256"]) == 64


def _rewritten(bundle: Path, change: dict[str, bytes]) -> None:
    """The bundle with other content under true hashes, as somebody would forge it."""
    import hashlib

    with zipfile.ZipFile(bundle) as file:
        parts = {info.filename: file.read(info) for info in file.infolist()}
    parts |= change
    index = json.loads(parts["files.json"])
    for row in index["files"]:
        content = parts[row["name"]]
        row["sha256"], row["bytes"] = hashlib.sha256(content).hexdigest(), len(content)
    parts["files.json"] = json.dumps(index).encode()
    with zipfile.ZipFile(bundle, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def test_a_changed_score_is_found_and_named(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    import hashlib

    bundle, result = ran.folder / "evidence.zip", ran.folder / "result.json"
    with zipfile.ZipFile(bundle) as file:
        scores = file.read("scores.keywords/scores.jsonl")
    before = hashlib.sha256(bundle.read_bytes()).hexdigest()
    _rewritten(bundle, {"scores.keywords/scores.jsonl": scores.replace(b'"score": 0.1}', b'"score": 0.9}', 1)})
    code, said = verified(capsys, ran.folder)
    assert code == 1
    assert "is not the one that result.json names" in said
    after = hashlib.sha256(bundle.read_bytes()).hexdigest()
    result.write_text(result.read_text("utf-8").replace(before, after), "utf-8")
    code, said = verified(capsys, ran.folder)
    assert code == 1
    assert "provenance.routers[keywords].scores.hash is" in said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"trained_on": "these_items"}, "routers.json does not hold what it should"),
        ({"leaks": [["q1", "t1", "exact"]]}, "routers.json does not hold what it should"),
        ({"trained_ids": [1]}, "routers.json does not hold what it should"),
        ({"name": "other"}, "routers.json does not say what the study's routers are"),
        ({"trained_on": "other_items"}, "routers.json says of a router what the study does not"),
        ({"leaks": [["q1", "t1", "exact", 1.0]]}, "routers.json holds leaks that the study does not take"),
    ],
)
def test_a_record_of_routers_that_evalkit_did_not_write_is_refused(
    ran: Ran, capsys: pytest.CaptureFixture[str], row: dict[str, Any], said: str
) -> None:
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        document = json.loads(file.read("routers/routers.json"))
    document["routers"][0] |= row
    _rewritten(ran.folder / "evidence.zip", {"routers/routers.json": json.dumps(document).encode()})
    code, printed = verified(capsys, ran.folder)
    assert code == 1
    assert said in printed


@pytest.mark.parametrize(
    "role", ["scores...", "scores.a/b", "scores..x", "labels.x", "scores.", "decisions.\u202ex"]
)
def test_a_role_that_is_no_router_is_refused(ran: Ran, capsys: pytest.CaptureFixture[str], role: str) -> None:
    bundle = ran.folder / "evidence.zip"
    with zipfile.ZipFile(bundle) as file:
        parts = {info.filename: file.read(info) for info in file.infolist()}
    index = json.loads(parts["files.json"])
    next(row for row in index["files"] if row["role"] == "scores.noise")["role"] = role
    with zipfile.ZipFile(bundle, "w") as file:
        for name, content in (parts | {"files.json": json.dumps(index).encode()}).items():
            file.writestr(name, content)
    code, printed = verified(capsys, ran.folder)
    assert code == 1
    assert "files.json does not hold what it should" in printed


FITTED = {"name": "fitted", "kind": "classifier", "trained_on": "cross_fitted", "cost_usd": 0, "seconds": 0}


def _runs_as(monkeypatch: pytest.MonkeyPatch, trained_on: Any) -> None:
    """In place of a fitted model: every second item scores .9, from five folds."""
    import numpy as np

    import evalkit.routers.score as seam

    def score_items(_study: Any, _router: Any, labels: Any) -> seam.RouterScores:
        score = np.where(np.arange(len(labels)) % 2 == 0, 0.9, 0.1)
        return seam.RouterScores(
            score=score,
            trained_on=trained_on,
            fingerprint=seam.scores_fingerprint(labels.ids, score),
            facts={"kind": "classifier", "seed": 0, "folds": 5},
            fold=np.arange(len(labels), dtype=np.int16) % 5,
        )

    monkeypatch.setattr(seam, "score_items", score_items)


def test_cross_fitted_scores_certify_nothing_and_record_their_folds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_routers(tmp_path, FITTED, NOISE)
    _runs_as(monkeypatch, "cross_fitted")
    ran = evalkit(capsys, tmp_path)
    result = ran.result
    assert ran.code == 3
    assert result["chosen_router"] == "fitted"
    assert result["routers"][0]["trained_on"] == "cross_fitted"
    assert [gate["status"] for gate in result["gates"]] == ["estimate", "insufficient"]
    assert any(said.startswith("Approximate: cross-fitted.") for said in result["evidence_limits"])
    assert result["routers"][0]["calibration"]["brier"] == pytest.approx(0.01)  # a fitted score is a chance
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        rows = [json.loads(line) for line in file.read("scores.fitted/scores.jsonl").splitlines()]
    assert [row["fold"] for row in rows[:7]] == [0, 1, 2, 3, 4, 0, 1]
    assert verified(capsys, ran.folder)[0] == 0


@pytest.mark.parametrize("true", ["other_items", "these_items"])
def test_a_router_that_is_not_what_the_study_says_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, true: str
) -> None:
    write_routers(tmp_path, NOISE, FITTED)
    _runs_as(monkeypatch, true)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 2
    assert "field routers[1].trained_on: " in ran.err
    assert ran.wrote_nothing()


def test_a_function_is_run_once_and_never_by_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = {
        "name": "mine",
        "kind": "python",
        "function": "my_router:score",
        "higher_means": "cheap_is_enough",
        "trained_on": "untrained",
        "cost_usd": 0,
        "seconds": 0,
        "probability": True,
    }
    write_routers(tmp_path, NOISE, function)
    source = "def score(items):\n    return [0.1 if 'contract' in item['prompt'] else 0.8 for item in items]\n"
    (tmp_path / "my_router.py").write_text(source, encoding="utf-8")
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.err
    assert ran.result["chosen_router"] == "mine"
    row = ran.result["routers"][1]
    assert row["facts"]["function"] == "my_router:score"
    # A score that says "cheap is enough" is the chance of no need: 315 at .9 of a need, 285 at .2 where none is.
    assert [(one["predicted"], one["n"]) for one in row["calibration"]["bins"]] == [
        (pytest.approx(0.2), 285),
        (pytest.approx(0.9), 315),
    ]
    (tmp_path / "my_router.py").write_text("raise SystemExit('never')\n", encoding="utf-8")
    assert verified(capsys, ran.folder)[0] == 0
    again = evalkit(capsys, tmp_path)
    assert again.code == 2
    assert "field routers[1].function: " in again.err
    assert "Traceback" not in again.err


def test_names_in_any_script_reach_the_evidence_and_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("한국어-규칙", "Ωmega_2", "a.b")
    routers = [router | {"name": name} for router, name in zip((KEYWORDS, VENDOR, NOISE), names, strict=True)]
    write_routers(tmp_path, *routers)
    ran = evalkit(capsys, tmp_path)
    assert ran.code == 0, ran.err
    assert ran.result["chosen_router"] == "한국어-규칙"
    with zipfile.ZipFile(ran.folder / "evidence.zip") as file:
        assert "scores.한국어-규칙/scores.jsonl" in file.namelist()
        assert "scores.a.b/noise.csv" in file.namelist()
    assert verified(capsys, ran.folder)[0] == 0
    assert evalkit(capsys, tmp_path, "--router", "Ωmega_2").result["gates"][0]["confidence"] is not None
