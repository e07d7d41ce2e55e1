"""Turns errors of providers and the network into our outcomes. Every adapter's errors go through here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from plantain.files.redaction import redacted, redacted_json
from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.bodies import error_of, kind_of, load_json, nests_deeper, text_of
from plantain.models.hosted.limits.announced import announced_in_error
from plantain.models.hosted.limits.quotas import (
    LONGEST_WAIT_S,
    announced_wait,
    larger_than_its_limit,
    no_quota_at_all,
    of_a_day,
    opens_again,
    out_of_money,
    retry_after,
)
from plantain.pixels.decode import one_line
from plantain.records import Outcome, OutcomeKind, Usage
from plantain.roles.exchange import announce

T = TypeVar("T")

SPENT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "insufficient_balance",
        "payment_required",
    }
)
"""Codes that say that waiting will not help: somebody has to pay."""

BLOCKED = frozenset(
    {
        "moderation_blocked",
        "content_policy_violation",
        "content_filter",
        "contentfilter",
        "image_content_policy_violation",
        "invalid_prompt",
        "bio_policy",
        "cyber_policy",
        "misalignment_policy_violation",
        "responsibleaipolicyviolation",
    }
)
"""Codes of a filter that declined; OpenAI names a flagged prompt `invalid_prompt`."""

UNKNOWN_MODEL = frozenset({"model_not_found", "invalid_model"})
WRONG_SETTING = frozenset(
    {
        "unknown_parameter",
        "unsupported_parameter",
        "unsupported_value",
        "unsupported_model",
        "invalid_size",
        "invalid_json_schema",
        "operationnotsupported",
    }
)
NOT_ALLOWED = frozenset({"data_residency_mismatch", "unsupported_country_region_territory"})
PASSING = frozenset({"server_error", "vector_store_timeout", "failed_to_download_image"})
"""Codes of a failed answer that another try may mend."""

TIMEOUTS = frozenset({408, 499, 504, 524})
"""Statuses by which a server, or a proxy before it, says that the answer took too long: the model may have worked."""

MAY_BE_BILLED = "; it may have been billed"
"""How the reason of a request ends that was sent and not answered in time."""

DEEPEST = 100
"""Most lists and objects in each other in a body."""

_WRONG_FOR_MODEL = re.compile(
    r"extra_forbidden|extra inputs are not permitted|unrecognized request argument|unknown name \"|"
    r"(?:unknown|unexpected|unsupported) (?:form )?(?:field|parameter|argument|key|api version)s?\b|"
    r"not supported (?:for|with|by) th(?:is|e) model|not enabled for models/|supported (?:values are|range is)|"
    r"model does not support|only works in thinking mode|not a multimodal model|not support image input|"
    r"at most \d+ image",
    re.IGNORECASE,
)
"""How servers say that no request of this kind will do: a field that they do not know (pydantic, OpenAI, Google, and
hand-written ones), a value out of range, or what this model cannot do."""

_FLAGGED = re.compile(
    r"(?:rejected|blocked|not allowed|failed)\b.{0,40}\bsafety (?:system|settings)|PROHIBITED_CONTENT|"
    r"input was flagged",
    re.IGNORECASE,
)
"""How a filter that declines says so where it gives no code."""

_ERROR_STATUS = re.compile("[45][0-9]{2}")


class Fault(Exception):
    """A call that gave no answer to read. Raised and caught inside adapters only.

    Attributes:
        outcome: what it means for us; its reason holds no key.
        status: HTTP status, 0 when there was none.
        raw: what came, as JSON, without key.
        usage: what it consumed, where that is known although there is no answer.
        cut: there was an answer, which ended at its limit of tokens.
    """

    def __init__(
        self,
        outcome: Outcome,
        status: int = 0,
        raw: JsonObject | None = None,
        usage: Usage | None = None,
        *,
        cut: bool = False,
    ) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome
        self.status = status
        self.raw = raw or {}
        self.usage = usage
        self.cut = cut


class Signature(Protocol):
    """A token that is made anew when it has aged."""

    @property
    def token(self) -> str | None: ...

    def forget(self, token: str | None) -> None:
        """Makes a new one next time, unless that has been done since `token` was used."""
        ...


async def signed(send: Callable[[], Awaitable[T]], signature: Signature) -> T:
    """A request under a token, which may be withdrawn before its time: after a 401, once more under a new one.

    Raises:
        Fault: as `send`; of the second request where there were two.
    """
    used = signature.token
    try:
        return await send()
    except Fault as fault:
        if fault.status != 401:
            raise
    signature.forget(used)
    return await send()


def cut_short() -> Fault:
    """Of an answer that came but ended at its limit."""
    why = "the answer was cut at max_output_tokens; a larger limit, or less thinking, gives it room"
    return Fault(Outcome(OutcomeKind.MALFORMED, why), 200, cut=True)


def http_fault(
    model: str, status: int, content: str, headers: Mapping[str, str], now: datetime | None = None
) -> Outcome:
    """The outcome of an answer with an error status, which bills nothing unless it tells of a timeout.

    Args:
        model: "provider/model", for the sentence.
        status: HTTP status; of a 200 that holds an error, the error's own code counts.
        content: the body, already without key.
        headers: the answer's; names in any case.
        now: by which daily quotas open again; the present.
    """
    error = error_of(content)
    code = one_line(text_of(error, "code") or text_of(error, "status") or text_of(error, "type"))[:60].strip()
    if status == 200 and code.isdecimal() and 400 <= int(code) < 600:
        status = int(code)
    message = one_line(text_of(error, "message") or kind_of(content))
    announce(announced_in_error(error))
    outcome = _status_outcome(model, status, code, message, error, headers, now)
    late = status in TIMEOUTS
    return replace(outcome, unbilled=status >= 400 and not late, timed_out=late)


def _status_outcome(
    model: str,
    status: int,
    code: str,
    message: str,
    error: JsonObject,
    headers: Mapping[str, str],
    now: datetime | None,
) -> Outcome:
    reason = f"{status}{f' {code}' if code and code != str(status) else ''}: {message}"
    codes = codes_of(error)
    named = named_outcome(model, codes, reason)
    if named is not None:
        return named
    if status in (400, 403) and _FLAGGED.search(message):
        return Outcome(OutcomeKind.REFUSED, reason)
    waits = [wait for wait in (retry_after(headers, error), announced_wait(message)) if wait is not None]
    wait = min(max(waits), LONGEST_WAIT_S) if waits else None
    if status == 402 or (status in (403, 429) and out_of_money(message)):
        return _spent(reason)
    if status == 429:
        return _limited(model, error, message, reason, wait, now or datetime.now(UTC))
    if status == 407:
        return _not_let_through(reason)
    if status == 401 or (status == 400 and "api key" in message.casefold()):
        return Outcome(OutcomeKind.TRANSPORT, f"{reason} (the key was not accepted)", fatal=True)
    if status == 403 or (status == 400 and "failed_precondition" in codes):
        return Outcome(OutcomeKind.TRANSPORT, f"{reason} (this key may not use {model})", fatal=True)
    if status in (404, 410):
        return _no_such_model(model, reason)
    if status in (408, 409, 424, 425, 499) or (status >= 500 and status != 501) or status < 400:
        return Outcome(OutcomeKind.TRANSPORT, reason, retry_after=wait)
    if status in (400, 422, 501) and _WRONG_FOR_MODEL.search(message):
        why = f"{reason} ({model} does not take this setting; say what kind of server it is, or leave it out)"
        return Outcome(OutcomeKind.MALFORMED, why, fatal=True)
    if status == 413:
        return Outcome(OutcomeKind.MALFORMED, f"{reason} (the request is too large for {model})")
    return Outcome(OutcomeKind.MALFORMED, f"{reason} (the request was not accepted)")


def codes_of(error: JsonObject) -> frozenset[str]:
    """The names that an error bears, in small letters, those of an error within it included."""
    inner = error.get("innererror") or error.get("inner_error")
    errors = [error, inner] if isinstance(inner, dict) else [error]
    return frozenset(text_of(one, name).casefold() for one in errors for name in ("code", "status", "type"))


def named_outcome(model: str, codes: frozenset[str], reason: str) -> Outcome | None:
    """The outcome of an error by its names, whatever its status; None where they decide nothing."""
    if codes & BLOCKED:
        return Outcome(OutcomeKind.REFUSED, reason)
    if codes & SPENT:
        return _spent(reason)
    if codes & UNKNOWN_MODEL:
        return _no_such_model(model, reason)
    if codes & NOT_ALLOWED:
        return Outcome(OutcomeKind.TRANSPORT, f"{reason} (this key may not use {model} here)", fatal=True)
    if codes & WRONG_SETTING:
        return Outcome(OutcomeKind.MALFORMED, f"{reason} ({model} does not take this setting)", fatal=True)
    return None


def failed_answer(model: str, error: JsonObject) -> Outcome:
    """The outcome of an answer that came with status 200 and says that it failed."""
    code, message = one_line(text_of(error, "code"))[:60], one_line(text_of(error, "message"))
    reason = f"the provider failed: {code or 'no code'}: {message}"
    named = named_outcome(model, codes_of(error), reason)
    if named is not None:
        return named
    if code == "rate_limit_exceeded":
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=announced_wait(message))
    return Outcome(OutcomeKind.TRANSPORT if code in PASSING else OutcomeKind.MALFORMED, reason)


def _spent(reason: str) -> Outcome:
    why = f"{reason} (there is nothing left to pay with: top the account up or raise its spending limit)"
    return Outcome(OutcomeKind.RATE_LIMITED, why, fatal=True)


def _not_let_through(reason: str) -> Outcome:
    """Of a proxy that wants a name and a password, or others."""
    why = f"{reason} (the proxy let nothing through; it wants a user's name and password in its address)"
    return Outcome(OutcomeKind.TRANSPORT, why, fatal=True, unbilled=True)


def _no_such_model(model: str, reason: str) -> Outcome:
    why = f"{reason} (there is no {model} at this address; it may be retired: see `plantain models`)"
    return Outcome(OutcomeKind.TRANSPORT, why, fatal=True)


def _limited(
    model: str, error: JsonObject, message: str, reason: str, wait: float | None, now: datetime
) -> Outcome:
    """A 429: a limit that passes, or one that no waiting within reason will."""
    if no_quota_at_all(error, message):
        why = f"{reason} (this key's quota for {model} is 0: another plan or model is needed)"
        return Outcome(OutcomeKind.RATE_LIMITED, why, fatal=True)
    if larger_than_its_limit(message):
        why = f"{reason} (one request is more than this key's limit)"
        return Outcome(OutcomeKind.RATE_LIMITED, why, fatal=True)
    opens = opens_again(error, message, wait, now)
    if opens is not None:
        why = f"{reason} (the day's quota is used up; it opens again at {opens:%Y-%m-%d %H:%M} UTC)"
        wait = min((opens - now).total_seconds(), LONGEST_WAIT_S)
        return Outcome(OutcomeKind.RATE_LIMITED, why, wait, fatal=True)
    if wait is None and of_a_day(message):
        why = f"{reason} (the day's quota is used up, and nothing says when it opens again)"
        return Outcome(OutcomeKind.RATE_LIMITED, why, fatal=True)
    return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=wait)


def not_allowed(why: Exception) -> Fault:
    """A picture that our own gate held back: nothing was sent, nothing is billed, and the run stops."""
    reason = " ".join(str(why).split())
    return Fault(
        Outcome(OutcomeKind.REFUSED, reason, fatal=True), usage=Usage(input_tokens=0, output_tokens=0)
    )


def wire_fault(error: Exception, timeout_s: float) -> Outcome:
    """The outcome of an error below HTTP: of the HTTP client, of the SDK's connection, or of our own deadline."""
    import httpx2  # only hosted models' extras bring it

    if isinstance(error, (TimeoutError, httpx2.TimeoutException)):
        never_sent = isinstance(error, (httpx2.ConnectTimeout, httpx2.PoolTimeout))
        may = "" if never_sent else MAY_BE_BILLED
        return Outcome(
            OutcomeKind.TRANSPORT,
            f"no answer within {timeout_s:g} s{may}",
            unbilled=never_sent,
            timed_out=not never_sent,
        )
    if isinstance(error, httpx2.ConnectError):
        return Outcome(OutcomeKind.TRANSPORT, "could not connect", unbilled=True)
    if isinstance(error, httpx2.ProxyError):  # it was asked for a way, and gave none: nothing was sent
        said = one_line(redacted(str(error)))[:100]
        if said.startswith("407"):
            return _not_let_through(said)
        return Outcome(OutcomeKind.TRANSPORT, f"the proxy did not connect: {said}", unbilled=True)
    return Outcome(OutcomeKind.TRANSPORT, f"the connection failed ({type(error).__name__})")


def read_body(content: str | bytes) -> JsonObject:
    """The JSON object of an answer with status 200, without keys: here provider's text comes in.

    Raises:
        Fault: a body that is empty, or no JSON object, is the wire's fault and worth another try.
    """
    try:
        read = load_json(content)
        if nests_deeper(read, DEEPEST):
            raise ValueError("nested too deep")
        body = redacted_json(read)
    except (ValueError, RecursionError):
        text = content if isinstance(content, str) else content.decode("utf-8", "replace")
        reason = f"status 200 with {kind_of(text)} instead of the provider's JSON"
        raise Fault(Outcome(OutcomeKind.TRANSPORT, reason), 200) from None
    if not isinstance(body, dict):
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "status 200 with JSON that is no object"), 200)
    if not body:
        raise Fault(Outcome(OutcomeKind.TRANSPORT, "the answer was empty"), 200)
    return body
