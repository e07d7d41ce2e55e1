"""A run: the plan's tasks through the loop, with bounded concurrency, until they are closed or someone says stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plantain.build.consent import check_pending_consent, check_planned_consent
from plantain.build.method import changed_method, method_of
from plantain.build.plan import enumerate_tasks, plan_digest
from plantain.build.pricing import check_prices, lane_rules
from plantain.build.recipe import Recipe
from plantain.build.rounds import Method
from plantain.build.spending import purse_of, seconds_left
from plantain.build.transport import check_transports, tasks_under_way
from plantain.build.walk import Walk
from plantain.build.watch import Watch
from plantain.calls import CallDesk, Gate, ServedModels
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import DiskFull, Journal, JsonValue, RunHeader
from plantain.journal.connect import JOURNAL_NAME
from plantain.models.batch.desk import BatchDesk
from plantain.models.registry import close_models
from plantain.records import InputError, TaskState
from plantain.sources.catalogue import Catalogue
from plantain.version import __version__

SILENT = Watch()


@dataclass(slots=True)
class RunSummary:
    """What this process did of a run, and whether something stopped it.

    `stopped` is None when no task is pending, else why ("interrupted", "limit", or the fault that halted the run).
    `left` says which batch jobs go on without us, "" where none does.
    """

    planned: int = 0
    closed: dict[TaskState, int] = field(default_factory=dict)
    made: int = 0
    replayed: int = 0
    stopped: str | None = None
    failed: bool = False
    left: str = ""


async def run_build(
    recipe: Recipe,
    run: Path,
    *,
    method: Method | None = None,
    limit: int | None = None,
    watch: Watch = SILENT,
    on_commit: Callable[[int], None] | None = None,
    accept_model_change: bool = False,
) -> RunSummary:
    """Runs or resumes a build.

    Args:
        recipe: validated; on resume its frozen part must equal the run's.
        run: the run's folder, created when absent.
        method: models to use instead of the recipe's names (tests and Python callers).
        limit: close at most this many tasks.
        watch: told how the run goes on.
        on_commit: told the number of durable events so far.
        accept_model_change: go on, and record it, when a provider serves another model than before.

    Raises:
        InputError: the recipe differs from the run's, the catalogue is missing, another process holds the run, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    taxonomy = load_taxonomy(recipe.data.finding_files)
    check_prices(recipe)
    check_transports(recipe)
    catalogue = Catalogue.open(recipe.data.catalogue)
    check_planned_consent(recipe, catalogue, taxonomy)
    jobs = BatchDesk()
    method = method or method_of(recipe, jobs)
    journal = await _open_journal(recipe, run)
    journal.on_commit = on_commit
    summary = RunSummary()
    try:
        summary.planned = await _plan(recipe, catalogue, taxonomy, journal)
        await check_pending_consent(recipe, catalogue, journal)
        in_jobs = await jobs.open(journal)
        gate = Gate(partial(lane_rules, recipe), purse_of(recipe, journal.reader))
        watch.planned(summary.planned, journal.reader.counts(), gate.purse)
        served = ServedModels(journal, accept_changes=accept_model_change)
        desk = CallDesk(
            journal, gate, recipe.limits.deadline_s, served, jobs.models, in_jobs, leave_jobs=jobs.leave
        )
        walk = Walk(method, journal, catalogue, taxonomy, desk, watch)
        changed = await changed_method(method, journal)
        if changed is not None:
            walk.halt(changed, faulty=True)
        async with _interruptible(desk, watch), _time_cap(recipe, journal, walk):
            await walk.all(tasks_under_way(recipe), limit)
        summary.left = await jobs.close()
        await _sum_up(summary, walk, desk, gate)
    finally:
        await jobs.close()
        await journal.close()
        catalogue.close()
        await close_models(method.writer, method.editor, *method.judges)
    return summary


async def _sum_up(summary: RunSummary, walk: Walk, desk: CallDesk, gate: Gate) -> None:
    """Says what this process did, to its caller and in the run's own session row."""
    summary.closed, summary.made, summary.replayed = walk.closed, desk.made, desk.replayed
    summary.stopped, summary.failed = walk.halted, walk.faulty
    if summary.stopped is None and desk.journal.reader.counts().get(TaskState.PENDING, 0):
        summary.stopped = "interrupted" if desk.stop_requested else "limit"
    detail: dict[str, JsonValue] = {"made": desk.made, "peak_rss_mb": peak_rss_mb(), "limits": gate.told()}
    with contextlib.suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
        await desk.journal.end_session(desk.replayed, detail)


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_worker_rss_mb() -> float:
    """Peak resident memory in MiB of the largest worker process that has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


async def _open_journal(recipe: Recipe, run: Path) -> Journal:
    frozen = recipe.frozen_part()
    if not (run / JOURNAL_NAME).exists():
        header = RunHeader(
            run_id=os.urandom(8).hex(),
            name=recipe.name,
            seed=recipe.seed,
            frozen=frozen,
            code_version=__version__,
        )
        return Journal.create(run, header)
    journal = Journal.open(run)
    for key in {**frozen, **journal.header.frozen}:
        value, recorded = frozen.get(key), journal.header.frozen.get(key)
        if recorded != value:
            await journal.close()
            raise InputError(
                f"{run}: the recipe's {key} is {_said(value)}, but this run was begun with {_said(recorded)}; models, "
                "sampling, loop and seed are frozen in a run: use a new --run folder, or restore the recipe"
            )
    return journal


def _said(value: JsonValue) -> str:
    return "not given" if value is None else str(value)


@asynccontextmanager
async def _time_cap(recipe: Recipe, journal: Journal, walk: Walk) -> AsyncIterator[None]:
    """Halts the walk when the run's hours are used up."""
    seconds = seconds_left(recipe, journal.reader)
    if seconds is None:
        yield
        return
    why = f"limits.max_hours = {recipe.limits.max_hours:g}: used up; raise limits.max_hours in the recipe to go on"
    timer = asyncio.get_running_loop().call_later(max(0.0, seconds), partial(walk.halt, why, faulty=False))
    if seconds <= 0:
        walk.halt(why, faulty=False)
    try:
        yield
    finally:
        timer.cancel()


async def _plan(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, journal: Journal) -> int:
    """Journals the tasks once; enumerates again only when the catalogue or the choice of findings changed."""
    digest = plan_digest(recipe, catalogue, taxonomy)
    if journal.reader.meta("plan_digest") != digest:
        await journal.add_tasks(enumerate_tasks(recipe, catalogue, taxonomy))
        await journal.set_meta("plan_digest", digest)
    return sum(journal.reader.counts().values())


@asynccontextmanager
async def _interruptible(desk: CallDesk, watch: Watch) -> AsyncIterator[None]:
    """First Ctrl-C (or TERM): finish what is in flight. Second: stop at once; the journal is whole at any instant."""
    loop = asyncio.get_running_loop()
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(3)
        asked = True
        desk.request_stop()
        watch.stopping()

    signals = (signal.SIGINT, signal.SIGTERM)
    try:
        for number in signals:
            loop.add_signal_handler(number, stop)
    except (RuntimeError, ValueError):  # not in the main thread: whoever runs us handles signals
        yield
        return
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
