"""The consent gate: an image that its owner has not let go never reaches a hosted model."""

from __future__ import annotations

from collections.abc import Iterable

from plantain.records import InputError, Licence, SourceImage
from plantain.roles.options import is_loopback
from plantain.runs.pricing import ON_THIS_MACHINE
from plantain.runs.terms import Terms

FREE_TO_LEAVE = frozenset({Licence.OPEN, Licence.ATTRIBUTION})


def is_hosted(terms: Terms, model: str) -> bool:
    """Whether a model's images leave the house: any model that does not run here, unless its address is this machine
    or its owner declares it on-premises. A provider that we do not know counts as hosted."""
    if model.partition("/")[0] in ON_THIS_MACHINE:
        return False
    section = terms.provider(model)
    return not (section.on_premises or (section.base_url and is_loopback(section.base_url)))


def hosted_models(terms: Terms) -> list[str]:
    """The hosted models; every role sees images."""
    return [model for model in terms.models if is_hosted(terms, model)]


def check_consent(terms: Terms, images: Iterable[SourceImage]) -> None:
    """Refuses images that may not be sent to the hosted models.

    Args:
        terms: the models, their addresses, and the owners' permission.
        images: those of the tasks at hand; read only when a model is hosted and no consent is stated.

    Raises:
        InputError: says which images, which model, why, and what to record to accept.
    """
    models = hosted_models(terms)
    if not models or terms.consent is not None:
        return
    refused = 0
    first: SourceImage | None = None
    for image in images:
        if image.licence not in FREE_TO_LEAVE and image.consent is None:
            refused += 1
            first = first or image
    if first is None:
        return
    credentialed = first.licence is Licence.CREDENTIALED
    # Errors end in logs that are passed around: an id of a credentialed source is not for them.
    which = f"an image of {first.dataset}" if credentialed else f"image {first.id!r} of {first.dataset}"
    what = "is credentialed" if credentialed else "has no known licence"
    others = f" (and {refused - 1} more images may not be sent)" if refused > 1 else ""
    provider = models[0].partition("/")[0]
    raise InputError(
        f"{which} {what}{others}, and {models[0]} is a hosted model: its owner has "
        "not allowed a copy to leave this machine. Use a model that runs here; or, where the service is your "
        f"institution's own, set providers.{provider}.on_premises = true; or record the owner's permission: "
        f'[{terms.consent_section}] by = "who allowed it", agreement = "where that is written down"'
    )


def family(model: str) -> str:
    """Who made a model: its provider, or behind an address of one's own the first word of its name."""
    provider, _, name = model.partition("/")
    if provider == "openai-compatible":
        return name.rsplit("/", 1)[-1].split("-")[0].split(":")[0].lower()
    return provider


def kinship(editor: str, judges: Iterable[str]) -> list[str]:
    """What a person should know of judges that judge their own kind's work, one line each."""
    if editor.partition("/")[0] in ON_THIS_MACHINE:
        return []
    return [
        f"the judge {judge} and the editor {editor} are of one family: models tend to prefer their own kind's work; "
        "a judge of another family, or a panel, is safer"
        for judge in judges
        if family(judge) == family(editor)
    ]
