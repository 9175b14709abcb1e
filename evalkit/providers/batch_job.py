"""A provider's batch as plain data, and what its result files say of each of its requests. No network here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalkit.errors import visible
from evalkit.providers.call import Billed, Failure, FailureKind, Reply, Request
from evalkit.providers.failures import status_failure
from evalkit.providers.key import request_key
from evalkit.providers.responses import openai_reply
from evalkit.providers.shapes import mapping

__all__ = ["ENDED", "BatchJob", "custom_id", "read_results"]

ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
"""The statuses after which nothing more comes."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """One batch: all that is needed to go on with it in another process. It holds no secret and no prompt.

    `keys` are those of its requests in order, `token` names it among the provider's batches, also where the
    process died before it heard the batch's id. `status` is `prepared` before it is sent, then the provider's own.
    """

    token: str
    model: str
    keys: tuple[str, ...]
    status: str = "prepared"
    id: str | None = None
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    problem: str | None = None

    @classmethod
    def prepare(cls, model: str, requests: Sequence[Request], *, run: str) -> BatchJob:
        """A batch of `requests` that has not been sent. `run` names the run: its token is of this run alone."""
        keys = tuple(request_key(request) for request in requests)
        digest = hashlib.sha256("\n".join([run, model, *keys]).encode()).hexdigest()
        return cls(f"evalkit-{digest[:32]}", model, keys)

    @property
    def ended(self) -> bool:
        """Nothing more comes: its results can be collected."""
        return self.status in ENDED

    def record(self) -> dict[str, Any]:
        """The job as JSON can hold it."""
        return asdict(self) | {"keys": list(self.keys)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> BatchJob:
        """The job that `record` wrote."""
        return cls(**{**record, "keys": tuple(record["keys"])})


def custom_id(key: str) -> str:
    """The name of a request in its batch: the digest of its key, which fits into 64 characters."""
    return key.rpartition("-")[2][:64]


def read_results(job: BatchJob, files: Sequence[bytes]) -> tuple[dict[str, Reply | Failure], tuple[str, ...]]:
    """What became of every request of `job` by its result files (output, errors), and notices.

    Every key of the job has an answer: a request of which no file tells is a failure `BATCH`. Where the batch
    completed, or a line cannot be read, it may have to be paid; where the batch expired, was cancelled or refused
    before it was made, it has not. The first reply to a request counts.
    """
    names = {custom_id(key): key for key in job.keys}
    found: dict[str, Reply | Failure] = {}
    unread = unknown = 0
    for data in files:
        for line in data.split(b"\n"):
            if not line.strip():
                continue
            row = _row(line)
            if row is None:
                unread += 1
                continue
            key = names.get(str(row.get("custom_id")))
            if key is None:
                unknown += 1
            elif not isinstance(found.get(key), Reply):
                found[key] = _answer(row)
    unsure = unread > 0 or job.status == "completed"
    for key in job.keys:
        if key not in found:
            why = f"the batch {job.status}" + (f": {job.problem}" if job.problem else "")
            billed = Billed.UNKNOWN if unsure else Billed.NO
            found[key] = Failure(FailureKind.BATCH, f"no result: {visible(why, 300)}", billed=billed)
    notices = []
    if unread:
        notices.append(f"{unread:,} lines of the results of batch {visible(job.id)} cannot be read")
    if unknown:
        notices.append(f"{unknown:,} results of batch {visible(job.id)} are of requests that nobody made")
    return {key: found[key] for key in job.keys}, tuple(notices)


def _row(line: bytes) -> Mapping[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, Mapping) else None


def _answer(row: Mapping[str, Any]) -> Reply | Failure:
    response = mapping(row.get("response"))
    body, status = response.get("body"), response.get("status_code")
    if isinstance(status, int) and status >= 400:
        return status_failure(status, body)
    if isinstance(body, Mapping) and body:
        return openai_reply(body)
    error = mapping(row.get("error"))
    if error:
        said = f"{error.get('code') or 'error'}: {error.get('message') or 'no reason was given'}"
        return Failure(FailureKind.BATCH, visible(said, 300), billed=Billed.NO)
    return Failure(FailureKind.BATCH, "the result holds neither a response nor an error", billed=Billed.UNKNOWN)
