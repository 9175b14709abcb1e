"""Recording against a real server on loopback: what is sent, what is kept, what a failure becomes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalkit.errors import InputError

# LiteLLM makes pydantic warn in the middle of a stream; raised as an error there, it would end the stream.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*`ReadOnly` qualifier:UserWarning"),
]

Row = dict[str, Any]
PROMPT = "Show {{ 7*7 }} and {query} 환불 \\u0041\n끝"
USAGE = {
    "prompt_tokens": 31,
    "completion_tokens": 2,
    "total_tokens": 33,
    "prompt_tokens_details": {"cached_tokens": 0},
}


@dataclass
class Server:
    """An OpenAI-shaped server that does what the model's name says and keeps every body."""

    url: str = ""
    bodies: list[Row] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)


def chunk(model: str, delta: Row, finish: str | None = None) -> Row:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.bodies.append(body)
            model = body["model"]
            if model == "down":
                self.send_response(500)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            chunks = [chunk(model, {"role": "assistant", "content": None}), chunk(model, {"content": "bill"})]
            if model not in {"cut", "hang"}:
                chunks += [
                    chunk(model, {"content": "ing"}),
                    chunk(model, {}, "length" if model == "long" else "stop"),
                ]
                chunks.append(chunk(model, {}) | {"choices": [], "usage": USAGE})
            for one in chunks:
                self.wfile.write(b"data: " + json.dumps(one).encode() + b"\n\n")
                self.wfile.flush()
            if model == "hang":
                state.release.wait(20)
            elif model != "cut":
                self.wfile.write(b"data: [DONE]\n\n")

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}"
    yield state
    state.release.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def item(item_id: str, prompt: str = PROMPT) -> Row:
    check = {"kind": "choice", "options": ["billing", "delivery"]}
    return {"id": item_id, "prompt": prompt, "reference": "billing", "metadata": {"check": check, "max_tokens": 8}}


def call(record: ModuleType, server: Server, alias: str) -> Row:
    async def ask() -> Row:
        async with record.connect(server.url) as client:
            found: Row = await record.call(client, alias, record.messages_for(item("a"), "Be brief."), 8)
            return found

    return asyncio.run(ask())


def test_a_reply_is_kept_with_raw_usage_and_times(scripts: dict[str, ModuleType], server: Server) -> None:
    reply = call(scripts["record"], server, "good")
    assert (reply["reply"], reply["finish_reason"], reply["served_model"]) == ("billing", "stop", "good")
    assert {name: reply["usage"][name] for name in USAGE} == USAGE
    assert 0 < reply["ttft_s"] <= reply["request_s"]
    assert "error" not in reply


def test_what_is_sent(scripts: dict[str, ModuleType], server: Server) -> None:
    call(scripts["record"], server, "good")
    (body,) = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": PROMPT},
    ]
    sent = {name: body[name] for name in ("temperature", "seed", "cache_prompt", "max_tokens", "stream")}
    assert sent == {"temperature": 0, "seed": 7, "cache_prompt": False, "max_tokens": 8, "stream": True}
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("alias", ["down", "cut", "hang"])
def test_a_failure_is_a_failure_after_one_request(
    scripts: dict[str, ModuleType], server: Server, alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts["record"], "CALL_LIMIT_S", 3.0)
    reply = call(scripts["record"], server, alias)
    assert len(server.bodies) == 1
    graded = scripts["grade"].status_and_score(item("a"), reply)
    assert graded == {"status": "error", "score": None, "passed": None}


def test_a_truncated_reply_is_not_graded(scripts: dict[str, ModuleType], server: Server) -> None:
    reply = call(scripts["record"], server, "long")
    assert reply.get("error") is None, reply
    assert reply["reply"] == "billing"
    graded = scripts["grade"].status_and_score(item("a"), reply)
    assert graded == {"status": "truncated", "score": None, "passed": None}


def run(scripts: dict[str, ModuleType], server: Server, path: Path, items: list[Row], alias: str = "good") -> int:
    record = scripts["record"]
    model = record.LocalModel(f"local/{alias}", "x.gguf", "0" * 64, "nowhere")
    record.MODELS["test"] = model
    try:
        head = {"kind": "run", "run": "r", "tier": "test"}
        return int(asyncio.run(record.record(server.url, "test", items, "Be brief.", path, 1, head)))
    finally:
        del record.MODELS["test"]


def asked(server: Server) -> list[str]:
    """The user messages sent since the last look, without the warm-up call."""
    prompts = [body["messages"][-1]["content"] for body in server.bodies]
    server.bodies.clear()
    return [prompt for prompt in prompts if prompt != "Say ok."]


def test_the_same_command_resumes(scripts: dict[str, ModuleType], server: Server, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    items = [item(name, f"prompt {name}") for name in "abc"]
    assert run(scripts, server, path, items[:2]) == 0
    assert asked(server) == ["prompt a", "prompt b"]
    with path.open("ab") as file:
        file.write(b'{"kind": "reply", "key": "tor')  # killed in the middle of a write
    assert run(scripts, server, path, items) == 0
    assert asked(server) == ["prompt c"]
    assert run(scripts, server, path, items) == 0
    assert asked(server) == []
    replies = scripts["record"].latest_replies(scripts["record"].read_recording(path))
    assert sorted(reply["id"] for reply in replies.values()) == ["a", "b", "c"]


def test_a_changed_item_is_asked_again(scripts: dict[str, ModuleType], server: Server, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    run(scripts, server, path, [item("a", "old")])
    asked(server)
    longer = item("a", "old")
    longer["metadata"]["max_tokens"] = 9
    run(scripts, server, path, [item("a", "new"), longer])
    assert asked(server) == ["new", "old"]


def test_failed_calls_are_counted_and_tried_again(
    scripts: dict[str, ModuleType], server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "test.jsonl"
    assert run(scripts, server, path, [item("a")], "down") == 1
    assert run(scripts, server, path, [item("a")], "down") == 1
    assert len(asked(server)) == 2
    assert run(scripts, server, path, [item("a")], "good") == 0
    lines = scripts["record"].read_recording(path)
    assert [("error" in line) for line in lines if line["kind"] == "reply"] == [True, True, False]


def test_two_runs_do_not_record_one_tier(scripts: dict[str, ModuleType], server: Server, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    with path.open("ab") as file:
        scripts["record"].lock(file)
        with pytest.raises(InputError, match="another run is recording"):
            run(scripts, server, path, [item("a")])
    assert not server.bodies
    assert path.read_bytes() == b""


def test_damage_in_the_middle_stops(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_bytes(b'{"kind": "run"}\n{"kind": "re\n{"kind": "run"}\n')
    with pytest.raises(InputError, match=r"test\.jsonl:2: is not JSON"):
        scripts["record"].read_recording(path, repair=True)
    assert path.read_bytes().count(b"\n") == 3


def test_a_wrong_weights_file_is_named(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    record = scripts["record"]
    model = record.MODELS["cheap"]
    with pytest.raises(InputError, match="is not there") as raised:
        record.start_server(model, tmp_path, threads=1, slots=1, context_tokens=256)
    assert model.sha256 in str(raised.value)
    (tmp_path / model.file).write_bytes(b"GGUF")
    with pytest.raises(InputError, match="has sha256"):
        record.start_server(model, tmp_path, threads=1, slots=1, context_tokens=256)
