"""Embeddings through LiteLLM as calls like any other: a ledger, retries, limits and a spend cap go around them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalkit.errors import visible
from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.credentials import hide, known_secrets
from evalkit.providers.litellm_reading import failure_of
from evalkit.providers.shapes import mapping, usage
from evalkit.providers.wire import EXCHANGE, Exchange
from evalkit.routers.stored_embeddings import vector_of, vector_text

__all__ = ["LiteLLMEmbeddings"]


class LiteLLMEmbeddings:
    """A provider whose reply to a request is the embedding of its one message (`stored_embeddings.vector_text`).

    Keys and addresses are those of the provider's environment variables.
    """

    def __init__(self, *, timeout_s: float = 120.0) -> None:
        self._timeout_s = timeout_s
        self._litellm: Any = None
        self._clients: Any = None
        self._loading = asyncio.Lock()
        self._secrets = known_secrets(Connection())

    async def call(self, request: Request) -> Reply | Failure:
        """One attempt; never raises but for cancellation."""
        exchange = Exchange()
        token = EXCHANGE.set(exchange)
        started = time.perf_counter()
        answer: Reply | Failure
        try:
            await self._open()
            started = time.perf_counter()
            async with asyncio.timeout(self._timeout_s):
                found = await self._litellm.aembedding(
                    model=request.model,
                    input=[str(request.messages[0]["content"])],
                    client=self._clients.client_for(request.model),
                    max_retries=0,
                    caching=False,
                    timeout=self._timeout_s,
                    **{"no-log": True},
                    **{name: value for name, value in request.params.items() if name == "dimensions"},
                )
            answer = _reply(found, exchange)
        except ImportError as problem:
            answer = Failure(FailureKind.BAD_REQUEST, f"LiteLLM cannot be loaded: {visible(problem)}")
        except TimeoutError:
            message = f"timeout: no embedding after {self._timeout_s:g} s"
            answer = Failure(FailureKind.TIMEOUT, message, exchange.status, billed=Billed.UNKNOWN)
        except Exception as problem:  # noqa: BLE001  whatever a provider's library raises is a failed call
            answer = failure_of(exchange, problem)
        finally:
            EXCHANGE.reset(token)
        if isinstance(answer, Failure):
            answer = replace(answer, message=hide(answer.message, self._secrets) or "", text=None)
        return replace(answer, sent=exchange.sent, request_s=time.perf_counter() - started)

    async def _open(self) -> None:
        async with self._loading:
            if self._clients is None:
                from evalkit.providers.litellm_client import Clients, load_litellm

                self._litellm = await asyncio.to_thread(load_litellm)
                self._clients = Clients(None, None)

    async def aclose(self) -> None:
        """Close the sockets; may be called twice."""
        clients, self._clients = self._clients, None
        if clients is not None:
            await clients.aclose()


def _reply(found: Any, exchange: Exchange) -> Reply | Failure:
    """The embedding as LiteLLM heard it, the usage as the wire gave it."""
    data = getattr(found, "data", None)
    first = data[0] if isinstance(data, list) and data else None
    vector = first.get("embedding") if isinstance(first, dict) else getattr(first, "embedding", None)
    text = vector_text(vector) if isinstance(vector, list) and vector else None
    if vector_of(text) is None:
        what = "the reply holds no embedding"
        return Failure(FailureKind.OTHER, what, exchange.status, billed=Billed.UNKNOWN)
    said = exchange.json() if exchange.requests else None
    model = mapping(said).get("model")
    return Reply(
        text=text,
        finish_reason="stop",
        served_model=model if isinstance(model, str) else None,
        usage=_usage(mapping(said).get("usage")),
    )


def _usage(given: Any) -> Mapping[str, Any] | None:
    """The usage with the output of an embedding, which is none, where the total leaves no room for any."""
    found = usage(given)
    if found is None or found.get("total_tokens") != found.get("prompt_tokens"):
        return found
    return {**found, "completion_tokens": found.get("completion_tokens", 0)}
