"""Error bodies as providers send them, each with where it was seen and the outcome that it is for us.

The bodies stand in `error_bodies/`, one file per provider. Their sources: "gemini errors" is ai.google.dev/gemini-api/
docs/troubleshooting; "openai errors" is developers.openai.com/api/docs/guides/error-codes; "openai sdk" is the literals
of openai 3.54's `ResponseError`; threads are named by repository and number.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from plantain.files.secrets import Secret
from plantain.models.hosted.faults import Fault, failed_answer, http_fault
from plantain.models.hosted.openai.batch import OpenAIJobs
from plantain.models.hosted.openai.wire import OpenAIWire
from plantain.records import OutcomeKind
from plantain.roles.options import ProviderOptions

NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)
"""Noon in California; its midnight is 08:00 UTC of the next day, 12 hours on."""

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
        reason: what the outcome's reason says, among other things.
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
    outcome = http_fault(case.model, case.status, case.body, case.headers, NOW)
    assert (outcome.kind, outcome.fatal) == (case.kind, case.fatal), outcome.reason
    assert case.reason in outcome.reason
    assert outcome.retry_after == (None if case.wait is None else pytest.approx(case.wait))


@pytest.mark.parametrize(("code", "kind", "fatal"), FAILED)
def test_answer_that_says_it_failed(code: str, kind: OutcomeKind, fatal: bool) -> None:
    outcome = failed_answer("openai/m", {"code": code, "message": "words"})
    assert (outcome.kind, outcome.fatal) == (kind, fatal)


@pytest.mark.parametrize(
    "case",
    [c for c in OPENAI if c.body.startswith("{") and not c.headers and c.status != 402],
    ids=lambda case: case.source,
)
def test_the_same_in_a_batch_is_the_same(case: Case) -> None:
    """A line of an error file holds status and body of what would have come online; only headers are lost there."""
    jobs = OpenAIJobs(
        OpenAIWire("openai/m", Secret("k" * 20), ProviderOptions(), "https://nowhere.example/v1")
    )
    response = {"status_code": case.status, "body": orjson.loads(case.body)}
    with pytest.raises(Fault) as caught:
        jobs.read({"custom_id": "1", "response": response, "error": None})
    assert (caught.value.outcome.kind, caught.value.outcome.fatal) == (case.kind, case.fatal)
