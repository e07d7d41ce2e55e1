"""The terms of a run (models, limits, providers, consent), and the prices, limits, budget and hours under them."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import urlsplit

import orjson
from pydantic import ValidationError

from plantain.calls import Budget, ModelLimits
from plantain.calls.limits import StepCosts
from plantain.engines.contract import HERE, EngineSection
from plantain.journal import JournalReader, JsonValue
from plantain.journal.connect import JOURNAL_NAME
from plantain.journal.reader import money_by_step
from plantain.models.diffusers.devices import IN_FLIGHT, device_names
from plantain.models.registry import image_token_range, price_of, settings_class
from plantain.records import FREE, InputError, Price, Reach, Step, Usage
from plantain.roles.options import ProviderOptions, ProviderSettings, destination
from plantain.runs.settings_file import (
    ConsentGiven,
    Limits,
    RoleTables,
    Settings,
    check_provider_names,
    engine_named,
    in_role,
    read_toml,
    resolve_provider_paths,
)

S = TypeVar("S", bound=ProviderSettings)

ON_THIS_MACHINE = frozenset({"offline", "diffusers", "process", "baseline", "outputs", "python", "people"})
"""Providers whose models run here: they cost nothing, and no image leaves the machine for them. "baseline" and
"outputs" are a benchmark's own baselines, and outputs that were made elsewhere; "people" are a study's readers."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms under which a run calls models.

    Attributes:
        models: every model that it calls, "provider/model", once.
        limits: limits on money, calls and time.
        providers: the sections `[providers.NAME]`.
        consent: the owners' permission, if stated.
        consent_section: the file's section for consent, for messages.
        settings: the sections `[settings.ROLE]`.
        engine: the engine that does heavy work.
        room: number of pieces of work that the engine does at once; 0 if it is this machine's processes.
    """

    models: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    consent: ConsentGiven | None = None
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
        """Return the section of the provider of "provider/model"; if it has none, the provider's defaults."""
        name = model.partition("/")[0]
        section = self.providers.get(name)
        return settings_class(name)() if section is None else section

    def provider_as(self, model: str, own: type[S]) -> S:
        """Return the section of the model's provider as `own`. Raise InputError if it is of another class."""
        section = self.provider(model)
        if not isinstance(section, own):
            kind = own.__module__.rpartition(".")[0].rpartition(".")[2]
            raise InputError(f"{model}: is not a model of {kind}; give {kind}/FOLDER or {kind}/HUB-ID")
        return section

    def options(self, model: str, role: str = "") -> ProviderSettings:
        """Return a provider's settings, overridden by the role's. Raise InputError if those are invalid."""
        settings = self.provider(model).within(listed=self.listed(model))
        table = self.settings.get(role)  # type: ignore[call-overload]  # other roles have none
        return in_role(settings, model.partition("/")[0], role, table) if table else settings

    def in_every_role(self, model: str) -> list[ProviderSettings]:
        """Return a model's possible settings: without a role, and in each role whose settings its provider accepts.

        The model's role is not known here; a role's section that the provider rejects belongs to another model.
        """
        found = [self.options(model)]
        for role in self.settings:
            with contextlib.suppress(InputError):
                found.append(self.options(model, role))
        return found

    def kind(self, model: str) -> str:
        """Return the provider of "name/model"; for a named endpoint, the `kind` in its section."""
        return self.provider(model).kind or model.partition("/")[0]

    def listed(self, model: str) -> str:
        """Return a model's name in the table of known models; for a deployment, the name of the model it serves."""
        kind, name = self.kind(model), model.partition("/")[2]
        return f"{kind}/{(self.provider(model).get('deployments') or {}).get(name, name)}"

    def sampling(self) -> dict[str, JsonValue]:
        """Return, by provider, the settings that a resumed run must repeat, without default values."""
        frozen: dict[str, JsonValue] = {}
        for name, section in sorted(self.providers.items()):
            if part := section.frozen_part():
                frozen[name] = cast(JsonValue, part)
        return frozen


