"""Consent: checks before a run is made, and for each image that is sent, that its models may receive it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, TypeVar, cast

import orjson

from plantain.journal import Journal, JournalReader
from plantain.journal.batches import current_call
from plantain.journal.sending import CONNECTIONS, SentImage, connections, sources_of_image
from plantain.models.registry import is_local
from plantain.privacy import permission
from plantain.privacy.permission import agreement, agreements, named, sha256_of, why_not
from plantain.records import (
    Consent,
    Destination,
    InputError,
    NotAllowed,
    Outcome,
    OutcomeKind,
    Outgoing,
    Reach,
    SourceImage,
)
from plantain.roles import EncodedImage, failed
from plantain.roles.options import ProviderOptions, destination
from plantain.runs.terms import ON_THIS_MACHINE, Terms

T = TypeVar("T")

REQUESTS = frozenset({"write", "edit", "judge", "score", "describe"})
"""The methods of models, each with one request."""

WITHOUT_IMAGES = frozenset({str, int, float, bool, type(None)})
"""Types of most fields of a request; each is skipped at once."""


# --- where images go --------------------------------------------------------------------------------


def runs_here(model: str) -> bool:
    """Return True if a model runs on this machine; plug-in providers declare it (`LOCAL = True`)."""
    provider = model.partition("/")[0]
    return provider in ON_THIS_MACHINE or is_local(provider)


def where(terms: Terms, model: str) -> Destination:
    """Return the server to which a model's images are sent; an unknown provider counts as hosted."""
    provider = model.partition("/")[0]
    if runs_here(terms.kind(model)):
        return Destination(provider, Reach.LOOPBACK)
    section = terms.provider(model)
    if isinstance(section, ProviderOptions) and section.base_url:
        return destination(section.base_url, section)
    return Destination(provider, Reach.HOSTED)


def is_hosted(terms: Terms, model: str) -> bool:
    """Return True if images sent to a model leave the owner's premises."""
    return where(terms, model).reach is Reach.HOSTED


def hosted_models(terms: Terms) -> list[str]:
    """Return the names of the hosted models among the terms' models."""
    return [model for model in terms.models if is_hosted(terms, model)]


# --- before a run -----------------------------------------------------------------------------------


def check_consent(terms: Terms, images: Iterable[SourceImage]) -> None:
    """Check that images may be sent to the run's hosted models.

    Args:
        terms: the models, their addresses, and the owners' permission.
        images: images of the tasks; read only if a model is hosted and no consent is stated.

    Raises:
        InputError: an image may not be sent; the message names images, model, reason and remedy.
    """
    hosted = hosted_models(terms)
    if terms.consent is not None or not hosted:
        return
    refused = [image for image in images if agreement(image, None) is None]
    if not refused:
        return
    others = f" (and {len(refused) - 1} more images may not be sent)" if len(refused) > 1 else ""
    why = f"{named(refused[0])} {why_not(refused[0])}{others}"
    raise InputError(refusal(why, hosted[0], where(terms, hosted[0]), terms.consent_section))


def refusal(why: str, model: str, to: Destination, section: str) -> str:
    """Return the error message for an image that may not be sent: reason, model, address and remedies.

    `section` is the section of the settings that would record the owner's permission.
    """
    provider = model.partition("/")[0]
    address = f"{to.address} ({to.why})" if to.why else to.address
    return (
        f"{why}, and {model} is a hosted model at {address}: its owner has not allowed a copy to leave this machine. "
        "Use a model that runs here; or, where the service is your institution's own, set "
        f"providers.{provider}.base_url and providers.{provider}.on_premises = true; or record the "
        "owner's permission in the recipe or a file for --settings: "
        f'[{section}] by = "who allowed it", agreement = "where that is written down"'
    )


# --- for each image ---------------------------------------------------------------------------------


class ConsentGate:
    """A check of each image before it is sent: all source images that it was made from must be allowed for the server.

    The run's journal decides, not a catalogue. Every allowed image is recorded there before it is sent; without a
    journal none is allowed.
    """

    def __init__(self, terms: Terms) -> None:
        self._section = terms.consent_section
        stated = terms.consent
        self._given = None if stated is None else Consent(stated.by, stated.agreement)
        self.journal: Journal | None = None
        self._connections: dict[str, list[str]] | None = None

    async def connected(self, to: Destination, ip: str) -> None:
        """Record in the run, once, that a connection to a destination used the IP address `ip`."""
        if self.journal is None:
            return
        if self._connections is None:
            self._connections = connections(self.journal.reader)
        known = self._connections.setdefault(to.address, [])
        if ip not in known:
            known.append(ip)
            await self.journal.set_meta(CONNECTIONS, orjson.dumps(self._connections).decode())

    async def clear(self, model: str, to: Destination, images: Collection[Outgoing]) -> None:
        """Check and record that images are sent to a model. Raise NotAllowed if one may not, or no run is open."""
        if self.journal is None:
            raise NotAllowed(
                f"{model}: an image was about to be sent to {to.address} before the run was opened"
            )
        here = current_call.get(None)
        rows: list[SentImage] = []
        for one in sorted(images, key=lambda image: (image.call or 0, image.sha256)):
            call = one.call or here
            sources = _sources(self.journal.reader, one.sha256, call)
            try:
                allowed = agreements(list(sources.values()), self._given, to)
            except NotAllowed as why:
                raise NotAllowed(refusal(str(why), model, to, self._section)) from None
            rows += [
                SentImage(one.sha256, image, model, to.address, to.reach, under, call)
                for image, under in allowed.items()
            ]
        await self.journal.add_sent(rows)


def _sources(reader: JournalReader, sha256: str, call: int | None) -> dict[str, SourceImage]:
    """Return every source of an image, through all that it was made from; none where one of them is unknown."""
    found: dict[str, SourceImage] = {}
    seen: set[str] = set()
    waiting = {sha256}
    while waiting:
        one = waiting.pop()
        seen.add(one)
        known, parents = sources_of_image(reader, one, call), permission.sources_of(one)
        if not known and not parents:
            return {}
        found |= known
        waiting |= parents - seen
    return found


def cleared(role: T, gate: ConsentGate, to: Destination) -> T:
    """Wrap a model so that its requests pass the consent check first; a local model is returned unchanged."""
    return role if to.reach is Reach.LOOPBACK else cast(T, _Cleared(role, gate, to))


class _Cleared:
    """All attributes of a role as they are, but for its requests."""

    def __init__(self, role: object, gate: ConsentGate, to: Destination) -> None:
        self._role, self._gate, self._to = role, gate, to
        for name in dir(role):
            if not name.startswith("_"):
                found = getattr(role, name)
                setattr(self, name, self._gated(found) if name in REQUESTS else found)

    def _gated(self, ask: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def asked(request: Any) -> Any:
            images = {Outgoing(sha256_of(data)) for data in _images(request)}
            try:
                await self._gate.clear(str(getattr(self._role, "name", "")), self._to, images)
            except NotAllowed as why:
                return failed(Outcome(OutcomeKind.REFUSED, str(why), fatal=True))
            return await ask(request)

        return asked


def _images(value: object) -> list[bytes]:
    """Return the bytes of every image in a request, at any depth."""
    if isinstance(value, EncodedImage):
        return [value.data]
    if isinstance(value, (tuple, list)):
        return [data for one in value if type(one) not in WITHOUT_IMAGES for data in _images(one)]
    fields = (getattr(value, name) for name in getattr(type(value), "__dataclass_fields__", ()))
    return [data for one in fields if type(one) not in WITHOUT_IMAGES for data in _images(one)]
