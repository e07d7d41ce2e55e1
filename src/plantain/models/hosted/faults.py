"""From what a provider or the wire did to one of our outcomes. Every adapter's errors go through here."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import orjson

from plantain.models.hosted.answers import JsonObject
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage

SPENT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated"}
)
"""Codes that say that waiting will not help: somebody has to pay."""

BLOCKED = frozenset({"moderation_blocked", "content_policy_violation", "content_filter"})
UNKNOWN_MODEL = frozenset({"model_not_found", "invalid_model"})
WRONG_SETTING = frozenset(
    {"unknown_parameter", "unsupported_parameter", "unsupported_value", "unsupported_model"}
)

LONGEST_WAIT_S = 86_400.0

_ERROR_STATUS = re.compile("[45][0-9]{2}")


class Fault(Exception):
    """A call that gave no answer to read. Raised and caught inside adapters only.

    Attributes:
        outcome: what it means for us; its reason holds no key.
        status: HTTP status, 0 when there was none.
        raw: what came, as JSON, without key.
        usage: what it consumed, where that is known although there is no answer.
    """

    def __init__(
        self, outcome: Outcome, status: int = 0, raw: JsonObject | None = None, usage: Usage | None = None
    ) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome
        self.status = status
        self.raw = raw or {}
        self.usage = usage


def http_fault(model: str, status: int, content: str, headers: Mapping[str, str]) -> Outcome:
    """The outcome of an answer with an error status.

    Args:
        model: "provider/model", for the sentence.
        status: HTTP status; of a 200 that holds an error, the error's own code counts.
        content: the body, already without key.
        headers: the answer's; names in any case.
    """
    error = _error_of(content)
    said_code = _text(error, "code") or _text(error, "status") or _text(error, "type")
    code = one_line(said_code.strip()[:60])
    codes = {_text(error, name).casefold() for name in ("code", "status", "type")}
    if status == 200 and _ERROR_STATUS.fullmatch(code):
        status = int(code)
    said = one_line(_text(error, "message") or _kind_of(content))
    reason = f"{status}{f' {code}' if code and code != str(status) else ''}: {said}"
    wait = retry_after(headers, error)
    if codes & BLOCKED:
        return Outcome(OutcomeKind.REFUSED, reason)
    if codes & SPENT:
        return Outcome(
            OutcomeKind.RATE_LIMITED, f"{reason} (the account's quota is spent: top it up)", fatal=True
        )
    if status == 429:
        if _no_quota_at_all(error):
            return Outcome(OutcomeKind.RATE_LIMITED, f"{reason} (this key's quota is 0)", fatal=True)
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=wait)
    if status == 401 or (status == 400 and "api key" in said.casefold()):
        return Outcome(OutcomeKind.TRANSPORT, f"{reason} (the key was not accepted)", fatal=True)
    if status == 403 or (status == 400 and "failed_precondition" in codes):
        return Outcome(OutcomeKind.TRANSPORT, f"{reason} (this key may not use {model})", fatal=True)
    if status == 404 or codes & UNKNOWN_MODEL:
        return Outcome(
            OutcomeKind.TRANSPORT,
            f"{reason} (there is no {model} at this address; it may be retired: see `plantain models`)",
            fatal=True,
        )
    if codes & WRONG_SETTING:
        return Outcome(OutcomeKind.MALFORMED, f"{reason} ({model} does not take this setting)", fatal=True)
    if status in (408, 409, 425) or status >= 500 or status < 400:
        return Outcome(OutcomeKind.TRANSPORT, reason, retry_after=wait)
    if status == 413:
        return Outcome(OutcomeKind.MALFORMED, f"{reason} (the request is too large for {model})")
    return Outcome(OutcomeKind.MALFORMED, f"{reason} (the request was not accepted)")


def wire_fault(error: Exception, timeout_s: float) -> Outcome:
    """The outcome of an error below HTTP: of the HTTP client, of the SDK's connection, or of our own deadline."""
    import httpx2  # only hosted models' extras bring it

    if isinstance(error, (TimeoutError, httpx2.TimeoutException)):
        return Outcome(OutcomeKind.TRANSPORT, f"no answer within {timeout_s:g} s; it may have been billed")
    if isinstance(error, httpx2.ConnectError):
        return Outcome(OutcomeKind.TRANSPORT, "could not connect")
    return Outcome(OutcomeKind.TRANSPORT, f"the connection failed ({type(error).__name__})")


def read_body(content: str | bytes) -> JsonObject:
    """The JSON object of an answer with status 200.

    Raises:
        Fault: an empty body is malformed; any other that is not a JSON object is the wire's fault, and one that
            holds only an error is read as that error.
    """
    if not content.strip():
        raise Fault(Outcome(OutcomeKind.MALFORMED, "the answer was empty"), 200)
    try:
        body = _loads(content)
    except ValueError:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        said = f"status 200 with {_kind_of(text)} instead of the provider's JSON"
        raise Fault(Outcome(OutcomeKind.TRANSPORT, said), 200) from None
    if not isinstance(body, dict):
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "status 200 with JSON that is no object"), 200)
    return body


def _loads(content: str | bytes) -> object:
    """JSON, also with lone surrogates, which models can write and orjson rightly refuses; they become "?"."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        value = json.loads(text)
        return orjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def retry_after(headers: Mapping[str, str], error: JsonObject) -> float | None:
    """Seconds that the provider asks us to wait: the longest of its headers and Google's RetryInfo; None when unsaid.

    Retry-After comes in seconds or as a date, retry-after-ms in milliseconds. What is not a number, is negative or
    lies more than a day ahead is brought back into [0, 86400].
    """
    lower = {name.casefold(): value for name, value in headers.items()}
    waits: list[float] = []
    if "retry-after-ms" in lower:
        waits.append(_number(lower["retry-after-ms"]) / 1000.0)
    elif "retry-after" in lower:
        waits.append(_seconds_or_date(lower["retry-after"]))
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            waits.append(_number(delay.removesuffix("s")))
    said = [wait for wait in waits if math.isfinite(wait)]
    return min(max(*said, 0.0), LONGEST_WAIT_S) if said else None


def _seconds_or_date(value: str) -> float:
    seconds = _number(value)
    if math.isfinite(seconds):
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return math.nan
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _error_of(content: str) -> JsonObject:
    """The error object of a body, whatever it is wrapped in."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    error = body.get("error", body)
    if isinstance(error, str):
        return {"message": error}
    if not isinstance(error, dict):
        return {}
    if "message" not in error and "detail" in error:
        return {**error, "message": str(error["detail"])}
    return error


def _details(error: JsonObject) -> list[JsonObject]:
    details = error.get("details")
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []


def _no_quota_at_all(error: JsonObject) -> bool:
    """Google's way to say that a model is not in the key's plan: a violated quota of 0."""
    for detail in _details(error):
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else []:
            if isinstance(violation, dict) and str(violation.get("quotaValue", "")) == "0":
                return True
    return False


def _text(error: JsonObject, name: str) -> str:
    value = error.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _kind_of(content: str) -> str:
    start = content.lstrip()[:200]
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith("<") else f"a body of {len(content)} characters"
