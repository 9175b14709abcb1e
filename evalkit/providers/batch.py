"""Provider batch mode through LiteLLM: prepare, submit, poll, collect; cheaper, slower, and never twice.

A job is plain data (`BatchJob`) that the caller keeps. Kept before it is submitted, it is found again among the
provider's batches by its token when the process died in between, and nothing is sent a second time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalkit.errors import EvalkitError, visible
from evalkit.providers.batch_job import BatchJob, custom_id, read_results
from evalkit.providers.call import Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.credentials import hide, known_secrets
from evalkit.providers.failures import status_failure
from evalkit.providers.key import TRANSPORT_PARAMS, request_key
from evalkit.providers.litellm_reading import failure_of, plain
from evalkit.providers.wire import EXCHANGE, Exchange

if TYPE_CHECKING:
    from evalkit.providers.litellm_client import Clients

__all__ = ["BATCH_PROVIDERS", "MAX_REQUESTS", "BatchError", "BatchJob", "BatchProvider", "split_requests"]

BATCH_PROVIDERS = frozenset({"openai", "azure", "hosted_vllm"})
"""Providers of OpenAI's batch interface."""

MAX_REQUESTS = 20_000
MAX_BYTES = 90_000_000
"""Of one batch; providers take 50,000 requests and 100 MB or more."""
_MOST_BYTES = 2**30  # of the file of its results

_TOKEN = "evalkit_job"
_FIELDS = ("status", "id", "input_file_id", "output_file_id", "error_file_id")


class BatchError(EvalkitError):
    """A batch could not be submitted, asked for or collected; `failure` says why and whether it may pass."""

    exit_code = 4

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


def split_requests(
    requests: Sequence[Request], *, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES
) -> list[list[Request]]:
    """`requests` in batches that a provider takes, in order; equal requests (by key) once."""
    batches: list[list[Request]] = []
    size, seen = 0, set()
    for request in requests:
        key = request_key(request)
        if key in seen:
            continue
        seen.add(key)
        length = len(json.dumps(plain([request.messages, request.params]))) + 400
        if not batches or len(batches[-1]) >= max_requests or size + length > max_bytes:
            batches.append([])
            size = 0
        batches[-1].append(request)
        size += length
    return batches


