"""Batches at a real server on loopback: every request gets an answer, and nothing is sent twice."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.providers.batch import BatchError, BatchProvider, split_requests
from evalkit.providers.batch_job import BatchJob, custom_id, read_results
from evalkit.providers.call import Billed, Connection, Failure, FailureKind, Reply, Request
from evalkit.providers.key import request_key
from tests.providers.mock_openai import MockServer, default_answer, running_mock

KEY = "sk-FAKE-demo-0000-not-a-key"


def requests(n: int, *names: str, **params: Any) -> list[Request]:
    texts = [f"item {number}" for number in range(n)] + list(names)
    return [Request("openai/mid", ({"role": "user", "content": text},), params) for text in texts]


async def through(
    provider: BatchProvider, asked: list[Request]
) -> tuple[BatchJob, dict[str, Any], tuple[str, ...]]:
    job = await provider.submit(BatchJob.prepare("openai/mid", asked, run="r"), asked)
    for _ in range(10):
        if job.ended:
            break
        job = await provider.poll(BatchJob.from_record(json.loads(json.dumps(job.record()))))
    found, notices = await provider.collect(job)
    assert tuple(found) == job.keys == tuple(request_key(request) for request in asked)
    return job, found, notices


def run(mock: MockServer, work: Callable[[BatchProvider], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` gives; nothing may be left open."""

    async def go() -> Any:
        provider = provider_of(mock)
        try:
            return await work(provider)
        finally:
            await provider.aclose()

    found = asyncio.run(go())
    gc.collect()
    return found


def provider_of(mock: MockServer, key: str | None = KEY) -> BatchProvider:
    return BatchProvider("openai/mid", Connection(api_base=mock.url, api_key=key))


def test_a_batch_from_its_preparation_to_its_replies() -> None:
    prices = {"mid": {"input": "1", "output": "2"}}
    with running_mock(batch={"polls": 3}, prices=prices) as mock:
        asked = requests(30, max_tokens=9, temperature=0, extra_body={"top_k": 3})
        job, found, notices = run(mock, lambda provider: through(provider, asked))
        counts = mock.counts()
    assert (job.status, notices) == ("completed", ())
    assert counts["batch"] == {"batches": 1, "lines": 30}
    assert counts["requests"] == 0
    for request in asked:
        reply = found[request_key(request)]
        assert isinstance(reply, Reply)
        assert reply.text == default_answer("mid", request.messages[0]["content"])
        assert (reply.served_model, reply.finish_reason, reply.request_s) == ("mid", "stop", None)
    tokens = sum(reply.usage["prompt_tokens"] for reply in found.values())
    assert tokens == counts["reported"]["prompt_tokens"]


def test_errors_refusals_and_missing_usage_are_told_apart() -> None:
    rules = [
        {"contains": "busy", "fault": "status", "status": 429},
        {"contains": "bad", "fault": "status", "status": 400},
        {"contains": "policy", "fault": "status", "status": 400, "code": "content_policy_violation"},
        {"contains": "nousage", "fault": "no_usage"},
    ]
    with running_mock(rules=rules) as mock:
        asked = requests(1, "busy", "bad", "policy", "nousage")
        _, found, _ = run(mock, lambda provider: through(provider, asked))
    good, busy, bad, policy, nousage = found.values()
    assert good.usage is not None
    assert (busy.kind, busy.billed) == (FailureKind.RATE_LIMIT, Billed.NO)
    assert (bad.kind, policy.kind) == (FailureKind.BAD_REQUEST, FailureKind.REFUSAL)
    assert isinstance(nousage, Reply)
    assert nousage.usage is None


@pytest.mark.parametrize("end", ["expired", "cancelled", "failed"])
def test_a_batch_that_did_not_complete_gives_what_it_has_and_failures_for_the_rest(end: str) -> None:
    done = 0 if end == "failed" else 0.4
    with running_mock(batch={"end": end, "done": done}) as mock:
        job, found, _ = run(mock, lambda provider: through(provider, requests(10)))
    answers = list(found.values())
    assert job.status == end
    assert sum(isinstance(one, Reply) for one in answers) == round(10 * done)
    lost = [one for one in answers if isinstance(one, Failure)]
    assert {(one.kind, one.billed) for one in lost} == {(FailureKind.BATCH, Billed.NO)}
    assert all(end in one.message for one in lost)
    if end == "failed":
        assert "line 1 is no request" in lost[0].message


def test_results_that_are_missing_or_torn_may_have_to_be_paid() -> None:
    for batch, notices in (({"lose": 2}, 0), ({"torn": True}, 1)):
        with running_mock(batch=batch) as mock:
            _, found, said = run(mock, lambda provider: through(provider, requests(5)))
        lost = [one for one in found.values() if isinstance(one, Failure)]
        assert len(lost) == batch.get("lose", 1)
        assert {(one.kind, one.billed) for one in lost} == {(FailureKind.BATCH, Billed.UNKNOWN)}
        assert len(said) == notices


