"""Two runs on paper, one of them hostile, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from plantain.report.page import write_report
from report.run_on_paper import build_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("paper") / "run")


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_run(tmp_path_factory.mktemp("hostile") / "run", hostile=True)


@pytest.fixture(scope="session")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(run, tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def hostile_report(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(hostile_run, tmp_path_factory.mktemp("page") / "report.html")
