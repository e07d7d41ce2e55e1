"""The terms of a run: its models, limits, budget, providers and consent."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar, cast

import orjson
from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from plantain.engines.contract import HERE, EngineSection, engine_named
from plantain.journal import JournalReader, JsonValue
from plantain.journal.connect import JOURNAL_NAME
from plantain.models.registry import settings_class
from plantain.records import Consent, Destination, InputError, Reach
from plantain.roles.options import ProviderOptions, ProviderSettings, Section, destination
from plantain.runs.settings_file import Providers, RoleTables, check_provider_names, in_role, read_toml

S = TypeVar("S", bound=ProviderSettings)

ON_THIS_MACHINE = frozenset({"offline", "diffusers", "process", "baseline", "outputs", "python", "people"})
"""Providers whose models run here: they cost nothing, and no image leaves the machine for them. "baseline" and
"outputs" are a benchmark's own baselines, and outputs that were made elsewhere; "people" are a study's readers."""


class ConsentGiven(Section):
    """The owners' permission to send their images to the hosted models, as the file states it.

    `by` names the signatory. `agreement` names the document.
    `tenant` narrows it to one part of a cloud, by name: a Google Cloud project, or an Azure resource.
    """

    by: Annotated[str, Field(min_length=3)]
    agreement: Annotated[str, Field(min_length=3)]
    tenant: str = ""


def _form(value: object) -> str:
    return "(several)" if isinstance(value, (list, tuple)) else "(one)"


Permissions = (
    Annotated[
        Annotated[ConsentGiven, Tag("(one)")] | Annotated[tuple[ConsentGiven, ...], Tag("(several)")],
        Discriminator(_form),
    ]
    | None
)
"""`[consent]`, or several as `[[consent]]`; the tags keep messages to the form that was written."""


def permission_for(given: Permissions, to: Destination) -> Consent | None:
    """Return the permission for an address: that of its tenant, else the one for every hosted model."""
    every = (given,) if isinstance(given, ConsentGiven) else given or ()
    for tenant in dict.fromkeys((to.tenant, "")):
        for one in every:
            if one.tenant == tenant:
                named = f"{one.agreement}, tenant {tenant}" if tenant else one.agreement
                return Consent(one.by, named)
    return None


class Limits(Section):
    """Limits of the whole run; a resumed run may change them.

    `concurrency` bounds the calls in flight to each model; where it is not set, open models have as many as keep
    every device busy.

    Reaching `budget_usd`, `max_calls` or `max_hours` stops the run with exit code 3. `deadline_s` is for one call,
    and a first guess: it doubles, up to 600 s, where a server takes longer. A model that does not answer is waited
    for as long as `outage_hours`.
    `wave` is how many tasks are under way at once where calls wait for batch jobs.
    """

    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 8
    budget_usd: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    max_calls: Annotated[int, Field(ge=1)] | None = None
    max_hours: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] | None = None
    wave: Annotated[int, Field(ge=1, le=20_000)] = 1_000
    deadline_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 600.0
    outage_hours: Annotated[float, Field(gt=0.0, le=168.0)] = 12.0


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a run.

    Attributes:
        models: every model that it calls, "provider/model", once.
        limits: limits on money, calls and time.
        providers: the sections `[providers.NAME]`.
        consent: the owners' permission, where it was stated.
        consent_section: where the file states it, for messages.
        settings: the sections `[settings.ROLE]`.
        engine: where heavy work runs.
        room: pieces of work that the engine's workers do at once; 0 where it is this machine's processes.
    """

    models: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    consent: Permissions = None
    consent_section: str = "consent"
    settings: RoleTables = field(default_factory=dict)
    engine: EngineSection = HERE
    room: int = 0

    def __post_init__(self) -> None:
        """Raise InputError for a name that is a path or an address."""
        for model in self.models:
            parts = model.split("/")
            if {"", ".", ".."} & set(parts) and parts[0] not in ON_THIS_MACHINE:
                raise InputError(
                    f"model {model!r}: a path or an address; expected provider/model, as openai/gpt-4.1 "
                    "(an address is set in providers.NAME.base_url)"
                )

    def provider(self, model: str) -> ProviderSettings:
        """Return the section of the provider of "provider/model"; its defaults where there is none."""
        name = model.partition("/")[0]
        section = self.providers.get(name)
        return settings_class(name)() if section is None else section

    def provider_as(self, model: str, own: type[S]) -> S:
        """Return the same as the class that the model's provider has. Raise InputError for another provider."""
        section = self.provider(model)
        if not isinstance(section, own):
            kind = own.__module__.rpartition(".")[0].rpartition(".")[2]
            raise InputError(f"{model}: is not a model of {kind}; give {kind}/FOLDER or {kind}/HUB-ID")
        return section

    def options(self, model: str, role: str = "") -> ProviderSettings:
        """Return a model's settings in a role: its provider's section, and the role's over it. Raise InputError."""
        settings = self.provider(model).within(listed=self.listed(model))
        table = self.settings.get(role)  # type: ignore[call-overload]  # other roles have none
        return in_role(settings, model.partition("/")[0], role, table) if table else settings

    def in_every_role(self, model: str) -> list[ProviderSettings]:
        """Return a model's settings without a role and in each one that its provider can follow.

        Which role a model fills is not known here, and a table that its provider refuses is another model's.
        """
        found = [self.options(model)]
        for role in self.settings:
            with contextlib.suppress(InputError):
                found.append(self.options(model, role))
        return found

    def kind(self, model: str) -> str:
        """Return the known provider that serves "name/model"; a named endpoint states its own."""
        return self.provider(model).kind or model.partition("/")[0]

    def listed(self, model: str) -> str:
        """Return a model's name in the table of known models; for a deployment, that of the model it serves."""
        kind, name = self.kind(model), model.partition("/")[2]
        return f"{kind}/{(self.provider(model).get('deployments') or {}).get(name, name)}"

    def sampling(self) -> dict[str, JsonValue]:
        """Return the frozen part of each provider's section, where it differs from the default."""
        frozen: dict[str, JsonValue] = {}
        for name, section in sorted(self.providers.items()):
            if part := section.frozen_part():
                frozen[name] = cast(JsonValue, part)
        return frozen


