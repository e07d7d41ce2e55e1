"""The terms under which a run calls models: which, how fast, for how much money, and with whose permission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from plantain.journal import JsonValue
from plantain.records import Consent, Destination
from plantain.roles.options import ProviderOptions
from plantain.runs.settings.engine import HERE, EngineSection, engine_named
from plantain.runs.settings.providers import NO_SETTINGS, ProviderSection
from plantain.runs.settings.reading import check_provider_names, read_toml
from plantain.runs.settings.roles import Role, RoleSection


class Section(BaseModel):
    """A section of a file that a person writes: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ConsentGiven(Section):
    """The owners' permission to send their images to the hosted models, as the file states it.

    `by` is the person who gives it. `agreement` is the document that it rests on.
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
    """The permission that covers an address: its tenant's own first, else one for every hosted model."""
    every = (given,) if isinstance(given, ConsentGiven) else given or ()
    for tenant in dict.fromkeys((to.tenant, "")):
        for one in every:
            if one.tenant == tenant:
                named = f"{one.agreement}, tenant {tenant}" if tenant else one.agreement
                return Consent(one.by, named)
    return None


class Limits(Section):
    """What may be spent, by the run as a whole; free to change when it is resumed.

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
    """Under what terms a run calls models.

    Attributes:
        models: every model that it calls, "provider/model", once.
        limits: what may be spent.
        providers: the sections `[providers.NAME]`.
        consent: the owners' permission, where it was stated.
        consent_section: where the file states it, for messages.
        settings: the sections `[settings.ROLE]`.
        engine: where heavy work runs.
        room: pieces of work that the engine's workers do at once; 0 where it is this machine's processes.
    """

    models: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    providers: Mapping[str, ProviderSection] = field(default_factory=dict)
    consent: Permissions = None
    consent_section: str = "consent"
    settings: Mapping[Role, RoleSection] = field(default_factory=dict)
    engine: EngineSection = HERE
    room: int = 0

    def provider(self, model: str) -> ProviderSection:
        """What is said of the provider of "provider/model"; the defaults where nothing is."""
        return self.providers.get(model.partition("/")[0], NO_SETTINGS)

    def options(self, model: str, role: str = "") -> ProviderOptions:
        """What is said of a model in a role: its provider's section, and the role's over it. Raises InputError."""
        section = self.settings.get(role)  # type: ignore[call-overload]  # other roles have none
        own = section.options(role) if section is not None else {}
        return replace(self.provider(model).options(), listed=self.listed(model), **own)

    def in_every_role(self, model: str) -> list[ProviderOptions]:
        """The same for every role that has settings, and for one that has none: nobody says which a model fills."""
        return [self.options(model, role) for role in ("", *self.settings)]

    def kind(self, model: str) -> str:
        """Which of the known providers answers for "name/model": a named endpoint says so itself."""
        return self.provider(model).kind or model.partition("/")[0]

    def listed(self, model: str) -> str:
        """The name under which the table of known models has a model: of a deployment, that of what it serves."""
        kind, name = self.kind(model), model.partition("/")[2]
        return f"{kind}/{self.provider(model).deployments.get(name, name)}"

    def sampling(self) -> dict[str, JsonValue]:
        """How its providers' models are sampled, where that differs from the default: frozen in a run."""
        return {
            name: frozen
            for name, section in sorted(self.providers.items())
            if (frozen := section.frozen_part())
        }


class Settings(Section):
    """A settings file of a command without a recipe: `[limits]`, `[providers.NAME]`, `[settings.ROLE]`,
    `[consent]`, `[engine]`.
    """

    limits: Limits = Limits()
    providers: Mapping[str, ProviderSection] = Field(default_factory=dict)
    consent: Permissions = None
    settings: Mapping[Role, RoleSection] = Field(default_factory=dict)
    engine: EngineSection = HERE


def load_terms(path: Path | None, models: tuple[str, ...], *, engine: str = "") -> Terms:
    """The terms of a settings file for these models; the defaults without a file.

    Args:
        engine: kind of engine, in place of the file's; "" leaves that.

    Raises:
        InputError: one line that names the file and the field, and for an unknown key the nearest known one.
    """
    named = tuple(dict.fromkeys(models))
    if path is None:
        return Terms(named, engine=engine_named(HERE, engine))
    settings = read_toml(path, Settings, "settings file")
    check_provider_names(settings.providers, named, path)
    here = path.resolve().parent
    providers = {name: section.beside(here) for name, section in settings.providers.items()}
    return Terms(
        named,
        settings.limits,
        providers,
        settings.consent,
        settings=settings.settings,
        engine=engine_named(settings.engine, engine),
    )
