"""The way of docs/labels.md in its order: each step reads what the one before wrote, as it was written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from evalkit.cli.app import main
from evalkit.labelling.decisions import Header
from evalkit.labelling.items import read_items
from evalkit.labelling.log_file import DecisionFile
from evalkit.labelling.session import Session

TIERS, RISKS = ("cheap", "strong"), ("low", "high")
SETTING = ("--tiers", ",".join(TIERS), "--risk-classes", ",".join(RISKS))
STUDY = """study: shop
kind: routing
labels: labels.jsonl
outcomes: outcomes.jsonl
tiers: [{name: cheap}, {name: strong}]
router: {scores: scores.csv, higher_means: needs_stronger, trained_on: untrained, cost_usd: 0}
risk:
  low: {under_route_loss: 0.1, max_under_route: 0.3}
  high: {under_route_loss: 1, max_under_route: 0.25}
"""
LETTERS = "abcdefghijklmnop"


def needs(text: str) -> bool:
    return text.startswith("litigate")


def risky(text: str) -> bool:
    return "invoice" in text


def log(count: int) -> str:
    """Observations of a tracer; no two texts are alike."""
    rng, lines = random.Random(3), []
    for n in range(count):
        words = ["".join(rng.choices(LETTERS, k=8)) for _ in range(8)]
        text = " ".join(["litigate" if n % 2 else "print", "invoice" if n % 4 < 2 else "parcel", *words])
        lines.append(json.dumps({
            "id": f"o{n}", "traceId": f"t{n}", "type": "GENERATION", "startTime": "2026-09-01T10:00:00Z",
            "model": "m", "input": [{"role": "user", "content": f"{text} mail a.{n}@example.com"}],
        }))  # fmt: skip
    return "\n".join(lines)


def annotate(items_file: str, annotator: str, misses: set[str]) -> None:
    """What a person does on the page: a need is told, but for those missed."""
    items = read_items(items_file, risk_classes=RISKS)
    header = Header(annotator, 0, TIERS, RISKS, "tier")
    with DecisionFile.open(Path(f"{annotator}.jsonl"), header) as file:
        session = Session(items, None, file)
        assert items.messages is not None
        for k, own in enumerate(items.ids):
            text = items.messages[k][0]["content"]
            tier = "strong" if needs(text) and own not in misses else "cheap"
            risk = "high" if risky(text) else "low"
            session.decide({"index": k, "after": k, "tier": tier, "risk": risk, "note": ""})


def run(capsys: Any, *words: str, code: int = 0) -> str:
    assert main(list(words)) == code, capsys.readouterr()
    return str(capsys.readouterr().out)


def test_from_a_log_to_an_audited_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trace.jsonl").write_text(log(400), encoding="utf-8")
    Path("study.yaml").write_text(STUDY, encoding="utf-8")
    run(capsys, "import", "logs", "trace.jsonl", "--requests-out", "requests.jsonl")
    run(capsys, "labels", "sample", "requests.jsonl", "--out", "sample.jsonl", "--count", "300")
    assert "@example.com" not in Path("sample.jsonl").read_text(encoding="utf-8")
    planned = run(capsys, "labels", "plan", "study.yaml", "--needs-share", "low=0.5", "--needs-share", "high=0.5")
    assert "shop: labels that certification needs" in planned

    rows = [json.loads(line) for line in Path("sample.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = {row["id"]: row["messages"][0]["content"] for row in rows}
    missed = {own for own in sorted(texts) if needs(texts[own])}
    missed = set(sorted(missed)[:20])
    annotate("sample.jsonl", "ann", set())
    annotate("sample.jsonl", "bo", missed)
    exported = ("--decisions", "ann.jsonl", "--decisions", "bo.jsonl", "--export", "labels.jsonl")
    run(capsys, "label", "sample.jsonl", *SETTING, *exported)
    agreed = run(capsys, "labels", "agree", "labels.jsonl", "--study", "study.yaml")
    assert "LEANS LOW" in agreed
    assert "20 items in dispute" in agreed
    assert "bo labels lower" in agreed

    # The labels of the first alone are judged, since the second missed needs.
    run(capsys, "label", "sample.jsonl", *SETTING, "--decisions", "ann.jsonl", "--export", "labels.jsonl")
    Path("outcomes.jsonl").write_text("".join(
        json.dumps({"id": own, "tier": tier, "passed": tier == "strong" or not needs(text),
                    "cost_usd": 0.001 if tier == "cheap" else 0.02}) + "\n"
        for own, text in texts.items() for tier in TIERS
    ), encoding="utf-8")  # fmt: skip
    scores = "".join(f"{own},{0.9 if needs(text) else 0.1}\n" for own, text in texts.items())
    Path("scores.csv").write_text("id,score\n" + scores, encoding="utf-8")
    Path("study.yaml").write_text(STUDY + "audit: audit.json\n", encoding="utf-8")  # which is about to be made
    run(capsys, "labels", "audit", "study.yaml", "--all", "--out", "audit.csv")
    annotate("audit.csv", "dee", set())
    run(capsys, "label", "audit.csv", *SETTING, "--decisions", "dee.jsonl", "--export", "audit.judged.csv")
    run(capsys, "labels", "audit", "study.yaml", "--judged", "audit.judged.csv", "--json", "audit.json")
    said = run(capsys, "route-sweep", "study.yaml")
    assert "APPROVE" in said
    assert "on the true rate" in " ".join(said.split())
