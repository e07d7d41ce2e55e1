"""The consent gate: an image that its owner has not let go never reaches a hosted model."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from plantain.build.plan import planned_images
from plantain.build.pricing import ON_THIS_MACHINE, model_names
from plantain.build.recipe import Recipe
from plantain.findings import Taxonomy
from plantain.journal import Journal
from plantain.models.options import is_loopback
from plantain.records import InputError, Licence, SourceImage
from plantain.sources.catalogue import Catalogue

FREE_TO_LEAVE = frozenset({Licence.OPEN, Licence.ATTRIBUTION})


def is_hosted(recipe: Recipe, model: str) -> bool:
    """Whether a model's images leave the house: any model that does not run here, unless its address is this machine
    or its owner declares it on-premises. A provider that we do not know counts as hosted."""
    if model.partition("/")[0] in ON_THIS_MACHINE:
        return False
    section = recipe.provider(model)
    return not (section.on_premises or (section.base_url and is_loopback(section.base_url)))


def hosted_models(recipe: Recipe) -> list[str]:
    """The recipe's hosted models; every role sees images."""
    return [model for model in model_names(recipe) if is_hosted(recipe, model)]


def check_consent(recipe: Recipe, images: Iterable[SourceImage]) -> None:
    """Refuses images that may not be sent to the recipe's hosted models.

    Args:
        recipe: its models, their addresses, and its `data.consent`.
        images: those of the tasks at hand; read only when a model is hosted and the recipe states no consent.

    Raises:
        InputError: says which images, which model, why, and what to record to accept.
    """
    models = hosted_models(recipe)
    if not models or recipe.data.consent is not None:
        return
    refused = 0
    first: SourceImage | None = None
    for image in images:
        if image.licence not in FREE_TO_LEAVE and image.consent is None:
            refused += 1
            first = first or image
    if first is None:
        return
    what = "is credentialed" if first.licence is Licence.CREDENTIALED else "has no known licence"
    others = f" (and {refused - 1} more images may not be sent)" if refused > 1 else ""
    provider = models[0].partition("/")[0]
    raise InputError(
        f"data: image {first.id!r} of {first.dataset} {what}{others}, and {models[0]} is a hosted model: its owner has "
        "not allowed a copy to leave this machine. Use a model that runs here; or, where the service is your "
        f"institution's own, set providers.{provider}.on_premises = true; or record the owner's permission in the "
        'recipe: [data.consent] by = "who allowed it", agreement = "where that is written down"'
    )


def check_planned_consent(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> None:
    """Refuses the recipe when one of its images may not be sent to its hosted models. Raises InputError."""
    if set(catalogue.count_by("licence")) - {licence.value for licence in FREE_TO_LEAVE}:
        check_consent(recipe, planned_images(recipe, catalogue, taxonomy))


async def check_pending_consent(recipe: Recipe, catalogue: Catalogue, journal: Journal) -> None:
    """The same for tasks that an earlier recipe planned; records the consent that the recipe states."""
    models = hosted_models(recipe)
    if not models:
        return
    ids = journal.reader.connection.execute("SELECT DISTINCT image_id FROM task WHERE state = 'pending'")
    check_consent(recipe, (_pending_image(journal, catalogue, image_id) for (image_id,) in ids.fetchall()))
    if recipe.data.consent is not None:
        given = {**recipe.data.consent.model_dump(), "models": models}
        await journal.set_meta("consent", orjson.dumps(given).decode())


def _pending_image(journal: Journal, catalogue: Catalogue, image_id: str) -> SourceImage:
    """The catalogue's record, where there is one: consent may have been given, or taken back, since."""
    try:
        return catalogue.get(image_id)
    except InputError:
        return journal.reader.image(image_id)


def family(model: str) -> str:
    """Who made a model: its provider, or behind an address of one's own the first word of its name."""
    provider, _, name = model.partition("/")
    if provider == "openai-compatible":
        return name.rsplit("/", 1)[-1].split("-")[0].split(":")[0].lower()
    return provider


def warnings(recipe: Recipe) -> list[str]:
    """What a person should know before the first call, one line each."""
    editor = recipe.models.editor
    if editor.partition("/")[0] in ON_THIS_MACHINE:
        return []
    return [
        f"the judge {judge} and the editor {editor} are of one family: models tend to prefer their own kind's work; "
        "a judge of another family, or a panel, is safer"
        for judge in recipe.models.judges
        if family(judge) == family(editor)
    ]
