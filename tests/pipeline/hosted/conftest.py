"""A provider on loopback with its batch jobs, and the keys that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakes.batch_jobs import FakeJobs
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, FakeProvider


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs(lambda request: gemini_route(request) or openai_route(request))


@pytest.fixture
def server(jobs: FakeJobs) -> Iterator[FakeProvider]:
    with FakeProvider([jobs, gemini_route, openai_route]) as provider:
        yield provider
