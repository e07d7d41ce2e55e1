"""A run: processes the plan's tasks concurrently until they are closed or the run is stopped.

With `accepted_per_finding`, tasks are added in waves, in the seeded order of the plan, until enough edits of a finding
and direction are accepted. When all its tasks are closed, the journal alone decides whether and how it continues. So
the order in which calls return changes nothing, and a run that was killed continues with the same images.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, why_not_shown
from plantain.journal import DiskFull, Journal, JournalReader, TaskRow
from plantain.journal.questions.accepted import (
    META as ACCEPTED,
)
from plantain.journal.questions.accepted import (
    Decisions,
    PartCount,
    count_parts,
    decisions_of,
    ids_of_part,
)
from plantain.journal.reader import account_of
from plantain.journal.rows import to_json
from plantain.metrics.statistics.intervals import wilson
from plantain.pipeline.loop import Closing, Rounds, edit_until_qualified
from plantain.pipeline.method import (
    METHOD,
    Method,
    Ready,
    check_pending_consent,
    fingerprints,
    hold_to_sources,
    learn_from,
    make_ready,
)
from plantain.pipeline.plan import (
    Shard,
    chosen_findings,
    enumerate_tasks,
    further_tasks,
    in_words,
    store_share,
    within,
)
from plantain.pipeline.post_edit import EditCheck, OriginalCheck, TextCheck
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.turns import add_turns
from plantain.privacy.rapid_text import open_reader
from plantain.privacy.text import TextReader
from plantain.records import InputError, SourceImage, TaskState
from plantain.runs.open_run import ImageCache, OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import NewRun, changed_since

Chosen = Callable[[JournalReader], Iterable[TaskRow]]


def _pending(reader: JournalReader) -> Iterable[TaskRow]:
    return reader.tasks(TaskState.PENDING)


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
    only: Chosen | None = None,
) -> RunSummary:
    """Run or resume a build.

    Args:
        recipe: the recipe; on resume its `frozen_part` must equal the run's.
        run: the run's folder, created if missing.
        method: models to use instead of the recipe's names (tests and Python callers).
        text_reader: reader for the check of burned-in text; default: that of the extra `ocr`, if the recipe requests
            the check; none for callers that pass `method`.
        limit: close at most this many tasks.
        shard: process only this part of the plan, with its share of budget and limits; None for the whole plan.
        observer: receives the run's progress.
        on_commit: called with the number of durable events so far.
        accept_model_change: continue, and record it, when a provider serves another model than before.
        only: chooses among the planned pending tasks; None for all.

    Raises:
        InputError: the recipe differs from the run's, the catalogue is missing, another process uses the run, an
            image may not be sent to a hosted model, or a model without a price is used under a budget.
    """
    reads = method is None and recipe.data.check_text
    ready = make_ready(recipe, run=run, method=method, shard=shard)
    method = ready.method
    with ready.catalogue as catalogue:
        reader = text_reader or (open_reader() if reads else None)
        async with ready.setup.open(
            run,
            NewRun(recipe.name, recipe.seed, recipe.frozen_part()),
            observer=observer,
            on_commit=on_commit,
            accept_model_change=accept_model_change,
            also_close=(method.writer, method.editor, *method.judges),
        ) as opened:
            journal = opened.journal
            if ready.share is not None:
                observer.note(in_words(recipe, ready.share))
                await store_share(journal, ready.share)
            opened.summary.regrouped = await _plan(recipe, ready, journal)
            await check_pending_consent(recipe, catalogue, journal)
            counts, chosen = journal.reader.counts(), only or _pending
            if only is not None:
                counts[TaskState.PENDING] = sum(1 for _ in only(journal.reader))
            opened.planned(counts, lambda: any(True for _ in chosen(journal.reader)))
            read_by = {TextCheck.name: "none" if reader is None else reader.name}
            changed = await changed_since(journal, METHOD, {**fingerprints(method), **read_by})
            if changed is not None:
                opened.halt(changed)
            if counts[TaskState.PENDING]:
                observer.asks(recipe.terms.models)
            images = ImageCache(journal.reader)
            checks: list[EditCheck] = [OriginalCheck(journal, images, ready.taxonomy)]
            if reader is not None:
                checks.insert(0, TextCheck(reader, journal, images))
            carrier = Carrier(method, opened, catalogue, ready.taxonomy, checks, images)
            await opened.walk(chosen(journal.reader), carrier.carry, limit=limit)
            while only is None and not journal.reader.counts()[TaskState.PENDING]:
                if not await extend_plan(recipe, ready, journal):
                    break
                await check_pending_consent(recipe, catalogue, journal)
                opened.planned(journal.reader.counts(), lambda: any(True for _ in chosen(journal.reader)))
                left = None if limit is None else limit - opened.summary.closed.total()
                await opened.walk(chosen(journal.reader), carrier.carry, limit=left)
            if opened.halted is not None:
                await record_halt(journal, opened.halted)
    return opened.summary


async def _plan(recipe: Recipe, ready: Ready, journal: Journal) -> tuple[str, ...]:
    """Journal the tasks; enumerate again only when the catalogue or the choice of findings changed.

    Returns:
        The ids of images that have another group or split now.
    """
    catalogue, regrouped = ready.catalogue, list[str]()
    if journal.reader.meta("plan_digest") != ready.plan:
        hold_to_sources(catalogue, journal.reader)
        if recipe.data.accepted_per_finding is None:
            tasks = within(ready.share, enumerate_tasks(recipe, catalogue, ready.taxonomy))
            await journal.add_tasks(tasks)
        regrouped = await learn_from(catalogue, journal)
        await journal.set_meta("plan_digest", ready.plan)
    await extend_plan(recipe, ready, journal)
    return tuple(regrouped)


@dataclass(slots=True)
class Carrier:
    """The execution of a build's tasks: the loop of each task, and its end in the journal."""

    method: Method
    opened: OpenRun
    catalogue: Catalogue
    taxonomy: Taxonomy
    checks: Sequence[EditCheck]
    images: ImageCache

    async def carry(self, row: TaskRow) -> None:
        """Run a pending task to its end and record how it ended."""
        journal = self.opened.journal
        image = await self._image(row.task.image_id)
        finding = self.taxonomy.get(row.task.modality, row.task.finding)
        if obstacle := why_not_shown(finding, image):
            await self._close(row, Closing(TaskState.NOT_APPLICABLE, 0, obstacle))
            return
        await asyncio.to_thread(self.images.read, image.prepared_sha256)
        rounds = Rounds(
            method=self.method,
            calls=self.opened.calls(row.task.id, row.generation),
            journal=journal,
            task=row.task,
            generation=row.generation,
            finding=finding,
            image=image,
            images=self.images,
            checks=self.checks,
        )
        await self._close(row, await edit_until_qualified(rounds))

    async def _close(self, row: TaskRow, closing: Closing) -> None:
        await self.opened.close_task(row.id, closing.state, closing.round, closing.reason)

    async def _image(self, image_id: str) -> SourceImage:
        """Return the task's image; it is copied from the catalogue into the run when a task first needs it."""
        journal = self.opened.journal
        try:
            return journal.reader.image(image_id)
        except InputError:
            image = self.catalogue.get(image_id)
        data = await asyncio.to_thread(self.catalogue.read, image)
        blob = await asyncio.to_thread(journal.put_blob, data, "image/jpeg")
        await journal.add_images([(image, blob)])
        return image


