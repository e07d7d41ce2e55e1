"""Prices, budget and hours of a run, and the rate limits of each model."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from urllib.parse import urlsplit

from plantain.calls import Budget, ModelLimits
from plantain.calls.limits import StepCosts
from plantain.journal import JournalReader
from plantain.journal.reader import money_by_step
from plantain.models.diffusers.devices import calls_in_flight, device_names
from plantain.models.registry import image_token_range, price_of
from plantain.records import FREE, InputError, Price, Step, Usage
from plantain.records.tasks import USUAL_TIERS
from plantain.roles.options import ProviderOptions, ProviderSettings
from plantain.runs.terms import ON_THIS_MACHINE, Limits, Terms

ON_WORKERS = frozenset({"offline", "diffusers", "process"})
"""Providers whose models an engine's workers compute."""

OPEN_MODELS = frozenset({"diffusers", "process"})
"""Providers whose models compute for seconds to hours, one batch after another: their calls have no deadline."""

LOCAL_OUTAGE_S = 900.0
"""Seconds after which an open model that answers nothing is given up."""

BATCH_SHARE = 0.5
"""Share of the list price that a batch job costs; cached input may differ. Flex costs the same
share, never half of it."""

TIER_BILLED = {"fast": "priority"}
"""Service tiers that are requested by one name and billed by another."""

TYPICAL_USAGE = {
    Step.WRITE: Usage(input_tokens=2_200, output_tokens=850, thinking_tokens=600),
    Step.EDIT: Usage(input_tokens=1_500, input_image_tokens=1_300, output_tokens=1_120, images=1),
    Step.LOOK: Usage(input_tokens=3_500, output_tokens=1_400, thinking_tokens=900),
    Step.JUDGE: Usage(input_tokens=3_800, output_tokens=1_250, thinking_tokens=900),
}
"""Assumed usage of one call before anything is measured: our own estimate from prompt lengths and the tokens
of a 1024x1024 image; a pilot replaces it."""

SPREAD = (0.7, 1.0, 1.5)
"""How much an estimated cost or latency may be off, low to high."""

_REGIONAL = re.compile(r"[a-z]+\.api\.openai\.com")


# --- prices -----------------------------------------------------------------------------------------


def price_under(terms: Terms, model: str) -> Price | None:
    """Return the price of a model under these terms: the recipe's, else the table's; None where there is neither."""
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
    return replace(half, cached_per_m=cached, tiers=(("flex", 1.0),) if price.tiers else ())


def _of_a_region(provider: str, section: ProviderSettings) -> bool:
    """Return True if calls go to an address of a region, by the SDKs' own lists, rather than to the global one."""
    if provider == "vertex":
        return section.get("location") not in (None, "", "global")
    if provider != "openai" or not isinstance(section, ProviderOptions):
        return False
    return bool(_REGIONAL.fullmatch(urlsplit(section.base_url).hostname or ""))


def usual_cost(terms: Terms, model: str, role: str, usage: Usage) -> float | None:
    """Return the dollars of a call that consumes this in a role, under its service tier; None where unknown."""
    price = price_under(terms, model)
    tier = billed_tier(_tier_of(terms.options(model, role)))
    return None if price is None else price.cost(replace(usage, tier=tier))


def unpriced(terms: Terms, model: str, role: str) -> str:
    """Return the model, or its service tier in this role, if it has no price; "" if it has one."""
    price, tier = price_under(terms, model), _tier_of(terms.options(model, role))
    if price is None:
        return model
    return f"the service tier {tier} of {model}" if _tier_factor(price, tier) is None else ""


