"""Limits that providers announce. Header forms are those of OpenAI's and Azure's pages on rate limits, the error body
that of Google's error model (google.rpc.QuotaFailure)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plantain.models.hosted.faults import announced_in_error, announced_in_headers
from plantain.roles import AnnouncedLimit

OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-reset-tokens": "6m0s",
}
"""The example of OpenAI's page."""


def test_headers_of_an_ordinary_answer() -> None:
    requests, *tokens = announced_in_headers(OPENAI)
    assert requests == AnnouncedLimit("requests", 60.0, 59.0, 1.0)
    assert (
        tokens == []
    )  # 16 tokens that take six minutes to come back would be 2.7 a minute: not a minute's limit


@pytest.mark.parametrize(
    ("headers", "per_minute"),
    [
        ({"limit": "3500", "remaining": "3499", "reset": "17ms"}, 3_500.0),
        ({"limit": "200", "remaining": "199", "reset": "7m12s"}, None),  # 432 s for one: 200 a day
        ({"limit": "1000", "remaining": "0", "reset": "2m0s"}, 500.0),  # two minutes for all
        ({"limit": "100"}, 100.0),
        ({"limit": "0", "remaining": "0"}, None),
    ],
)
def test_forms_of_headers(headers: Mapping[str, str], per_minute: float | None) -> None:
    found = announced_in_headers({f"x-ratelimit-{name}-requests": value for name, value in headers.items()})
    assert [limit.per_minute for limit in found] == ([] if per_minute is None else [per_minute])


def quota(name: str, value: str) -> dict[str, object]:
    violation = {"quotaMetric": "generativelanguage.googleapis.com/any", "quotaId": name, "quotaValue": value}
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]
    return {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "10", [AnnouncedLimit("requests", 10.0)]),
        ("GenerateContentInputTokensPerModelPerMinute-PaidTier", "1000000", [AnnouncedLimit("tokens", 1e6)]),
        ("GenerateRequestsPerDayPerProjectPerModel", "250", []),
        ("GenerateRequestsPerMinutePerProjectPerModel", "0", []),
    ],
)
def test_quota_that_a_refusal_names(name: str, value: str, found: list[AnnouncedLimit]) -> None:
    assert announced_in_error(quota(name, value)) == found
