"""Limits that providers announce. Header forms are those of OpenAI's and Azure's pages on rate limits, the error body
that of Google's error model (google.rpc.QuotaFailure)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx2
import openai
import pytest

from fakes.server import KEY, Answer, FakeProvider, Request, json_answer
from plantain.models.hosted.faults import http_fault
from plantain.models.hosted.guarded import GuardedTransport
from plantain.models.hosted.limits.announced import announced_in_error, announced_in_headers
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


def test_headers_reach_the_caller_through_the_sdk() -> None:
    """OpenAI's own client over our transport: the limits are there beside the answer, without asking it for them."""
    from plantain.models.hosted.guarded import GuardedTransport
    from plantain.roles.options import ProviderOptions

    class Stub(GuardedTransport):
        async def _opened(self):  # type: ignore[no-untyped-def]
            answer = httpx2.MockTransport(
                lambda request: httpx2.Response(200, json={"object": "list"}, headers=OPENAI)
            )
            to, _ = await super()._opened()
            return to, answer

    async def scene() -> list[AnnouncedLimit]:
        here = Exchange(timed=True)
        exchange.set(here)
        url = "http://127.0.0.1:9/v1"
        http = httpx2.AsyncClient(transport=Stub("openai/m", url, ProviderOptions(base_url=url)))
        async with openai.AsyncOpenAI(api_key="k", base_url=url, http_client=http, max_retries=0) as client:
            await client.get("/models", cast_to=httpx2.Response)
        return here.limits

    assert asyncio.run(scene()) == [AnnouncedLimit("requests", 60.0, 59.0, 1.0)]


@pytest.mark.parametrize(("status", "pause"), [(200, 7.0), (429, None)])
def test_an_answer_that_asks_to_wait_is_a_pause_for_all(status: int, pause: float | None) -> None:
    """A 429 waits by its outcome; Retry-After beside an answer (RFC 9110, 10.2.3) holds the next request back."""

    def answer(request: Request) -> Answer:
        return json_answer({}, status, Retry_After="7")

    async def asked(url: str) -> list[AnnouncedLimit]:
        seen = Exchange()
        exchange.set(seen)
        async with httpx2.AsyncClient(
            transport=GuardedTransport("openai/m", url, ProviderOptions(base_url=url))
        ) as client:
            await client.post(url, json={}, headers={"Authorization": f"Bearer {KEY}"})
        return seen.limits

    with FakeProvider([answer]) as server:
        limits = asyncio.run(asked(server.url))
    assert [limit.reset_s for limit in limits] == ([] if pause is None else [pause])
