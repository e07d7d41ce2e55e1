"""Turn errors of providers and the network into our outcomes, and read the rate limits that providers announce.

The errors of every adapter go through here. Limits come in headers and in the errors of refused calls."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from plantain.files.secrets import redacted, redacted_json
from plantain.models.hosted.answers import JsonObject, error_of, kind_of, load_json, objects, scrub, text
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles import AnnouncedLimit, announce

LONGEST_WAIT_S = 86_400.0

LONG_WAIT_S = 3_600.0
"""A run that would wait longer than this for a daily quota stops."""

MINUTE_S = 61.0
"""A reset within a minute belongs to a limit per minute; limits of longer periods are not used as a rate."""

_MONEY = re.compile(
    r"credits? (?:are|is|have been|has been) (?:depleted|exhausted)|insufficient (?:credits?|funds|balance)|"
    r"(?:spend|spending|billing) (?:cap|(?:hard )?limit)|requires more credits",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\blimit:? 0(?![.\d])", re.IGNORECASE)
_DAILY = re.compile(r"per ?day|\bRPD\b|\bTPD\b|daily", re.IGNORECASE)
_TOO_LARGE = re.compile(r"\brequest too large\b", re.IGNORECASE)
_UNITS = r"\d+(?:\.\d+)?\s?(?:ms|milliseconds?|hours?|h|minutes?|m|seconds?|s)\s?"
_WAIT = re.compile(rf"(?:try again|retry)(?: after| in) (?P<wait>(?:{_UNITS})+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|milli|h|m|s)", re.IGNORECASE)
_SECONDS = {"h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}


def out_of_money(message: str) -> bool:
    """Return True if an error message reports missing credit or a spending limit."""
    return bool(_MONEY.search(message))


def rate_limited(model: str, error: JsonObject, reason: str, wait: float | None) -> Outcome:
    """Return the outcome for HTTP status 429: a temporary limit, or one that stops the run.

    Args:
        model: "provider/model".
        error: the error object of the body.
        reason: status and message in one line.
        wait: seconds that the provider requests; None if it does not.
    """
    message, violated = str(error.get("message", "")), _violations(error)
    if "0" in [text(one, "quotaValue") for one in violated] or _NOTHING.search(message):
        return _stop(f"{reason} (this key's quota for {model} is 0: another plan or model is needed)")
    if _TOO_LARGE.search(message):
        return _stop(f"{reason} (one request is more than this key's limit)")
    if any(
        _DAILY.search(text(one, "quotaId")) for one in violated
    ):  # Google's, whatever wait the error names
        return _stop(f"{reason} (the day's quota is used up until midnight in California)")
    if _DAILY.search(message) and (wait is None or wait > LONG_WAIT_S):
        return _stop(f"{reason} (the day's quota is used up)", wait)
    return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=wait)


def _stop(why: str, wait: float | None = None) -> Outcome:
    return Outcome(OutcomeKind.RATE_LIMITED, why, wait, fatal=True)


def announced_wait(headers: Mapping[str, str], error: JsonObject) -> float | None:
    """Return the longest wait that a response announces, in seconds, in [0, 86400]; None if it announces none.

    Sources are Retry-After (seconds or date), retry-after-ms, Google's RetryInfo, and the message ("try again in
    7m12s"). Other values are ignored.
    """
    lower = {name.casefold(): value for name, value in headers.items()}
    waits = [
        _number(text(detail, "retryDelay").removesuffix("s")) for detail in objects(error.get("details"))
    ]
    if "retry-after-ms" in lower:
        milliseconds = _number(lower["retry-after-ms"])
        waits.append(None if milliseconds is None else milliseconds / 1000.0)
    elif "retry-after" in lower:
        waits.append(_seconds_or_date(lower["retry-after"]))
    if found := _WAIT.search(str(error.get("message", ""))):
        waits.append(_total(_PART.findall(found["wait"])))
    known = [wait for wait in waits if wait is not None]
    return min(max(*known, 0.0), LONGEST_WAIT_S) if known else None


def announced_in_headers(headers: Mapping[str, str]) -> list[AnnouncedLimit]:
    """Read rate limits from an answer's x-ratelimit headers, as OpenAI, Azure and gateways send them.

    `x-ratelimit-limit-requests: 3500`, `-remaining-requests: 3499`, `-reset-requests: 17ms` (or "6m0s", or seconds);
    the same for tokens. Values that are not positive numbers are ignored.
    """
    found: list[AnnouncedLimit] = []
    for what in ("requests", "tokens"):
        limit = _number(headers.get(f"x-ratelimit-limit-{what}", ""))
        if limit is None or limit <= 0.0:
            continue
        left = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
        reset_s = _seconds(headers.get(f"x-ratelimit-reset-{what}", ""))
        if reset_s is None or reset_s <= MINUTE_S:
            found.append(AnnouncedLimit("tokens" if what == "tokens" else "requests", limit, left, reset_s))
    return found


def announced_in_error(error: JsonObject) -> list[AnnouncedLimit]:
    """Read the violated limits per minute from Google's QuotaFailure; return [] for other errors."""
    found: list[AnnouncedLimit] = []
    for violation in _violations(error):
        name, value = text(violation, "quotaId"), _number(text(violation, "quotaValue"))
        if "PerMinute" in name and value is not None and value > 0.0:
            found.append(AnnouncedLimit("tokens" if "Token" in name else "requests", value))
    return found