class Settings(Section):
    """A settings file of a command without a recipe: `[limits]`, `[providers.NAME]`, `[settings.ROLE]`,
    `[consent]`, `[engine]`.
    """

    limits: Limits = Limits()
    providers: Providers = Field(default_factory=dict)
    consent: Permissions = None
    settings: RoleTables = Field(default_factory=dict)
    engine: EngineSection = HERE

    @model_validator(mode="before")
    @classmethod
    def _of_recipe(cls, table: dict[str, object]) -> dict[str, object]:
        """Take a recipe's tables that a settings file may have, too."""
        if not isinstance(data := table.get("data"), dict):
            return table
        consent = {"consent": data["consent"]} if "consent" in data else {}
        return {name: part for name, part in table.items() if name in cls.model_fields} | consent


def resolve_provider_paths(
    path: Path, providers: Mapping[str, ProviderSettings]
) -> dict[str, ProviderSettings]:
    """Return the sections of a file with their paths relative to it. Raise InputError for a file that is missing."""
    placed = {}
    for name, section in providers.items():
        try:
            placed[name] = section.relative_to(path.resolve().parent)
        except ValueError as error:
            raise InputError(f"{path}: providers.{name}.{error}") from error
    return placed


PROVIDERS = "providers"
"""Key of a run's meta: the sections of providers that it called at an address of their own, without paths."""


def recorded_part(terms: Terms, before: str | None) -> str:
    """Return the provider addresses that a run records, merged with those recorded before."""
    known = {
        name: section.model_dump(mode="json", exclude_defaults=True, exclude={"prompts", "proxy"})
        for name, section in terms.providers.items()
        if section.get("base_url")
    }
    return orjson.dumps({**orjson.loads(before or "{}"), **known}).decode()


def _recorded_providers(run: Path, models: Sequence[str]) -> dict[str, ProviderSettings]:
    """Return the recorded sections of these models' providers on this machine.

    Raises:
        InputError: a model was called at an address elsewhere. The run may come from a stranger, so no key of the
            user is sent to its address.
    """
    if not (run / JOURNAL_NAME).is_file():
        return {}
    with JournalReader.open(run) as reader:
        tables = orjson.loads(reader.meta(PROVIDERS) or "{}")
    named = {model.partition("/")[0]: model for model in models}
    try:
        found = Settings.model_validate(
            {"providers": {name: tables[name] for name in named if name in tables}}
        )
    except ValidationError as error:
        raise InputError(f"{run}: meta.{PROVIDERS}: {error.errors()[0]['msg']}; give --settings") from error
    for name, section in found.providers.items():
        url = section.get("base_url")
        if not isinstance(section, ProviderOptions) or destination(url, section).reach is not Reach.LOOPBACK:
            raise InputError(
                f"{run}: called {named[name]} at {url}; say with --settings, [providers.{name}] base_url, where it is "
                "to be called now"
            )
    return dict(found.providers)


def load_terms(
    path: Path | None, models: tuple[str, ...], *, engine: str = "", run: Path | None = None
) -> Terms:
    """Return the terms of a settings file, or a recipe, for these models; without a file the defaults.

    Args:
        engine: kind of engine, in place of the file's; "" leaves that.
        run: that the models are called for; without a file they are called where it has called them.

    Raises:
        InputError: one line that names the file and the field, and for an unknown key the nearest known one.
    """
    named = tuple(dict.fromkeys(models))
    if path is None:
        providers = _recorded_providers(run, named) if run is not None else {}
        return Terms(named, providers=providers, engine=engine_named(HERE, engine))
    settings = read_toml(path, Settings, "settings file")
    check_provider_names(settings.providers, named, path)
    return Terms(
        named,
        settings.limits,
        resolve_provider_paths(path, settings.providers),
        settings.consent,
        settings=settings.settings,
        engine=engine_named(settings.engine, engine),
    )
