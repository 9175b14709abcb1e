"""Why a call failed, from HTTP status and error body: the kind, whether to pay, when to try again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from evalkit.errors import visible
from evalkit.providers.call import Billed, Failure, FailureKind

__all__ = ["error_in", "retry_after", "status_failure"]

MESSAGE_LIMIT = 400
"""Characters of a message that are kept."""

_REFUSAL_CODES = {
    "content_policy_violation",
    "content_policy",
    "content_filter",
    "content_filtered",
    "contentfiltered",
    "moderation_blocked",
    "responsibleaipolicyviolation",
    "data_inspection_failed",
    "safety",
    "prohibited_content",
}
_REFUSAL_WORDS = re.compile(
    r"content management policy|rejected (?:as a result of|by) (?:our|the) safety system"
    r"|blocked by content filtering policy|violat\w+ (?:of )?(?:our|the) usage polic",
    re.IGNORECASE,
)
_BUSY = {"overloaded_error", "api_error", "server_error", "internal_server_error", "timeout_error", "unavailable"}
_MAYBE_PAID = {408, 504, 522, 524}
"""Somebody on the way gave up waiting; the model may have gone on."""


def error_in(body: Any) -> Mapping[str, Any] | None:
    """The error that a body tells of, as a mapping; None where it tells of none."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    if isinstance(error, Mapping):
        return error
    if isinstance(error, str) and error:
        return {"message": error} | {key: body[key] for key in ("message", "code", "type") if key in body}
    if "choices" not in body and isinstance(body.get("detail"), str | list) and body["detail"]:
        return {"message": str(body["detail"])}
    if body.get("type") == "response.failed" and isinstance(body.get("response"), Mapping):
        return error_in(body["response"]) or {"message": "the response failed"}
    if body.get("object") == "error" or body.get("type") == "error":
        return body
    return None


def status_failure(
    status: int | None,
    body: Any,
    headers: Mapping[str, str] | None = None,
    *,
    began: bool = False,
    sent: Mapping[str, Any] | None = None,
    request_s: float | None = None,
    now: datetime | None = None,
) -> Failure:
    """The failure that an error status and its body (parsed JSON, or text) tell of.

    `status` None: an error without one, as in the middle of a stream. `began`: the provider had begun to answer,
    so the call may have to be paid. `now` (UTC) serves for a Retry-After date where the response has no date.
    """
    error = error_in(body) or {}
    own = error.get("code")
    if status is None and isinstance(own, int) and 400 <= own <= 599:
        status = own
    kind = _kind(status, error)
    message = error.get("message") or (body if isinstance(body, str) else None) or "no reason was given"
    code = next((error[key] for key in ("code", "type", "status") if isinstance(error.get(key), str)), None)
    head = " ".join(str(part) for part in (status, code) if part is not None)
    usage = body.get("usage") if isinstance(body, Mapping) else None
    counted = isinstance(usage, Mapping) and bool(usage)
    unsure = began or (status in _MAYBE_PAID)
    return Failure(
        kind=kind,
        message=visible(f"{head}: {message}" if head else str(message), MESSAGE_LIMIT),
        status_code=status,
        retry_after_s=retry_after(headers or {}, error, now=now) if kind.retryable else None,
        billed=Billed.YES if counted else Billed.UNKNOWN if unsure else Billed.NO,
        usage=dict(usage) if counted and isinstance(usage, Mapping) else None,
        sent=sent,
        request_s=request_s,
    )


def _kind(status: int | None, error: Mapping[str, Any]) -> FailureKind:
    if _refused(status, error):
        return FailureKind.REFUSAL
    if status is None:
        word = str(error.get("type") or error.get("code") or error.get("status") or "").lower()
        if "rate_limit" in word or word == "resource_exhausted":
            return FailureKind.RATE_LIMIT
        return FailureKind.SERVER if word in _BUSY else FailureKind.OTHER
    if status in {401, 402, 403}:
        return FailureKind.AUTHENTICATION
    if status == 408:
        return FailureKind.TIMEOUT
    if status == 429:
        return FailureKind.RATE_LIMIT
    if status >= 500 or status in {409, 425}:
        return FailureKind.SERVER
    return FailureKind.BAD_REQUEST


def _refused(status: int | None, error: Mapping[str, Any]) -> bool:
    """The request was looked at and declined, which the same request meets again."""
    if status is not None and not 400 <= status < 500:
        return False
    inner = error.get("innererror")
    inner_code = inner.get("code") if isinstance(inner, Mapping) else None
    codes = {str(value).lower() for value in (error.get("code"), error.get("type"), inner_code) if value}
    if codes & _REFUSAL_CODES:
        return True
    metadata = error.get("metadata")  # a gateway's moderation
    if isinstance(metadata, Mapping) and "flagged_input" in metadata:
        return True
    return status in {400, 403} and bool(_REFUSAL_WORDS.search(str(error.get("message", ""))[:4096]))


def retry_after(
    headers: Mapping[str, str], error: Mapping[str, Any] | None = None, *, now: datetime | None = None
) -> float | None:
    """Seconds that the provider asks to wait, never negative; None where it does not say or is not understood.

    From `retry-after-ms`, from `retry-after` (seconds, or an HTTP date, compared with the response's own `date` so
    that clocks need not agree), or from a `retryDelay` in the error's details.
    """
    names = {name.lower(): value for name, value in headers.items()}
    found = _number(names.get("retry-after-ms"))
    if found is not None:
        return found / 1000
    value = names.get("retry-after")
    found = _number(value)
    if found is not None:
        return found
    ahead = _date(value)
    if ahead is not None:
        base = _date(names.get("date")) or now or datetime.now(UTC)
        return max(0.0, (ahead - base).total_seconds())
    return next(_delays(error or {}), None)


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*[0-9]{1,12}(?:\.[0-9]{0,9})?\s*", text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _delays(error: Mapping[str, Any]) -> Iterator[float]:
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, Mapping) else None
        number = _number(delay.removesuffix("s")) if isinstance(delay, str) else None
        if number is not None:
            yield number
