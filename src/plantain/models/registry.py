"""The providers of models, by entry point: ours and those of other packages."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

from plantain.files.installed import entry_named, installed, is_ours, load_entry
from plantain.records import InputError
from plantain.roles.options import ProviderOptions, ProviderSettings

GROUP = "plantain.models"
"""Entry point group: name of the provider -> a module of the shape of `Provider`, imported on use."""


class Provider(Protocol):
    """The module of a provider."""

    MODELS: dict[str, tuple[str, ...]]
    """Models known by name -> the roles that each fills. A provider may load others too.

    A module may add `Settings`, the class of its section `[providers.NAME]`, below `ProviderSettings`; without one the
    section is read as `ProviderOptions`. It may add `LOCAL = True`: no image that it receives leaves this machine."""

    def load(self, name: str, role: str, options: ProviderSettings) -> object: ...


@runtime_checkable
class Closable(Protocol):
    """A model with a connection."""

    async def aclose(self) -> None: ...


async def close_models(*models: object) -> None:
    """Close the connections of models; a model opens its own again when it is called."""
    for model in models:
        if isinstance(model, Closable):
            await model.aclose()


def provider_names() -> tuple[str, ...]:
    """Return the names of our providers, then of those in other packages."""
    return tuple(installed(GROUP))


def provider(name: str) -> Provider:
    """Return the module of a provider, imported now.

    Raises:
        InputError: unknown name, or a module that cannot be imported or is not a provider.
    """
    module = load_entry(entry_named(GROUP, name, "provider"), "provider")
    if not hasattr(module, "MODELS") or not hasattr(module, "load"):
        raise InputError(f"provider {name!r}: its entry point is not a module with MODELS and load")
    return cast(Provider, module)


def check_name(name: str, kind: str, field: str) -> None:
    """Raise InputError, which begins with the field, unless a name is provider/model and `kind` is a provider."""
    if not name.partition("/")[2]:
        raise InputError(f"{field}: {name!r} is not provider/model; providers: {', '.join(provider_names())}")
    try:
        provider(kind)
    except InputError as error:
        raise InputError(f"{field}: {name!r}: {error}") from error


def settings_class(name: str) -> type[ProviderSettings]:
    """Return the class of a provider's section; `ProviderOptions` for a provider that is not installed.

    Raises:
        InputError: the provider's module cannot be imported.
    """
    if name not in installed(GROUP):
        return ProviderOptions
    return cast(type[ProviderSettings], getattr(provider(name), "Settings", ProviderOptions))


def has_own_connection(name: str) -> bool:
    """Return True if a model ("provider/model") is of another package, whose connections are not checked."""
    entry = installed(GROUP).get(name.partition("/")[0])
    return entry is None or not is_ours(entry)


def is_local(name: str) -> bool:
    """Return True if a provider declares that its models run on this machine (`LOCAL = True` in its module)."""
    return name in installed(GROUP) and bool(getattr(provider(name), "LOCAL", False))
