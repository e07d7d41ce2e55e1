"""Plan and run a recipe from Python: in a script, in a thread, or while an event loop runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from plantain.api.run import Run
from plantain.offline.workers import leave_workers, use_workers
from plantain.pipeline.forecast import BuildPlan, forecast
from plantain.pipeline.recipe import Recipe, checked, load_recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError
from plantain.runs.open_run import cancellation


def run(recipe: Recipe | Path | str, run_dir: Path | str, *, limit: int | None = None) -> Run:
    """Run or resume a build like `plantain build`; return when it has ended or was stopped.

    It needs no `if __name__ == "__main__"` and may be called in a notebook and in any thread. In the main thread of a
    script the first Ctrl-C finishes the calls in flight and returns; a second one ends the process. In a notebook the
    first one finishes these calls and raises KeyboardInterrupt.

    Args:
        recipe: a recipe, or the path of its TOML file.
        run_dir: the run's folder, created if missing.
        limit: finish at most this many tasks in this call, at least 1; None for all.

    Returns:
        The run. Its `summary` counts the results of this call; `summary.stopped` is the reason why tasks are left, or
        None.

    Raises:
        plantain.records.InputError: recipe, catalogue, run or limit cannot be used; one line names the file and field,
            and no model was called.

    Example:
        >>> run("pilot.toml", "runs/pilot")
        Run('runs/pilot'): 2 tasks, 2 success
    """
    made = _recipe(recipe)
    _check_limit(limit)
    use_workers()
    try:
        summary = finished(lambda: run_build(made, Path(run_dir), limit=limit))
    finally:
        leave_workers()
    return Run(run_dir, summary)


def plan(recipe: Recipe | Path | str, *, pilot: Path | str | None = None) -> BuildPlan:
    """Forecast a recipe's tasks, cost and duration, as `plantain plan` prints them. No model is called.

    Args:
        recipe: a recipe, or the path of its TOML file.
        pilot: folder of a run whose rates, costs and latencies are used; None for the paper's success rates and
            plantain's assumptions.

    Returns:
        `tasks` and `images` are counts. `calls`, `cost_usd` (US dollars), `duration_s` (seconds) and `disk` (bytes)
        each have the values `low`, `expected` and `high`; `cost_usd` is None if a price is unknown.

    Raises:
        plantain.records.InputError: recipe or catalogue cannot be used, an image may not be sent to a model, a model
            under a budget has no price, or `pilot` is not a run with finished tasks.

    Example:
        >>> plan("pilot.toml").tasks
        2
    """
    made = _recipe(recipe)
    return forecast(made, Path(pilot) if pilot is not None else None)[0]


def _recipe(recipe: Recipe | Path | str) -> Recipe:
    return checked(recipe) if isinstance(recipe, Recipe) else load_recipe(Path(recipe))


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise InputError(f"limit: {limit}; at least 1, or None for all tasks")


T = TypeVar("T")


def finished(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine that `begin` returns to its end, and return its result.

    If this thread already runs an event loop, as in a notebook, the coroutine runs in another thread. The first
    interrupt then stops it gracefully, a second one at once; KeyboardInterrupt is raised when it has stopped.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    with ThreadPoolExecutor(1, "plantain-run") as pool:
        return _in_thread(begin, pool)


def _in_thread(begin: Callable[[], Coroutine[Any, Any, T]], pool: ThreadPoolExecutor) -> T:
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, asyncio.Task[T]]] = Future()

    async def work() -> T:
        stop = asyncio.Event()
        cancellation.set(stop)
        task = asyncio.create_task(begin())
        started.set_result((asyncio.get_running_loop(), stop, task))
        return await task

    ended = pool.submit(asyncio.run, work())
    interrupted = False
    while True:
        try:
            result = ended.result()
        except KeyboardInterrupt:
            loop, stop, task = started.result()
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                loop.call_soon_threadsafe(task.cancel if interrupted else stop.set)
            interrupted = True
            continue
        except asyncio.CancelledError:
            if not interrupted:
                raise
        if interrupted:
            raise KeyboardInterrupt
        return result
