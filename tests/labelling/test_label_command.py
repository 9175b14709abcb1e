"""`evalkit label` from its options to its files: studies, columns, names of files, and pairs that do not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from labelling_files import RISKS, TIERS, header, items_of, jsonl, replies_of
from labelling_run import environment, served

from evalkit.errors import InputError
from evalkit.labelling.decisions import Decision, as_line
from evalkit.labelling.log_file import read_decisions
from evalkit.workflows.label_page import LabelOptions, label

STUDY = """study: 시험-1
kind: routing
labels: {path: items.jsonl, columns: {prompt: query}}
outcomes: {path: replies.jsonl, columns: {reply: answer}}
tiers:
  - {name: cheap, model: x/a}
  - {name: top, model: x/b}
router: {policy: direct, scores: scores.csv, higher_means: needs_stronger, trained_on: other_items, cost_usd: 0}
risk:
  low: {under_route_loss: 1, max_under_route: 0.1}
  high: {under_route_loss: 9, max_under_route: 0.1}
"""


def study(folder: Path) -> Path:
    jsonl(folder / "items.jsonl", [{"id": "q0", "query": "why?"}, {"id": "q1", "query": "how?", "risk": "high"}])
    rows = [{"id": f"q{i}", "tier": tier, "answer": f"{tier} {i}"} for i in range(2) for tier in ("cheap", "top")]
    jsonl(folder / "replies.jsonl", rows)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder / "study.yaml"


def test_a_study_says_tiers_classes_and_columns_and_labels_go_back_to_it(tmp_path: Path) -> None:
    path = study(tmp_path)
    with served(
        tmp_path, path, "--annotator", "박/ann", "--replies", tmp_path / "replies.jsonl", "--quiet"
    ) as page:
        assert page.api("state")["total"] == 2
        told = page.api("item/0")
        assert told["turns"] == [{"role": "", "text": "why?"}]
        place = {reply["text"]: reply["letter"] for reply in told["replies"]}
        page.api("decide", {"index": 0, "after": 0, "good": [place["top 0"]], "risk": "low", "note": ""})
        page.api("decide", {"index": 1, "after": 1, "good": [], "risk": "high", "note": ""})
        assert page.stop() == (0, "", "")
    [log] = [name for name in tmp_path.iterdir() if name.name.endswith(".decisions.jsonl")]
    assert log.name == "시험-1.박-ann.decisions.jsonl"
    label(LabelOptions(str(path), export=tmp_path / "labels.jsonl", decisions=[log], quiet=True))
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(r["id"], r["required_tier"], r["risk"], r["labels"]) for r in rows] == [
        ("q0", "top", "low", {"박/ann": "top"}), ("q1", "unsolvable", "high", {"박/ann": "unsolvable"}),
    ]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), [("tiers", "a,b"), ("risk_classes", "low")])
def test_what_the_study_says_is_not_said_twice(tmp_path: Path, field: str, value: str) -> None:
    with pytest.raises(InputError, match="the study says it already"):
        label(LabelOptions(str(study(tmp_path)), annotator="ann", **{field: value}))  # type: ignore[arg-type]


def log(folder: Path, name: str, tier: str, by: str = "replies") -> Path:
    """One decision on the first item: every reply from `tier` on is good enough."""
    items = items_of(folder, 1)
    replies = replies_of(folder, items)
    shown = tuple((t,) for t in TIERS)
    good = tuple(range(TIERS.index(tier), len(TIERS)))
    decision = Decision(
        1, "q0", items.asked(0), tier, "low", "", "2026-01-01T00:00:00Z", replies.answered(0), shown, good
    )
    if by == "tier":
        decision = Decision(1, "q0", items.asked(0), tier, "low", "", "2026-01-01T00:00:00Z")
    path = folder / f"{name}.jsonl"
    path.write_bytes(as_line(header(name, by)) + as_line(decision))
    return path


def settle(folder: Path, first: Path, second: Path, *, replies: bool = True, annotator: str = "cy") -> None:
    given = folder / "replies.jsonl" if replies else None
    label(
        LabelOptions(
            str(folder / "items.jsonl"), annotator=annotator, tiers=",".join(TIERS), risk_classes=",".join(RISKS),
            adjudicate=(first, second), out=folder / "cy.jsonl", replies=given,
        )
    )  # fmt: skip


def test_where_both_agree_nothing_is_to_be_settled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settle(tmp_path, log(tmp_path, "ann", "mid"), log(tmp_path, "bo", "mid"))
    assert "agree on every item that both decided" in capsys.readouterr().out
    assert not (tmp_path / "cy.jsonl").exists()


def test_a_pair_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    ann, bo = log(tmp_path, "ann", "mid"), log(tmp_path, "bo", "top")
    named = log(tmp_path, "di", "top", by="tier")
    with pytest.raises(InputError, match=r"the annotators judged replies. Fix: give the same --replies"):
        settle(tmp_path, ann, bo, replies=False)
    with pytest.raises(InputError, match=r'field by: is "tier", and "replies" in'):
        settle(tmp_path, ann, named)
    with pytest.raises(InputError, match='is of "ann", as'):
        settle(tmp_path, ann, ann)
    with pytest.raises(InputError, match='"bo" is one of the two'):
        settle(tmp_path, ann, bo, annotator="bo")
    jsonl(tmp_path / "replies.jsonl", [{"id": "q0", "tier": "mid", "reply": "another"}])
    with pytest.raises(InputError, match="id q0: has other replies than when it was decided"):
        settle(tmp_path, ann, bo)
    (tmp_path / "items.jsonl").unlink()
    with pytest.raises(InputError, match=r"items\.jsonl"):
        settle(tmp_path, ann, bo)
    assert not (tmp_path / "cy.jsonl").exists()


def test_who_settles_goes_on_after_an_annotator_changed_their_mind(tmp_path: Path) -> None:
    ann, bo = log(tmp_path, "ann", "mid"), log(tmp_path, "bo", "top")
    given = (
        "items.jsonl", "--tiers", ",".join(TIERS), "--risk-classes", ",".join(RISKS), "--annotator", "cy",
        "--replies", "replies.jsonl", "--adjudicate", ann, bo, "--out", "cy.jsonl",
    )  # fmt: skip
    with served(tmp_path, *given) as page:
        assert len(page.api("item/0")["said"]) == 2
        page.api("decide", {"index": 0, "after": 0, "good": ["A"], "risk": "low", "note": ""})
    log(tmp_path, "bo", "mid")
    with served(tmp_path, *given) as page:
        assert page.api("state")["done"] == 1
        assert page.api("item/0")["said"] == []
        page.api("undo", {"after": 1})
    assert len(read_decisions(tmp_path / "cy.jsonl").work) == 0


def test_without_the_extra_it_says_what_to_install_and_export_needs_none(tmp_path: Path) -> None:
    log_file = log(tmp_path, "ann", "mid")
    code = (
        "import sys; sys.modules['starlette'] = sys.modules['uvicorn'] = None\n"
        "from evalkit.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    names = ["label", "items.jsonl", "--tiers", ",".join(TIERS), "--risk-classes", ",".join(RISKS)]

    def run(*more: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", code, *names, *map(str, more)], cwd=tmp_path, env=environment(),
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert run("--annotator", "ann") == (
        2,
        "the page needs the extra `label`. Fix: pip install 'evalkit[label]'.\n",
    )
    assert run("--decisions", log_file, "--export", "labels.jsonl") == (0, "")
