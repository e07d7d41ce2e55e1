"""Roles of hosted models, by the real SDKs against a loopback server that speaks the providers' formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from fakes.caller import Caller, set_keys
from fakes.gemini_format import gemini_route
from fakes.openai_format import openai_route
from fakes.server import FakeProvider


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


@pytest.fixture(scope="module")
def loopback() -> Iterator[FakeProvider]:
    with FakeProvider([gemini_route, openai_route]) as provider:
        yield provider


@pytest.fixture
def server(loopback: FakeProvider) -> FakeProvider:
    """The module's, with nothing left of the test before."""
    loopback.calls.clear()
    loopback.script.clear()
    loopback.spoil = None
    return loopback


@pytest.fixture(scope="module")
def call(loopback: FakeProvider) -> Iterator[Caller]:
    """On one event loop for all, so that connections live as long as they do in a run."""
    with asyncio.Runner() as runner, Caller(loopback, runner) as caller:
        yield caller


@pytest.fixture
def fresh(call: Caller) -> Iterator[Caller]:
    """Roles that no call before has left anything with."""
    with Caller(call.server, call.runner) as caller:
        yield caller
