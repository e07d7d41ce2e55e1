"""A run: checks a recipe, then processes the plan's tasks concurrently until they are closed or the run is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, load_taxonomy, why_not_shown
from plantain.journal import Journal, JournalReader, TaskRow
from plantain.journal.connect import JOURNAL_NAME
from plantain.journal.questions.tasks import pending_images
from plantain.models.registry import check_name, known_model, presets, roles_at
from plantain.pipeline.further import extend_plan, record_halt
from plantain.pipeline.loop import Rounds, edit_until_qualified
from plantain.pipeline.plan import (
    Shard,
    Share,
    counted_share,
    enumerate_tasks,
    in_words,
    plan_digest,
    planned_images,
    scaled_recipe,
    share_of_run,
    store_share,
    within,
)
from plantain.pipeline.post_edit import EditCheck, OriginalCheck, TextCheck
from plantain.pipeline.recipe import Method, Recipe, fingerprints, guarded, method_of
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.privacy.rapid_text import open_reader
from plantain.privacy.text import TextReader
from plantain.records import InputError, Licence, SourceImage, TaskKind, TaskState, task_id
from plantain.records.messages import suggest
from plantain.runs.consent import check_consent, hosted_models
from plantain.runs.open_run import ImageCache, OpenRun
from plantain.runs.progress import SILENT, ProgressObserver, RunSummary
from plantain.runs.setup import NewRun, RunSetup, changed_since
from plantain.runs.terms import check_prices

METHOD = "method"
"""Meta key of the fingerprints that a resumed run must repeat."""

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
            accept_model_change=accept_model_change,
            also_close=(method.writer, method.editor, *method.judges),
        ) as opened:
            journal = opened.journal
            if ready.share is not None:
                observer.note(in_words(ready.share))
                await store_share(journal, ready.share)
            await _plan(recipe, ready, journal)
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
            checks: list[EditCheck] = []
            if reader is not None:
                checks.append(TextCheck(reader, journal, images))
            if recipe.loop.turns > 1:
                checks.append(OriginalCheck(journal, images, ready.taxonomy))
            carrier = Carrier(method, opened, catalogue, ready.taxonomy, checks, images)
            await opened.walk(chosen(journal.reader), carrier.carry, limit=limit)
            while only is None and not journal.reader.counts()[TaskState.PENDING]:
                if not await extend_plan(recipe, ready.catalogue, ready.taxonomy, ready.share, journal):
                    break
                await check_pending_consent(recipe, catalogue, journal)
                opened.planned(journal.reader.counts(), lambda: any(True for _ in chosen(journal.reader)))
                left = None if limit is None else limit - opened.summary.closed.total()
                await opened.walk(chosen(journal.reader), carrier.carry, limit=left)
            if opened.halted is not None:
                await record_halt(journal, opened.halted)
    return opened.summary


async def _plan(recipe: Recipe, ready: Ready, journal: Journal) -> None:
    """Journal the tasks; enumerate again only when the catalogue or the choice of findings changed."""
    catalogue = ready.catalogue
    if journal.reader.meta("plan_digest") != ready.plan:
        hold_to_sources(catalogue, journal.reader)
        if recipe.data.accepted_per_finding is None:
            tasks = within(ready.share, enumerate_tasks(recipe, catalogue, ready.taxonomy))
            await journal.add_tasks(tasks)
        await learn_from(catalogue, journal)
        await journal.set_meta("plan_digest", ready.plan)
    await extend_plan(recipe, ready.catalogue, ready.taxonomy, ready.share, journal)


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
            await self.opened.close_task(row.id, TaskState.NOT_APPLICABLE, 0, obstacle)
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
        await self.opened.close_task(row.id, *await edit_until_qualified(rounds))

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


# --- checks of a recipe before its first call ------------------------------------------------


def check_known(recipe: Recipe) -> None:
    """Check that a recipe's model ids are known, and that each model can fill its role.

    An unlisted id is accepted if the recipe states its price; at another address (`base_url`) any id is.

    Raises:
        InputError: one is not; the message names the field, the nearest id, and how to use an unlisted one.
    """
    models = recipe.models
    named = [("writer", models.writer), ("editor", models.editor)]
    for role, name in [*named, *(("judge", judge) for judge in models.judges)]:
        check_name(name, recipe.terms.kind(name), f"models.{role}")
        provider, _, model = name.partition("/")
        theirs = roles_at(recipe.terms.kind(name))
        section = recipe.terms.provider(name)
        if not theirs or not model or section.get("base_url") or model in section.prices or name in presets():
            continue
        row = known_model(f"{recipe.terms.kind(name)}/{model}")
        if row is None:
            near = suggest(name, [f"{provider}/{other.partition('/')[2]}" for other in theirs])
            raise InputError(
                f"models.{role}: no model {name!r} is known; {near} (if it is new, state its price: "
                f'[providers.{provider}.prices."{model}"] with input_per_m and output_per_m)'
            )
        if role not in row.roles:
            fit = [other for other, roles in theirs.items() if role in roles]
            hint = f"; for one, {fit[0]!r}" if fit else ""
            raise InputError(f"models.{role}: {name!r} can be {' and '.join(row.roles)}, not {role}{hint}")


@dataclass(frozen=True, slots=True)
class Ready:
    """A checked recipe with all that a build needs; the caller closes the catalogue.

    Attributes:
        taxonomy, catalogue, setup, method: opened from the recipe.
        plan: digest of its tasks, which changes if the tasks could.
        share: the part of the tasks that a shard processes; None for all of them.
    """

    taxonomy: Taxonomy
    catalogue: Catalogue
    setup: RunSetup
    method: Method
    plan: str
    share: Share | None


def make_ready(
    recipe: Recipe,
    *,
    run: Path | None = None,
    method: Method | None = None,
    shard: Shard | None = None,
    missing: list[str] | None = None,
) -> Ready:
    """Open catalogue, models and taxonomy of a recipe, and reject a recipe that cannot run.

    Args:
        recipe: the recipe.
        run: folder of the run; an existing one may use model ids that are no longer known.
        method: models to use instead of those that the recipe names.
        shard: the part of the plan for this run; budget and limits are scaled by its share.
        missing: collects a line for each missing key instead of raising, for callers that call no model.

    Raises:
        InputError: the catalogue is missing, a model is unknown or cannot fill its role, a key or extra is missing, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    taxonomy = load_taxonomy(recipe.data.finding_files)
    share = share_of_run(run, shard)
    if method is None and (run is None or not (run / JOURNAL_NAME).exists()):
        check_known(recipe)
    check_prices(recipe.terms)
    catalogue = Catalogue.open(recipe.data.catalogue)
    try:
        check_planned_consent(recipe, catalogue, taxonomy)
        plan = plan_digest(recipe, catalogue, taxonomy)
        if share is not None:
            if share.plan != plan:
                share = counted_share(enumerate_tasks(recipe, catalogue, taxonomy), share.shard, plan)
            recipe = scaled_recipe(recipe, share)
        setup = RunSetup(recipe.terms)
        made = method_of(recipe, setup, missing) if method is None else guarded(method, setup)
        return Ready(taxonomy, catalogue, setup, made, plan, share)
    except BaseException:
        catalogue.close()
        raise


