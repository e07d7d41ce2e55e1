"""The models that can be named: the providers, by entry point, the presets, and the known hosted models.

Presets (presets.toml) are open editors by name, and the baselines of MedEBench with their published settings. Of hosted
models roles, shutdown dates and image tokens are in known.toml, prices in prices.csv.
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from plantain.files.installed import entry_named, installed, is_ours, load_entry
from plantain.records import InputError, Price
from plantain.records.messages import suggest
from plantain.roles.options import ProviderOptions, ProviderSettings

GROUP = "plantain.models"
"""Entry point group: name of the provider -> a module of the shape of `Provider`, imported on use."""


class Provider(Protocol):
    """The interface of a provider's module: settings, known roles, and loading a model."""

    MODELS: dict[str, tuple[str, ...]]
    """Models known by name -> the roles that each fills. A provider may load others too.

    A module may add `Settings`, the class of its section `[providers.NAME]`, below `ProviderSettings`; without one the
    section is read as `ProviderOptions`. It may add `LOCAL = True`: no image that it receives leaves this machine."""

    def load(self, name: str, role: str, options: ProviderSettings) -> object: ...


@runtime_checkable
class Closable(Protocol):
    """A model with a connection that can be closed."""

    async def aclose(self) -> None: ...


async def close_models(*models: object) -> None:
    """Close the connections of the models that have one; a closed model connects again when it is called."""
    for model in models:
        if isinstance(model, Closable):
            await model.aclose()


def provider_names() -> tuple[str, ...]:
    """Return the names of all installed providers, plantain's own first."""
    return tuple(installed(GROUP))


def provider(name: str) -> Provider:
    """Import and return the module of a provider.

    Raises:
        InputError: the name is unknown, or the module cannot be imported or is not a provider.
    """
    module = load_entry(entry_named(GROUP, name, "provider"), "provider")
    if not hasattr(module, "MODELS") or not hasattr(module, "load"):
        raise InputError(f"provider {name!r}: its entry point is not a module with MODELS and load")
    return cast(Provider, module)


def check_name(name: str, kind: str, field: str) -> None:
    """Check that `name` is "provider/model" and provider `kind` can be loaded. Raise InputError naming `field`."""
    if not name.partition("/")[2]:
        raise InputError(f"{field}: {name!r} is not provider/model; providers: {', '.join(provider_names())}")
    try:
        provider(kind)
    except InputError as error:
        raise InputError(f"{field}: {name!r}: {error}") from error


def settings_class(name: str) -> type[ProviderSettings]:
    """Return the class of a provider's settings; `ProviderOptions` for a provider that is not installed.

    Raises:
        InputError: the provider's module cannot be imported.
    """
    if name not in installed(GROUP):
        return ProviderOptions
    return cast(type[ProviderSettings], getattr(provider(name), "Settings", ProviderOptions))


def has_own_connection(name: str) -> bool:
    """Return True if the provider of "provider/model" is a plug-in, whose connections plantain cannot check."""
    entry = installed(GROUP).get(name.partition("/")[0])
    return entry is None or not is_ours(entry)


def is_local(name: str) -> bool:
    """Return True if a provider is installed and declares that its models run on this machine (`LOCAL = True`)."""
    return name in installed(GROUP) and bool(getattr(provider(name), "LOCAL", False))


TABLE = Path(__file__).with_name("presets.toml")


@dataclass(frozen=True, slots=True)
class Preset:
    """A named editor with its weights, prompt and settings.

    Attributes:
        name: "provider/name", as an editor is named in a recipe.
        weights: hub id; "" for the user's weights.
        method: name in `plantain.models.diffusers.methods`; "" if the provider decides.
        model: the hosted model that answers, for a hosted preset.
        worker: name of the worker, for `process`.
        lora: hub id of LoRA weights put onto the model.
        settings: fields of the provider's `Settings` that the preset sets; a provider's section overrides them.
        sweep: the published grid: field -> values.
        frame: the canvas of a `process` model, as fields of `plantain.models.frames.FramePolicy`; {}: image's size.
        prompt: text for the model, in which "{instruction}" is replaced.
        licence, memory: licence and memory of weights without a hub id, as text.
        usual: True if the settings are the authors' and the default for these weights.
        needs_region: True if the editor requires a region.
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
        """Fill an instruction into the prompt; `sides` describes the patient's left and right in the image."""
        return self.prompt.replace("{instruction}", f"{instruction} {sides}".rstrip())


