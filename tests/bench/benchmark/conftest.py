"""MedEBench's published layout, written with real images."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakes.medebench_tree import write_tree


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("published"))


@pytest.fixture
def tree(published: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(published, tmp_path / "editing"))
