"""Two small runs and one release in every layout, made once; its readers download nothing."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from plantain.journal import JournalReader
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from release.runs import make_run

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read as soon as a library is imported
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("this test has no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "small", images=20)


@pytest.fixture(scope="session")
def little_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run for exports of one layout; read only."""
    return make_run(tmp_path_factory.mktemp("runs") / "little", images=4)


@pytest.fixture(scope="session")
def release(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release of every layout, in shards of 60 kB so that there are several."""
    out = tmp_path_factory.mktemp("releases") / "all"
    export_run(small_run, out, ExportOptions(LAYOUTS, shard_bytes=60_000, licences=("CC-BY-4.0",)))
    return out


@pytest.fixture
def copy(release: Path, tmp_path: Path) -> Path:
    """Return a copy of the release that a test may spoil."""
    return Path(shutil.copytree(release, tmp_path / "copy"))


@pytest.fixture
def reader(small_run: Path) -> JournalReader:
    return JournalReader.open(small_run)
