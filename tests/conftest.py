"""Tests run equally everywhere: fixed examples and environment; new seeds and another order only on request."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from plantain.privacy.text import TextReader

SURROUNDINGS = {
    "COLUMNS": "100",
    "LINES": "40",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ORT_DISABLE_TELEMETRY": "1",
}
"""Settings that would otherwise depend on the terminal, place, language and machine; child processes inherit them."""

OF_THE_USER = (
    *("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("AWS_", "AZURE_", "GEMINI_", "GOOGLE_", "HF_", "OPENAI_", "RAY_"),
)
"""Removed variables, by the start of their name in any case: no test uses a contributor's key,
proxy or cluster."""

ROOM = 6 << 30
"""Bytes of free memory needed to write tests' files there: together all tests write about 3 GB."""

SLOW = (
    "attention audit batch_run bench_demo benchmarks blocks browser build cards clouds cluster consent "
    "control crash demo dicom diffusers_editor diffusers_engine distributions engine evaluating examples "
    "export feeding first_sight frames from_build fuzz generate generate_hosted hosted_outcomes hosted_run "
    "hostile hostile_releases importing ingest judge keys_in_runs killed_heads kills layouts leaderboard "
    "limits means nifti notebooks originals page paired planted_defects power_loss preparing "
    "preparing_hosted private provenance publish python_api quarantine reference release_terms restore retry "
    "run run_setup run_tables safe_path score seed_x_worker simulated_day slow_server stateful stopping "
    "study tables text_check train training verify"
)
"""Files test_*.py that start processes, train, draw many images or run whole pipelines: `--fast` skips them."""

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("plantain")
    group.addoption("--shuffle", metavar="SEED", help="files, and the tests of a file, in another order")
    group.addoption("--fast", action="store_true", help="leave out files whose tests take long")
    group.addoption(
        "--as-is", action="store_true", help="leave width, language and time zone as they are here"
    )


def pytest_configure(config: pytest.Config) -> None:
    _refuse_stale_installation()
    gc.disable()  # until all tests are collected, as they are kept to the end
    if config.getoption("hypothesis_profile", None) != "fuzz":
        _same_examples_in_any_process()
    for name in [name for name in os.environ if name.upper().startswith(OF_THE_USER)]:
        del os.environ[name]
    # a shell's background jobs inherit that it is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.getoption("--as-is"):
        os.environ.update(SURROUNDINGS)
        time.tzset()
        _write_to_memory()


def _write_to_memory() -> None:
    """Use memory as the temporary folder: a third of the time is waiting for a disk. TMPDIR names another folder."""
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or not memory.is_dir() or not os.access(memory, os.W_OK):
        return
    if os.statvfs(memory).f_flag & os.ST_NOEXEC:  # as in containers; some tests run programs that they write
        return
    if min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) > ROOM:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None


def _refuse_stale_installation() -> None:
    """Refuse to test with an older installation: plantain's entry points are read from the installed metadata."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
    asked = {(group, name) for group, names in project["entry-points"].items() for name in names}
    try:
        found = {(entry.group, entry.name) for entry in distribution(project["name"]).entry_points}
    except PackageNotFoundError:
        found = set()
    if missing := sorted(asked - found):
        pip = f"{sys.executable} -m pip install --no-deps -e ."
        raise pytest.UsageError(f"not installed as in pyproject.toml: {missing[0]} is missing; run: {pip}")


def _same_examples_in_any_process() -> None:
    """Use no constants of loaded modules as examples: they depend on the order of tests, and are slow to collect.

    Hypothesis has no setting for that.
    """
    providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exclude the collected tests and modules from garbage collection: it would take a sixth of the whole time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def devices_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run devices of open weights as threads of this process, so that tests can read their requests and results."""
    from fakes.device_thread import DeviceThread

    monkeypatch.setattr("plantain.models.diffusers.devices.DeviceProcess", DeviceThread)


def pytest_runtest_setup() -> None:
    """Limit torch to one thread: tiny networks are many times slower on threads that wait for each other;
    OMP_NUM_THREADS is read too late if another library has loaded its threads before."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"order: --shuffle {seed}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = config.getoption("--fast") and collection_path.stem.removeprefix("test_") in SLOW.split()
    return True if left_out and collection_path.suffix == ".py" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a file's tests together, for its fixtures are costly; `--shuffle` draws each position by name.

    Long files come first, so that no process works alone at the end.
    """
    seed = config.getoption("--shuffle")
    if seed is None:
        items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in SLOW.split())
    else:
        items.sort(key=lambda item: (_drawn(seed, item.path.name), str(item.path), _drawn(seed, item.nodeid)))


def _drawn(seed: str, name: str) -> float:
    return random.Random(f"{seed} {name}").random()


@pytest.fixture(scope="session")
def reader() -> TextReader:
    """The installed reader of text."""
    from plantain.privacy.rapid_text import open_reader, why_no_reader

    found = open_reader()
    if found is None:
        pytest.skip(why_no_reader())
    return found


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on paper, built once: read it, or copy it."""
    from report.run_on_paper import build_run

    return build_run(tmp_path_factory.mktemp("paper") / "run")


@pytest.fixture(scope="module")
def own_run(paper_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run on paper, to which the tests of a file may write."""
    return Path(shutil.copytree(paper_run, tmp_path_factory.mktemp("own") / "run"))


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run on paper with labels, reasons and notes that try to break out of a page."""
    from report.run_on_paper import build_run

    return build_run(tmp_path_factory.mktemp("hostile") / "run", hostile=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of a file: each has its own window, isolated from the others.

    While it is open, its driver has an event loop in this thread: run coroutines in another one.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
