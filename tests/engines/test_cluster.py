"""The Ray engine on a cluster of this machine: a worker does each job once, and a lost worker is reported."""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import EngineSection
from plantain.engines.joining import host_and_port, join, wants_token
from plantain.records import InputError
from plantain.version import __version__

ray = pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
T = TypeVar("T")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of this machine for all tests: it takes five seconds to start."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("OPENAI_API_KEY", "sk-a-key-of-nobody-in-particular")
        join("local", processors=2)
        yield
        ray.shutdown()


UNPICKLABLE = """
class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("stays here")
raise Unpicklable("of a worker")
"""


def engine_of(**section: Any) -> RayEngine:
    return RayEngine(EngineSection.model_validate({"kind": "ray", "address": "local", **section}))


def on(work: Callable[[RayEngine], Awaitable[T]], workers: int = 1) -> T:
    """Return the result of `work` with an engine of `workers` workers."""

    async def within() -> T:
        engine = engine_of(workers=workers)
        engine.open()
        try:
            return await work(engine)
        finally:
            await engine.aclose()

    return asyncio.run(within())


def test_results_and_errors_of_a_function_are_returned(cluster: None) -> None:
    async def work(engine: RayEngine) -> str:
        large = b"x" * 100_000
        ran = await engine.run("editor", bytes.upper, (large,))
        assert ran.value == large.upper() and "numpy" in ran.on and not ran.lost
        with pytest.raises(ValueError, match="invalid literal"):
            await engine.run("judge", int, ("abc",))
        with pytest.raises(Exception, match="Unpicklable"):
            await engine.run("judge", exec, (UNPICKLABLE,))
        missing = await engine.run("editor", importlib.import_module, ("no_such_package",))
        assert (
            "a package is missing on a worker of the cluster: No module named 'no_such_package'"
            in missing.broken
        )
        return engine.line

    assert on(work).startswith("ray: 1 worker, 0 busy, 0 queued")


def test_local_workers_have_no_keys_and_a_cancelled_call_frees_its_worker(cluster: None) -> None:
    async def work(engine: RayEngine) -> Any:
        first = asyncio.create_task(engine.run("editor", os.getenv, ("OPENAI_API_KEY",)))
        second = asyncio.create_task(engine.run("editor", len, ("abcd",)))
        key = await first  # its worker is passed to the second call in this turn of the loop
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        return key.value, await asyncio.wait_for(engine.run("editor", os.getenv, ("PATH",)), 60.0)

    key, path = on(work)
    assert (key, path.value) == (None, os.environ["PATH"])
    assert os.environ["OPENAI_API_KEY"]


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "ray://127.0.0.1:10001"])
def test_wrong_address_gives_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ray", raising=False)  # as in a process that has no connection
    with pytest.raises(
        InputError, match=r"engine\.address: no Ray cluster at .*start one with `ray start --head`"
    ):
        engine_of(address=address).open()


BUILD = """
import asyncio, sys
from plantain.engines.cluster import RayEngine
from plantain.engines.contract import EngineSection

async def main():
    engine = RayEngine(EngineSection(kind="ray", address=sys.argv[1], workers=1))
    engine.open()
    try:
        for number in range(int(sys.argv[2])):  # a head that considers the worker's owner dead does so within seconds
            await asyncio.sleep(10 * number)
            print((await engine.run("editor", len, ("abc",))).value, flush=True)
    finally:
        await engine.aclose()

asyncio.run(main())
"""