def test_a_job_is_found_again_where_the_process_died_before_it_heard_its_id() -> None:
    asked = requests(4)
    prepared = BatchJob.prepare("openai/mid", asked, run="r")

    async def go(provider: BatchProvider) -> tuple[BatchJob | None, BatchJob | None, BatchJob | None]:
        first = await provider.recover(prepared)
        await provider.submit(prepared, asked)  # what it gave was lost
        other = BatchJob.prepare("openai/mid", asked, run="another")
        return first, await provider.recover(prepared), await provider.recover(other)

    with running_mock() as mock:
        first, again, other = run(mock, go)
        assert mock.counts()["batch"]["batches"] == 1
    assert first is None
    assert other is None
    assert again is not None
    assert (again.id, again.token, again.keys) == ("batch_0", prepared.token, prepared.keys)


def test_a_job_can_be_cancelled() -> None:
    async def go(provider: BatchProvider) -> BatchJob:
        asked = requests(2)
        job = await provider.submit(BatchJob.prepare("openai/mid", asked, run="r"), asked)
        return await provider.cancel(job)

    with running_mock() as mock:
        assert run(mock, go).status == "cancelled"


def test_trouble_on_the_way_says_what_and_whether_it_may_pass() -> None:
    asked = requests(1)
    job = BatchJob.prepare("openai/mid", asked, run="r")
    with running_mock(batch={"error_at": 503}) as mock:
        with pytest.raises(BatchError, match="could not create the batch: 503") as raised:
            run(mock, lambda provider: provider.submit(job, asked))
        assert raised.value.failure.retryable
        with pytest.raises(BatchError, match="could not ask for the batch: 404") as raised:
            run(mock, lambda provider: provider.poll(BatchJob("t", "openai/mid", (), id="none")))
        assert not raised.value.failure.retryable
    with pytest.raises(BatchError) as raised:
        run(mock, lambda provider: provider.submit(job, asked))
    assert raised.value.failure.kind is FailureKind.CONNECTION
    assert KEY not in repr(raised.value)


def test_a_provider_without_batches_is_named() -> None:
    asked = requests(1)
    provider = BatchProvider("anthropic/claude-x", Connection(api_key=KEY))
    with pytest.raises(BatchError, match=r"anthropic has none here.*--batch"):
        asyncio.run(provider.submit(BatchJob.prepare("anthropic/claude-x", asked, run="r"), asked))


def test_other_requests_and_running_jobs_are_a_callers_mistake() -> None:
    provider = BatchProvider("openai/mid", Connection(api_key=KEY))
    with pytest.raises(ValueError, match="requests"):
        asyncio.run(provider.submit(BatchJob.prepare("openai/mid", requests(2), run="r"), requests(1)))
    with pytest.raises(ValueError, match="must have ended"):
        asyncio.run(provider.collect(BatchJob("t", "openai/mid", (), status="in_progress")))


def test_batches_are_as_large_as_a_provider_takes_and_hold_equal_requests_once() -> None:
    asked = requests(10)
    by_count = split_requests([*asked, *asked], max_requests=4)
    assert [len(batch) for batch in by_count] == [4, 4, 2]
    assert [request for batch in by_count for request in batch] == asked
    assert [len(batch) for batch in split_requests(asked, max_bytes=1000)] == [2] * 5
    assert [len(batch) for batch in split_requests(asked, max_bytes=1)] == [1] * 10
    assert split_requests([]) == []


KEYS = tuple(request_key(request) for request in requests(3))
LINE = st.sampled_from(
    [json.dumps({"custom_id": custom_id(key), "response": response, "error": error}).encode()
     for key in KEYS
     for response in (
         {"status_code": 200, "body": {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}},
         {"status_code": 500, "body": {"error": {"message": "x"}}},
         {"status_code": 200, "body": None},
         None,
     )
     for error in (None, {"code": "batch_expired", "message": "x"})]
) | st.binary(max_size=20)  # fmt: skip


@given(st.lists(LINE, max_size=8), st.lists(LINE, max_size=3), st.sampled_from(["completed", "expired", "failed"]))
def test_whatever_the_files_hold_every_request_has_one_answer_and_a_reply_is_never_lost(
    one: list[bytes], two: list[bytes], status: str
) -> None:
    job = BatchJob("t", "openai/mid", KEYS, status=status, id="b")
    found, _ = read_results(job, [b"\n".join(one), b"\n".join(two)])
    assert tuple(found) == KEYS
    rows = []
    for line in b"\n".join([*one, *two]).split(b"\n"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    for key in KEYS:
        has_reply = any(
            isinstance(row, dict)
            and row.get("custom_id") == custom_id(key)
            and ((row["response"] or {}).get("body") or {}).get("choices")
            for row in rows
        )
        assert isinstance(found[key], Reply) == has_reply
