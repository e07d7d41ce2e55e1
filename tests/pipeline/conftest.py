"""Catalogues that the tests of runs share, which no test may change; a provider on loopback with its batch jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.batch_jobs import FakeJobs
from fakes.caller import set_keys
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from pipeline.quick import quick_catalogue


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photographs of a fundus."""
    return quick_catalogue(tmp_path_factory.mktemp("quick") / "catalogue", images=3)


@pytest.fixture(scope="session")
def one_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("quick") / "catalogue", images=1)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs(lambda request: gemini_route(request) or openai_route(request))


@pytest.fixture
def server(jobs: FakeJobs) -> Iterator[FakeProvider]:
    with FakeProvider([jobs, gemini_route, openai_route]) as provider:
        yield provider