def check_prices(terms: Terms) -> None:
    """Refuse a budget over models without a price: it could not be kept.

    Raises:
        InputError: the model and the fields to fill.
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
        for options in terms.in_every_role(model):
            tier = _tier_of(options)
            if _tier_factor(price_under(terms, model), tier) is None:
                raise InputError(
                    f"{options.origin_of('service_tier', f'providers.{provider}')}: the price of the tier "
                    f"{tier!r} of {model} is unknown, so a budget cannot be kept; use another tier, state the model's "
                    "price, or remove the budget"
                )


def billed_tier(tier: str) -> str:
    """Return the name under which a requested service tier is billed; "" for the tier of list prices."""
    return "" if tier in USUAL_TIERS else TIER_BILLED.get(tier, tier)


def _tier_of(options: ProviderSettings) -> str:
    return options.get("service_tier") or ""


def _tier_factor(price: Price | None, tier: str) -> float | None:
    """Return how much dearer than listed a service tier is; None where that is unknown."""
    return 1.0 if price is None else price.tier_factor(billed_tier(tier))


# --- limits of a model ------------------------------------------------------------------------------


def model_limits(terms: Terms, model: str) -> ModelLimits:
    """Return what admission needs to know of a model."""
    section, provider = terms.provider(model), model.partition("/")[0]
    asked, price = terms.in_every_role(model), price_under(terms, model)
    in_jobs = section.in_jobs
    return ModelLimits(
        concurrency=calls_at_once(terms, model),
        requests_per_minute=None if in_jobs else section.requests_per_minute,
        tokens_per_minute=None if in_jobs else section.tokens_per_minute,
        images_per_minute=None if in_jobs else section.images_per_minute,
        price=price,
        max_output_tokens=max(options.get("max_output_tokens") or 0 for options in asked),
        image_tokens=max(_image_tokens(terms, model, options) for options in asked),
        tier_factor=max(_tier_factor(price, _tier_of(options)) or 1.0 for options in asked),
        in_jobs=in_jobs,
        slow_start=not in_jobs and provider not in OPEN_MODELS,
        deadline_s=None if in_jobs or provider in OPEN_MODELS else _first_deadline(terms, model),
        outage_s=None if in_jobs else _outage_s(terms, provider),
    )


def calls_at_once(terms: Terms, model: str) -> int:
    """Return the most calls of a model in flight: as stated, else as many as keep every device here busy.

    With the default of 8, eight GPUs that take four edits together would be idle most of the time.
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
    devices = devices_of(terms, model)
    if not devices:
        return limits.concurrency
    return max(limits.concurrency, calls_in_flight(devices, section.get("batch_size")))


def devices_of(terms: Terms, model: str) -> tuple[str, ...]:
    """Return the devices that an open editor computes on, each in a process of its own; none for other models."""
    return device_names(terms.provider(model).get("device") or "") if model.startswith("diffusers/") else ()


def tasks_at_once(terms: Terms) -> int:
    """Return how many tasks are under way at once: as many as calls may be in flight."""
    return max((calls_at_once(terms, model) for model in terms.models), default=terms.limits.concurrency)


def _image_tokens(terms: Terms, model: str, options: ProviderSettings) -> int:
    """Return the most tokens that one edited image comes to, if known."""
    size, quality = options.get("image_size") or "", options.get("image_quality") or ""
    return image_token_range(terms.listed(model), size, quality)[2]


def _first_deadline(terms: Terms, model: str) -> float:
    """Return a call's first deadline: the shorter of the limits for calls and for the provider's requests."""
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
    """Return the run's budget from the journal: the cost of settled calls, and the possible cost of others.

    Calls that a kill left open, and calls whose answer never arrived, count with the usual cost of such calls until
    `plantain run retry --settle-held` records their cost. Calls that a batch job still answers count with the most that
    they can cost.
    """
    return Budget(
        limits.budget_usd,
        reader.spent_usd(),
        costs_of(reader),
        max_calls=limits.max_calls,
        calls=sum(reader.outcomes().values()) + len(reader.open_calls()),
    )


def costs_of(reader: JournalReader) -> dict[tuple[str, Step], StepCosts]:
    """Return the cost so far of each model and step, and the money reserved for calls of unknown cost."""
    return {
        key: StepCosts(
            money.latest, lost=money.lost, lost_most=money.lost_most, in_jobs_usd=money.in_jobs_usd
        )
        for key, money in money_by_step(reader.connection).items()
    }


def seconds_left(limits: Limits, reader: JournalReader) -> float | None:
    """Return the seconds until `limits.max_hours`, over all processes of the run; None without such a cap.

    A killed process counts up to a second before its end.
    """
    return None if limits.max_hours is None else limits.max_hours * 3600.0 - reader.seconds_worked()
