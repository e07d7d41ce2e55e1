"""A Ray cluster of this machine, for the tests that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plantain.engines.joining import join


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests of a file: it takes five seconds to begin. It ends before a test asks for another."""
    ray = pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("OPENAI_API_KEY", "sk-a-key-of-nobody-in-particular")
        join("local", processors=2)
        yield
        ray.shutdown()