@dataclass(frozen=True, slots=True)
class KnownWeights:
    """Facts about weights that are known before they are on disk.

    Attributes:
        id: hub id.
        licence: name of the licence on the weights' page; "unknown" if none was found.
        conditions: True if non-commercial or gated: the licence must be accepted by name before loading.
        disk_gb: gigabytes on disk.
        memory: memory needed on the device, as text.
        note: a remark for readers.
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
    """Return the facts about all known weights by hub id."""
    with TABLE.open("rb") as file:
        table = tomllib.load(file)
    return {row["id"]: KnownWeights(**row) for row in table["weights"]}


def preset(name: str) -> Preset:
    """Return a preset by its name. Raise InputError, with the nearest name, for an unknown one."""
    found = presets().get(name)
    if found is not None:
        return found
    raise InputError(f"no preset {name!r}; {suggest(name, presets(), cutoff=0.4)}")


SOON = timedelta(days=60)
"""Time before a model's end at which a run warns."""

PRICES = Path(__file__).with_name("prices.csv")
ROLES = {"language": ("writer", "judge"), "editors": ("editor",)}

ALSO_SERVED = {"vertex": "gemini", "azure": "openai"}
"""Clouds that serve another provider's models under the same ids."""

REGIONAL_FACTOR = 1.1

SNAPSHOT = re.compile(r"-(\d{4}-\d\d-\d\d|\d{3}|\d\d-\d{4})\Z")
"""The end of a dated form of another id; it costs the same and ends on the same day."""

USUAL_IMAGE_TOKENS = 1_120
"""Tokens of one image of 1024x1024 by most models."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A hosted model that plantain knows: roles, prices and end of service.

    Attributes:
        name: "provider/model".
        roles: roles it can fill: writer, editor, judge.
        prices: list prices in order of their days; empty if unknown.
        retired: first day on which the provider does not serve it, ISO; "" if unknown.
        successor: model to use instead; "" if unknown.
        note: a remark for readers.
        image_tokens: tokens of one square output image, by `image_size` or `image_quality`; "" if unset.
    """

    name: str
    roles: tuple[str, ...]
    prices: tuple[Price, ...] = ()
    retired: str = ""
    successor: str = ""
    note: str = ""
    image_tokens: Mapping[str, int] = field(default_factory=dict)

    def price_on(self, day: date) -> Price | None:
        """Return the list price on a day; None if unknown."""
        return next((price for price in self.prices if price.holds_on(day.isoformat())), None)


@cache
def known_models() -> dict[str, KnownModel]:
    """Return every known hosted model by its name, in the order of the file."""
    with Path(__file__).with_name("known.toml").open("rb") as file:
        providers = tomllib.load(file)
    listed = _prices()
    found: dict[str, KnownModel] = {}
    for provider, kinds in providers.items():
        for kind, models in kinds.items():
            for model, row in models.items():
                name = f"{provider}/{model}"
                factor = REGIONAL_FACTOR if row.pop("regional", False) else 1.0
                prices = tuple(replace(price, regional_factor=factor) for price in listed.get(name, ()))
                successor = f"{provider}/{row.pop('successor')}" if "successor" in row else ""
                found[name] = KnownModel(name, ROLES[kind], prices, successor=successor, **row)
    return found


def _prices() -> dict[str, list[Price]]:
    """Read prices.csv: a comment with source and day, then one price list of one model in each row."""
    first, *rows = PRICES.read_text("utf-8").splitlines()
    source, _, day = first.removeprefix("# ").partition("; read on ")
    found: dict[str, list[Price]] = {}
    for row in csv.DictReader(rows):
        name = row.pop("model")
        texts = {key: row.pop(key) for key in ("since", "until", "date", "source")}
        rates = {key: float(value) for key, value in row.items() if value}
        price = Price(
            **rates,
            since=texts["since"],
            until=texts["until"],
            date=texts["date"] or day,
            source=texts["source"] or source,
        )
        found.setdefault(name, []).append(price)
    return found


