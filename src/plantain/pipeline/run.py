"""A run: the plan's tasks through the loop, with bounded concurrency, until they are closed or someone says stop."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from plantain.calls import AdmissionController, ModelClient
from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import DiskFull, Journal, JsonValue
from plantain.models.registry import close_models
from plantain.pipeline.consent import (
    check_pending_consent,
    hold_to_sources,
    learn_from,
)
from plantain.pipeline.method import METHOD, fingerprints
from plantain.pipeline.observer import ProgressObserver
from plantain.pipeline.plan import enumerate_tasks, plan_digest
from plantain.pipeline.ready import make_ready
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.rounds import Method
from plantain.pipeline.text_check import fingerprint, text_check_of
from plantain.pipeline.walk import Walk
from plantain.privacy.text import TextReader
from plantain.privacy.text_reader import open_reader
from plantain.records import TaskState
from plantain.runs.opening import changed_since, open_client, open_run
from plantain.runs.transport import tasks_under_way
from plantain.runs.worker_pool import WorkerPool, interruptible, time_cap

SILENT = ProgressObserver()


@dataclass(slots=True)
class RunSummary:
    """What this process did of a run, and whether something stopped it.

    `stopped` is None when no task is pending, else why ("interrupted", "limit", or the fault that halted the run).
    `left` says which batch jobs go on without us, "" where none does. `regrouped` are images that have another group
    or split now than when the run took them.
    """

    planned: int = 0
    closed: dict[TaskState, int] = field(default_factory=dict)
    made: int = 0
    replayed: int = 0
    stopped: str | None = None
    failed: bool = False
    left: str = ""
    regrouped: tuple[str, ...] = ()


async def run_build(
    recipe: Recipe,
    run: Path,
    *,
    method: Method | None = None,
    text_reader: TextReader | None = None,
    limit: int | None = None,
    observer: ProgressObserver = SILENT,
    on_commit: Callable[[int], None] | None = None,
    accept_model_change: bool = False,
) -> RunSummary:
    """Runs or resumes a build.

    Args:
        recipe: validated; on resume its frozen part must equal the run's.
        run: the run's folder, created when absent.
        method: models to use instead of the recipe's names (tests and Python callers).
        text_reader: checks what edits do to burned-in text; by default the one of the extra `ocr`, where the
            recipe wants it; none for callers with a method of their own.
        limit: close at most this many tasks.
        watch: told how the run goes on.
        on_commit: told the number of durable events so far.
        accept_model_change: go on, and record it, when a provider serves another model than before.

    Raises:
        InputError: the recipe differs from the run's, the catalogue is missing, another process holds the run, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    terms = recipe.terms
    reads = method is None and recipe.data.check_text
    ready = make_ready(recipe, run=run, method=method)
    taxonomy, catalogue, door, method = ready.taxonomy, ready.catalogue, ready.door, ready.method
    jobs = door.jobs
    reader = text_reader or (open_reader() if reads else None)
    journal = await open_run(run, recipe.name, recipe.seed, recipe.frozen_part())
    journal.on_commit = on_commit
    door.gate.journal = journal
    summary = RunSummary()
    try:
        summary.planned, summary.regrouped = await _plan(recipe, catalogue, taxonomy, journal)
        await check_pending_consent(recipe, catalogue, journal)
        client, gate = await open_client(terms, journal, jobs, accept_model_change=accept_model_change)
        observer.planned(summary.planned, journal.reader.counts(), gate.budget)
        if jobs.models:
            observer.jobs(lambda: gate.in_jobs)
        walk = Walk(
            method, journal, catalogue, taxonomy, WorkerPool(client, on_waiting=observer.waiting), observer
        )
        walk.text_check = text_check_of(reader, catalogue, journal)
        today = {**fingerprints(method), **fingerprint(walk.text_check)}
        changed = await changed_since(journal, METHOD, today)
        if changed is not None:
            walk.pool.halt(changed, faulty=True)
        async with (
            interruptible(client, observer.stopping),
            time_cap(terms.limits, journal.reader, walk.pool),
        ):
            if journal.reader.counts()[TaskState.PENDING]:
                observer.asks(terms.models)
            await walk.all(tasks_under_way(terms), limit)
        summary.left = await jobs.close()
        await _sum_up(summary, walk, client, gate)
    finally:
        await jobs.close()
        await journal.close()
        catalogue.close()
        await close_models(method.writer, method.editor, *method.judges)
    return summary


async def _sum_up(summary: RunSummary, walk: Walk, client: ModelClient, gate: AdmissionController) -> None:
    """Says what this process did, to its caller and in the run's own session row."""
    summary.closed, summary.made, summary.replayed = walk.closed, client.made, client.replayed
    summary.stopped, summary.failed = walk.pool.halted, walk.pool.faulty
    if summary.stopped is None and client.journal.reader.counts().get(TaskState.PENDING, 0):
        summary.stopped = "interrupted" if client.stop_requested else "limit"
    detail: dict[str, JsonValue] = {"made": client.made, "peak_rss_mb": peak_rss_mb(), "limits": gate.told()}
    with contextlib.suppress(DiskFull):  # telemetry is not worth a fault where there is no room for it
        await client.journal.end_session(client.replayed, detail)


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_worker_rss_mb() -> float:
    """Peak resident memory in MiB of the largest worker process that has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


async def _plan(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, journal: Journal
) -> tuple[int, tuple[str, ...]]:
    """Journals the tasks once; enumerates again only when the catalogue or the choice of findings changed.

    Returns:
        The number of tasks, and the ids of images that have another group or split now.
    """
    digest = plan_digest(recipe, catalogue, taxonomy)
    regrouped: list[str] = []
    if journal.reader.meta("plan_digest") != digest:
        hold_to_sources(catalogue, journal.reader)
        await journal.add_tasks(enumerate_tasks(recipe, catalogue, taxonomy))
        regrouped = await learn_from(catalogue, journal)
        await journal.set_meta("plan_digest", digest)
    return sum(journal.reader.counts().values()), tuple(regrouped)
