"""The consent gate of a build: which images its plan would send, and what the journal keeps of a permission."""

from __future__ import annotations

from collections import Counter

import orjson

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import Journal
from plantain.journal.questions.tasks import pending_images
from plantain.models.hosted.known import endings
from plantain.pipeline.plan import planned_images
from plantain.pipeline.recipe import Recipe
from plantain.records import InputError, SourceImage
from plantain.runs.consent import FREE_TO_LEAVE, check_consent, hosted_models, kinship


def check_planned_consent(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> None:
    """Refuses the recipe when one of its images may not be sent to its hosted models. Raises InputError."""
    if set(catalogue.count_by("licence")) - {licence.value for licence in FREE_TO_LEAVE}:
        check_consent(recipe.terms, planned_images(recipe, catalogue, taxonomy))


async def check_pending_consent(recipe: Recipe, catalogue: Catalogue, journal: Journal) -> None:
    """The same for tasks that an earlier recipe planned; records the consent that the recipe states."""
    models = hosted_models(recipe.terms)
    if not models:
        return
    ids = pending_images(journal.reader)
    check_consent(recipe.terms, (_pending_image(journal, catalogue, image_id) for image_id in ids))
    if recipe.data.consent is not None:
        given = {**recipe.data.consent.model_dump(), "models": models}
        await journal.set_meta("consent", orjson.dumps(given).decode())


def _pending_image(journal: Journal, catalogue: Catalogue, image_id: str) -> SourceImage:
    """The catalogue's record, where there is one: consent may have been given, or taken back, since."""
    try:
        return catalogue.get(image_id)
    except InputError:
        return journal.reader.image(image_id)


def warnings(recipe: Recipe) -> list[str]:
    """What a person should know before the first call, one line each."""
    drawn = [
        f"the judge {judge} stands {times} times: {times} draws of one judge, each with a seed of its own where the "
        "provider takes one; they show how sure it is, not what another would say"
        for judge, times in Counter(recipe.models.judges).items()
        if times > 1
    ]
    return (
        kinship(recipe.models.editor, dict.fromkeys(recipe.models.judges))
        + drawn
        + endings(recipe.terms.models)
    )
