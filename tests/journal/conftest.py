"""A run whose writer a test calls step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from journal.examples import Do, a_run
from plantain.journal import Journal


@pytest.fixture
def do() -> Iterator[Do]:
    """Run a coroutine, in one event loop for all of a test."""
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture
def journal(do: Do, tmp_path: Path) -> Iterator[Journal]:
    """Of a run with one image and three pending tasks."""
    made: Journal = do(a_run(tmp_path))
    yield made
    do(made.close())