def known_model(name: str) -> KnownModel | None:
    """Return the known data of "provider/model"; None if the model is unknown.

    A model on a cloud of `ALSO_SERVED` has its maker's data; a dated id has the data of the undated one.
    """
    rows = known_models()
    provider, _, model = name.partition("/")
    maker = ALSO_SERVED.get(provider, provider)
    row = rows.get(name) or rows.get(f"{maker}/{model}") or rows.get(f"{maker}/{SNAPSHOT.sub('', model)}")
    if row is None or row.name == name:
        return row
    if maker == provider:
        return replace(row, name=name)
    prices = tuple(
        replace(price, source=f"{price.source}; the row of {maker}/{model}") for price in row.prices
    )
    successor = row.successor.replace(f"{maker}/", f"{provider}/", 1)
    return replace(row, name=name, prices=prices, successor=successor)


def roles_at(provider: str) -> dict[str, tuple[str, ...]]:
    """Return the roles of each model that a provider is known to serve, by "provider/model"."""
    maker = ALSO_SERVED.get(provider, provider)
    return {
        f"{provider}/{name.partition('/')[2]}": model.roles
        for name, model in known_models().items()
        if name.startswith(f"{maker}/")
    }


def today() -> date:
    """Return the current date in UTC, for looking up prices and shutdown dates."""
    return datetime.now(UTC).date()


def price_of(name: str, day: date | None = None) -> Price | None:
    """Return the list price of a model on a day, by default today; None if unknown. Local models cost nothing."""
    if name.startswith(("offline/", "diffusers/", "process/")):
        return Price(0.0, 0.0, source="runs here")
    model = known_model(name)
    return model.price_on(day or today()) if model else None


def image_tokens(name: str, size: str, quality: str = "") -> int | None:
    """Return the output tokens of one square image; None if the model, size or quality is unknown or unset.

    Gemini counts by `size` ("2K"); OpenAI by `quality`, scaled by the area of `size` relative to 1024x1024.
    """
    table = _image_table(name)
    if not name.startswith(("openai/", "azure/")):
        return table.get(size)
    sides = size.split("x")
    area = int(sides[0]) * int(sides[-1]) / 1024**2 if all(side.isdecimal() for side in sides) else 1.0
    return round(table[quality] * area) if quality in table else None


def _image_table(name: str) -> Mapping[str, int]:
    model = known_model(name)
    return model.image_tokens if model else {}


def image_token_range(name: str, size: str, quality: str) -> tuple[int, int, int]:
    """Return (least, usual, most) output tokens of one image with these settings; 1,120 each for an unknown model."""
    known = image_tokens(name, size, quality)
    if known is not None:
        return known, known, known
    table = _image_table(name)
    choices = sorted(image_tokens(name, size, quality) or tokens for quality, tokens in table.items())
    if not choices:
        return (USUAL_IMAGE_TOKENS,) * 3
    return choices[0], choices[len(choices) // 2], choices[-1]


def endings(names: Iterable[str], day: date | None = None) -> list[str]:
    """Warn, one message each, about models shut down already or within 60 days of `day` (default: today)."""
    now = day or today()
    lines = []
    for name in dict.fromkeys(names):
        model = known_model(name)
        if model is None or not model.retired:
            continue
        end = date.fromisoformat(model.retired)
        if end - now > SOON:
            continue
        maker = ALSO_SERVED.get(name.partition("/")[0])
        if maker and name not in known_models():
            when = f"may end soon: {maker} ends it on {end}, other providers have dates of their own"
        elif end <= now:
            when = f"has ended on {end}"
        else:
            when = f"ends on {end}, in {(end - now).days} days: a run must be complete by then"
        lines.append(f"{name} {when}{f'; its successor is {model.successor}' if model.successor else ''}")
    return lines
