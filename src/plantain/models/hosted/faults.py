"""Turn errors of providers and the network into our outcomes. Every adapter's errors go through here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from plantain.files.secrets import redacted, redacted_json
from plantain.models.hosted.answers import JsonObject, error_of, kind_of, load_json, scrub
from plantain.models.hosted.limits import announced_in_error, announced_wait, out_of_money, rate_limited
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles.exchange import announce

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
    """A call without an answer to read. Raised and caught inside adapters only.

    Attributes:
        outcome: of the call; its reason contains no key.
        status: HTTP status, 0 if there was none.
        raw: the body as JSON, without keys.
        usage: None if unknown.
        cut: the answer ended at its token limit.
    """

    outcome: Outcome
    status: int = 0
    raw: JsonObject = field(default_factory=dict)
    usage: Usage | None = None
    cut: bool = False

    def __str__(self) -> str:
        return self.outcome.reason


def answer_fault(kind: OutcomeKind, reason: str, *, fatal: bool = False) -> Fault:
    """Return the fault of an unusable answer with status 200."""
    return Fault(Outcome(kind, reason, fatal=fatal), 200)


def cut_short() -> Fault:
    """Return the fault of an answer that ended at its token limit."""
    why = "the answer was cut at max_output_tokens; raise it, or lower the thinking"
    return Fault(Outcome(OutcomeKind.MALFORMED, why), 200, cut=True)


def refused_request(
    model: str,
    status: int,
    content: str,
    headers: Mapping[str, str] | None = None,
    usage: Usage | None = None,
) -> Fault:
    """Return the fault of an answer with an error status, or of a batch's line with one."""
    content = redacted(content)
    outcome = http_fault(model, status, content, headers or {})
    return Fault(outcome, status, {"status": status, "body": scrub({"text": content})}, usage)


def http_fault(
    model: str, status: int, content: str, headers: Mapping[str, str], now: datetime | None = None
) -> Outcome:
    """Return the outcome of an answer with an error status, which bills nothing unless it is a timeout.

    Args:
        model: "provider/model", for the sentence.
        status: HTTP status; of a 200 with an error, the error's own code counts.
        content: the body, without keys.
        headers: the answer's; names in any case.
        now: by which daily quotas open again; the present.
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
        outcome = rate_limited(model, {**error, "message": message}, reason, wait, now or datetime.now(UTC))
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
    """Return the outcome of an answer with status 200 and an error inside."""
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
    """Return the fault of an image without clearance: nothing was sent or billed, and the run stops."""
    reason = " ".join(str(why).split())
    return Fault(
        Outcome(OutcomeKind.REFUSED, reason, fatal=True), usage=Usage(input_tokens=0, output_tokens=0)
    )


def wire_fault(error: Exception, timeout_s: float) -> Outcome:
    """Return the outcome of an error below HTTP: of the HTTP client, or our own deadline."""
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
    """Return the JSON object of an answer with status 200, without keys: here a provider's text enters.

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
