"""Calls through LiteLLM: any model it knows, and any OpenAI-compatible endpoint by its address.

LiteLLM makes the request fit the provider and reads the answer's text. What it is not believed about is read from
the wire: usage, the model that served, the status, and whether a stream came to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalkit.errors import visible
from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.credentials import hide, known_secrets
from evalkit.providers.key import TRANSPORT_PARAMS
from evalkit.providers.litellm_reading import Heard, failure_of, hear, listen, plain, reply_of, served_by
from evalkit.providers.wire import EXCHANGE, Exchange

if TYPE_CHECKING:
    from evalkit.providers.litellm_client import Clients

__all__ = ["LiteLLMProvider"]

DEFAULT_TIMEOUT_S = 600.0


class LiteLLMProvider:
    """Makes calls over one connection. One object serves one event loop, and hundreds of calls at a time.

    `timeout_s` ends a whole call, whatever of it has come (None: no limit of its own). A request's `params` go to
    LiteLLM as they are, and none is ever dropped: what a model does not take is a failed call that says so. Where
    the connection has an address and no key, OpenAI's key of the environment is not sent there.
    """

    def __init__(
        self, connection: Connection | None = None, *, timeout_s: float | None = DEFAULT_TIMEOUT_S
    ) -> None:
        self._connection = connection or Connection()
        self._timeout_s = timeout_s
        self._litellm: Any = None
        self._clients: Clients | None = None
        self._loading = asyncio.Lock()
        self._closed = False
        self._secrets = known_secrets(self._connection)

    async def call(self, request: Request) -> Reply | Failure:
        """One attempt; never raises but for cancellation."""
        if self._closed:
            return Failure(FailureKind.OTHER, "the provider was closed")
        if self._clients is None:
            try:
                await self.open()
            except ImportError as problem:
                message = f"LiteLLM cannot be loaded: {visible(problem)}. Fix: pip install litellm"
                return Failure(FailureKind.BAD_REQUEST, message)
        exchange, heard = Exchange(), Heard()
        token = EXCHANGE.set(exchange)
        started = time.perf_counter()
        answer: Reply | Failure
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._ask(request, heard, started)
            seconds = time.perf_counter() - started
            answer = reply_of(request, exchange, heard)
        except TimeoutError:
            seconds = time.perf_counter() - started
            message = f"timeout: no whole reply after {self._timeout_s or seconds:g} s"
            answer = Failure(FailureKind.TIMEOUT, message, exchange.status, billed=Billed.UNKNOWN)
        except Exception as problem:  # noqa: BLE001  whatever a provider's library raises is a failed call
            seconds = time.perf_counter() - started
            answer = failure_of(exchange, problem)
        finally:
            EXCHANGE.reset(token)
        answer = replace(answer, sent=exchange.sent, request_s=seconds)
        if isinstance(answer, Failure):
            answer = replace(answer, text=heard.text or None, served_model=served_by(exchange))
        return self._without_secrets(answer)

    async def open(self) -> None:
        """Load LiteLLM and make the clients, which takes seconds; the first call does it where nobody has. No time
        of any call counts it. Raises ImportError where LiteLLM is missing."""
        async with self._loading:
            if self._clients is None:
                from evalkit.providers.litellm_client import Clients, load_litellm, warm_up

                # In a thread: other calls go on meanwhile.
                self._litellm = await asyncio.to_thread(load_litellm)
                clients = Clients(self._connection.api_key, self._connection.api_base)
                with contextlib.suppress(Exception):
                    await warm_up(self._litellm, clients.client_for("openai/none"))
                self._clients = clients

    async def _ask(self, request: Request, heard: Heard, started: float) -> None:
        assert self._clients is not None
        params = {name: plain(value) for name, value in request.params.items() if name not in TRANSPORT_PARAMS}
        headers: dict[str, Any] = {}
        for source in (params.pop("headers", None), params.pop("extra_headers", None), self._connection.headers):
            for name, value in (source or {}).items():
                headers.pop(next((known for known in headers if known.lower() == name.lower()), name), None)
                headers[name] = value
        if request.stream:
            params |= {"stream": True, "stream_options": {"include_usage": True}}
        if headers:
            params["extra_headers"] = headers
        answer = await self._litellm.acompletion(
            model=request.model,
            messages=[plain(message) for message in request.messages],
            api_base=self._connection.api_base,
            api_key=self._connection.api_key,
            client=self._clients.client_for(request.model, params.get("api_version")),
            max_retries=0,
            caching=False,
            drop_params=False,
            timeout=self._timeout_s or 86400.0,
            **{"no-log": True},
            **params,
        )
        if request.stream:
            await listen(answer, heard, started)
        else:
            hear(answer, heard)

    def _without_secrets(self, reply: Reply | Failure) -> Reply | Failure:
        """The answer without what is secret here, should the endpoint have sent it back."""
        if isinstance(reply, Failure):
            text, message = self._hidden(reply.text), self._hidden(reply.message) or ""
            return replace(reply, text=text, message=message, served_model=self._hidden(reply.served_model))
        hidden = self._hidden
        if any(hidden(part) != part for part in (reply.text, reply.reasoning, reply.served_model)):
            notice = "the reply held a credential of ours, which was hidden"
            reply = replace(
                reply,
                text=hidden(reply.text),
                reasoning=hidden(reply.reasoning),
                served_model=hidden(reply.served_model),
                notices=(*reply.notices, notice),
            )
        if reply.tool_calls:
            calls = hidden(json.dumps(reply.tool_calls)) or "[]"
            reply = replace(reply, tool_calls=tuple(json.loads(calls)))
        return reply

    def _hidden(self, text: str | None) -> str | None:
        return hide(text, self._secrets)

    async def aclose(self) -> None:
        """Close the sockets; may be called twice."""
        self._closed = True
        clients, self._clients = self._clients, None
        if clients is not None:
            await clients.aclose()