def in_a_process(folder: Path, address: str, times: int) -> list[str]:
    """Return the workers' answers to a separate program: Ray reads its authentication once, when it is imported."""
    environment = {**without_rays(), "HOME": str(folder), "RAY_TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, address, str(times)], env=environment, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.split()


def without_rays() -> dict[str, str]:
    """The environment without variables that Ray has set in this process."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


@pytest.mark.slow
def test_user_with_a_token_joins_heads_with_and_without_one(tmp_path: Path) -> None:
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a" * 64)
    with ThreadPoolExecutor(2) as both:  # they mostly wait
        found = dict(both.map(lambda mode: (mode, joined(mode, tmp_path)), ("token", "disabled")))
    assert found == {"token": ["3", "3"], "disabled": ["3", "3"]}


def joined(mode: str, home: Path) -> list[str]:
    """Return the workers' answers on a new head."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="ray-") as short:  # paths of sockets are short
        head = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
                *(f"--port={port}", "--num-cpus=1", "--include-dashboard=false", f"--temp-dir={short}"),
            ],
            env={**without_rays(), "HOME": str(home), "RAY_AUTH_MODE": mode, "RAY_USAGE_STATS_ENABLED": "0"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not answers(port):
                assert head.poll() is None
                time.sleep(0.1)
            return in_a_process(home, f"127.0.0.1:{port}", 2)
        finally:
            head.terminate()
            head.wait()


def answers(port: int) -> bool:
    try:
        wants_token("127.0.0.1", port)
    except OSError:
        return False
    return True


@pytest.mark.slow
def test_local_cluster_is_started_if_none_runs_or_the_old_one_is_gone() -> None:
    with tempfile.TemporaryDirectory(prefix="ray-") as short:
        (Path(short) / "ray").mkdir()
        # As left by `ray start`, of a head that no longer runs.
        (Path(short) / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
        assert in_a_process(Path(short), "auto", 1) == ["3"]


def test_connected_process_refuses_another_cluster(cluster: None) -> None:
    host, port = host_and_port(ray.get_runtime_context().gcs_address)
    for here in ("auto", "local", f"{host}:{port}"):
        assert join(here) == (ray, False)
    with pytest.raises(InputError, match=f"connected to the Ray cluster at {host}:{port} already"):
        join(f"{host}:{port + 1}")
    assert wants_token(host, port), "local clusters ask for a token, as Ray documents"
    with pytest.raises(ConnectionError, match="not the head of a Ray cluster"):
        wants_token("127.0.0.1", ray.nodes()[0]["NodeManagerPort"])


def test_work_without_room_is_reported_and_can_be_cancelled(
    cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plantain.engines.cluster.LOOK_S", 0.05)

    async def work() -> Any:
        engine = engine_of(editor={"gpus": 1})
        engine.open()
        try:
            waiting = asyncio.create_task(engine.run("editor", len, ("abc",)))
            while "no room" not in engine.line:  # noqa: ASYNC110 (looked at as a progress line does)
                await asyncio.sleep(0.01)
            needed = engine.line.partition("worker of ")[2]
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return needed
        finally:
            await engine.aclose()

    assert asyncio.run(asyncio.wait_for(work(), 60.0)) == "1 CPU and 1 GPU"


def test_lost_worker_is_replaced_and_its_work_is_not_repeated(cluster: None, tmp_path: Path) -> None:
    log = tmp_path / "log"
    dying = f"import os; open({str(log)!r}, 'a').write('once\\n'); os._exit(1)"

    async def work(engine: RayEngine) -> Any:
        lost = await engine.run("editor", exec, (dying,))
        again = await engine.run("editor", len, ("abc",))
        return lost, again, engine.line

    lost, again, line = on(work)
    assert lost.value is None and "died" in lost.lost
    assert log.read_text() == "once\n"
    assert again.value == 3 and line.startswith("ray: 1 worker, ") and ", 1 lost" in line


def test_worker_that_cannot_start_is_reported_as_the_reason(
    cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plantain.engines.cluster.LOOK_S", 0.05)
    monkeypatch.setattr("plantain.engines.cluster.FAILED_STARTS", 2)
    monkeypatch.setattr("plantain.engines.cluster.__version__", "0.0.9")
    ran = on(lambda engine: asyncio.wait_for(engine.run("editor", len, ("abc",)), 60.0))
    assert ran.value is None and ran.broken.startswith("no worker could be started on the cluster: ")
    assert ran.broken.endswith(
        f"plantain {__version__} on a worker's machine, 0.0.9 on the head's: install one"
    )


def test_calls_in_flight_are_limited_to_the_workers_and_cancelled_ones_free_theirs(cluster: None) -> None:
    async def work(engine: RayEngine) -> Any:
        await engine.run("editor", len, ("abc",))
        long = [asyncio.create_task(engine.run("editor", time.sleep, (600,))) for _ in range(3)]
        await asyncio.sleep(0.1)
        line = engine.line
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)
        return line, await engine.run("editor", len, ("abcd",))

    line, after = on(work)
    assert line.startswith("ray: 1 worker, 1 busy, 2 queued")
    assert after.value == 4


def test_missing_ray_is_one_line_with_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install -e '\.\[ray\]'"):
        engine_of(address="auto").open()
