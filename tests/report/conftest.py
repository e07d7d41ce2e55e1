"""The reports of the runs on paper, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.report.page import write_report


@pytest.fixture(scope="session")
def report(paper_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(paper_run, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def hostile_report(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(hostile_run, tmp_path_factory.mktemp("page") / "report.html")