MOST_IN_WAVE = 10_000
"""Tasks of one wave: few enough for one transaction, so that a kill leaves all of them or none."""


def required_of(whole: int, shard: Shard | None) -> int:
    """Return how many accepted edits a run must make, if all shards together must make `whole`.

    Example:
        >>> [required_of(200, Shard(number, 3)) for number in (1, 2, 3)]
        [67, 67, 66]
    """
    if shard is None:
        return whole
    return whole // shard.count + (shard.number <= whole % shard.count)


def wave(required: int, tried: int, accepted: int) -> int:
    """Return how many further images to try for a finding and direction.

    Before any trial it is the number of missing edits; then the number that gives them at the accepted share of the
    `tried` tasks, at least 1 and at most the larger of `tried` and the missing edits. `MOST_IN_WAVE` limits both.

    Example:
        >>> wave(200, 0, 0), wave(200, 200, 114), wave(200, 351, 199), wave(200, 200, 0)
        (200, 151, 2, 200)
    """
    missing = required - accepted
    suggested = math.ceil(missing * tried / max(accepted, 1))
    return min(max(suggested, 1), max(missing, tried), MOST_IN_WAVE) if tried else min(missing, MOST_IN_WAVE)


def ending(required: int, count: PartCount, floor: float) -> str:
    """Return why to stop making edits of a finding and direction, as a key of `WHY`; "" to continue.

    It is "reached" with `required` accepted edits, and "yield" if the upper end of the 95 % Wilson interval of the
    accepted share is below `floor`.
    """
    if count.accepted >= required:
        return "reached"
    return "yield" if wilson(count.accepted, count.closed)[1] < floor else ""


async def extend_plan(recipe: Recipe, ready: Ready, journal: Journal) -> int:
    """Add tasks to a running build: next turns, and with `accepted_per_finding` further images per finding.

    A finding and direction gets further images once all its tasks are closed; those that have ended are recorded.

    Returns:
        The number of new tasks; 0 if the build is complete.
    """
    whole, reader = recipe.data.accepted_per_finding, journal.reader
    added = 0
    if recipe.loop.turns > 1:
        added = await add_turns(recipe, ready.catalogue, ready.taxonomy, journal)
    if whole is None:
        if reader.meta(ACCEPTED):
            await journal.set_meta(ACCEPTED, "")
        return added
    share = ready.share
    required, counts, gone = (
        required_of(whole, None if share is None else share.shard),
        count_parts(reader),
        account_of(reader.connection),
    )
    ended = []
    for finding in chosen_findings(recipe, ready.catalogue, ready.taxonomy):
        for direction in recipe.data.directions:
            part = (finding.modality, finding.name, direction.value)
            count = counts.get(part, PartCount())
            closed, why = count.closed == count.tasks, ""
            if closed and not (why := ending(required, count, recipe.data.yield_floor)):
                known = ids_of_part(reader, part)

                def usable(task: str, known: set[str] = known) -> bool:
                    mine = share is None or share.shard.has(task)
                    return mine and task not in known and not gone.holds(f"task {task}")

                most = wave(required, count.closed, count.accepted)
                tasks = further_tasks(
                    recipe, ready.catalogue, ready.taxonomy, finding, direction, most, usable
                )
                new = await journal.add_tasks(tasks)
                added += new
                why = "" if new else "images"
            ended.append((part, why))
    await journal.set_meta(ACCEPTED, to_json(Decisions(required, tuple(ended))))
    return added


async def record_halt(journal: Journal, halted: str) -> None:
    """Record why a run with `accepted_per_finding` stopped; a full disk is ignored."""
    decisions = decisions_of(journal.reader)
    if decisions is not None:
        with suppress(DiskFull):
            await journal.set_meta(ACCEPTED, to_json(replace(decisions, halted=halted)))
