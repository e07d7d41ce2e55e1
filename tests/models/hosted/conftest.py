"""Roles of hosted models, by the real SDKs against a loopback server that speaks the providers' formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from fakes.caller import KEY_NAMES, Caller
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import KEY, FakeProvider
from plantain.models.registry import close_models


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all, so that connections live as long as they do in a run."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def call(server: FakeProvider, runner: asyncio.Runner) -> Iterator[Caller]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GOOGLE_API_KEY", raising=False)
        for name in KEY_NAMES:
            patch.setenv(name, KEY)
        caller = Caller(server, runner)
        yield caller
        runner.run(close_models(*caller.roles.values()))


@pytest.fixture
def fresh(call: Caller) -> Iterator[Caller]:
    """Roles that no call before has left anything with."""
    caller = Caller(call.server, call.runner)
    yield caller
    call.runner.run(close_models(*caller.roles.values()))
