"""A catalogue that the tests of runs share; no test may change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.quick import quick_catalogue


@pytest.fixture(scope="session")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photographs of a fundus."""
    return quick_catalogue(tmp_path_factory.mktemp("quick") / "catalogue", images=3)
