"""Rate limits that providers announce in headers and in the errors of refused calls."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

from plantain.models.hosted.answers import JsonObject, objects, text
from plantain.records import Outcome, OutcomeKind
from plantain.roles.exchange import AnnouncedLimit

LONGEST_WAIT_S = 86_400.0

LONG_WAIT_S = 3_600.0
"""A run that would wait longer than this for a daily quota stops and reports when the quota resets."""

MINUTE_S = 61.0
"""A reset within a minute belongs to a limit per minute."""

LONGEST_PERIOD_S = 300.0
"""Limits of longer periods (hours, days) are not used as a rate."""

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
    """Return True if an error message is about missing credit or a spending cap."""
    return bool(_MONEY.search(message))


def rate_limited(model: str, error: JsonObject, reason: str, wait: float | None, now: datetime) -> Outcome:
    """Return the outcome of a 429: a temporary limit, or one that stops the run.

    Args:
        model: "provider/model".
        error: the error object of the body.
        reason: status and message in one line.
        wait: seconds that the provider requests; None if it does not.
        now: the time from which the reset of a daily quota is computed.
    """
    message, violated = str(error.get("message", "")), _violations(error)
    if "0" in [text(one, "quotaValue") for one in violated] or _NOTHING.search(message):
        return _stop(f"{reason} (this key's quota for {model} is 0: another plan or model is needed)")
    if _TOO_LARGE.search(message):
        return _stop(f"{reason} (one request is more than this key's limit)")
    opens: datetime | None = None
    if any(
        _DAILY.search(text(one, "quotaId")) for one in violated
    ):  # Google's, whatever wait the error names
        opens = _midnight_in_california(now)
    elif _DAILY.search(message) and wait is None:
        return _stop(f"{reason} (the day's quota is used up, and its reset is not announced)")
    elif _DAILY.search(message) and wait is not None and wait > LONG_WAIT_S:
        opens = now + timedelta(seconds=wait)
    if opens is None:
        return Outcome(OutcomeKind.RATE_LIMITED, reason, retry_after=wait)
    why = f"{reason} (the day's quota is used up; it opens again at {opens:%Y-%m-%d %H:%M} UTC)"
    return _stop(why, min((opens - now).total_seconds(), LONGEST_WAIT_S))


def _stop(why: str, wait: float | None = None) -> Outcome:
    return Outcome(OutcomeKind.RATE_LIMITED, why, wait, fatal=True)


def announced_wait(headers: Mapping[str, str], error: JsonObject) -> float | None:
    """Return the seconds to wait, in [0, 86400]; None if none are announced. The longest announcement counts.

    Read are Retry-After (seconds or date) or retry-after-ms, Google's RetryInfo, and the message ("try again in
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
    """Return the limits of an answer's x-ratelimit headers, as OpenAI, Azure and gateways send them.

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
        period = 60.0
        if reset_s is not None and reset_s > MINUTE_S and left is not None and left < limit:
            period = max(60.0, reset_s * limit / (limit - left))  # used units return at the limit's rate
        if period <= LONGEST_PERIOD_S:
            per_minute = limit * 60.0 / period
            found.append(
                AnnouncedLimit("tokens" if what == "tokens" else "requests", per_minute, left, reset_s)
            )
    return found


def announced_in_error(error: JsonObject) -> list[AnnouncedLimit]:
    """Return the limits per minute that Google's QuotaFailure names as violated."""
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


def _midnight_in_california(now: datetime) -> datetime:
    """Return the next midnight of Pacific Standard Time, which is an hour late in summer."""
    tomorrow = now.astimezone(timezone(timedelta(hours=-8))) + timedelta(days=1)
    return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(UTC)
