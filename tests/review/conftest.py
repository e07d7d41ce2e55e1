"""One browser for all tests of a file: each has a window of its own, which knows nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from review.in_browser import CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
