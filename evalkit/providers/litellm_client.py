"""LiteLLM, loaded once with its own machinery off, and the HTTP clients that its calls go out through.

The module is imported by the first call, never by the command line: LiteLLM takes seconds to load.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import warnings
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

__all__ = ["Clients", "load_litellm", "warm_up"]

_OPENAI = re.compile(r"https://(?:[a-z0-9-]+\.)*openai\.com(?:[/:]|$)")

_AZURE = frozenset({"azure", "azure_text"})

_ENVIRONMENT = {
    # The price map would be fetched at import otherwise, and may be replaced in mid-run.
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "LITELLM_TELEMETRY": "false",
}


def load_litellm() -> Any:
    """LiteLLM with callbacks, caching, telemetry, retries, dropped parameters and its printing off."""
    for name, value in _ENVIRONMENT.items():
        os.environ[name] = value
    import litellm

    for name in ("callbacks", "input_callback", "success_callback", "failure_callback", "service_callback"):
        setattr(litellm, name, [])
    litellm._async_success_callback = []
    litellm._async_failure_callback = []
    litellm.cache = None
    litellm.telemetry = False
    litellm.num_retries = None
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.set_verbose = False
    litellm.suppress_debug_info = True
    litellm.disable_streaming_logging = True
    litellm.turn_off_message_logging = True
    litellm.fallbacks = None
    litellm.context_window_fallbacks = None
    # A model may well repeat a piece a hundred times; that is its answer.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    # Its own deprecations are nobody's business here; where warnings are errors they would fail calls.
    for module in (r"litellm(\.|$)", r"pydantic(\.|$)"):
        warnings.filterwarnings("ignore", module=module)
    for logger in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    return litellm


async def warm_up(litellm: Any, client: Any) -> None:
    """Make a whole call and a stream that go nowhere: the first ones in a process take .4 s longer than the rest,
    which would be measured as the model's."""
    for streamed in (False, True):
        answer = await litellm.acompletion(
            model="openai/none",
            messages=[{"role": "user", "content": "none"}],
            mock_response="none",
            stream=streamed,
            client=client,
            **{"no-log": True},
        )
        if streamed:
            async for _ in answer:
                pass


class Clients:
    """The clients of one connection, for the event loop they are made in: one pool of sockets, all noted."""

    def __init__(self, api_key: str | None, api_base: str | None) -> None:
        import httpx
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, get_ssl_configuration

        from evalkit.providers.wire import RecordingTransport

        self._api_key, self._api_base = api_key, api_base
        ssl = get_ssl_configuration()
        inner = AsyncHTTPHandler.create_async_transport(
            ssl_context=ssl if not isinstance(ssl, bool) else None,
            ssl_verify=ssl if isinstance(ssl, bool) else None,
        )
        if inner is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=500)
            inner = httpx.AsyncHTTPTransport(verify=ssl, limits=limits)
        self._transport = RecordingTransport(inner)
        jar = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # no call knows of another
        self._http: Any = httpx.AsyncClient(transport=self._transport, timeout=None, trust_env=False, cookies=jar)
        self._made: dict[str, Any] = {}

    def client_for(self, model: str, api_version: str | None = None) -> Any:
        """What LiteLLM takes as `client` for this model: it calls some providers through the OpenAI library,
        others through its own handler. None where neither can be made: LiteLLM then makes its own, unseen."""
        if model not in self._made:
            self._made[model] = self._make(model, api_version)
        return self._made[model]

    def _make(self, model: str, api_version: str | None) -> Any:
        _, provider, sdk = self.sdk_for(model, api_version)
        return sdk if provider in _AZURE else _both(sdk, self._http)

    def sdk_for(self, model: str, api_version: str | None = None) -> tuple[str, str, Any]:
        """The provider's own name of `model`, the provider, and a client of the OpenAI library for it; None where
        an Azure address or key is missing. Raises whatever LiteLLM does for a model whose provider is unknown."""
        import litellm

        name, provider, key, base = litellm.get_llm_provider(
            model=model, api_base=self._api_base, api_key=self._api_key
        )
        key, base = self._api_key or key, self._api_base or base
        if provider in _AZURE:
            return name, provider, self._azure(key, base, api_version)
        return name, provider, self._openai(provider, key, base)

    def _azure(self, key: str | None, base: str | None, api_version: str | None) -> Any:
        import litellm
        import openai

        key = key or os.environ.get("AZURE_OPENAI_API_KEY") or os.environ.get("AZURE_API_KEY")
        base = base or os.environ.get("AZURE_API_BASE")
        version = api_version or os.environ.get("AZURE_API_VERSION") or litellm.AZURE_DEFAULT_API_VERSION
        if not key or not base:
            return None
        return openai.AsyncAzureOpenAI(
            api_key=key, azure_endpoint=base, api_version=version, http_client=self._http, max_retries=0
        )

    def _openai(self, provider: str, key: str | None, base: str | None) -> Any:
        import openai

        if provider == "openai":
            base = base or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
            if key is None and (self._api_base is None or _OPENAI.match(self._api_base)):
                key = os.environ.get("OPENAI_API_KEY")
        # A key of the environment belongs to its provider: it is not sent to another address unasked.
        return openai.AsyncOpenAI(
            api_key=key or "no-key", base_url=base or None, http_client=self._http, max_retries=0
        )

    async def aclose(self) -> None:
        """Close the sockets, and end LiteLLM's logging task, which would outlive the calls."""
        from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

        await self._http.aclose()
        with contextlib.suppress(Exception):
            await GLOBAL_LOGGING_WORKER.stop(discard_pending=True)


def _both(sdk: Any, http: Any) -> Any:
    """One client that is LiteLLM's own handler, and answers the calls it makes to the OpenAI library, too."""
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

    class Client(AsyncHTTPHandler):  # type: ignore[misc, unused-ignore]
        def create_client(self, *args: Any, **more: Any) -> Any:
            return http

        async def post(self, *args: Any, **more: Any) -> Any:
            if "cast_to" in more:
                return await sdk.post(*args, **more)
            return await super().post(*args, **more)

        def __getattr__(self, name: str) -> Any:
            return getattr(sdk, name)

    client = Client()
    client.client = http  # ours to close
    return client
