"""The models that can be named: the providers, by entry point, and the table of presets.

Presets are open editors by name, and the baselines of MedEBench with their published settings.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from plantain.files.installed import entry_named, installed, is_ours, load_entry
from plantain.records import InputError
from plantain.records.messages import suggest
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
    """Raise InputError, which starts with the field, unless a name is provider/model and `kind` is a provider."""
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


TABLE = Path(__file__).with_name("presets.toml")


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table.

    Attributes:
        name: "provider/name", as an editor is named in a recipe.
        weights: hub id; "" for weights of the user.
        method: name in `plantain.models.diffusers.methods`; "" if the provider decides.
        model: the hosted model that answers, for a hosted preset.
        worker: name of the worker, for `process`.
        lora: hub id of LoRA weights put onto the model.
        settings: fields of the provider's `Settings` that the preset sets; a provider's section overrides them.
        sweep: the published grid: field -> values.
        frame: the canvas of a `process` model, as fields of `plantain.models.frames.FramePolicy`; {} for own sizes.
        prompt: text for the model, in which "{instruction}" is replaced.
        licence, memory: of weights without a hub id, as text.
        usual: the settings are those of the weights' authors, and the default for these weights.
        needs_region: the editor requires a region.
        source: source of the numbers.
    """

    name: str
    weights: str = ""
    method: str = ""
    model: str = ""
    worker: str = ""
    lora: str = ""
    settings: Mapping[str, float] = field(default_factory=dict)
    sweep: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    frame: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = "{instruction}"
    licence: str = "unknown"
    memory: str = ""
    needs_region: bool = False
    usual: bool = False
    source: str = ""

    def words(self, instruction: str, sides: str = "") -> str:
        """Return the prompt for an instruction; `sides` describes the patient's left and right in the image."""
        return self.prompt.replace("{instruction}", f"{instruction} {sides}".rstrip())


@dataclass(frozen=True, slots=True)
class KnownWeights:
    """Facts about weights that are known before they are on disk.

    Attributes:
        id: of the hub.
        licence: its name on the weights' page, "unknown" where none was found.
        conditions: non-commercial or gated: must be accepted by name before they load.
        disk_gb: gigabytes on disk.
        memory: of the device, as text.
        note: for a reader.
    """

    id: str
    licence: str
    conditions: bool = False
    disk_gb: float = 0.0
    memory: str = ""
    note: str = ""


@cache
def presets() -> dict[str, Preset]:
    """Return every preset by its name, in the order of the file."""
    with TABLE.open("rb") as file:
        table = tomllib.load(file)
    rows = (
        Preset(**{**row, "sweep": {name: tuple(values) for name, values in row.get("sweep", {}).items()}})
        for row in table["preset"]
    )
    return {row.name: row for row in rows}


@cache
def known_weights() -> dict[str, KnownWeights]:
    """Return the known weights by hub id."""
    with TABLE.open("rb") as file:
        table = tomllib.load(file)
    return {row["id"]: KnownWeights(**row) for row in table["weights"]}


def preset(name: str) -> Preset:
    """Return a preset by its name. Raise InputError, with the nearest name, for an unknown one."""
    found = presets().get(name)
    if found is not None:
        return found
    raise InputError(f"no preset {name!r}; {suggest(name, presets(), cutoff=0.4)}")