def check_planned_consent(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> None:
    """Check that all images of a recipe's tasks may be sent to its hosted models. Raise InputError otherwise."""
    if holds_back(catalogue):
        check_consent(recipe.terms, planned_images(recipe, catalogue, taxonomy))


def holds_back(catalogue: Catalogue) -> bool:
    """Return True if a catalogue has images that need consent before they are sent to hosted models."""
    return bool(set(catalogue.count_by("licence")) - {licence.value for licence in FREE_TO_LEAVE})


async def check_pending_consent(recipe: Recipe, catalogue: Catalogue, journal: Journal) -> None:
    """Check that pending tasks' images may be sent, and record the recipe's consent. Raise InputError otherwise.

    The run's record of an image decides; the catalogue's only for images that are not in the run yet.
    """
    models = hosted_models(recipe.terms)
    if not models:
        return
    ids = pending_images(journal.reader, but=FREE_TO_LEAVE, unrecorded=holds_back(catalogue))
    check_consent(recipe.terms, (_recorded(journal, catalogue, image_id) for image_id in ids))
    if recipe.data.consent is not None:
        given = {**recipe.data.consent.model_dump(), "models": models}
        await journal.set_meta("consent", orjson.dumps(given).decode())


def _recorded(journal: Journal, catalogue: Catalogue, image_id: str) -> SourceImage:
    try:
        return journal.reader.image(image_id)
    except InputError:
        return catalogue.get(image_id)


def hold_to_sources(catalogue: Catalogue, reader: JournalReader) -> None:
    """Check that image ids mean the same source files in run and catalogue. Raise InputError otherwise."""
    for image in reader.images():
        there = catalogue.find(image.id)
        same = there is None or (there.source_sha256, there.frame) == (image.source_sha256, image.frame)
        if there is not None and image.source_sha256 and not same:
            raise InputError(_another(reader, there, f"{image.source_sha256}, frame {image.frame}"))
    for row in reader.tasks():
        task, there = row.task, catalogue.find(row.task.image_id)
        if there is None or task.kind is not TaskKind.EDIT:
            continue
        if task.id != task_id(there.source_sha256, there.frame, task.finding, task.direction):
            raise InputError(_another(reader, there, "another file"))


async def learn_from(catalogue: Catalogue, journal: Journal) -> None:
    """Copy groups, splits, licences and consent that changed in a catalogue since the run stored its images.

    Withdrawals and splits need a corrected group; one that the catalogue no longer has is kept. A licence is copied
    only if the run's is unknown. All other fields, and the image itself, stay as they were when the tasks were made.
    """
    for image in list(journal.reader.images()):
        there = catalogue.find(image.origin)
        if there is None:
            continue
        known = there.licence if image.licence is Licence.UNKNOWN else image.licence
        group, split = there.group or image.group, there.split or image.split
        now = replace(image, group=group, split=split, licence=known, consent=there.consent)
        if now != image:
            data = await asyncio.to_thread(journal.reader.read_blob, image.prepared_sha256)
            blob = await asyncio.to_thread(journal.put_blob, data, "image/jpeg")
            await journal.add_images([(now, blob)])


def _another(reader: JournalReader, there: SourceImage, before: str) -> str:
    return (
        f"data.catalogue: an image of {there.dataset} has the source file {there.source_sha256}, frame {there.frame}, "
        f"and {reader.run} was started with {before} under the same id: it is another image; use the catalogue that "
        "the run was started with, or a new run folder"
    )
