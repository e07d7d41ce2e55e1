"""Consent for the images of a build, and checks of the catalogue against the run's own records."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import orjson

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import Journal, JournalReader
from plantain.journal.questions.tasks import pending_images
from plantain.models.hosted.known import endings
from plantain.pipeline.plan import control_id, planned_images
from plantain.pipeline.recipe import Recipe
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import EditTask, InputError, SourceImage, TaskKind, task_id
from plantain.runs.consent import check_consent, hosted_models, kinship
from plantain.runs.settings.terms import ConsentGiven


def check_planned_consent(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> None:
    """Refuse the recipe when one of its images may not be sent to its hosted models. Raises InputError."""
    if holds_back(catalogue):
        check_consent(recipe.terms, planned_images(recipe, catalogue, taxonomy))


def holds_back(catalogue: Catalogue) -> bool:
    """Return True if a catalogue has images that may not leave freely; one question for a million images."""
    return bool(set(catalogue.count_by("licence")) - {licence.value for licence in FREE_TO_LEAVE})


async def check_pending_consent(recipe: Recipe, catalogue: Catalogue, journal: Journal) -> None:
    """Do the same for tasks that an earlier recipe planned, and record the consent that the recipe states.

    The run's own record of an image decides; the catalogue's only for images that are not in the run yet.
    """
    models = hosted_models(recipe.terms)
    if not models:
        return
    ids = pending_images(journal.reader, but=FREE_TO_LEAVE, unrecorded=holds_back(catalogue))
    check_consent(recipe.terms, (_recorded(journal, catalogue, image_id) for image_id in ids))
    if recipe.data.consent is not None:
        stated = recipe.data.consent
        every = (stated,) if isinstance(stated, ConsentGiven) else stated
        agreements = [one.model_dump(exclude_defaults=True) for one in every]
        given = {**agreements[0], **({"others": agreements[1:]} if agreements[1:] else {}), "models": models}
        await journal.set_meta("consent", orjson.dumps(given).decode())


def _recorded(journal: Journal, catalogue: Catalogue, image_id: str) -> SourceImage:
    try:
        return journal.reader.image(image_id)
    except InputError:
        return catalogue.get(image_id)


def hold_to_sources(catalogue: Catalogue, reader: JournalReader) -> None:
    """Refuse a catalogue in which an id of the run stands for another source file. Raises InputError."""
    for image in reader.images():
        there = catalogue.find(image.id)
        same = there is None or (there.source_sha256, there.frame) == (image.source_sha256, image.frame)
        if there is not None and image.source_sha256 and not same:
            raise InputError(_another(reader, there, f"{image.source_sha256}, frame {image.frame}"))
    for row in reader.tasks():
        there = catalogue.find(row.task.image_id)
        if there is not None and row.task.id != _id_of(row.task, there):
            raise InputError(_another(reader, there, "another file"))


async def learn_from(catalogue: Catalogue, journal: Journal) -> list[str]:
    """Copy from a catalogue the groups, splits and consent that changed since the run took its images.

    Withdrawal and split must know a corrected group; one that the catalogue no longer has is kept. All else stays as it
    was when the tasks were made, the run's own bytes included.

    Returns:
        The ids of images of another group or split.
    """
    regrouped = []
    for image in list(journal.reader.images()):
        there = catalogue.find(image.id)
        if there is None:
            continue
        grouped = replace(image, group=there.group or image.group, split=there.split or image.split)
        now = replace(grouped, consent=there.consent)
        if now != image:
            data = await asyncio.to_thread(journal.reader.read_blob, image.prepared_sha256)
            blob = await asyncio.to_thread(journal.put_blob, data, "image/jpeg")
            await journal.add_images([(now, blob)])
        if grouped != image:
            regrouped.append(image.id)
    return regrouped


def _id_of(task: EditTask, image: SourceImage) -> str:
    """The id that a build's task would have if it were made of this source."""
    if task.kind is TaskKind.CONTROL:
        return control_id(image, task.finding)
    if task.kind is TaskKind.EDIT:
        return task_id(image.source_sha256, image.frame, task.finding, task.direction)
    return task.id


def _another(reader: JournalReader, there: SourceImage, before: str) -> str:
    return (
        f"data.catalogue: an image of {there.dataset} has the source file {there.source_sha256}, frame {there.frame}, "
        f"and {reader.run} was started with {before} under the same id: it is another image; use the catalogue that "
        "the run was started with, or a new run folder"
    )


def warnings(recipe: Recipe) -> list[str]:
    """Return warnings to show before the first call, one line each."""
    drawn = [
        f"the judge {judge} is named {times} times: {times} draws of one judge, each with a seed of its own where the "
        "provider takes one; they show how sure it is, not what another would say"
        for judge, times in Counter(recipe.models.judges).items()
        if times > 1
    ]
    return (
        kinship(recipe.terms, recipe.models.editor, dict.fromkeys(recipe.models.judges))
        + drawn
        + endings(map(recipe.terms.listed, recipe.terms.models))
    )
