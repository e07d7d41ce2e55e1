"""What a provider's error says of quotas: nothing left to pay with, no quota at all, or none until a certain time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.scrub import objects, text

LONGEST_WAIT_S = 86_400.0

LONG_WAIT_S = 3_600.0
"""A run that would have to wait longer than this for a daily quota stops instead and says when it opens again."""

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
    """Whether the words of an error say that somebody has to pay before anything goes on."""
    return bool(_MONEY.search(message))


def no_quota_at_all(error: JsonObject, message: str) -> bool:
    """A limit of 0: the model is not in the key's plan. Google says it in its details, or in its words alone."""
    values = [text(violation, "quotaValue") for violation in violations(error)]
    return "0" in values or bool(_NOTHING.search(message))


def larger_than_its_limit(message: str) -> bool:
    """Whether one request alone is more than a minute's limit: no waiting helps."""
    return bool(_TOO_LARGE.search(message))


def opens_again(error: JsonObject, message: str, wait: float | None, now: datetime) -> datetime | None:
    """When a daily quota that is used up opens again; None where it is another limit, or opens soon.

    Google's open at midnight in California, whatever wait the error names; others say how long to wait.
    """
    if any(_DAILY.search(text(violation, "quotaId")) for violation in violations(error)):
        return _midnight_in_california(now)
    if _DAILY.search(message) and wait is not None and wait > LONG_WAIT_S:
        return now + timedelta(seconds=wait)
    return None


def of_a_day(message: str) -> bool:
    """Whether the words of an error speak of a daily quota."""
    return bool(_DAILY.search(message))


def announced_wait(message: str) -> float | None:
    """Seconds to wait, as the words of an error have it ("try again in 7m12s"); None where they do not."""
    found = _WAIT.search(message)
    if found is None:
        return None
    return sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(found["wait"]))


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
    for detail in objects(error.get("details")):
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            waits.append(_number(delay.removesuffix("s")))
    announced = [wait for wait in waits if math.isfinite(wait)]
    return min(max(*announced, 0.0), LONGEST_WAIT_S) if announced else None


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


def violations(error: JsonObject) -> list[JsonObject]:
    """The quotas that an error of Google's names as violated."""
    return [one for detail in objects(error.get("details")) for one in objects(detail.get("violations"))]


def _midnight_in_california(now: datetime) -> datetime:
    try:
        here = now.astimezone(ZoneInfo("America/Los_Angeles"))
    except ZoneInfoNotFoundError:  # a machine without a table of time zones: an hour late in summer
        here = now.astimezone(timezone(timedelta(hours=-8)))
    tomorrow = (here + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return tomorrow.astimezone(UTC)