def _violations(error: JsonObject) -> list[JsonObject]:
    return [one for detail in objects(error.get("details")) for one in objects(detail.get("violations"))]


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds(value: str) -> float | None:
    parts = _PART.findall(value)
    if parts and "".join(number + unit for number, unit in parts) == value:
        return _total(parts)
    return _number(value)


def _total(parts: list[tuple[str, str]]) -> float:
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)


def _seconds_or_date(value: str) -> float | None:
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


CODES: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("codes.toml").read_text("utf-8"))
"""Meaning -> the error codes that have it."""

TIMEOUTS = frozenset({408, 499, 504, 524})
"""Statuses of timeouts at a server or proxy: the model may have answered."""

MAY_BE_BILLED = "; it may have been billed"

_WRONG_FOR_MODEL = re.compile(
    r"extra_forbidden|extra inputs are not permitted|unrecognized request argument|unknown name \"|"
    r"(?:unknown|unexpected|unsupported) (?:form )?(?:field|parameter|argument|key|api version)s?\b|"
    r"not supported (?:for|with|by) th(?:is|e) model|not enabled for models/|supported (?:values are|range is)|"
    r"model does not support|only works in thinking mode|not a multimodal model|not support image input|"
    r"at most \d+ image",
    re.IGNORECASE,
)
"""Messages for an unknown field, a value out of range, or an unsupported feature."""

_FLAGGED = re.compile(
    r"(?:rejected|blocked|not allowed|failed)\b.{0,40}\bsafety (?:system|settings)|PROHIBITED_CONTENT|"
    r"input was flagged",
    re.IGNORECASE,
)
"""Messages of a filter that sends no code."""


@dataclass(eq=False)
class Fault(Exception):
    """Raised for a call without a readable answer. Raised and caught inside adapters only.

    Attributes:
        outcome: outcome of the call; its reason contains no key.
        status: HTTP status, 0 if there was none.
        raw: the body as JSON, without keys.
        usage: token counts of the call; None if unknown.
        cut: True if the answer ended at its token limit.
    """

    outcome: Outcome
    status: int = 0
    raw: JsonObject = field(default_factory=dict)
    usage: Usage | None = None
    cut: bool = False

    def __str__(self) -> str:
        return self.outcome.reason


def answer_fault(kind: OutcomeKind, reason: str, *, fatal: bool = False) -> Fault:
    """Make the fault for an unusable answer with status 200."""
    return Fault(Outcome(kind, reason, fatal=fatal), 200)


