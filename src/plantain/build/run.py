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
from pathlib import Path

from plantain import __version__
from plantain.build.plan import enumerate_tasks, plan_digest
from plantain.build.recipe import Recipe
from plantain.build.rounds import Method
from plantain.build.walk import Walk, Watch
from plantain.calls import Bounded, CallDesk
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import DiskFull, Journal, RunHeader
from plantain.journal.connect import JOURNAL_NAME
from plantain.models.registry import resolve_editor, resolve_judge, resolve_writer
from plantain.records import InputError, TaskState
from plantain.rubrics import MED_BANANA
from plantain.sources.catalogue import Catalogue


@dataclass(slots=True)
class RunSummary:
    """What this process did of a run, and whether something stopped it.

    `stopped` is None when no task is pending, else why ("interrupted", "limit", or the fault that halted the run).
    """

    planned: int = 0
    closed: dict[TaskState, int] = field(default_factory=dict)
    made: int = 0
    replayed: int = 0
    stopped: str | None = None
    failed: bool = False


def method_of(recipe: Recipe) -> Method:
    """The recipe's models, rubric and policy as the loop needs them."""
    return Method(
        writer=resolve_writer(recipe.models.writer),
        editor=resolve_editor(recipe.models.editor),
        judges=tuple(resolve_judge(name) for name in recipe.models.judges),
        rubric=MED_BANANA,
        policy=recipe.loop.policy,
        threshold=recipe.loop.threshold,
        max_rounds=recipe.loop.max_rounds,
        seed=recipe.seed,
        writer_sees_failed_edit=recipe.loop.writer_sees_failed_edit,
    )


async def run_build(
    recipe: Recipe,
    run: Path,
    *,
    method: Method | None = None,
    limit: int | None = None,
    watch: Watch | None = None,
    on_commit: Callable[[int], None] | None = None,
    on_plan: Callable[[int, dict[TaskState, int]], None] | None = None,
) -> RunSummary:
    """Runs or resumes a build.

    Args:
        recipe: validated; on resume its frozen part must equal the run's.
        run: the run's folder, created when absent.
        method: models to use instead of the recipe's names (tests and Python callers).
        limit: close at most this many tasks.
        watch: told of every task that closes.
        on_commit: told the number of durable events so far.
        on_plan: told how many tasks there are and how they stand, before the first call.

    Raises:
        InputError: the recipe differs from the run's, the catalogue is missing, or another process holds the run.
    """
    taxonomy = load_taxonomy(recipe.data.finding_files)
    catalogue = Catalogue.open(recipe.data.catalogue)
    method = method or method_of(recipe)
    journal = await _open_journal(recipe, run)
    journal.on_commit = on_commit
    desk = CallDesk(journal, Bounded(recipe.limits.concurrency))
    summary = RunSummary()
    try:
        summary.planned = await _plan(recipe, catalogue, taxonomy, journal)
        if on_plan is not None:
            on_plan(summary.planned, journal.reader.counts())
        walk = Walk(method, journal, catalogue, taxonomy, desk, watch)
        async with _interruptible(desk):
            await walk.all(recipe.limits.concurrency, limit)
        summary.closed, summary.made, summary.replayed = walk.closed, desk.made, desk.replayed
        summary.stopped, summary.failed = walk.halted, walk.faulty
        if summary.stopped is None and journal.reader.counts().get(TaskState.PENDING, 0):
            summary.stopped = "interrupted" if desk.stop_requested else "limit"
        with contextlib.suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
            await journal.end_session(desk.replayed, {"made": desk.made, "peak_rss_mb": peak_rss_mb()})
    finally:
        await journal.close()
        catalogue.close()
    return summary


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    for key, value in frozen.items():
        recorded = journal.header.frozen.get(key)
        if recorded != value:
            await journal.close()
            raise InputError(
                f"{run}: the recipe's {key} is {value}, but this run was begun with {recorded}; "
                "models, loop and seed are frozen in a run: use a new --run folder, or restore the recipe"
            )
    return journal


async def _plan(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, journal: Journal) -> int:
    """Journals the tasks once; enumerates again only when the catalogue or the choice of findings changed."""
    digest = plan_digest(recipe, catalogue, taxonomy)
    if journal.reader.meta("plan_digest") != digest:
        await journal.add_tasks(enumerate_tasks(recipe, catalogue, taxonomy))
        await journal.set_meta("plan_digest", digest)
    return sum(journal.reader.counts().values())


@asynccontextmanager
async def _interruptible(desk: CallDesk) -> AsyncIterator[None]:
    """First Ctrl-C (or TERM): finish what is in flight. Second: stop at once; the journal is whole at any instant."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if desk.stop_requested:
            os._exit(3)
        desk.request_stop()

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
