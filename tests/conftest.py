"""The same run everywhere: fixed examples and surroundings; fresh seeds and a shuffled order only on request."""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import settings

SURROUNDINGS = {
    "COLUMNS": "100",
    "LINES": "40",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What a terminal, a place, a language and a machine would otherwise decide; processes that tests start inherit it."""

OF_THE_USER = (
    *("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""Left out, in capitals or not: no test reaches a provider with somebody's key, or loopback through a proxy."""

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("plantain")
    group.addoption("--shuffle", metavar="SEED", help="files, and the tests of a file, in another order")
    group.addoption(
        "--as-is", action="store_true", help="leave width, language and time zone as they are here"
    )


def pytest_configure(config: pytest.Config) -> None:
    for name in OF_THE_USER:
        os.environ.pop(name, None)
        os.environ.pop(name.lower(), None)
    if not config.getoption("--as-is"):
        os.environ.update(SURROUNDINGS)
        time.tzset()


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"order: --shuffle {seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A file's tests stay together, for its fixtures are costly; each place in the order is drawn by name."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        items.sort(key=lambda item: (_drawn(seed, item.path.name), str(item.path), _drawn(seed, item.nodeid)))


def _drawn(seed: str, name: str) -> float:
    return random.Random(f"{seed} {name}").random()