def cut_short() -> Fault:
    """Make the fault for an answer that was cut at its token limit."""
    why = "the answer was cut at max_output_tokens; raise it, or lower the thinking"
    return Fault(Outcome(OutcomeKind.MALFORMED, why), 200, cut=True)


def refused_request(
    model: str,
    status: int,
    content: str,
    headers: Mapping[str, str] | None = None,
    usage: Usage | None = None,
) -> Fault:
    """Make the fault for an answer, or a batch job's line, with an error status; keys are removed from its text."""
    content = redacted(content)
    outcome = http_fault(model, status, content, headers or {})
    return Fault(outcome, status, {"status": status, "body": scrub({"text": content})}, usage)


def http_fault(model: str, status: int, content: str, headers: Mapping[str, str]) -> Outcome:
    """Return the outcome for an answer with an error status; only a timeout may have been billed.

    Args:
        model: "provider/model", for the message.
        status: HTTP status; for a 200 with an error object, that object's code is used.
        content: the body, without keys.
        headers: the answer's headers; names in any case.
    """
    error = error_of(content)
    code = one_line(_words(error, "code") or _words(error, "status") or _words(error, "type"))[:60].strip()
    if status == 200 and code.isdecimal() and 400 <= int(code) < 600:
        status = int(code)
    message = one_line(_words(error, "message") or kind_of(content))
    announce(announced_in_error(error))
    reason = f"{status}{f' {code}' if code and code != str(status) else ''}: {message}"
    wait = announced_wait(headers, {**error, "message": message})
    codes = _codes_of(error)
    outcome = _by_name(model, codes, reason) or _by_words(status, message, reason)
    if outcome is None and status == 429:
        outcome = rate_limited(model, {**error, "message": message}, reason, wait)
    outcome = outcome or _by_status(model, status, message, reason, codes)
    if outcome.kind is OutcomeKind.TRANSPORT and not outcome.fatal:
        outcome = replace(outcome, retry_after=wait)
    late = status in TIMEOUTS
    return replace(outcome, unbilled=status >= 400 and not late, timed_out=late)


def _by_name(model: str, codes: frozenset[str], reason: str) -> Outcome | None:
    """Return the outcome of an error by its codes, whatever its status; None if they decide nothing."""
    if codes & set(CODES["refused"]):
        return Outcome(OutcomeKind.REFUSED, reason)
    if codes & set(CODES["spent"]):
        return _spent(reason)
    if codes & set(CODES["unknown_model"]):
        return _no_such_model(model, reason)
    if codes & set(CODES["not_allowed"]):
        return _stopped(f"{reason} (this key may not use {model} here)")
    if codes & set(CODES["wrong_setting"]):
        return Outcome(OutcomeKind.MALFORMED, f"{reason} ({model} does not take this setting)", fatal=True)
    return None


def _by_words(status: int, message: str, reason: str) -> Outcome | None:
    if status in (400, 403) and _FLAGGED.search(message):
        return Outcome(OutcomeKind.REFUSED, reason)
    if status == 402 or (status in (403, 429) and out_of_money(message)):
        return _spent(reason)
    if status == 401 or (status == 400 and "api key" in message.casefold()):
        return _stopped(f"{reason} (the key was not accepted)")
    return None


def _by_status(model: str, status: int, message: str, reason: str, codes: frozenset[str]) -> Outcome:
    if status == 407:
        return _proxy_refused(reason)
    if status == 403 or (status == 400 and "failed_precondition" in codes):
        return _stopped(f"{reason} (this key may not use {model})")
    if status in (404, 410):
        return _no_such_model(model, reason)
    if status in (408, 409, 424, 425, 499) or (status >= 500 and status != 501) or status < 400:
        return Outcome(OutcomeKind.TRANSPORT, reason)
    if status in (400, 422, 501) and _WRONG_FOR_MODEL.search(message):
        why = f"{reason} ({model} does not take this setting; say what kind of server it is, or leave it out)"
        return Outcome(OutcomeKind.MALFORMED, why, fatal=True)
    why = f"the request is too large for {model}" if status == 413 else "the request was not accepted"
    return Outcome(OutcomeKind.MALFORMED, f"{reason} ({why})")


