"""Embeddings of a provider: asked for once, over a real connection, and read without one ever after."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from router_cases import HARD, planted

from evalkit.cli.app import main
from evalkit.errors import InputError
from evalkit.labels.labelset import LabelSet
from evalkit.replay import Ledger
from evalkit.routers.stored_embeddings import embedded, embeddings_in, vector_of, vector_text
from evalkit.tabular.write import write_table

MODEL = "openai/embed-small"
STUDY = """study: planted
kind: routing
labels: labels.jsonl
tiers: [{name: cheap, model: demo/cheap}, {name: strong, model: demo/strong}]
rubric: rubric.yaml
prices: prices.yaml
replay: {concurrency: 4}
risk:
  low: {under_route_loss: 0.5, max_under_route: 0.10}
router: {kind: semantic, embedding: openai/embed-small, train: train.jsonl, model: model, cost_usd: 0}
"""
PRICES = """currency: USD
unit: per_1m_tokens
as_of: "2026-11-01"
source: made up
models:
  openai/embed-small: {input: 0.02, output: 0}
"""


class Embedder(BaseHTTPRequestHandler):
    """Counts hard and easy words: an embedding of three numbers. The first request of each text gets a 500."""

    asked: list[str]
    failing: set[str]
    bodies: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["input"][0]
        self.asked.append(text)
        self.bodies.append(body)
        if text in self.failing:
            self.failing.discard(text)
            self.answer(500, {"error": {"message": "try again"}})
            return
        words = text.split()
        hard = sum(word in HARD for word in words)
        found = {
            "object": "list",
            "model": "embed-small",
            "data": [{"object": "embedding", "index": 0, "embedding": [hard / 12, 1 - hard / 12, 0.1]}],
            "usage": {"prompt_tokens": len(words), "total_tokens": len(words)},
        }
        self.answer(200, found)

    def answer(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Embedder]]:
    handler = type("Handler", (Embedder,), {"asked": [], "failing": set(), "bodies": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{served.server_port}/v1")
        monkeypatch.delenv("OPENAI_API_BASE", raising=False)
        yield handler
        served.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "train.jsonl", planted(60, 1))
    write(tmp_path, "labels.jsonl", planted(40, 2, start=1000))
    (tmp_path / "rubric.yaml").write_text("", encoding="utf-8")
    (tmp_path / "prices.yaml").write_text(PRICES, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def write(folder: Path, name: str, labels: LabelSet) -> None:
    columns: dict[str, Any] = {
        "id": labels.ids,
        "prompt": labels.prompts,
        "required_tier": [labels.required_name(i) for i in range(len(labels))],
        "risk": ["low"] * len(labels),
    }
    write_table(folder / name, columns)


def run(*arguments: object) -> int:
    return main(["router", *map(str, arguments)])


def test_collect_fit_and_score(
    folder: Path, server: type[Embedder], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = folder / "study.yaml"
    assert run("embed", study, "--dry-run") == 0
    assert "100 of 100 texts are to be embedded by openai/embed-small, about 0.0" in capsys.readouterr().out
    assert server.asked == []
    server.failing.update(str(p) for p in list(planted(60, 1).prompts)[:5])
    assert run("embed", study, "--max-spend", "0.01") == 0
    assert "100 of 100 texts have an embedding" in capsys.readouterr().out
    assert len(server.asked) == 105
    assert set(server.bodies[0]) <= {"model", "input", "encoding_format"}
    with Ledger.read(folder / "embeddings.sqlite") as ledger:
        paid = [attempt.cost_usd for attempt in ledger.every_attempt() if attempt.state == "reply"]
    assert sum(cost for cost in paid if cost is not None) == Decimal(100 * 13) * Decimal("0.02") / 1_000_000
    assert run("embed", study) == 0
    assert len(server.asked) == 105  # nothing is asked twice
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # from here on nobody answers
    assert run("fit", study, "--out", folder / "model") == 0
    assert run("score", study, "--out", folder / "s.jsonl") == 0
    rows = [json.loads(line) for line in (folder / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    score = np.array([row["score"] for row in rows])
    needs = planted(40, 2, start=1000).required > 0
    assert score[needs].mean() > score[~needs].mean() + 0.4
    assert b"sk-test" not in (folder / "embeddings.sqlite").read_bytes()
    assert "stored_embeddings" not in (folder / "model" / "router.json").read_text(encoding="utf-8")


def test_a_cap_is_never_passed(folder: Path, server: type[Embedder], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("embed", folder / "study.yaml", "--max-spend", "0.00001") == 4
    said = capsys.readouterr()
    assert "spend cap" in said.err
    assert len(server.asked) < 100
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 2
    assert "texts have no embedding of openai/embed-small. Fix: collect them: evalkit router embed STUDY" in (
        capsys.readouterr().err
    )


def test_without_a_ledger_the_command_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", folder / "study.yaml", "--out", folder / "model") == 2
    assert "embeddings.sqlite: there are no embeddings of openai/embed-small. Fix: collect them" in (
        capsys.readouterr().err
    )
    text = STUDY.replace("openai/embed-small, train", "wordllama, train")
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    assert run("embed", folder / "study.yaml") == 2
    assert "there is nothing to collect" in capsys.readouterr().err


def test_vectors_survive_their_text() -> None:
    assert vector_of(vector_text([0.5, -2.0, 0.0])) == pytest.approx([0.5, -2, 0])
    for text in (None, "", "AAA", "not base64!", vector_text([float("nan")])):
        assert vector_of(text) is None


def test_blank_texts_need_no_embedding(folder: Path, server: type[Embedder], tmp_path: Path) -> None:
    assert run("embed", folder / "study.yaml", "--quiet") == 0
    prompt = str(planted(60, 1).prompts[0])
    with embeddings_in(folder / "embeddings.sqlite"):
        found = embedded(MODEL, None, ["", prompt, "  "])
        assert np.allclose((found * found).sum(axis=1), [0, 1, 0])
        with pytest.raises(InputError, match="1 texts have no embedding"):
            embedded(MODEL, None, ["never seen"])
        with pytest.raises(InputError, match="have no embedding"):
            embedded(MODEL, 64, [prompt])  # another size is another embedding
