"""Verifiers from the command to a cascade: blind, deterministic, resumed, and read back by route-sweep."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

from evalkit.cli.router_verifier import register
from evalkit.errors import Incomplete, InputError
from tests.providers.mock_openai import running_mock
from tests.workflows.replays import KEY, items, replay, write_jsonl, write_study, write_yaml

NAMES = [f"q{n}" for n in range(12)]
RUBRIC = {"rubric": "shape", "check": {"kind": "contract"}, "contract": {"json": "strict"}}
ROUTER = {
    "policy": "cascade",
    "scores": "scores.csv",
    "higher_means": "cheap_is_enough",
    "trained_on": "untrained",
    "cost_usd": 0,
    "missing_scores": "escalate",
}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_KEY", KEY)


def rows_of(samples: int = 3, *, flip: bool = False) -> list[dict[str, Any]]:
    """Outcomes: cheap agrees with itself on every second item; `flip` changes all that a grader said of them."""
    out = []
    for i, name in enumerate(NAMES):
        for tier in ("cheap", "top"):
            for s in range(samples):
                text = '{"a": 1}' if i % 2 else f"other {s}"
                right = (i % 2 == 1) != flip
                out.append(
                    {"id": name, "tier": tier, "sample": s, "status": "ok" if right or tier == "top" else "wrong",
                     "cost_usd": 0.001, "reply": text, "mean_logprob": -0.1 * (i + 1)}
                )  # fmt: skip
    return out


def study(folder: Path, *, labels: list[dict[str, Any]] | None = None, flip: bool = False, **more: Any) -> Path:
    given = {"outcomes": "outcomes.jsonl", "router": ROUTER, "prices": False, **more}
    path = write_study(folder, None, labels or items(NAMES), rubric=RUBRIC, **given)
    write_jsonl(folder / "outcomes.jsonl", rows_of(flip=flip))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    """`evalkit router score-replies` in this process."""
    app = Typer()
    app.command("other")(lambda: None)
    register(app)
    found = CliRunner().invoke(app, ["score-replies", *[str(a) for a in arguments]], catch_exceptions=True)
    if isinstance(found.exception, InputError):
        return 2, found.stdout, "\n".join(str(fault) for fault in found.exception.faults)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stdout, found.stderr


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class TestFromRecordedOutcomes:
    @pytest.mark.parametrize("verifier", ["self_consistency", "log_probability", "rubric"])
    def test_nothing_that_people_or_graders_said_changes_a_byte(self, verifier: str, tmp_path: Path) -> None:
        told = items(NAMES)
        other = [
            {**row, "required_tier": "cheap", "reference": "something else", "metadata": {"answer": "x"}}
            for row in told
        ]
        found = []
        for name, labels, flip in (("a", told, False), ("b", other, True)):
            path = study(tmp_path / name, labels=labels, flip=flip)
            more = ("--rubric", tmp_path / name / "rubric.yaml") if verifier == "rubric" else ()
            code, _, err = run(path, "--verifier", verifier, "--out", tmp_path / f"{name}.csv", *more)
            assert code == 0, err
            found.append((tmp_path / f"{name}.csv").read_bytes())
        assert found[0] == found[1]
        assert len({row["score_cheap"] for row in read(tmp_path / "a.csv")}) > 1

    def test_self_consistency_by_hand(self, tmp_path: Path) -> None:
        path = study(tmp_path)
        assert run(path, "--verifier", "self_consistency", "--out", tmp_path / "s.csv")[0] == 0
        rows = read(tmp_path / "s.csv")
        assert list(rows[0]) == ["id", "score_cheap", "verifier_usd_cheap"]
        assert [row["id"] for row in rows] == NAMES
        assert [float(row["score_cheap"]) for row in rows[:2]] == [pytest.approx(1 / 3), 1.0]
        assert {float(row["verifier_usd_cheap"]) for row in rows} == {0.002}

    def test_a_cascade_reads_it(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        from evalkit.cli.app import main

        path = study(tmp_path)
        (tmp_path / "scores.csv").unlink()  # the study may name the file that is made here
        assert run(path, "--verifier", "self_consistency", "--out", tmp_path / "scores.csv")[0] == 0
        assert main(["route-sweep", str(path), "--out", str(tmp_path / "run"), "--quiet"]) in {0, 1, 3}
        capsys.readouterr()
        result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
        assert result["policy"] == "cascade"
        strongest = next(p for p in result["points"] if p["escalation_rate"] == 1)
        # Every request pays cheap, its two further samples, and top.
        assert strongest["cost_usd_per_request"] == pytest.approx(0.001 + 0.002 + 0.001)

    def test_missing_replies_are_blank_and_said(self, tmp_path: Path) -> None:
        path = study(tmp_path)
        rows = [row for row in rows_of() if row["id"] != "q3"]
        for row in rows:
            if row["id"] == "q5":
                row["reply"] = None
        write_jsonl(tmp_path / "outcomes.jsonl", rows)
        code, _, err = run(path, "--verifier", "log_probability", "--out", tmp_path / "s.csv")
        assert code == 0
        assert "2 of 12 items have no score of cheap" in err
        assert "missing_scores" in err
        blank = [row["id"] for row in read(tmp_path / "s.csv") if row["score_cheap"] == ""]
        assert blank == ["q3", "q5"]

    def test_faults_name_what_to_do(self, tmp_path: Path) -> None:
        path = study(tmp_path)
        out = tmp_path / "s.csv"
        assert "takes a rubric" in run(path, "--verifier", "rubric", "--out", out)[2]
        assert "takes none" in run(path, "--verifier", "self_consistency", "--out", out, "--rubric", path)[2]
        exact = tmp_path / "exact.yaml"
        write_yaml(exact, {"rubric": "same-text", "check": {"kind": "exact"}})
        code, _, err = run(path, "--verifier", "rubric", "--rubric", exact, "--out", out)
        assert code == 2
        assert "a verifier sees no reference" in err
        assert run(path, "--verifier", "self_consistency", "--out", tmp_path / "outcomes.jsonl")[0] == 2
        write_jsonl(tmp_path / "outcomes.jsonl", [{**row, "mean_logprob": None} for row in rows_of()])
        assert "logprobs: true" in run(path, "--verifier", "log_probability", "--out", out)[2]
        assert not out.exists()


def judge_rubric(url: str) -> dict[str, Any]:
    return {
        "rubric": "is-it-good",
        "check": {"kind": "judge"},
        "judge": {
            "model": "openai/judge",
            "params": {"api_base": url, "api_key": "os.environ/DEMO_KEY", "max_tokens": 50},
            "prompt": "Rate {{ answer }} as an answer to {{ prompt }}",
            "json_field": "score",
            "scale": {"worst": 0, "best": 10},
        },
    }


class TestThroughModels:
    def test_judge_is_paid_once_and_never_told_the_reference(self, tmp_path: Path) -> None:
        rules = [
            {"models": ["judge"], "contains": "prompt q3", "answer": "no verdict at all"},
            {"models": ["judge"], "contains": "prompt q5", "answer": '{"score": 2}'},
            {"models": ["judge"], "answer": '{"score": 8}'},
        ]
        with running_mock(rules=rules) as mock:
            path = study(tmp_path, changes={"prices": "prices.yaml", "replay": {"max_attempts": 1}})
            models = {"openai/judge": {"input": 1.0, "output": 2.0}}
            card = {"currency": "USD", "unit": "per_1m_tokens", "as_of": "2026-01-15", "models": models}
            write_yaml(tmp_path / "prices.yaml", card)
            write_yaml(tmp_path / "judge.yaml", judge_rubric(mock.url))
            asked = [path, "--verifier", "judge", "--rubric", tmp_path / "judge.yaml", "--folder", tmp_path / "v"]
            code, out, err = run(*asked, "--out", tmp_path / "s.csv")
            assert code == 0, err
            first = mock.counts()
            assert first["requests_by_model"] == {"judge": len(NAMES)}
            assert not any("ANSWER" in content for content in first["contents"])  # references begin so
            code, _, _ = run(*asked, "--out", tmp_path / "again.csv")
            assert code == 0
            assert mock.counts()["requests_by_model"] == {"judge": len(NAMES)}  # nothing is paid twice
        assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
        found = {row["id"]: row["score_cheap"] for row in read(tmp_path / "s.csv")}
        assert found["q3"] == ""
        assert (float(found["q5"]), float(found["q1"])) == (0.2, 0.8)
        assert "1 of 12 items have no score of cheap" in err
        # 6 words at most in the prompt, 2 in a verdict: about 10 tokens, priced by the card.
        usd = {row["id"]: float(row["verifier_usd_cheap"]) for row in read(tmp_path / "s.csv")}
        assert all(2e-6 < value < 4e-5 for value in usd.values())
        assert usd["q3"] > 0  # a judgement without a verdict is paid for too
        assert "ledger" in out

    @pytest.mark.parametrize("stream", [False, True])
    def test_log_probabilities_of_a_replay(
        self, stream: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rules = [
            {"models": ["cheap"], "contains": "prompt q1", "logprobs": [-0.25, -0.75]},
            {"models": ["cheap"], "contains": "prompt q2", "logprobs": []},
            {"models": ["cheap"], "contains": "prompt q0", "logprobs": [-2.0]},
        ]
        with running_mock(rules=rules) as mock:
            path = write_study(
                tmp_path,
                mock,
                items(NAMES[:3]),
                params={"logprobs": True},
                options={"stream": stream},
                router=ROUTER,
            )
            ran = replay(capsys, tmp_path)
            assert ran.code == 0, ran.err
        by = {(row["id"], row["tier"]): row.get("mean_logprob") for row in ran.rows}
        assert (by["q1", "cheap"], by["q0", "cheap"], by["q2", "cheap"]) == (-0.5, -2.0, None)
        out = tmp_path / "s.csv"
        code, _, err = run(
            path, "--verifier", "log_probability", "--replies", ran.folder / "outcomes.jsonl", "--out", out
        )
        assert code == 0, err
        assert [row["score_cheap"] for row in read(out)] == ["-2.0", "-0.5", ""]

    def test_without_them_the_outcomes_have_no_such_column(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with running_mock() as mock:
            write_study(tmp_path, mock, items(NAMES[:2]))
            ran = replay(capsys, tmp_path)
        assert "mean_logprob" not in ran.rows[0].keys() | ran.rows[1].keys()


class TestInterrupted:
    def test_what_the_judge_was_not_asked_is_asked_by_the_same_command(self, tmp_path: Path) -> None:
        rules = [
            {"models": ["judge"], "contains": "prompt q7", "fault": "status", "status": 500, "attempts": 1},
            {"models": ["judge"], "answer": '{"score": 8}'},
        ]
        with running_mock(rules=rules) as mock:
            path = study(tmp_path, changes={"replay": {"max_attempts": 1}})
            write_yaml(tmp_path / "judge.yaml", judge_rubric(mock.url))
            asked = [path, "--verifier", "judge", "--rubric", tmp_path / "judge.yaml", "--folder", tmp_path / "v"]
            with pytest.raises(Incomplete, match="run the same command again"):
                run(*asked, "--out", tmp_path / "s.csv")
            assert not (tmp_path / "s.csv").exists()
            assert mock.counts()["requests_by_model"] == {"judge": 12}
            code, _, err = run(*asked, "--out", tmp_path / "s.csv")
            assert code == 0, err
            assert mock.counts()["requests_by_model"] == {"judge": 13}
        assert {row["score_cheap"] for row in read(tmp_path / "s.csv")} == {"0.8"}
        assert "what verifying 12 replies of cheap cost is unknown" in err  # the study names no prices

    def test_offline_asks_nobody(self, tmp_path: Path) -> None:
        with running_mock(rules=[{"models": ["judge"], "answer": '{"score": 8}'}]) as mock:
            path = study(tmp_path)
            write_yaml(tmp_path / "judge.yaml", judge_rubric(mock.url))
            asked = [path, "--verifier", "judge", "--rubric", tmp_path / "judge.yaml", "--folder", tmp_path / "v"]
            with pytest.raises(Incomplete):
                run(*asked, "--offline", "--out", tmp_path / "s.csv")
            assert mock.counts()["requests_by_model"] == {}

    def test_another_model_that_answers_for_the_judge_counts_for_nothing(self, tmp_path: Path) -> None:
        rules = [
            {"models": ["judge"], "contains": "prompt q7", "answer": '{"score": 9}', "served_model": "other"},
            {"models": ["judge"], "answer": '{"score": 8}'},
        ]
        with running_mock(rules=rules) as mock:
            path = study(tmp_path)
            write_yaml(tmp_path / "judge.yaml", judge_rubric(mock.url))
            asked = [path, "--verifier", "judge", "--rubric", tmp_path / "judge.yaml", "--folder", tmp_path / "v"]
            assert run(*asked, "--out", tmp_path / "s.csv")[0] == 0
        assert [row["id"] for row in read(tmp_path / "s.csv") if row["score_cheap"] == ""] == ["q7"]
