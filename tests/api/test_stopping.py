"""A run that its caller cancels: gently the first time, immediately the second; the journal is intact both times."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.api.building import finished
from plantain.journal import JournalReader
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import TaskState
from plantain.roles import EditedImage, EditRequest, Reply
from plantain.runs.open_run import cancellation
from plantain.runs.progress import RunSummary


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return quick_recipe(quick_catalogue(tmp_path_factory.mktemp("stopping") / "catalogue"))


def facts(run: Path) -> list[tuple[object, ...]]:
    """Return tasks, attempts, and calls without times."""
    with JournalReader.open(run) as reader:
        return [
            (row, reader.attempts(row.id), [(c.key, c.outcome) for c in reader.calls(row.id) if c.final])
            for row in reader.tasks()
        ]


class Slow:
    """An editor that signals when it is called, and waits for `go`."""

    def __init__(self, editor: object) -> None:
        self.inner = editor
        self.name, self.fingerprint = "quick/editor", "1"
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        self.reached.set()
        await self.go.wait()
        return await self.inner.edit(request)  # type: ignore[attr-defined, no-any-return]


def slow_run(recipe: Recipe, run: Path) -> tuple[asyncio.Task[RunSummary], Slow]:
    method = quick_method(CallLog(None))
    slow = Slow(method.editor)
    object.__setattr__(method, "editor", slow)
    work = run_build(recipe, run, method=method)
    return asyncio.create_task(work), slow


def check_whole(run: Path, recipe: Recipe, whole: Path) -> None:
    """The journal is intact and unlocked, and the resumed run equals an uninterrupted one."""
    with sqlite3.connect(run / "journal.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    for folder in (run, whole):
        summary = asyncio.run(run_build(recipe, folder, method=quick_method(CallLog(None))))
        assert summary.stopped is None
    assert facts(run) == facts(whole)


@pytest.mark.parametrize("times", [1, 2])
def test_first_stop_records_calls_in_flight_and_a_cancellation_leaves_them_open(
    times: int, recipe: Recipe, tmp_path: Path
) -> None:
    async def stopped() -> None:
        stop = asyncio.Event()
        cancellation.set(stop)
        task, slow = slow_run(recipe, tmp_path / "run")
        await slow.reached.wait()
        stop.set()
        await asyncio.sleep(0)
        assert not task.done()  # the call in flight is waited for
        if times == 1:
            slow.go.set()
            assert (await task).stopped == "interrupted"
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(stopped())
    with JournalReader.open(tmp_path / "run") as reader:
        assert bool(reader.open_calls()) == (times == 2)
        assert reader.counts()[TaskState.PENDING] > 0
    check_whole(tmp_path / "run", recipe, tmp_path / "whole")


def test_plain_code_inside_a_loop_gets_results_and_errors() -> None:
    async def seven() -> int:
        return 7

    async def wrong() -> int:
        raise KeyError("the cause")

    async def cell() -> int:
        with pytest.raises(KeyError, match="the cause"):
            finished(wrong)
        return finished(seven)

    assert asyncio.run(cell()) == finished(seven) == 7


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_cell_stops_the_run_gently_and_then_at_once(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jupyter's stop button raises KeyboardInterrupt in the thread that waits; here the first waits raise it."""
    ended: list[str] = []

    async def work() -> None:
        try:
            stop = cancellation.get()
            assert stop is not None
            await (stop.wait() if times == 1 else asyncio.sleep(3600))
        finally:
            ended.append("cleanly")

    import plantain.api.building as blocking

    interrupts = iter([KeyboardInterrupt()] * times)
    real = blocking.ThreadPoolExecutor.submit

    def submit(pool: object, *args: object) -> object:
        future = real(pool, *args)  # type: ignore[arg-type]
        result = future.result

        def interrupted() -> object:
            for error in interrupts:
                raise error
            return result()

        future.result = interrupted  # type: ignore[method-assign, assignment]
        return future

    monkeypatch.setattr(blocking.ThreadPoolExecutor, "submit", submit)

    async def cell() -> None:
        finished(work)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert ended == ["cleanly"]
