"""Before a run: whether its images may be sent to its models at all, so that nothing is made of a run that may not."""

from __future__ import annotations

from collections.abc import Iterable

from plantain.models.hosted.addresses import destination, tenant_of
from plantain.models.hosted.known import ALSO_SERVED
from plantain.models.registry import is_local
from plantain.privacy.permission import agreement, named, why_not
from plantain.records import Destination, InputError, Reach, SourceImage
from plantain.roles.options import ProviderOptions
from plantain.runs.consent_gate import refusal
from plantain.runs.money.pricing import ON_THIS_MACHINE
from plantain.runs.settings.terms import Terms, permission_for


def runs_here(model: str) -> bool:
    """Whether a model runs on this machine: one of ours that does, or another package's that declares itself local."""
    return provider_runs_here(model.partition("/")[0])


def provider_runs_here(provider: str) -> bool:
    """The same of all models of a provider."""
    return provider in ON_THIS_MACHINE or is_local(provider)


def where(terms: Terms, model: str) -> Destination:
    """How far a model's images go. A provider that we do not know counts as hosted, unless it declares itself local."""
    provider = model.partition("/")[0]
    if provider_runs_here(terms.kind(model)):
        return Destination(provider, Reach.LOOPBACK)
    section = terms.provider(model)
    if not isinstance(section, ProviderOptions):
        return Destination(provider, Reach.HOSTED)
    if section.addresses:
        each = [destination(url, section) for url in section.addresses]
        return max(each, key=lambda to: list(Reach).index(to.reach))  # the farthest decides
    return Destination(provider, Reach.HOSTED, tenant=tenant_of("", section))


def is_hosted(terms: Terms, model: str) -> bool:
    """Whether a model's images leave the house."""
    return where(terms, model).reach is Reach.HOSTED


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
    uncovered = [
        (model, to)
        for model in terms.models
        if (to := where(terms, model)).reach is Reach.HOSTED and permission_for(terms.consent, to) is None
    ]
    if not uncovered:
        return
    model, to = uncovered[0]
    refused = 0
    first: SourceImage | None = None
    for image in images:
        if agreement(image, None) is None:
            refused += 1
            first = first or image
    if first is None:
        return
    others = f" (and {refused - 1} more images may not be sent)" if refused > 1 else ""
    why = f"{named(first)} {why_not(first)}{others}"
    raise InputError(refusal(why, model, to, terms.consent_section))


def family(model: str, kind: str = "") -> str:
    """Who made a model: its provider, or behind an address of one's own the first word of its name."""
    provider, _, name = model.partition("/")
    provider = kind or provider
    if provider == "openai-compatible":
        return name.rsplit("/", 1)[-1].split("-")[0].split(":")[0].lower()
    return ALSO_SERVED.get(provider, provider)


def kinship(terms: Terms, editor: str, judges: Iterable[str]) -> list[str]:
    """What a person should know of judges that judge their own kind's work, one line each."""
    if editor.partition("/")[0] in ON_THIS_MACHINE:
        return []
    return [
        f"the judge {judge} and the editor {editor} are of one family: models tend to prefer their own kind's work; "
        "a judge of another family, or a panel, is safer"
        for judge in judges
        if family(judge, terms.kind(judge)) == family(editor, terms.kind(editor))
    ]
