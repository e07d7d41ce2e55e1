"""Limits that providers announce: OpenAI's x-ratelimit headers, on every answer, and Google's QuotaFailure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from plantain.models.hosted.answers import JsonObject
from plantain.models.hosted.limits.quotas import violations
from plantain.models.hosted.scrub import text
from plantain.roles.exchange import AnnouncedLimit

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}

MINUTE_S = 61.0
"""A reset within a minute is of a minute's limit."""

LONGEST_PERIOD_S = 300.0
"""Limits of an hour or a day say nothing of a pace: they are met when they are met."""


def announced_in_headers(headers: Mapping[str, str]) -> list[AnnouncedLimit]:
    """The limits of an answer's headers.

    `x-ratelimit-limit-requests: 3500`, `-remaining-requests: 3499`, `-reset-requests: 17ms` (or "6m0s", or seconds) and
    the same for tokens (OpenAI and its like, and gateways). What is no number, or not positive, is passed over.
    """
    found: list[AnnouncedLimit] = []
    for what in ("requests", "tokens"):
        limit = _number(headers.get(f"x-ratelimit-limit-{what}", ""))
        if limit is None or limit <= 0.0:
            continue
        left = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
        reset_s = _seconds(headers.get(f"x-ratelimit-reset-{what}", ""))
        period = _period(limit, left, reset_s)
        if period <= LONGEST_PERIOD_S:
            found.append(AnnouncedLimit(_of(what), limit * 60.0 / period, left, reset_s))
    return found


def announced_in_error(error: JsonObject) -> list[AnnouncedLimit]:
    """The limits a minute that a RESOURCE_EXHAUSTED of Google's names as violated."""
    found: list[AnnouncedLimit] = []
    for violation in violations(error):
        name, value = text(violation, "quotaId"), _number(text(violation, "quotaValue"))
        if "PerMinute" in name and value is not None and value > 0.0:
            what = "tokens" if "Token" in name else "requests"
            found.append(AnnouncedLimit(_of(what), value))
    return found


def _of(what: str) -> Literal["requests", "tokens"]:
    return "tokens" if what == "tokens" else "requests"


def _period(limit: float, left: float | None, reset_s: float | None) -> float:
    """Seconds over which a limit is counted: what was used comes back by the reset, at the limit's own rate."""
    if reset_s is None or reset_s <= MINUTE_S or left is None or left >= limit:
        return 60.0
    return max(60.0, reset_s * limit / (limit - left))


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds(value: str) -> float | None:
    parts = _SPAN.findall(value)
    if parts and "".join(number + unit for number, unit in parts) == value:
        return sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    return _number(value)
