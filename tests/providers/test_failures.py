"""Error statuses and bodies as failures: the kind, whether to pay, when to try again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.providers.call import Billed, FailureKind
from evalkit.providers.failures import error_in, retry_after, status_failure

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind", "billed"),
    [
        (400, FailureKind.BAD_REQUEST, Billed.NO),
        (401, FailureKind.AUTHENTICATION, Billed.NO),
        (402, FailureKind.AUTHENTICATION, Billed.NO),
        (403, FailureKind.AUTHENTICATION, Billed.NO),
        (404, FailureKind.BAD_REQUEST, Billed.NO),
        (408, FailureKind.TIMEOUT, Billed.UNKNOWN),
        (409, FailureKind.SERVER, Billed.NO),
        (413, FailureKind.BAD_REQUEST, Billed.NO),
        (422, FailureKind.BAD_REQUEST, Billed.NO),
        (429, FailureKind.RATE_LIMIT, Billed.NO),
        (500, FailureKind.SERVER, Billed.NO),
        (503, FailureKind.SERVER, Billed.NO),
        (504, FailureKind.SERVER, Billed.UNKNOWN),
        (529, FailureKind.SERVER, Billed.NO),
    ],
)
def test_kind_and_billing_follow_the_status(status: int, kind: FailureKind, billed: Billed) -> None:
    found = status_failure(status, {"error": {"message": "no", "code": "x"}})
    assert (found.kind, found.billed, found.status_code) == (kind, billed, status)
    assert found.message == f"{status} x: no"


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_policy_violation", "message": "blocked"},
        {"code": "content_filter", "message": "The response was filtered"},
        {"code": "invalid_request_error", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"message": "Your request was rejected as a result of our safety system."},
        {"message": "filtered due to the prompt triggering Azure OpenAI's content management policy"},
        {"code": 403, "message": "flagged", "metadata": {"reasons": ["x"], "flagged_input": "y"}},
    ],
)
def test_a_refusal_is_final(error: dict[str, Any]) -> None:
    found = status_failure(403 if error.get("code") == 403 else 400, {"error": error})
    assert found.kind is FailureKind.REFUSAL
    assert not found.retryable


def test_a_parameter_named_like_a_filter_is_a_bad_request_and_a_filter_that_is_down_is_not_a_refusal() -> None:
    assert status_failure(400, {"error": {"message": "unknown parameter content_filter"}}).kind is (
        FailureKind.BAD_REQUEST
    )
    assert status_failure(500, {"error": {"code": "content_filter", "message": "down"}}).kind is FailureKind.SERVER


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ([{"error": {"message": "a"}}], "a"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "a"}}, "a"),
        ({"object": "error", "message": "a"}, "a"),
        ({"detail": "a"}, "a"),
        ({"type": "response.failed", "response": {"error": {"message": "a"}}}, "a"),
    ],
)
def test_errors_are_found_in_every_layout(body: Any, message: str) -> None:
    error = error_in(body)
    assert error is not None
    assert error["message"] == message


def test_no_error_is_found_where_there_is_none() -> None:
    for body in ({"choices": [], "error": None}, {"choices": [], "detail": "x"}, {}, [], None, "text", 3):
        assert error_in(body) is None


def test_usage_of_a_failed_call_is_paid() -> None:
    found = status_failure(400, {"error": {"message": "x"}, "usage": {"prompt_tokens": 5}})
    assert (found.billed, found.usage) == (Billed.YES, {"prompt_tokens": 5})


def test_messages_are_one_line_without_credentials_and_shortened_after_that() -> None:
    secret = "sk-FAKE-demo-0000-not-a-key"
    found = status_failure(401, {"error": {"message": "x" * 385 + f"\nkey {secret} and more"}})
    assert "\n" not in found.message
    assert "sk-" not in found.message
    assert len(found.message) < 450


def headers(**more: str) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in more.items()}


def test_retry_after_in_every_form() -> None:
    date = format_datetime(NOW + timedelta(seconds=30), usegmt=True)
    assert retry_after(headers(Retry_After="2")) == 2
    assert retry_after(headers(retry_after="1.5")) == 1.5
    assert retry_after(headers(retry_after_ms="250", retry_after="9")) == 0.25
    assert retry_after(headers(retry_after=date), now=NOW) == 30
    assert retry_after({}, {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}) == 34.5
    for nothing in ("", "soon", "-1", "nan", "inf", "1e9", "٣"):
        assert retry_after(headers(retry_after=nothing)) is None
    assert retry_after({}) is None


def test_a_date_is_compared_with_the_clock_of_the_server() -> None:
    elsewhere = datetime(2001, 1, 1, tzinfo=UTC)
    ahead = format_datetime(elsewhere + timedelta(seconds=7), usegmt=True)
    known = headers(retry_after=ahead, date=format_datetime(elsewhere, usegmt=True))
    assert retry_after(known, now=NOW) == 7
    assert retry_after(headers(retry_after=ahead), now=NOW) == 0


def test_only_what_may_pass_says_when() -> None:
    assert status_failure(429, {}, headers(retry_after="3")).retry_after_s == 3
    assert status_failure(400, {}, headers(retry_after="3")).retry_after_s is None


@given(
    st.none() | st.integers(100, 599),
    st.recursive(
        st.none() | st.text(max_size=20) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["error", "code", "type", "message", "details", "metadata", "usage", "detail", "retryDelay"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ),
    st.dictionaries(
        st.sampled_from(["retry-after", "Retry-After", "date", "retry-after-ms"]), st.text(max_size=30)
    ),
)
def test_no_body_and_no_header_breaks_it(status: int | None, body: Any, given_headers: dict[str, str]) -> None:
    found = status_failure(status, body, given_headers, now=NOW)
    assert found.message
    assert found.retry_after_s is None or 0 <= found.retry_after_s < 1e12
    assert (found.usage is not None) == (found.billed is Billed.YES)
