"""Error bodies as providers send them, each with its source and outcome; and bodies that are made to break a reader.

The bodies are in `error_bodies/`, one file per provider. Their sources: "gemini errors" is ai.google.dev/gemini-api/
docs/troubleshooting; "openai errors" is developers.openai.com/api/docs/guides/error-codes; "openai sdk" is the literals
of openai 3.54's `ResponseError`; threads are named by repository and number. Headers of limits are those of OpenAI's
and Azure's pages on rate limits, quotas those of Google's error model (google.rpc.QuotaFailure).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.caller import options_of
from plantain.files.secrets import Secret
from plantain.models.hosted.answers import Unreadable, read_object, scrub
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.hosted.faults import (
    LONGEST_WAIT_S,
    Fault,
    announced_in_error,
    announced_in_headers,
    failed_answer,
    http_fault,
    read_body,
)
from plantain.models.hosted.gemini.models import read_usage
from plantain.models.hosted.openai.batch import OpenAIBatch
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.records import OutcomeKind
from plantain.roles import AnnouncedLimit
from plantain.roles.options import checked_url

DEEP = "[" * 100_000 + "]" * 100_000
BODIES = {
    "nested lists": f'{{"a": {DEEP}}}',
    "a long number": '{"a": ' + "9" * 5000 + "}",
    "no object": "[1]",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_body_is_one_fault(name: str) -> None:
    with pytest.raises(Fault) as fault:
        read_body(BODIES[name].encode())
    assert len(fault.value.outcome.reason) < 200


@pytest.mark.parametrize("tokens", [2**63, 1e308])
def test_an_impossible_count_is_none_and_the_body_can_be_stored(tokens: object) -> None:
    """A run ended in a traceback behind a paid answer, or held $46,000,000,000,000 for spent."""
    body = {
        "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": 20, "totalTokenCount": tokens}
    }
    assert read_usage(body).input_tokens is None
    kept = orjson.loads(orjson.dumps(scrub(body)))  # which knows no whole number of more than 64 bits
    assert float(kept["usageMetadata"]["promptTokenCount"]) == float(tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000])
def test_a_hostile_answer_is_unreadable(value: str) -> None:
    with pytest.raises(Unreadable):
        read_object(f'{{"passed": {value}}}', {"passed"})


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1].evil.example",
        "http://[::1",
        "http://127.0.0.1\\@evil.example",
        "ftp://127.0.0.1",
        "https://gateway.example/v1?key=not-to-be-journalled",
    ],
)
def test_a_hostile_address_is_one_line(address: str) -> None:
    with pytest.raises(ValueError) as caught:
        checked_url(address)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "code", "status", "message", "details", "retryDelay", "violations", "quotaValue"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@example(400, {"code": "\n"}, {})  # was two lines
@example(400, {"code": "x" * 5000}, {})  # was 5000 characters
@example(200, {"code": "\u00b2\u00b2\u00b2"}, {})  # digits to Python, no number: was a ValueError
@given(
    st.integers(100, 599),
    JSON,
    st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms"]), st.text()),
)
def test_any_error_body_gives_an_outcome_in_one_line(
    status: int, body: object, headers: dict[str, str]
) -> None:
    outcome = http_fault("gemini/m", status, orjson.dumps(body).decode(), headers)
    assert not outcome.ok
    assert outcome.reason
    assert "\n" not in outcome.reason
    assert len(outcome.reason) < 600
    assert outcome.retry_after is None or 0 <= outcome.retry_after <= LONGEST_WAIT_S


LIMITED, TRANSPORT, REFUSED, MALFORMED = (
    OutcomeKind.RATE_LIMITED,
    OutcomeKind.TRANSPORT,
    OutcomeKind.REFUSED,
    OutcomeKind.MALFORMED,
)


@dataclass(frozen=True)
class Case:
    """A row of a table in `error_bodies/`.

    Attributes:
        body: as it was sent, character by character.
        kind: the outcome that it is.
        reason: a part of the outcome's reason.
        wait: seconds until the next try; None where the body names none.
    """

    source: str
    status: int
    body: str
    kind: str
    model: str
    fatal: bool = False
    reason: str = ""
    wait: float | None = None
    headers: dict[str, str] = field(default_factory=dict)


def cases(provider: str) -> list[Case]:
    table = tomllib.loads((Path(__file__).parent / "error_bodies" / f"{provider}.toml").read_text())
    return [Case(**{"model": f"{provider}/m", **row}) for row in table["body"]]


GEMINI, OPENAI = cases("gemini"), cases("openai")
assert (len(GEMINI), len(OPENAI)) == (50, 70)

FAILED = [
    ("server_error", TRANSPORT, False),
    ("rate_limit_exceeded", LIMITED, False),
    ("insufficient_quota", LIMITED, True),
    ("invalid_prompt", REFUSED, False),
    ("invalid_image", MALFORMED, False),
    ("something_new", MALFORMED, False),
]
"""Codes of an answer with status 200 that failed: the literals of the openai SDK's `ResponseError`, and two others."""


@pytest.mark.parametrize(
    "case",
    [*GEMINI, *OPENAI],
    ids=[*(f"gemini: {c.source}" for c in GEMINI), *(f"openai: {c.source}" for c in OPENAI)],
)
def test_error_body(case: Case) -> None:
    outcome = http_fault(case.model, case.status, case.body, case.headers)
    assert (outcome.kind, outcome.fatal) == (case.kind, case.fatal), outcome.reason
    assert case.reason in outcome.reason
    assert outcome.retry_after == (None if case.wait is None else pytest.approx(case.wait))


@pytest.mark.parametrize(("code", "kind", "fatal"), FAILED)
def test_an_answer_with_a_failed_status_is_an_outcome(code: str, kind: OutcomeKind, fatal: bool) -> None:
    outcome = failed_answer("openai/m", {"code": code, "message": "words"})
    assert (outcome.kind, outcome.fatal) == (kind, fatal)


@pytest.mark.parametrize(
    "case",
    [c for c in OPENAI if c.body.startswith("{") and not c.headers and c.status != 402],
    ids=lambda case: case.source,
)
def test_an_error_in_a_batch_has_the_same_outcome(case: Case) -> None:
    """A line of an error file holds status and body of what would have come online; only headers are lost there."""
    options = options_of("openai", jobs=BatchClient())
    jobs = OpenAIBatch(
        OpenAIWire("openai/m", Secret("k" * 20), options, "https://nowhere.example/v1"), options, ""
    )
    response = {"status_code": case.status, "body": orjson.loads(case.body)}
    with pytest.raises(Fault) as caught:
        jobs.read({"custom_id": "1", "response": response, "error": None})
    assert (caught.value.outcome.kind, caught.value.outcome.fatal) == (case.kind, case.fatal)


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
    # 16 tokens that take six minutes to come back would be 2.7 a minute: not a minute's limit
    assert tokens == []


@pytest.mark.parametrize(
    ("headers", "per_minute"),
    [
        ({"limit": "3500", "remaining": "3499", "reset": "17ms"}, 3_500.0),
        ({"limit": "200", "remaining": "199", "reset": "7m12s"}, None),  # 432 s for one: 200 a day
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