PROVIDERS = "providers"
"""Key of a run's meta: the sections of providers that it called at an address of their own, without paths."""


def recorded_part(terms: Terms, before: str | None) -> str:
    """Return, as JSON to record, the provider sections with a `base_url`, merged into the record `before`."""
    known = {
        name: section.model_dump(mode="json", exclude_defaults=True, exclude={"prompts"})
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
    """Read the terms for calling these models from a settings file or recipe; without a file, the defaults.

    Args:
        engine: kind of engine, instead of the file's; "" for the file's.
        run: folder of a run; without a file, its recorded addresses of models are used.

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


ON_WORKERS = frozenset({"offline", "diffusers", "process"})
"""Providers whose models an engine's workers compute."""

OPEN_MODELS = frozenset({"diffusers", "process"})
"""Providers whose models compute for seconds to hours, one batch after another: their calls have no deadline."""

LOCAL_OUTAGE_S = 900.0
"""Seconds after which an open model that answers nothing is given up."""

BATCH_SHARE = 0.5
"""Share of the list price that a batch job costs; cached input may differ."""

TYPICAL_USAGE = {
    Step.WRITE: Usage(input_tokens=2_200, output_tokens=850, thinking_tokens=600),
    Step.EDIT: Usage(input_tokens=1_500, input_image_tokens=1_300, output_tokens=1_120, images=1),
    Step.JUDGE: Usage(input_tokens=3_800, output_tokens=1_250, thinking_tokens=900),
}
"""Assumed usage of one call before anything is measured: our own estimate from prompt lengths and the tokens
of a 1024x1024 image; a pilot replaces it."""

SPREAD = (0.7, 1.0, 1.5)
"""How much an estimated cost or latency may be off, low to high."""

_REGIONAL = re.compile(r"[a-z]+\.api\.openai\.com")


# --- prices -----------------------------------------------------------------------------------------


def price_under(terms: Terms, model: str) -> Price | None:
    """Return a model's list prices: the recipe's, else the table's; None if neither has them."""
    name = model.partition("/")[2]
    if terms.kind(model) in ON_THIS_MACHINE:
        return FREE
    section = terms.provider(model)
    if name in section.prices:
        price: Price | None = section.prices[name].price()
    else:
        price = price_of(terms.listed(model))
        if price is not None and _of_a_region(terms.kind(model), section):
            price = price.times(price.regional_factor)
    if price is None or not section.in_jobs:
        return price
    half = price.times(BATCH_SHARE)
    cached = half.cached_per_m if price.batch_cached_per_m is None else price.batch_cached_per_m
    return replace(half, cached_per_m=cached)


def _of_a_region(provider: str, section: ProviderSettings) -> bool:
    """Return True if calls go to an address of a region, by the SDKs' own lists, rather than to the global one."""
    if provider == "vertex":
        return section.get("location") not in (None, "", "global")
    if provider != "openai" or not isinstance(section, ProviderOptions):
        return False
    return bool(_REGIONAL.fullmatch(urlsplit(section.base_url).hostname or ""))


def check_prices(terms: Terms) -> None:
    """Check that under a budget every model has a price.

    Raises:
        InputError: one has none; the message names the model and the fields to fill.
    """
    if terms.limits.budget_usd is None:
        return
    for model in terms.models:
        provider, _, name = model.partition("/")
        if price_under(terms, model) is None:
            raise InputError(
                f"limits.budget_usd: the price of {model} is unknown, so a budget cannot be kept; state it as "
                f'[providers.{provider}.prices."{name}"] with input_per_m, output_per_m (and image_out_each for an '
                "editor), or remove the budget"
            )


# --- limits of a model ------------------------------------------------------------------------------


def model_limits(terms: Terms, model: str) -> ModelLimits:
    """Return a model's price, concurrency, rates and other limits for the admission of calls."""
    section, provider = terms.provider(model), model.partition("/")[0]
    asked, price = terms.in_every_role(model), price_under(terms, model)
    in_jobs = section.in_jobs
    return ModelLimits(
        concurrency=calls_at_once(terms, model),
        requests_per_minute=None if in_jobs else section.requests_per_minute,
        tokens_per_minute=None if in_jobs else section.tokens_per_minute,
        price=price,
        max_output_tokens=max(options.get("max_output_tokens") or 0 for options in asked),
        image_tokens=max(_image_tokens(terms, model, options) for options in asked),
        in_jobs=in_jobs,
        slow_start=not in_jobs and provider not in OPEN_MODELS,
        deadline_s=None if in_jobs or provider in OPEN_MODELS else _deadline_s(terms, model),
        outage_s=None if in_jobs else _outage_s(terms, provider),
    )


def calls_at_once(terms: Terms, model: str) -> int:
    """Return the maximum number of a model's calls in flight: as set, else enough for its devices, workers or jobs.

    With the default of 8, eight GPUs would often be idle.
    """
    limits, section = terms.limits, terms.provider(model)
    if section.concurrency is not None:
        return section.concurrency
    if section.in_jobs:
        return max(limits.concurrency, limits.wave)
    if "concurrency" in limits.model_fields_set:
        return limits.concurrency
    if terms.room and terms.kind(model) in ON_WORKERS:
        return max(limits.concurrency, 2 * terms.room)
    return max(limits.concurrency, IN_FLIGHT * len(devices_of(terms, model)))


def devices_of(terms: Terms, model: str) -> tuple[str, ...]:
    """Return the names of the devices that an open editor uses, one process each; () for other models."""
    return device_names(terms.provider(model).get("device") or "") if model.startswith("diffusers/") else ()


def tasks_at_once(terms: Terms) -> int:
    """Return the number of tasks to run at once, so that all models have their maximum of calls in flight."""
    return max((calls_at_once(terms, model) for model in terms.models), default=terms.limits.concurrency)


def _image_tokens(terms: Terms, model: str, options: ProviderSettings) -> int:
    """Return the most tokens that one edited image comes to, if known."""
    size, quality = options.get("image_size") or "", options.get("image_quality") or ""
    return image_token_range(terms.listed(model), size, quality)[2]


def _deadline_s(terms: Terms, model: str) -> float:
    """Return a call's deadline: the shorter of the limits for calls and for the provider's requests."""
    if model.partition("/")[0] in ON_THIS_MACHINE:
        return terms.limits.deadline_s
    return min(terms.limits.deadline_s, terms.provider(model).get("timeout_s") or math.inf)


def _outage_s(terms: Terms, provider: str) -> float | None:
    """Return how long a model may answer nothing: a failed program of this machine does not recover by waiting."""
    if provider in ON_THIS_MACHINE:
        return LOCAL_OUTAGE_S if provider in OPEN_MODELS else None
    return terms.limits.outage_hours * 3600.0


# --- budget and hours -------------------------------------------------------------------------------


def budget_of(limits: Limits, reader: JournalReader) -> Budget:
    """Compute the run's budget from the journal: the cost of finished calls, and the possible cost of others.

    Calls that a kill left open, and calls whose answer never arrived, count with the usual cost of such calls until
    `plantain run retry --settle-held` records their cost. Calls that a batch job will answer count with their maximum
    cost.
    """
    return Budget(
        limits.budget_usd,
        reader.spent_usd(),
        costs_of(reader),
        max_calls=limits.max_calls,
        calls=sum(reader.outcomes().values()) + len(reader.open_calls()),
    )


def costs_of(reader: JournalReader) -> dict[tuple[str, Step], StepCosts]:
    """Return, by model and step, the cost so far and the amount reserved for calls of unknown cost, in US dollars."""
    return {
        key: StepCosts(
            money.latest, lost=money.lost, lost_most=money.lost_most, in_jobs_usd=money.in_jobs_usd
        )
        for key, money in money_by_step(reader.connection).items()
    }


def seconds_left(limits: Limits, reader: JournalReader) -> float | None:
    """Return the seconds left of `limits.max_hours`, counting all processes of the run; None without that limit.

    A killed process counts up to its last call.
    """
    return None if limits.max_hours is None else limits.max_hours * 3600.0 - reader.seconds_worked()
