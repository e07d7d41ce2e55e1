"""The providers of models: our own, and those that other packages bring."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import entry_points
from typing import Protocol, cast, runtime_checkable

from plantain.records import InputError
from plantain.roles.options import ProviderOptions

PROVIDERS = {
    "offline": "plantain.offline.provider",
    "gemini": "plantain.models.hosted.gemini.provider",
    "openai": "plantain.models.hosted.openai.provider",
    "openai-compatible": "plantain.models.hosted.openai.compatible",
    "diffusers": "plantain.models.diffusers.provider",
    "process": "plantain.models.process.provider",
}
"""Our own providers -> module, imported when one of its models is asked for. Others come by entry points."""

GROUP = "plantain.models"
"""Entry point group: name of the provider -> a module of the shape of `Provider`."""


class Provider(Protocol):
    """What a provider's module offers."""

    MODELS: dict[str, tuple[str, ...]]
    """Models known by name -> the roles that each fills. A provider may load others too.

    A module may add `LOCAL = True`: no picture that it is handed leaves this machine."""

    def load(self, name: str, role: str, options: ProviderOptions) -> object: ...


@runtime_checkable
class Closable(Protocol):
    """A model that holds a connection."""

    async def aclose(self) -> None: ...


async def close_models(*models: object) -> None:
    """Closes the connections of models that hold one; a model opens its own again when it is called."""
    for model in models:
        if isinstance(model, Closable):
            await model.aclose()


def provider_names() -> tuple[str, ...]:
    """Our own providers, then those that other packages bring."""
    others = sorted({entry.name for entry in entry_points(group=GROUP)} - set(PROVIDERS))
    return (*PROVIDERS, *others)


def provider(name: str) -> Provider:
    """The module of a provider, imported now.

    Raises:
        InputError: there is none of that name, or another package's cannot be imported.
    """
    if name in PROVIDERS:
        return cast(Provider, importlib.import_module(PROVIDERS[name]))
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            try:
                return cast(Provider, entry.load())
            except ImportError as error:
                raise InputError(f"provider {name!r}: {entry.value} cannot be imported: {error}") from error
    known = provider_names()
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]}/…?" if nearest else f"providers: {', '.join(known)}"
    raise InputError(f"no provider {name!r}; {hint}")


def is_local(name: str) -> bool:
    """Whether a provider declares that its models run on this machine (`LOCAL = True` in its module)."""
    if name not in provider_names():
        return False
    return bool(getattr(provider(name), "LOCAL", False))