class BatchProvider:
    """Makes batches of one model's requests over one connection, in one event loop.

    Raises `BatchError` for whatever goes wrong on the way; a job is then as it was before.
    """

    def __init__(self, model: str, connection: Connection | None = None) -> None:
        self._model = model
        self._connection = connection or Connection()
        self._secrets = known_secrets(self._connection)
        self._opened: _Opened | None = None

    async def submit(self, job: BatchJob, requests: Sequence[Request]) -> BatchJob:
        """Send a prepared job. Keep it before: `recover` then finds it whatever happens here."""
        if tuple(request_key(request) for request in requests) != job.keys:
            raise ValueError("The `requests` parameter of `submit` must be the ones that the job was prepared of.")
        opened = await self._open()
        data = b"".join(json.dumps(opened.line(request)).encode() + b"\n" for request in requests)
        uploaded = await self._do(
            "upload the batch",
            opened.files.acreate_file,
            create_file_data={"file": (f"{job.token}.jsonl", data, "application/jsonl"), "purpose": "batch"},
        )
        job = replace(job, input_file_id=str(uploaded.id))
        asked = {
            "completion_window": "24h",
            "endpoint": opened.url,
            "input_file_id": job.input_file_id,
            "metadata": {_TOKEN: job.token},
        }
        batch = await self._do("create the batch", opened.batches.acreate_batch, create_batch_data=asked)
        return _updated(job, batch)

    async def recover(self, job: BatchJob) -> BatchJob | None:
        """The job as the provider has it, by its token; None where the provider knows nothing of it."""
        batches = (await self._open()).batches
        page: dict[str, Any] = {"limit": 100}
        while True:
            answer = await self._do("list the batches", batches.alist_batches, **page)
            found = list(getattr(answer, "data", None) or ())
            for batch in found:
                if (getattr(batch, "metadata", None) or {}).get(_TOKEN) == job.token:
                    return _updated(job, batch)
            if not found or not getattr(answer, "has_more", False):
                return None
            page["after"] = str(found[-1].id)

    async def poll(self, job: BatchJob) -> BatchJob:
        """The job with its present status."""
        ask = (await self._open()).batches.aretrieve_batch
        return _updated(job, await self._do("ask for the batch", ask, retrieve_batch_data={"batch_id": job.id}))

    async def cancel(self, job: BatchJob) -> BatchJob:
        """Ask the provider to stop; what was answered until then can be collected when the job has ended."""
        ask = (await self._open()).batches.acancel_batch
        return _updated(job, await self._do("cancel the batch", ask, cancel_batch_data={"batch_id": job.id}))

    async def collect(self, job: BatchJob) -> tuple[dict[str, Reply | Failure], tuple[str, ...]]:
        """What became of every request of an ended job, by key, and notices; no request is left out."""
        if not job.ended:
            raise ValueError(f"The `job` parameter of `collect` must have ended. Got status {job.status} instead.")
        fetch = (await self._open()).files.afile_content
        files = []
        for name in (job.output_file_id, job.error_file_id):
            if name is not None:
                answer = await self._do("fetch the results", fetch, file_content_request={"file_id": name})
                files.append(bytes(answer.content))
        found, notices = read_results(job, files)
        return {key: replace(one, text=hide(one.text, self._secrets)) for key, one in found.items()}, notices

    async def aclose(self) -> None:
        """Close the sockets; may be called twice."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.clients.aclose()

    async def _open(self) -> _Opened:
        if self._opened is None:
            from evalkit.providers.litellm_client import Clients, load_litellm

            await asyncio.to_thread(load_litellm)
            clients = Clients(self._connection.api_key, self._connection.api_base)
            try:
                name, provider, sdk = clients.sdk_for(self._model)
            except Exception as problem:  # noqa: BLE001  LiteLLM raises what it likes
                await clients.aclose()
                raise BatchError(status_failure(400, str(problem))) from None
            if provider not in BATCH_PROVIDERS or sdk is None:
                await clients.aclose()
                why = "its address or key is missing" if sdk is None else f"{visible(provider)} has none here"
                what = f"{visible(self._model)} cannot be called in batches: {why}"
                fix = f"Fix: run it without --batch; batches are made at {', '.join(sorted(BATCH_PROVIDERS))}"
                raise BatchError(Failure(FailureKind.BAD_REQUEST, f"{what}. {fix}"))
            if self._connection.headers:
                sdk = sdk.with_options(default_headers=dict(self._connection.headers))
            self._opened = _Opened(clients, name, provider, sdk)
        return self._opened

    async def _do(self, what: str, call: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        """What a call of LiteLLM's gives; raises `BatchError` for whatever it raises."""
        opened = await self._open()
        exchange = Exchange(most_bytes=_MOST_BYTES)
        token = EXCHANGE.set(exchange)
        try:
            return await call(openai_client=opened.sdk, **arguments)
        except Exception as problem:  # noqa: BLE001  LiteLLM raises what it likes
            failure = failure_of(exchange, problem)
            message = hide(f"could not {what}: {failure.message}", self._secrets) or ""
            raise BatchError(replace(failure, message=message)) from None
        finally:
            EXCHANGE.reset(token)


class _Opened:
    """LiteLLM's batch and file calls, the client they go out through, and what a request is on a line."""

    def __init__(self, clients: Clients, name: str, provider: str, sdk: Any) -> None:
        from litellm.llms.openai.openai import OpenAIBatchesAPI, OpenAIFilesAPI

        # Its top-level functions make a client for every call and do not close it.
        self.batches, self.files = OpenAIBatchesAPI(), OpenAIFilesAPI()
        self.clients, self.sdk = clients, sdk
        self.url = "/chat/completions" if provider == "azure" else "/v1/chat/completions"
        self._name, self._provider = name, provider

    def line(self, request: Request) -> dict[str, Any]:
        """A request as a line of a batch: with the body that a call by itself would have."""
        from litellm.utils import get_optional_params

        params = {name: plain(value) for name, value in request.params.items() if name not in TRANSPORT_PARAMS}
        for name in ("headers", "extra_headers"):
            params.pop(name, None)
        extra = params.pop("extra_body", None) or {}
        try:
            mapped = get_optional_params(
                model=self._name, custom_llm_provider=self._provider, drop_params=False, **params
            )
        except Exception as problem:  # noqa: BLE001  LiteLLM raises what it likes
            raise BatchError(failure_of(Exchange(), problem)) from None
        body = {"model": self._name, "messages": [plain(message) for message in request.messages]}
        body |= {name: value for name, value in mapped.items() if name not in {"stream", "extra_body"}}
        body |= dict(mapped.get("extra_body") or {}) | extra
        return {"custom_id": custom_id(request_key(request)), "method": "POST", "url": self.url, "body": body}


def _updated(job: BatchJob, batch: Any) -> BatchJob:
    """The job with what a provider's batch object says."""
    errors = getattr(getattr(batch, "errors", None), "data", None) or ()
    said = "; ".join(str(getattr(error, "message", None) or error) for error in errors)
    known = {name: getattr(batch, name, None) for name in _FIELDS}
    changes: dict[str, Any] = {name: str(value) for name, value in known.items() if value}
    return replace(job, **changes, problem=visible(said, 300) if said else job.problem)
