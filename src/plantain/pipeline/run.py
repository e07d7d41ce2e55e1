"""A run: the plan's tasks through the loop, with bounded concurrency, until they are closed or someone says stop."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from pathlib import Path

from plantain.journal import Journal, JournalReader, TaskRow
from plantain.pipeline.consent import (
    check_pending_consent,
    hold_to_sources,
    learn_from,
)
from plantain.pipeline.method import METHOD, fingerprints
from plantain.pipeline.plan import enumerate_tasks
from plantain.pipeline.ready import Ready, make_ready
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.rounds import Method
from plantain.pipeline.shards import Shard, in_words, remember, within
from plantain.pipeline.text_check import fingerprint, text_check_of
from plantain.pipeline.walk import Walk
from plantain.privacy.text import TextReader
from plantain.privacy.text_reader import open_reader
from plantain.records import TaskState
from plantain.runs.door import Beginning, changed_since
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.summary import RunSummary


async def run_build(
    recipe: Recipe,
    run: Path,
    *,
    method: Method | None = None,
    text_reader: TextReader | None = None,
    limit: int | None = None,
    shard: Shard | None = None,
    observer: ProgressObserver = SILENT,
    on_commit: Callable[[int], None] | None = None,
    accept_model_change: bool = False,
    only: Callable[[JournalReader], Iterable[TaskRow]] | None = None,
) -> RunSummary:
    """Runs or resumes a build.

    Args:
        recipe: validated; on resume its frozen part must equal the run's.
        run: the run's folder, created when absent.
        method: models to use instead of the recipe's names (tests and Python callers).
        text_reader: checks what edits do to burned-in text; by default the one of the extra `ocr`, where the
            recipe wants it; none for callers with a method of their own.
        limit: close at most this many tasks.
        shard: take only the tasks of one of several runs, and their share of budget and limits; see `shards`.
        observer: told how the run goes on.
        on_commit: told the number of durable events so far.
        accept_model_change: go on, and record it, when a provider serves another model than before.
        only: which pending tasks are done, once they are planned; all of them where it is not given.

    Raises:
        InputError: the recipe differs from the run's, the catalogue is missing, another process holds the run, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    reads = method is None and recipe.data.check_text
    ready = make_ready(recipe, run=run, method=method, shard=shard)
    method = ready.method
    with ready.catalogue as catalogue:
        reader = text_reader or (open_reader() if reads else None)
        beginning = Beginning(recipe.name, recipe.seed, recipe.frozen_part())
        async with ready.door.open(
            run,
            beginning,
            observer=observer,
            on_commit=on_commit,
            accept_model_change=accept_model_change,
            also_close=(method.writer, method.editor, *method.judges),
        ) as opened:
            journal = opened.journal
            if ready.share is not None:
                observer.note(in_words(recipe, ready.share))
                await remember(journal, ready.share)
            opened.summary.regrouped = await _plan(recipe, ready, journal)
            await check_pending_consent(recipe, catalogue, journal)
            counts = journal.reader.counts()
            if only is not None:
                counts[TaskState.PENDING] = sum(1 for _ in only(journal.reader))
            opened.planned(counts, lambda: _left(journal.reader, only))
            text_check = text_check_of(reader, catalogue, journal)
            changed = await changed_since(
                journal, METHOD, {**fingerprints(method), **fingerprint(text_check)}
            )
            if changed is not None:
                opened.halt(changed)
            if journal.reader.counts()[TaskState.PENDING]:
                observer.asks(recipe.terms.models)
            await Walk(method, opened, catalogue, ready.taxonomy, text_check).all(
                limit, only(journal.reader) if only else None
            )
    return opened.summary


def _left(reader: JournalReader, only: Callable[[JournalReader], Iterable[TaskRow]] | None) -> bool:
    """Whether something that was to be done is not."""
    if only is None:
        return reader.counts()[TaskState.PENDING] > 0
    return any(True for _ in only(reader))


def peak_rss_mb() -> float:
    """Peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_worker_rss_mb() -> float:
    """Peak resident memory in MiB of the largest worker process that has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


async def _plan(recipe: Recipe, ready: Ready, journal: Journal) -> tuple[str, ...]:
    """Journals the tasks once; enumerates again only when the catalogue or the choice of findings changed.

    Returns:
        The ids of images that have another group or split now.
    """
    catalogue, regrouped = ready.catalogue, list[str]()
    if journal.reader.meta("plan_digest") != ready.plan:
        hold_to_sources(catalogue, journal.reader)
        await journal.add_tasks(within(ready.share, enumerate_tasks(recipe, catalogue, ready.taxonomy)))
        regrouped = await learn_from(catalogue, journal)
        await journal.set_meta("plan_digest", ready.plan)
    return tuple(regrouped)
