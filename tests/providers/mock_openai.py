"""An OpenAI-compatible server on loopback, as a process of its own, that fails by rule and keeps exact counts.

In tests: `with running_mock(rules=[...]) as mock:`, then `mock.url`, `mock.counts()`. By hand:
`python tests/providers/mock_openai.py --port 8000 --config '{"rules": [...]}'`; it prints one JSON line with its
port. Everything it does follows from its configuration and the request, so two runs do the same.

Configuration (all optional)
  seed         number that the shares of the rules are drawn with (0)
  latency_s    wait before every reply (0); pause_s: wait between the pieces of a stream (0)
  capacity     most requests at work; one more gets 429 with Retry-After: capacity_retry_after_s (.05)
  api_key      a request with another bearer token gets 401
  prices       {model: {"input": "0.10", "output": "0.40"}}, USD per 1M tokens as text; {} for models not named
  answer       text of every reply; the default is made from the request: "ANSWER: <digest>"
  canned       list of {path (regular expression), body (text), status, type, headers}: other POST requests, for
               providers with a layout of their own; their bodies and headers are at /_canned
  batch        how files and batches behave, see mock_extras.py
  rules        list, the first that matches decides:
     when   contains (text in the last message), models, share (0..1, drawn from seed, rule and content),
            attempts (only the first n requests of this content), requests ([first, last] by arrival, from 0)
     what   fault: see `FAULTS`; and for any reply: latency_s, answer, tokens (length of the reply in tokens, at
            most max_tokens), reasoning (text of a channel of its own), served_model, cached_tokens
     fault parameters: status, retry_after (seconds, or "date" for an HTTP date retry_after_s ahead),
            retry_after_s, echo (the Authorization header and URL stand in the error), pieces (sent before the
            cut), every_s (of a drip), message, code
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from email.utils import formatdate
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FAULTS = {
    "status": "an error status with a JSON body (status, retry_after, echo, message, code)",
    "hang": "no byte is ever sent",
    "drip": "the head, then one space every every_s for ever (an SSE comment in a stream)",
    "cut": "the connection is closed after some pieces of a stream, or in the middle of a body",
    "reset": "the connection is closed before any byte",
    "no_usage": "a reply without usage, even where it was asked for",
    "zero_usage": "a reply whose usage says 0 of everything",
    "no_finish": "a stream that ends without finish_reason and without [DONE]",
    "content_filter": "a reply with finish_reason content_filter and no text; its prompt is counted",
    "not_json": "status 200 and a body that is not JSON (no stream)",
}


class Mock:
    """The state of one server."""

    def __init__(self, config: Json) -> None:
        self.config = config
        self.seed = config.get("seed", 0)
        self.rules: list[Json] = config.get("rules", [])
        for rule in self.rules:
            if rule.get("fault", "status") not in FAULTS:
                raise ValueError(f"unknown fault {rule['fault']}")
        self.answer: str | None = config.get("answer")
        self.prices = {
            model: (Decimal(price["input"]), Decimal(price["output"]))
            for model, price in config.get("prices", {}).items()
        }
        self.capacity: int | None = config.get("capacity")
        self.seen: Counter[str] = Counter()
        self.replied: Counter[str] = Counter()
        self.reset()

    def reset(self) -> None:
        """Counts back to 0."""
        self.requests = self.in_flight = self.max_in_flight = 0
        self.statuses: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.totals: dict[str, Counter[str]] = {
            "reported": Counter(),
            "unreported": Counter(),
            "aborted": Counter(),
        }
        self.usd = dict.fromkeys(self.totals, Decimal(0))
        self.by_model: Counter[str] = Counter()
        self.max_in_flight_by_model: Counter[str] = Counter()
        self.at_work: Counter[str] = Counter()
        self.seen.clear()
        self.replied.clear()

    def counts(self, contents: bool = True) -> Json:
        """Everything counted so far. Money is text.

        `reported`: replies sent whole with their usage; `unreported`: sent whole without it; `aborted`: begun and
        not sent to the end (cut, or the client had gone). Each has `replies`, `prompt_tokens`,
        `completion_tokens` and `usd`. `contents` maps content to [requests, whole replies].
        """
        found: Json = {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "max_in_flight_by_model": dict(self.max_in_flight_by_model),
            "statuses": dict(self.statuses),
            "faults": dict(self.faults),
            "requests_by_model": dict(self.by_model),
        }
        for name, total in self.totals.items():
            known = {key: total[key] for key in ("replies", "prompt_tokens", "completion_tokens")}
            found[name] = known | {"usd": str(self.usd[name])}
        if contents:
            found["contents"] = {key: [n, self.replied[key]] for key, n in self.seen.items()}
        return found

    def bill(self, how: str, model: str, usage: Json) -> None:
        """Count one reply."""
        total = self.totals[how]
        total["replies"] += 1
        total["prompt_tokens"] += usage["prompt_tokens"]
        total["completion_tokens"] += usage["completion_tokens"]
        if model in self.prices:
            into, out = self.prices[model]
            self.usd[how] += (usage["prompt_tokens"] * into + usage["completion_tokens"] * out) / 1_000_000

    def rule_for(self, model: str, last: str, content: str, attempt: int, number: int) -> Json:
        """The first rule that matches; {} where none does. `attempt` counts from 1, `number` from 0."""
        from mock_extras import share

        for place, rule in enumerate(self.rules):
            if "contains" in rule and rule["contains"] not in last:
                continue
            if "models" in rule and model not in rule["models"]:
                continue
            if "attempts" in rule and attempt > rule["attempts"]:
                continue
            if "requests" in rule and not rule["requests"][0] <= number <= rule["requests"][1]:
                continue
            if "share" in rule and share(self.seed, place, content) >= rule["share"]:
                continue
            return rule
        return {}


def text_of(message: Json) -> str:
    """The text of a message; parts are joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def prompt_tokens(messages: list[Json]) -> int:
    """What a prompt counts: one per started 4 bytes of content and 3 per message. A reply has one per word."""
    return sum(-(-len(text_of(message).encode()) // 4) + 3 for message in messages)


def content_name(model: str, last: str) -> str:
    """How the counts name the content of a request, whose message is cut at 200 characters."""
    return f"{model}|{last[:200]}"


def default_answer(model: str, last: str) -> str:
    """The answer to a request where the configuration gives none."""
    return f"ANSWER: {hashlib.sha256(content_name(model, last).encode()).hexdigest()[:12]}"


@dataclass
class Made:
    """A reply that is ready to go out: `usage` is what it costs, `told` what the client hears of it."""

    model: str
    words: list[str]
    finish: str
    usage: Json
    told: Json
    reasoning: str | None
    identity: str
    logprobs: list[float] | None = None


def make_reply(mock: Mock, body: Json, rule: Json, last: str, number: int) -> Made:
    """The reply to a request under its rule."""
    answer = rule.get("answer", mock.answer)
    words = (default_answer(body["model"], last) if answer is None else answer).split(" ")
    if "tokens" in rule:
        words = [f"word{n}" for n in range(rule["tokens"])]
    finish = "stop"
    cap = body.get("max_completion_tokens") or body.get("max_tokens")
    thought = len(rule.get("reasoning", "").split())
    if cap is not None and thought + len(words) > cap:
        words, finish = words[: max(0, cap - thought)], "length"
    if rule.get("fault") == "content_filter":
        words, finish = [], "content_filter"
    before, after = prompt_tokens(body["messages"]), thought + len(words)
    usage: Json = {"prompt_tokens": before, "completion_tokens": after, "total_tokens": before + after}
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    if "cached_tokens" in rule:
        usage["prompt_tokens_details"] = {"cached_tokens": rule["cached_tokens"]}
    served = rule.get("served_model", body["model"])
    asked = rule.get("logprobs", [-0.5] * len(words)) if body.get("logprobs") else None
    return Made(served, words, finish, usage, usage, rule.get("reasoning"), f"chatcmpl-{number}", asked)


def whole_body(made: Made, fault: str | None) -> Json:
    """A reply that is not streamed."""
    message: Json = {"role": "assistant", "content": " ".join(made.words)}
    if made.reasoning:
        message["reasoning_content"] = made.reasoning
    choice: Json = {"index": 0, "message": message, "finish_reason": made.finish}
    if made.logprobs is not None:
        choice["logprobs"] = {"content": [{"token": "t", "logprob": value} for value in made.logprobs]}
    value: Json = {"id": made.identity, "object": "chat.completion", "created": 1760000000}
    value |= {"model": made.model, "choices": [choice]}
    return value if fault == "no_usage" else value | {"usage": made.told}


def _application(mock: Mock) -> Any:
    from aiohttp import web

    class Gone(Exception):
        """The connection is to be closed without an answer."""

    def error(request: Any, rule: Json) -> Any:
        status = rule.get("status", 500)
        message = rule.get("message", f"injected {status}")
        if rule.get("echo"):
            message += f" Authorization: {request.headers.get('Authorization')} at {request.url}"
        headers = {}
        if "retry_after" in rule:
            value = rule["retry_after"]
            ahead = time.time() + rule.get("retry_after_s", 1)
            headers["Retry-After"] = formatdate(ahead, usegmt=True) if value == "date" else str(value)
        mock.statuses[str(status)] += 1
        body = {"error": {"message": message, "type": "injected", "code": rule.get("code")}}
        return web.json_response(body, status=status, headers=headers)

    def close(request: Any) -> None:
        if request.transport is not None:
            request.transport.close()

    async def drip(request: Any, streamed: bool, every_s: float) -> Any:
        kind = "text/event-stream" if streamed else "application/json"
        response = web.StreamResponse(headers={"Content-Type": kind})
        mock.statuses["200"] += 1
        await response.prepare(request)
        while True:
            await response.write(b": wait\n\n" if streamed else b" ")
            await asyncio.sleep(every_s)

    async def stream(request: Any, body: Json, rule: Json, made: Made) -> Any:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        pause = mock.config.get("pause_s", 0)
        fault = rule.get("fault")
        wanted = bool((body.get("stream_options") or {}).get("include_usage")) and fault != "no_usage"

        def chunk(choices: list[Json], usage: Json | None = None) -> bytes:
            value: Json = {"id": made.identity, "object": "chat.completion.chunk", "created": 1760000000}
            value |= {"model": made.model, "choices": choices}
            if wanted:
                value["usage"] = usage
            return b"data: " + json.dumps(value).encode() + b"\n\n"

        def delta(finish: str | None = None, **content: Any) -> bytes:
            return chunk([{"index": 0, "delta": content, "finish_reason": finish}])

        pieces = [delta(role="assistant", content="")]
        pieces += [delta(reasoning_content=made.reasoning)] if made.reasoning else []
        pieces += [delta(content=word if n == 0 else f" {word}") for n, word in enumerate(made.words)]
        if fault == "cut":
            pieces = pieces[: rule.get("pieces", 2)]
        for piece in pieces:
            await response.write(piece)
            if pause:
                await asyncio.sleep(pause)
        if fault == "cut":
            raise Gone
        if made.logprobs is not None:
            tokens = {"content": [{"token": "t", "logprob": value} for value in made.logprobs]}
            await response.write(chunk([{"index": 0, "delta": {}, "logprobs": tokens, "finish_reason": None}]))
        if fault != "no_finish":
            await response.write(delta(made.finish))
            if wanted:
                await response.write(chunk([], made.told))
            await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def whole(request: Any, rule: Json, made: Made) -> Any:
        fault = rule.get("fault")
        value = whole_body(made, fault)
        data = b"<html>busy</html>" if fault == "not_json" else json.dumps(value).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(data)
        await response.prepare(request)
        if fault == "cut":
            await response.write(data[: len(data) // 2])
            raise Gone
        await response.write(data)
        await response.write_eof()
        return response

    async def answer(request: Any, body: Json, rule: Json, last: str, content: str, number: int) -> Any:
        fault = rule.get("fault")
        key = mock.config.get("api_key")
        if key is not None and request.headers.get("Authorization") != f"Bearer {key}":
            return error(request, {"status": 401, "message": "wrong key", "code": "invalid_api_key"})
        if mock.capacity is not None and mock.in_flight > mock.capacity:
            wait = mock.config.get("capacity_retry_after_s", 0.05)
            return error(request, {"status": 429, "retry_after": wait, "message": "too many at a time"})
        made = make_reply(mock, body, rule, last, number)
        sent = False
        begun = False
        try:
            if fault == "reset":
                raise Gone
            begun = fault not in {"status", "reset"}
            latency = rule.get("latency_s", mock.config.get("latency_s", 0))
            if latency:
                await asyncio.sleep(latency)
            if fault == "status":
                return error(request, rule)
            if fault == "hang":
                await asyncio.Event().wait()
            streamed = bool(body.get("stream"))
            if fault == "drip":
                return await drip(request, streamed, rule.get("every_s", 0.5))
            if fault == "zero_usage":
                made.told = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)
            mock.statuses["200"] += 1
            response = await (stream(request, body, rule, made) if streamed else whole(request, rule, made))
            sent = True
            return response
        except Gone:
            mock.statuses["closed"] += 1
            close(request)
            return web.Response()
        finally:
            if sent:
                asked = not body.get("stream") or bool((body.get("stream_options") or {}).get("include_usage"))
                told = asked and fault not in {"no_usage", "zero_usage", "no_finish", "not_json"}
                mock.bill("reported" if told else "unreported", made.model, made.usage)
                mock.replied[content] += 1
            elif begun and fault != "hang":
                mock.bill("aborted", made.model, made.usage)

    async def chat(request: Any) -> Any:
        body = json.loads(await request.read())
        model, last = body["model"], text_of(body["messages"][-1])
        content = content_name(model, last)
        number, mock.requests = mock.requests, mock.requests + 1
        mock.seen[content] += 1
        mock.by_model[model] += 1
        mock.in_flight += 1
        mock.at_work[model] += 1
        mock.max_in_flight = max(mock.max_in_flight, mock.in_flight)
        mock.max_in_flight_by_model[model] = max(mock.max_in_flight_by_model[model], mock.at_work[model])
        rule = mock.rule_for(model, last, content, mock.seen[content], number)
        if "fault" in rule:
            mock.faults[rule["fault"]] += 1
        try:
            return await answer(request, body, rule, last, content, number)
        finally:
            mock.in_flight -= 1
            mock.at_work[model] -= 1

    def batch_line(line: Json) -> Json:
        """The output line of one line of a batch; only statuses are injected."""
        body, number = line["body"], mock.requests
        model, last = body["model"], text_of(body["messages"][-1])
        content = content_name(model, last)
        mock.seen[content] += 1
        rule = mock.rule_for(model, last, content, mock.seen[content], number)
        if rule.get("fault") == "status":
            status, answer = rule.get("status", 500), {"error": {"message": "injected", "code": rule.get("code")}}
        else:
            made = make_reply(mock, body, rule, last, mock.seen.total())
            status, answer = 200, whole_body(made, rule.get("fault"))
            mock.bill("unreported" if rule.get("fault") == "no_usage" else "reported", made.model, made.usage)
            mock.replied[content] += 1
        response = {"status_code": status, "request_id": "r", "body": answer}
        return {"id": "x", "custom_id": line["custom_id"], "response": response, "error": None}

    from mock_extras import Batches, add_canned, add_routes

    batches = Batches(mock.config.get("batch", {}), batch_line)

    async def counts(request: Any) -> Any:
        found = mock.counts(request.query.get("contents") != "0") | {"batch": batches.counts()}
        return web.json_response(found)

    async def reset(_: Any) -> Any:
        mock.reset()
        return web.json_response({})

    async def models(_: Any) -> Any:
        names = sorted(mock.prices) or ["mock"]
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    application = web.Application(client_max_size=64 * 2**20)
    for path in ("/v1/chat/completions", "/chat/completions", "/{prefix:.*}/chat/completions"):
        application.router.add_post(path, chat)
    application.router.add_get("/_counts", counts)
    application.router.add_post("/_reset", reset)
    application.router.add_get("/v1/models", models)
    add_routes(application, batches)
    add_canned(application, mock.config.get("canned", []))
    return application


async def _serve(config: Json, port: int, until_stdin_closes: bool) -> None:
    from aiohttp import web

    runner = web.AppRunner(_application(Mock(config)), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
    await site.start()
    bound = runner.addresses[0][1]
    print(json.dumps({"port": bound, "url": f"http://127.0.0.1:{bound}/v1"}), flush=True)
    if until_stdin_closes:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    else:
        await asyncio.Event().wait()


@dataclass(frozen=True)
class MockServer:
    """A running server: `url` ends with /v1."""

    url: str
    process: subprocess.Popen[str]

    def counts(self, *, contents: bool = True) -> Json:
        """What the server counted until now (see `Mock.counts`)."""
        query = "" if contents else "?contents=0"
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/_counts{query}", timeout=10) as answer:
            return dict(json.load(answer))

    def canned(self) -> list[Json]:
        """The requests that canned answers were given to: path, body, headers."""
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/_canned", timeout=10) as answer:
            return list(json.load(answer))

    def reset(self) -> None:
        """Counts, and the numbers of attempts, back to 0."""
        address = f"{self.url.removesuffix('/v1')}/_reset"
        with urllib.request.urlopen(urllib.request.Request(address, method="POST"), timeout=10):
            pass

    def stop(self) -> None:
        """End the process; may be called twice."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def running_mock(config: Json | None = None, **more: Any) -> Iterator[MockServer]:
    """A server in a process of its own: `running_mock(rules=[...], latency_s=.01)`. It ends with the block, and
    with this process, whatever happens."""
    wanted = json.dumps((config or {}) | more)
    command = [sys.executable, str(Path(__file__).resolve()), "--until-stdin-closes", "--config", wanted]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        raise RuntimeError("the mock server did not start; its message stands above")
    server = MockServer(json.loads(line)["url"], process)
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="OpenAI-compatible mock server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--config", default="{}", help="JSON, or @file")
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = parser.parse_args()
    text = options.config
    config = json.loads(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(config, options.port, options.until_stdin_closes))


if __name__ == "__main__":
    main()