def failed_answer(model: str, error: JsonObject) -> Outcome:
    """Return the outcome for an answer with status 200 whose body is an error object."""
    code, message = one_line(_words(error, "code"))[:60], one_line(_words(error, "message"))
    reason = f"the provider failed: {code or 'no code'}: {message}"
    if named := _by_name(model, _codes_of(error), reason):
        return named
    if code == "rate_limit_exceeded":
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=announced_wait({}, error))
    return Outcome(OutcomeKind.TRANSPORT if code in CODES["passing"] else OutcomeKind.MALFORMED, reason)


def _codes_of(error: JsonObject) -> frozenset[str]:
    """Return the codes of an error in lower case, including those of an error inside it."""
    inner = error.get("innererror") or error.get("inner_error")
    errors = [error, inner] if isinstance(inner, dict) else [error]
    return frozenset(_words(one, name).casefold() for one in errors for name in ("code", "status", "type"))


def _words(error: JsonObject, name: str) -> str:
    value = error.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _spent(reason: str) -> Outcome:
    why = f"{reason} (the account is out of credit: top it up or raise its spending limit)"
    return Outcome(OutcomeKind.RATE_LIMITED, why, fatal=True)


def _stopped(why: str) -> Outcome:
    return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)


def _proxy_refused(reason: str) -> Outcome:
    why = f"{reason} (the proxy refused; add a user name and password to its address)"
    return Outcome(OutcomeKind.TRANSPORT, why, fatal=True, unbilled=True)


def _no_such_model(model: str, reason: str) -> Outcome:
    return _stopped(f"{reason} (no {model} at this address; it may be retired: see `plantain models`)")


def not_allowed(why: Exception) -> Fault:
    """Make the fault for an image that may not be sent: nothing was sent or billed, and the run stops."""
    reason = " ".join(str(why).split())
    return Fault(
        Outcome(OutcomeKind.REFUSED, reason, fatal=True), usage=Usage(input_tokens=0, output_tokens=0)
    )


def wire_fault(error: Exception, timeout_s: float) -> Outcome:
    """Return the transport outcome for an error of the HTTP client or after the deadline of `timeout_s` seconds."""
    import httpx2  # installed by the extras of hosted models only

    if isinstance(error, (TimeoutError, httpx2.TimeoutException)):
        sent = not isinstance(error, (httpx2.ConnectTimeout, httpx2.PoolTimeout))
        why = f"no answer within {timeout_s:g} s{MAY_BE_BILLED if sent else ''}"
        return Outcome(OutcomeKind.TRANSPORT, why, unbilled=not sent, timed_out=sent)
    if isinstance(error, httpx2.ConnectError):
        return Outcome(OutcomeKind.TRANSPORT, "could not connect", unbilled=True)
    if isinstance(error, httpx2.ProxyError):  # nothing was sent through it
        message = one_line(redacted(str(error)))[:100]
        if message.startswith("407"):
            return _proxy_refused(message)
        return Outcome(OutcomeKind.TRANSPORT, f"the proxy did not connect: {message}", unbilled=True)
    return Outcome(OutcomeKind.TRANSPORT, f"the connection failed ({type(error).__name__})")


def read_body(content: str | bytes) -> JsonObject:
    """Parse the body of an answer with status 200 to a JSON object, with API keys removed.

    Raises:
        Fault: the body is empty or not a JSON object; another try may succeed.
    """
    try:
        body = redacted_json(load_json(content))
    except (ValueError, RecursionError):
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        raise answer_fault(
            OutcomeKind.TRANSPORT, f"status 200 with {kind_of(text)} instead of the provider's JSON"
        ) from None
    if not isinstance(body, dict):
        raise answer_fault(OutcomeKind.TRANSPORT, "status 200 with JSON that is not an object")
    if not body:
        raise answer_fault(OutcomeKind.TRANSPORT, "the answer was empty")
    return body
