"""Limits that providers announce. Header forms are those of OpenAI's and Azure's pages on rate limits, the error body
that of Google's error model (google.rpc.QuotaFailure)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from fakes.server import KEY, Answer, FakeProvider
from plantain.files.secrets import Secret
from plantain.models.hosted.faults import http_fault
from plantain.models.hosted.limits import announced_in_error, announced_in_headers
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.roles.exchange import AnnouncedLimit, Exchange, exchange
from plantain.roles.options import ProviderOptions

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
        ({"limit": "600", "remaining": "599", "reset": "59"}, 600.0),  # a fixed minute that has just begun
        ({"limit": "200", "remaining": "199", "reset": "7m12s"}, None),  # 432 s for one: 200 a day
        ({"limit": "1000", "remaining": "0", "reset": "2m0s"}, 500.0),  # two minutes for all
        ({"limit": "100"}, 100.0),
        ({"limit": "0", "remaining": "0"}, None),
        ({"limit": "-5"}, None),
        ({"limit": "nan"}, None),
        ({"limit": "many"}, None),
        ({"limit": "100", "remaining": "?", "reset": "soon"}, 100.0),
        ({}, None),
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
        ("GenerateRequestsPerMinutePerProjectPerModel", "none", []),
    ],
)
def test_quota_that_a_refusal_names(name: str, value: str, found: list[AnnouncedLimit]) -> None:
    assert announced_in_error(quota(name, value)) == found


def test_refusal_tells_the_call_that_is_being_sent() -> None:
    import json

    here = Exchange()
    token = exchange.set(here)
    try:
        http_fault("gemini/m", 429, json.dumps({"error": quota("RequestsPerMinute", "15")}), {})
    finally:
        exchange.reset(token)
    assert here.limits == [AnnouncedLimit("requests", 15.0)]


def test_headers_reach_the_caller() -> None:
    async def scene(url: str) -> list[AnnouncedLimit]:
        here = Exchange(timed=True)
        exchange.set(here)
        wire = OpenAIWire("openai/m", Secret(KEY), ProviderOptions(base_url=url), url)
        await wire.get("/models")
        await wire.aclose()
        return here.limits

    with FakeProvider([lambda request: Answer(b'{"object": "list"}', headers=OPENAI)]) as server:
        limits = asyncio.run(scene(f"{server.url}/v1"))
    assert limits == announced_in_headers(OPENAI)
